"""What to do instead: a lock and a store mode that survive what the policy plays, by the table of expected verdicts."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from harness.driver.expected import expected
from harness.driver.library import locks
from harness.driver.play import lock_named
from harness.driver.scenario import scenarios
from harness.driver.trial import STORES
from harness.gate.policy import LockChoice, Policy

TOKENS = (
    "With every grant this lock hands out a number that only grows, a fencing token. Send it along with every "
    "{accesses}, and have the resource refuse a number smaller than the largest it has seen: a worker that comes late "
    "is turned away instead of overwriting newer work."
)
ACCESSES = {"fence-writes": "write", "fence-reads-and-writes": "read and write"}
ELSE = (
    "If the resource cannot refuse anything, no lease can keep it safe: `lockstorm advise --for correctness --resource "
    "plain` lists what each lock survives."
)


@dataclass(frozen=True)
class Option:
    """A lock with a store mode, and how much of this policy it is known to survive."""

    lock: str
    store: str
    broken: tuple[str, ...]  # scenarios of the policy that break it, or that nobody knows about
    broken_elsewhere: int  # other scenarios that do

    def rank(self, now: LockChoice) -> tuple[Any, ...]:
        """The best is the smallest: what breaks least, then what changes least."""
        lock = lock_named(self.lock)
        likeness = (self.lock != now.name, not self.lock.startswith(now.name))
        return len(self.broken), self.broken_elsewhere, likeness, lock["nodes"] * (1 + lock["replicas"]), self.lock


def advise(policy: Policy, lock: LockChoice) -> dict[str, Any] | None:
    """What would survive more of this policy than this lock does, as far as the table knows; None: nothing would."""
    options = sorted(find_options(policy, lock), key=lambda option: option.rank(lock))
    now = option_of(policy, lock.name, lock.store, lock.require)
    best = options[0] if options else None
    if best is None or (best.lock, best.store) == (lock.name, lock.store) or len(best.broken) >= len(now.broken):
        return None
    return {
        "lock": best.lock,
        "store": best.store,
        "broken": list(best.broken),
        "text": text_of(best),
        "change": f'[[lock]]\nname = "{best.lock}"\nstore = "{best.store}"\n',
    }


def find_options(policy: Policy, lock: LockChoice) -> Iterable[Option]:
    """Who only asks that nobody waits for ever is not told to build a fence."""
    stores = STORES if {"integrity", "mutual_exclusion", "fencing"} & set(lock.require) else (lock.store,)
    for other in locks():
        for store in stores:
            if other["name"] != "none" and (store == "open" or other["token"]):
                require = lock.require if store == lock.store else policy.require[store]
                yield option_of(policy, other["name"], store, require)


def option_of(policy: Policy, name: str, store: str, require: tuple[str, ...]) -> Option:
    fit = [scenario for scenario, told in scenarios().items() if not told.unfit(lock_named(name))]
    broken = [scenario for scenario in fit if not survives(scenario, name, store, require)]
    own = tuple(scenario for scenario in broken if scenario in policy.play)
    return Option(name, store, own, len(broken) - len(own))


def survives(scenario: str, name: str, store: str, require: tuple[str, ...]) -> bool:
    told = expected().get((scenario, name, store))
    return told is not None and all(
        statuses.get(each, "holds") == "holds" for statuses in (told.fault, told.control) for each in require
    )


def text_of(option: Option) -> str:
    left = f" It is still broken by: {', '.join(option.broken)}." if option.broken else ""
    if option.store == "open":
        return f"Use {option.lock}.{left}"
    accesses = ACCESSES[option.store]
    late = accesses.replace("and", "or")
    words = f"Use {option.lock}, and a resource that refuses a late {late}.{left}"
    return f"{words} {TOKENS.format(accesses=accesses)} {ELSE}"
