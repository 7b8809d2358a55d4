"""Advice from the matrix: which lock survives which scenarios with which store, and what has not been measured.

The cells say what a lock survives. PREVENTION says which scenarios the operator of the servers can prevent: a lock that
fails only in those is better than one that fails after a pause.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from lockstorm.base.errors import UsageError
from lockstorm.base.option_fields import choose
from lockstorm.locks.lock_names import lock_named
from lockstorm.matrix.matrix import expected_matrix
from lockstorm.native.library import locks, locks_on
from lockstorm.results.lock_entry import LockEntry
from lockstorm.scenario.cells import WORST_FIRST
from lockstorm.scenario.expected import pairs
from lockstorm.scenario.scenario import MAJORITY_NODES, scenarios
from lockstorm.trial.settings import STORES, VIRTUAL_LEASE_MS

PURPOSES = {
    "efficiency": "a lock that fails costs work that is done twice",
    "correctness": "a lock that fails damages what it protects",
}
RESOURCES = {"plain": "takes every write", "checks-tokens": "refuses a token older than one it has seen"}
STORES_OF = {"plain": ("open",), "checks-tokens": ("open", "fence-writes", "fence-reads-and-writes")}
SERVERS = {
    "single": "one server",
    "replicas": "a master with replicas, one of which takes over when it fails",
    "five": "five independent servers",
    "etcd": "a store built on consensus: etcd, ZooKeeper, Consul",
}
CONTENTION = ("low", "high")
STEADY_CLOCKS = "clocks that are slewed and never stepped"
MEMORY = "maxmemory-policy noeviction, and enough memory"
SYNCED = "an append-only file that is synced before each answer (appendfsync always)"
PREVENTION = {
    "clock-back-server": STEADY_CLOCKS,
    "clock-jump-node": STEADY_CLOCKS,
    "clock-jump-server": STEADY_CLOCKS,
    "client-clock-ahead": STEADY_CLOCKS,
    "crash-restart-node": SYNCED,
    "delayed-restart-defeated": STEADY_CLOCKS,
    "drift-split-brain": STEADY_CLOCKS,
    "evict-all": MEMORY,
    "evict-idle": MEMORY,
    "evict-leases": MEMORY,
    "failover-clock-ahead": STEADY_CLOCKS,
    "failover-half-replicated": "no promotion of a replica that WAIT has not heard of",
    "failover-unreplicated": "no promotion of a replica that has not acknowledged the grant",
    "flush": "an ACL that reserves FLUSHALL for the operator",
    "out-of-memory": MEMORY,
    "pause-replies-clock-back": STEADY_CLOCKS,
    "read-only": "no master that is made read-only under its clients",
    "restart-data-lost": SYNCED,
    "token-counter-failover": "no promotion of a replica that has not acknowledged the grant",
    "token-counter-restart": SYNCED,
}
NOT_MEASURED = (
    "Consul; and scenarios for etcd, ZooKeeper or databases only: a lock is compared with locks of its own kind",
    "how often these faults happen to you, and how long they last: each cell is one schedule that can happen",
    "a resource that compares versions or owners itself, except in gc-pause (compare-and-set) and random-token-cas",
    "what a lock costs: lockstorm compare measures it on your machine",
    "your own code around the lock, and libraries in other languages",
)


@dataclass(frozen=True)
class Needs:
    purpose: str
    resource: str = "plain"
    servers: str | None = None
    hold_ms: int | None = None
    contention: str | None = None


@dataclass(frozen=True)
class Candidate:
    """A lock with a store mode, and its scenarios by outcome."""

    lock: str
    store: str
    survives: tuple[str, ...]  # scenarios, including those in which the store refused the damage
    damaged: tuple[str, ...]
    stuck: tuple[str, ...]
    unknown: tuple[str, ...]  # never played, inconclusive, or a control that does not hold

    @property
    def outcome(self) -> tuple[tuple[str, ...], ...]:
        return self.damaged, self.stuck, self.unknown

    def rank(self, needs: Needs) -> tuple[int, ...]:
        """Sort key; the smallest is the best. For correctness damage counts first, and unpreventable damage most. For
        efficiency a client that waits for ever is worse than work that is done twice; then the number of servers
        counts."""
        lock = lock_named(self.lock)
        effort = lock.nodes * (1 + lock.replicas)
        awkward = int(expires_too_early(lock, needs)) + int(needs.contention == "high" and lock.waits == "polling")
        if needs.purpose == "efficiency":
            return len(unpreventable(self.stuck)), effort, len(self.stuck), awkward
        failures = len(unpreventable(self.damaged)), len(unpreventable(self.stuck))
        return *failures, len(self.damaged), len(self.stuck), len(self.unknown), awkward, effort


def unpreventable(names: Iterable[str]) -> list[str]:
    """Those of these scenarios that no operator can prevent."""
    return [name for name in names if name not in PREVENTION]


def expires_too_early(lock: LockEntry, needs: Needs) -> bool:
    return bool((needs.hold_ms or 0) >= VIRTUAL_LEASE_MS and lock.lease and not lock.renews)


def read_cells(path: Path | None) -> tuple[list[dict[str, Any]], str]:
    """The cells of a file that `matrix --json` wrote (None: of the expected verdicts), and the name of their source."""
    if path is None:
        source = "scenarios/expected.toml, which every test run compares with trials on real servers"
        return expected_matrix()["cells"], source
    try:
        result = json.loads(path.read_text())
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except ValueError:
        raise UsageError(f"{path} is not JSON: lockstorm matrix --json prints such a file") from None
    cells = result.get("cells") if isinstance(result, dict) else None
    if not isinstance(cells, list) or not cells:
        raise UsageError(f"{path} has no cells: lockstorm matrix --json prints such a file")
    for number, cell in enumerate(cells):
        check_cell(cell, f"{path}: cell {number}")
    return cells, f"{path}, {len(cells)} cells that were played"


def check_cell(cell: object, where: str) -> None:
    names_of: dict[str, list[str]] = {
        "scenario": list(scenarios()),
        "lock": [lock.name for lock in locks()],
        "store": list(STORES),
        "result": list(WORST_FIRST),
        "control": list(WORST_FIRST),
    }
    for key, names in names_of.items():
        value = cell.get(key) if isinstance(cell, dict) else None
        if not isinstance(value, str):
            raise UsageError(f"{where} says nothing about its {key}")
        choose(f"{key} in {where}", value, names)


def servers_of(lock: LockEntry) -> tuple[str, ...]:
    """The kinds of servers with which a lock can be used."""
    if lock.service == "etcd":
        return ("etcd",)
    if lock.nodes >= MAJORITY_NODES:
        return ("five",)
    return ("replicas",) if lock.replicas else ("single", "replicas")


def can_happen(scenario: str, servers: str | None) -> bool:
    """Whether a scenario can happen with these servers: a failover requires replicas."""
    settings = scenarios()[scenario].settings
    replicated = settings.get("replicas", 0) > 0 or settings.get("topology", "single") != "single"
    return servers is None or servers == "replicas" or not replicated


@cache
def scenarios_for(lock: str, store: str) -> list[str]:
    """The scenarios of a lock that are played with every lock to which they apply. A scenario that is restricted to a
    few locks would count against those locks only."""
    return [name for name, *pair in pairs() if pair == [lock, store] and not scenarios()[name].locks]


def options_for(needs: Needs, cells: Iterable[dict[str, Any]]) -> list[Candidate]:
    """The candidates for these needs, the best first; equal ones in the order of the table of locks."""
    by_key = {(cell["scenario"], cell["lock"], cell["store"]): cell for cell in cells}
    options = []
    for lock in locks_on(
        "etcd" if needs.servers == "etcd" else "redis"
    ):  # locks of one kind are played in the same scenarios
        if lock.name == "none" or (needs.servers and needs.servers not in servers_of(lock)):
            continue
        for store in STORES_OF[needs.resource if lock.token else "plain"]:
            names = [name for name in scenarios_for(lock.name, store) if can_happen(name, needs.servers)]
            of_lock = {name: by_key.get((name, lock.name, store)) for name in names}
            options.append(candidate_of(lock.name, store, of_lock))
    return sorted(options, key=lambda option: option.rank(needs))


def best_of(needs: Needs, options: list[Candidate]) -> list[Candidate]:
    """The options with the same rank as the first."""
    return [option for option in options if option.rank(needs) == options[0].rank(needs)]


def candidate_of(lock: str, store: str, cells: dict[str, dict[str, Any] | None]) -> Candidate:
    outcomes = {name: advised_outcome(cell) for name, cell in cells.items()}
    by_outcome = {
        outcome: tuple(name for name, each in outcomes.items() if each == outcome)
        for outcome in ("survives", "damaged", "stuck", "unknown")
    }
    return Candidate(lock, store, **by_outcome)


def advised_outcome(cell: dict[str, Any] | None) -> str:
    """What a cell shows about a lock: a field of Candidate. If the control does not hold, the effect of the fault is
    unknown."""
    if cell is None or cell["control"] != "holds" or cell["result"] == "inconclusive":
        return "unknown"
    return {"holds": "survives", "fenced": "survives", "violated": "damaged", "stuck": "stuck"}[cell["result"]]


def remarks_on(option: Candidate, needs: Needs) -> list[str]:
    """Remarks that follow from the traits of a lock, not from the matrix."""
    lock, remarks = lock_named(option.lock), []
    if needs.hold_ms and expires_too_early(lock, needs):
        remarks.append(f"it has no watchdog: its lease has to be longer than {needs.hold_ms / 1000:g} s")
    if needs.hold_ms and lock.renews:
        remarks.append("a watchdog renews it as long as its process runs, even if the worker is stuck")
    if needs.contention == "high" and lock.waits == "polling":
        remarks.append("its waiters poll: many waiters load the server")
    if needs.contention == "high" and not lock.fair:
        remarks.append("a waiter may be overtaken")
    return remarks


def advise_locks(needs: Needs, cells: list[dict[str, Any]], source: str) -> dict[str, Any]:
    """The result as `advise --json` prints it: the options, the best first, and the table of decisions."""
    options = options_for(needs, cells)
    best = best_of(needs, options)
    harmful = sorted({name for option in best for name in option.damaged + option.stuck})
    return {
        "needs": {
            "for": needs.purpose,
            "resource": needs.resource,
            "servers": needs.servers,
            "hold_ms": needs.hold_ms,
            "contention": needs.contention,
        },
        "source": source,
        "sentence": advice_sentence(needs, best),
        "recommended": [{"lock": option.lock, "store": option.store} for option in best],
        "prevention": {name: PREVENTION[name] for name in harmful if name in PREVENTION},
        "unpreventable": unpreventable(harmful),
        "hopeless": unpreventable(harmful),  # the old name, until the next version
        "options": [
            {
                "lock": option.lock,
                "store": option.store,
                "survives": list(option.survives),
                "damaged": list(option.damaged),
                "stuck": list(option.stuck),
                "unknown": list(option.unknown),
                "remarks": remarks_on(option, needs),
            }
            for option in options
        ],
        "decisions": decisions(cells),
        "not_measured": list(NOT_MEASURED),
    }


def advice_sentence(needs: Needs, best: list[Candidate]) -> str:
    """The answer in a sentence."""
    first = best[0]
    if not (first.survives or first.damaged or first.stuck):
        return "Nothing is known about what could be used here."
    harm = first.stuck if needs.purpose == "efficiency" else first.damaged + first.stuck
    kept = "let the next client in" if needs.purpose == "efficiency" else "survived"
    tail = " What they do not survive costs work that is done twice." if needs.purpose == "efficiency" else ""
    if not harm:
        return f"These {kept} in every scenario that was played.{tail}"
    if not unpreventable(harm):
        return f"These {kept} in every scenario but {len(harm)}, which can be prevented.{tail}"
    count = len(unpreventable(harm))
    return f"Nothing {kept} in every scenario. The closest failed in {len(harm)}, {count} of which cannot be prevented."


def candidate_name(lock: str, store: str) -> str:
    return lock if store == "open" else f"{lock} with {store}"


def decisions(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The best candidates for each purpose, resource and kind of servers."""
    rows = []
    for purpose, resource in (("efficiency", "plain"), ("correctness", "plain"), ("correctness", "checks-tokens")):
        for servers in SERVERS:
            needs = Needs(purpose, resource, servers)
            best = best_of(needs, options_for(needs, cells))
            unprevented = unpreventable(best[0].damaged + best[0].stuck)
            rows.append(
                {
                    "for": purpose,
                    "resource": resource,
                    "servers": servers,
                    "best": [{"lock": option.lock, "store": option.store} for option in best],
                    "damaged": list(best[0].damaged),
                    "stuck": list(best[0].stuck),
                    "unpreventable": unprevented,
                    "hopeless": unprevented,  # the old name, until the next version
                    "unknown": list(best[0].unknown),
                }
            )
    return rows
