"""Scenarios: a story about a lock, told once and run for every lock.

A scenario is a pytest function in scenarios/test_*.py, decorated with `scenario`, that takes a Trial. `lockstorm run`
calls the same function. What it is expected to show stands in scenarios/expected.toml.
"""

import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

from harness.driver import paths
from harness.driver.errors import UsageError
from harness.driver.services import is_table, real_time_reason
from harness.driver.trial import TOKEN_STORES, VIRTUAL_LEASE_MS, Store, Time

if TYPE_CHECKING:
    from harness.driver.trial import Trial


MONOTONIC = ("zookeeper",)  # services that count by such a clock

# What a scenario may need of a lock: the word, what a lock has to be (its entry in the table of locks), and how a lock
# that is not is told.
NEEDS: dict[str, tuple[Callable[[Mapping[str, Any]], bool], str]] = {
    "lease": (lambda lock: bool(lock["lease"]), "never expires"),
    "token": (lambda lock: bool(lock["token"]), "gives no fencing token"),
    "watchdog": (lambda lock: bool(lock["renews"]), "has no watchdog"),
    "one node": (lambda lock: lock["nodes"] == 1, "lives on several nodes"),
    "no replicas": (lambda lock: not lock["replicas"], "has a replica of its own"),
    "majority": (lambda lock: lock["nodes"] >= MAJORITY_NODES, "does not live on five nodes"),
    "push": (lambda lock: lock["waits"] == "push", "wakes its waiters without a message"),
    "told": (lambda lock: lock["waits"] in ("push", "blocking-pop"), "wakes nobody: its waiters look by themselves"),
    "re-entrant": (lambda lock: bool(lock["reentrant"]), "refuses its own holder"),
    "queue": (lambda lock: bool(lock["fair"]), "has no queue"),
    "no queue": (lambda lock: not lock["fair"], "has a queue: see dead-waiters"),
    "lock": (lambda lock: lock["name"] != "none", "is no lock"),
    "wall clock": (lambda lock: lock["service"] not in MONOTONIC, "goes by a monotonic clock, which nobody sets"),
    "outbox": (lambda lock: bool(lock["once"]), "is no outbox"),
    "steps": (lambda lock: not lock.get("adapter"), "is a library, inside which nothing can be held"),
}
MAJORITY_NODES = 5
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
    """One story. `control` says in words what its control does instead of the fault. `settings`: fields of the trial's
    settings that it needs otherwise than usual; `times`: the kinds of time in which it can be played; `stores`: the
    store modes that the table has it with; `gives_tokens`: the story has tokens of its own for every lock; `locks`: the
    only ones that it is told of, where a trial takes too long for all; `services`: what the nodes may be, for most
    faults of a server are a redis-server's; `outbox`: nobody wants again what was released, so it may be one;
    `real_on`: services on which it is played in real time all the same, for nothing moves their clocks."""

    name: str
    summary: str
    source: str
    control: str
    play: "Callable[[Trial], None]"
    counter: int = 0  # what the store's counter starts with
    virtual_lease_ms: int = VIRTUAL_LEASE_MS  # a shorter one where waiters ask all the time
    real_lease_ms: int = 400  # in real time, where somebody has to wait for it to run out
    real_control_lease_ms: int = 10_000  # in real time, where nobody may outlast it, on however busy a machine
    needs: tuple[str, ...] = ()  # of a lock: words of NEEDS
    settings: Mapping[str, Any] = field(default_factory=dict)
    times: tuple[Time, ...] = ("virtual", "real")
    options: tuple[str, ...] = ()  # of the command: what a user may choose in it, "clients" or "duration"
    stores: tuple[Store, ...] = USUAL_STORES
    gives_tokens: bool = False
    locks: tuple[str, ...] = ()
    services: tuple[str, ...] = REDIS
    outbox: bool = False
    real_on: tuple[str, ...] = ()

    def times_on(self, lock: Mapping[str, Any]) -> tuple[Time, ...]:
        """The kinds of time in which it can be played with this lock; none: its service knows only the other one."""
        if lock["service"] in self.real_on or (lock["real_time_only"] and "real" in self.times):
            return ("real",)
        return () if lock["real_time_only"] else self.times

    def suits(self, store: str, lock: Mapping[str, Any]) -> bool:
        """Whether that store lets clients of this lock in. A table is told of with locks on PostgreSQL, beside which it
        stands in life, and with few others: it costs a server."""
        told = not is_table(store) or lock["service"] == "postgres" or lock["name"] in TABLE_LOCKS
        return told and (store not in TOKEN_STORES or self.gives_tokens or bool(lock["token"]))

    def unfit(self, lock: Mapping[str, Any], store: str | None = None) -> str:
        """Why it is no story about this lock, with this store if one is given; empty when it is one."""
        if lock["service"] not in self.services:
            return f"{lock['name']} lives on {lock['service']}, and what happens here happens to {self.services[0]}"
        if not self.times_on(lock):
            return f"it is played in virtual time, and {lock['name']} cannot be: {real_time_reason(lock)}"
        if self.locks and lock["name"] not in self.locks:
            return f"it takes long, and is told of {', '.join(self.locks)} only"
        if lock["once"] and not self.outbox:
            return f"{lock['name']} gives out work, and nothing that is done is given out again"
        for word in self.needs:
            fits, otherwise = NEEDS[word]
            if not fits(lock):
                return f"{lock['name']} {otherwise}"
        if store and store not in self.stores:
            return f"it is told with {', '.join(self.stores)}, not with {store}"
        return ""


