"""Scenarios: a schedule of clients and faults, written once and played with every lock.

A scenario is a pytest function in scenarios/test_*.py, decorated with `scenario`, that takes a Trial. `lockstorm run`
calls the same function. scenarios/expected.toml contains its expected verdicts.
"""

import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from lockstorm.base import paths
from lockstorm.base.errors import UsageError
from lockstorm.locks.adapter import searched_only_reason
from lockstorm.results.lock_entry import LockEntry, Topology
from lockstorm.servers.services import is_table, real_time_reason
from lockstorm.trial.settings import TOKEN_STORES, VIRTUAL_LEASE_MS, Store, Time

if TYPE_CHECKING:
    from lockstorm.trial.trial import Trial


REAL_LEASE_MS = 400  # in real time, where a client waits for its end; more than twice what the scenario waits
REAL_CONTROL_LEASE_MS = 10_000  # in real time, where it must not end, even on a busy machine
MONOTONIC = ("zookeeper",)  # services that measure leases by a monotonic clock

# What a scenario may need of a lock: its name, the condition on the lock's entry in the table of locks, and the reason
# for a lock that does not meet it ("told": a release notifies a waiter).
NEEDS: dict[str, tuple[Callable[[LockEntry], bool], str]] = {
    "lease": (lambda lock: bool(lock.lease), "never expires"),
    "token": (lambda lock: bool(lock.token), "gives no fencing token"),
    "watchdog": (lambda lock: bool(lock.renews), "has no watchdog"),
    "one node": (lambda lock: lock.nodes == 1, "lives on several nodes"),
    "no replicas": (lambda lock: not lock.replicas, "has a replica of its own"),
    "majority": (lambda lock: lock.nodes >= MAJORITY_NODES, "does not live on five nodes"),
    "push": (lambda lock: lock.waits == "push", "wakes its waiters without a message"),
    "told": (lambda lock: lock.waits in ("push", "blocking-pop"), "notifies no waiter: its waiters poll"),
    "renewable": (lambda lock: bool(lock.renewable), "cannot be renewed by its holder"),
    "re-entrant": (lambda lock: bool(lock.reentrant), "refuses its own holder"),
    "queue": (lambda lock: bool(lock.fair), "has no queue"),
    "no queue": (lambda lock: not lock.fair, "has a queue: see dead-waiters"),
    "lock": (lambda lock: lock.name != "none", "is no lock"),
    "wall clock": (lambda lock: lock.service not in MONOTONIC, "uses a monotonic clock, which cannot be set"),
    "outbox": (lambda lock: bool(lock.once), "is no outbox"),
}
MAJORITY_NODES = 5
# What fails in a scenario, as the rooms of the faults divide it. Tables of scenarios go by this order.
KINDS = {
    "client": "a client is paused, ends, or does something at the wrong moment",
    "network": "messages are late or lost, connections end",
    "clock": "a clock is wrong",
    "server": "a server stops, or loses data",
    "replication": "another server takes over",
    "load": "many clients at once, and nothing fails",
}
REDIS = ("redis",)
ANY_SERVICE = ("redis", "postgres", "etcd", "zookeeper")
USUAL_STORES: tuple[Store, ...] = ("open", "fence-writes", "fence-reads-and-writes")
TABLE_STORES: tuple[Store, ...] = (
    "table-open",
    "table-fence-writes",
    "table-fence-reads-and-writes",
    "table-compare-and-set",
)
TABLE_LOCKS = ("redlock", "set-nx-px-fenced")


