"""Advice after a failure: the lock and store mode that survive most of the policy by the expected verdicts.

Decision 0054.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from lockstorm.gate.gate_policy import USUAL_REQUIRE, LockChoice, Policy
from lockstorm.locks.lock_names import AS_ASKED, is_user_supplied, lock_named
from lockstorm.native.library import locks_on
from lockstorm.results.gate_verdict import LockAdvice
from lockstorm.scenario.expected import expected
from lockstorm.scenario.scenario import USUAL_STORES, scenarios

FENCE_TEXT = (
    "With every grant this lock hands out a number that only grows, a fencing token. Send it along with every "
    "{accesses}, and have the resource refuse a number smaller than the largest it has seen: a worker that comes late "
    "is turned away instead of overwriting newer work."
)
ACCESSES = {"fence-writes": "write", "fence-reads-and-writes": "read and write"}
NO_FENCE_TEXT = (
    "If the resource cannot refuse anything, no lease can keep it safe: `lockstorm advise --for correctness --resource "
    "plain` lists what each lock survives."
)


@dataclass(frozen=True)
class Alternative:
    """A lock with a store mode, and how much of this policy it survives by the table."""

    lock: str
    store: str
    broken: tuple[str, ...]  # scenarios of the policy that break it, or without a verdict in the table
    harms: int  # number of all scenarios that break a property that counts for this user (alternative_of)
    damage: int  # number of all scenarios that break a property required by the policy or by default

    def rank(self, now: LockChoice) -> tuple[int | str, ...]:
        """A sort key, the best first. If the policy is about data: the least harm, the fewest broken scenarios, then
        the smallest change from `now`. Otherwise: the fewest broken scenarios, then the fewest servers."""
        lock = lock_named(self.lock)
        count = lock.nodes * (1 + lock.replicas)
        same = takewhile(lambda pair: pair[0] == pair[1], zip(self.lock, now.name, strict=False))
        change = (self.lock != now.name, -len(list(same)))  # variants of a lock share a prefix
        if protects_data(now):
            return self.harms, len(self.broken), *change, count, self.lock
        return len(self.broken), count, self.harms, *change, self.damage, self.lock


def advise_instead(policy: Policy, lock: LockChoice, failed: Sequence[str]) -> LockAdvice | None:
    """The alternative that survives more of this policy than `lock` does; None: the table has none. The table does not
    cover storms: if only a storm broke the lock, the alternative has less harm over all scenarios. Nor does it cover
    user-supplied locks: for those, `failed` has the scenarios and storms that broke it in this run."""
    now = alternative_of(policy, lock, lock.name, lock.store)
    if is_user_supplied(lock.name):
        now = replace(now, broken=tuple(name for name in failed if name in scenarios()))
    options = list(find_alternatives(policy, lock))
    better = [option for option in options if len(option.broken) < len(now.broken)]
    if not now.broken:
        better = [option for option in options if not option.broken and option.harms < now.harms]
    if not better:
        return None
    best = min(better, key=lambda option: option.rank(lock))
    own = is_user_supplied(lock.name)  # a policy that names another lock would leave production as it is
    return LockAdvice(
        lock=best.lock,
        store=best.store,
        broken=list(best.broken),
        text=alternative_text(best, "a lock that works as " if own else ""),
        change="" if own else f'[[lock]]\nname = "{best.lock}"\nstore = "{best.store}"\n',
    )


def protects_data(lock: LockChoice) -> bool:
    return bool({"integrity", "mutual_exclusion", "fencing"} & set(lock.require))


def find_alternatives(policy: Policy, lock: LockChoice) -> Iterable[Alternative]:
    """Locks on the same kind of server: other servers have other scenarios, and replacing a server is not a small
    change. Only a semaphore replaces a semaphore. If the policy requires nothing about data, the store mode stays: a
    fence would not help."""
    stores = USUAL_STORES if protects_data(lock) else (lock.store,)
    several = (lock.request.permits or 1) > 1
    for other in locks_on(lock_named(lock.name).service):
        if several and (other.capacity != AS_ASKED or other.once):
            continue
        for store in stores:
            if other.name != "none" and (store == "open" or other.token):
                yield alternative_of(policy, lock, other.name, store)


def alternative_of(policy: Policy, lock: LockChoice, name: str, store: str) -> Alternative:
    """A lock without expiry damages no data, but a crash of its holder blocks all waiters for ever. So if the policy is
    about data, `harms` counts the default requirements too, which include liveness."""
    require = lock.require if store == lock.store else policy.require[store]
    traits = lock_named(name)
    general = {each: scenario for each, scenario in scenarios().items() if not scenario.locks}
    applicable = [each for each, scenario in general.items() if not scenario.inapplicable_reason(traits, store)]
    broken = [each for each in applicable if each in policy.play and not survives(each, name, store, require)]
    required = sum(not survives(each, name, store, require) for each in applicable)
    damage = sum(not survives(each, name, store, {*require, *USUAL_REQUIRE[store]}) for each in applicable)
    return Alternative(name, store, tuple(broken), damage if protects_data(lock) else required, damage)


def survives(scenario: str, name: str, store: str, require: Iterable[str]) -> bool:
    cell = expected().get((scenario, name, store))
    return cell is not None and all(
        statuses.get(each, "holds") == "holds" for statuses in (cell.fault, cell.control) for each in require
    )


def alternative_text(option: Alternative, prefix: str) -> str:
    left = f" It is still broken by: {', '.join(option.broken)}." if option.broken else ""
    if option.store == "open":
        return f"Use {prefix}{option.lock}.{left}"
    accesses = ACCESSES[option.store]
    late = accesses.replace("and", "or")
    words = f"Use {prefix}{option.lock}, and a resource that refuses a late {late}.{left}"
    return f"{words} {FENCE_TEXT.format(accesses=accesses)} {NO_FENCE_TEXT}"