def scenario(
    name: str,
    *,
    summary: str,
    source: str,
    control: str,
    counter: int = 0,
    virtual_lease_ms: int = VIRTUAL_LEASE_MS,
    real_lease_ms: int = 400,
    needs: tuple[str, ...] = (),
    settings: Mapping[str, Any] | None = None,
    times: tuple[Time, ...] = ("virtual", "real"),
    options: tuple[str, ...] = (),
    stores: tuple[Store, ...] = USUAL_STORES,
    gives_tokens: bool = False,
    locks: tuple[str, ...] = (),
    services: tuple[str, ...] = REDIS,
    outbox: bool = False,
    real_on: tuple[str, ...] = (),
) -> "Callable[[Callable[[Trial], None]], Callable[[Trial], None]]":
    """Makes a function a scenario, without changing it."""

    def mark(play: "Callable[[Trial], None]") -> "Callable[[Trial], None]":
        told = Scenario(
            name,
            summary,
            source,
            control,
            play,
            counter,
            virtual_lease_ms,
            real_lease_ms,
            needs=needs,
            settings=settings or {},
            times=times,
            options=options,
            stores=stores,
            gives_tokens=gives_tokens,
            locks=locks,
            services=services,
            outbox=outbox,
            real_on=real_on,
        )
        play.scenario = told  # type: ignore[attr-defined]
        return play

    return mark


@cache
def scenarios() -> dict[str, Scenario]:
    """All scenarios by name, in the order of their names."""
    files = sorted((paths.ROOT / "scenarios").glob("test_*.py"))
    return scenarios_in([importlib.import_module(f"scenarios.{path.stem}") for path in files])


def scenarios_in(modules: Iterable[ModuleType]) -> dict[str, Scenario]:
    """Those of some modules; a name that two of them have is a UsageError: one would be played as the other."""
    found: dict[str, Scenario] = {}
    for module in modules:
        for value in vars(module).values():
            told = getattr(value, "scenario", None)
            if not isinstance(told, Scenario):
                continue
            if found.setdefault(told.name, told) is not told:
                first = found[told.name].play.__module__
                raise UsageError(f"two scenarios are called {told.name}, in {first} and {module.__name__}: rename one")
    return dict(sorted(found.items()))
