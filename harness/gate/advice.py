"""What to do instead: a lock and a store mode that survive what the policy plays, by the table of expected verdicts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from harness.driver.expected import expected
from harness.driver.library import locks_on
from harness.driver.lock_names import is_brought
from harness.driver.play import lock_named
from harness.driver.scenario import USUAL_STORES, scenarios
from harness.gate.policy import USUAL_REQUIRE, LockChoice, Policy

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
    harms: int  # of all scenarios, those that break what is required of it, or what somebody usually cares for
    damage: int  # ... those that break what is usually required

    def rank(self, now: LockChoice) -> tuple[Any, ...]:
        """The best is the smallest: what does least harm, then what changes least. To those who do not care for data a
        server more than is needed is too much."""
        lock = lock_named(self.lock)
        count = lock["nodes"] * (1 + lock["replicas"])
        change = (self.lock != now.name, -alike(self.lock, now.name))
        if cares_for_data(now):
            return self.harms, len(self.broken), *change, count, self.lock
        return len(self.broken), count, self.harms, *change, self.damage, self.lock


def alike(one: str, other: str) -> int:
    """How many letters two names begin with alike: variants of a lock are called alike."""
    same = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return len(list(same))


def advise(policy: Policy, lock: LockChoice, failed: Sequence[str]) -> dict[str, Any] | None:
    """What would survive more of this policy than this lock does, as far as the table knows; None: nothing would. Where
    only a storm broke it, of which the table knows nothing: what does less harm in all stories. Of a lock that is
    brought along the table knows nothing either: what it `failed` is what there is."""
    now = option_of(policy, lock, lock.name, lock.store)
    if is_brought(lock.name):
        now = replace(now, broken=tuple(name for name in failed if name in scenarios()))
    options = list(find_options(policy, lock))
    better = [option for option in options if len(option.broken) < len(now.broken)]
    if not now.broken:
        better = [option for option in options if not option.broken and option.harms < now.harms]
    if not better:
        return None
    best = min(better, key=lambda option: option.rank(lock))
    return {
        "lock": best.lock,
        "store": best.store,
        "broken": list(best.broken),
        "text": text_of(best, "a lock that works as " if is_brought(lock.name) else ""),
        "change": f'[[lock]]\nname = "{best.lock}"\nstore = "{best.store}"\n',
    }


def cares_for_data(lock: LockChoice) -> bool:
    return bool({"integrity", "mutual_exclusion", "fencing"} & set(lock.require))


def find_options(policy: Policy, lock: LockChoice) -> Iterable[Option]:
    """Locks on the same kind of servers: of others, other stories are told, and nobody has them for the asking. Whoever
    only asks that nobody waits for ever is not told to build a fence."""
    stores = USUAL_STORES if cares_for_data(lock) else (lock.store,)
    for other in locks_on(lock_named(lock.name)["service"]):
        for store in stores:
            if other["name"] != "none" and (store == "open" or other["token"]):
                yield option_of(policy, lock, other["name"], store)


def option_of(policy: Policy, lock: LockChoice, name: str, store: str) -> Option:
    """A lock that damages nothing because it never expires leaves somebody waiting for ever elsewhere: to those who
    care for data that is a harm even where their policy does not ask."""
    require = lock.require if store == lock.store else policy.require[store]
    traits = lock_named(name)
    told_of_all = {scenario: told for scenario, told in scenarios().items() if not told.locks}
    fit = [scenario for scenario, told in told_of_all.items() if not told.unfit(traits, store)]
    broken = [scenario for scenario in fit if scenario in policy.play and not survives(scenario, name, store, require)]
    own = sum(not survives(scenario, name, store, require) for scenario in fit)
    whole = sum(not survives(scenario, name, store, {*require, *USUAL_REQUIRE[store]}) for scenario in fit)
    return Option(name, store, tuple(broken), whole if cares_for_data(lock) else own, whole)


def survives(scenario: str, name: str, store: str, require: Iterable[str]) -> bool:
    told = expected().get((scenario, name, store))
    return told is not None and all(
        statuses.get(each, "holds") == "holds" for statuses in (told.fault, told.control) for each in require
    )


def text_of(option: Option, such: str) -> str:
    left = f" It is still broken by: {', '.join(option.broken)}." if option.broken else ""
    if option.store == "open":
        return f"Use {such}{option.lock}.{left}"
    accesses = ACCESSES[option.store]
    late = accesses.replace("and", "or")
    words = f"Use {such}{option.lock}, and a resource that refuses a late {late}.{left}"
    return f"{words} {TOKENS.format(accesses=accesses)} {ELSE}"