@dataclass(frozen=True)
class Scenario:
    """`control`: what the control does instead of the fault, in words. `kind`: of KINDS; empty: a user's scenario.
    `settings`: fields of the trial's settings that differ from the defaults. `times`: the kinds of time in which it can
    be played. `stores`: its store modes in the table of expected verdicts. `gives_tokens`: the scenario supplies
    fencing tokens. `locks`: the only locks that it is played with, where a trial takes too long for all. `services`:
    the services of the locks that it applies to; most server faults exist for redis-servers only. `outbox`: no client
    acquires again what was released, so the lock may be an outbox. `real_on`: services with which it is played in real
    time only, as their clock cannot be set. `inside`: a client is held inside its lock; inside a library that is
    possible in virtual time only.

    As a decorator it takes the function that plays it, and becomes its attribute `scenario`. The function itself stays
    as it is."""

    name: str
    summary: str
    source: str
    control: str
    kind: str = ""
    play: "Callable[[Trial], None]" = lambda _: None
    counter: int = 0  # initial value of the store's counter
    virtual_lease_ms: int = VIRTUAL_LEASE_MS  # shorter where waiters poll without a pause
    real_lease_ms: int = REAL_LEASE_MS
    real_control_lease_ms: int = REAL_CONTROL_LEASE_MS
    needs: tuple[str, ...] = ()  # of a lock: keys of NEEDS
    settings: Mapping[str, Any] = field(default_factory=dict)
    times: tuple[Time, ...] = ("virtual", "real")
    options: tuple[str, ...] = ()  # of `lockstorm run` that apply to it: "clients" or "duration"
    stores: tuple[Store, ...] = USUAL_STORES
    gives_tokens: bool = False
    locks: tuple[str, ...] = ()
    services: tuple[str, ...] = REDIS
    outbox: bool = False
    real_on: tuple[str, ...] = ()
    inside: bool = False

    def __call__(self, play: "Callable[[Trial], None]") -> "Callable[[Trial], None]":
        play.scenario = replace(self, play=play)  # type: ignore[attr-defined]
        return play

    def times_on(self, lock: LockEntry) -> tuple[Time, ...]:
        """The kinds of time in which it can be played with this lock; or empty."""
        if lock.adapter and self.inside:
            return ("virtual",)
        if lock.service in self.real_on or (lock.real_time_only and "real" in self.times):
            return ("real",)
        return () if lock.real_time_only else self.times

    def suits(self, store: str, lock: LockEntry) -> bool:
        """Whether the scenario is played with this store and this lock. A store that checks tokens needs tokens. A
        table needs a database server: locks on PostgreSQL have one, and only a few others are played with tables."""
        has_server = not is_table(store) or lock.service == "postgres" or lock.name in TABLE_LOCKS
        return has_server and (store not in TOKEN_STORES or self.gives_tokens or bool(lock.token))

    @property
    def topology(self) -> Topology:
        return cast(Topology, self.settings.get("topology", "single"))

    def inapplicable_reason(
        self, lock: LockEntry, store: str | None = None, *, topologies: tuple[Topology, ...] = ()
    ) -> str:
        """Why the scenario does not apply to this lock (with this store, if one is given); empty if it applies.
        `topologies`: those that a team runs; a scenario about them is then played with every lock."""
        if lock.service not in self.services:
            return f"{lock.name} lives on {lock.service}, and the scenario is for locks on {' or '.join(self.services)}"
        if reason := searched_only_reason(lock):
            return reason
        if not self.times_on(lock):
            return f"it is played in virtual time, and {lock.name} cannot be: {real_time_reason(lock)}"
        if self.locks and lock.name not in self.locks and self.topology not in topologies:
            return f"it takes long, and is played with {', '.join(self.locks)} only"
        if lock.once and not self.outbox:
            return f"{lock.name} gives out work, and does not give out again what is done"
        for need in self.needs:
            is_met, otherwise = NEEDS[need]
            if not is_met(lock):
                return f"{lock.name} {otherwise}"
        if store and store not in self.stores:
            return f"it is played with {', '.join(self.stores)}, not with {store}"
        return ""


scenario = Scenario  # as a decorator


@cache
def scenarios() -> dict[str, Scenario]:
    files = sorted((paths.ROOT / "scenarios").glob("test_*.py"))
    return scenarios_in([importlib.import_module(f"{paths.SCENARIOS}.{path.stem}") for path in files])


def scenarios_in(modules: Iterable[ModuleType]) -> dict[str, Scenario]:
    """The scenarios of some modules. Raises UsageError if two have the same name."""
    found: dict[str, Scenario] = {}
    for module in modules:
        for value in vars(module).values():
            each = getattr(value, "scenario", None)
            if not isinstance(each, Scenario):
                continue
            if found.setdefault(each.name, each) is not each:
                first = found[each.name].play.__module__
                raise UsageError(f"two scenarios are called {each.name}, in {first} and {module.__name__}: rename one")
    return dict(sorted(found.items()))
