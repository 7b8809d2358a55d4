"""Advice from the matrix: which lock, with which store, survives what - and what nobody has measured.

What a lock survives is what the cells say. Known besides: which stories whoever runs the servers can keep from
happening, since a lock that only those break is better than one that a pause breaks.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from harness.driver.cells import WORST_FIRST
from harness.driver.errors import UsageError
from harness.driver.expected import pairs
from harness.driver.library import locks, locks_on
from harness.driver.matrix import told_matrix
from harness.driver.play import choose, lock_named
from harness.driver.scenario import MAJORITY_NODES, scenarios
from harness.driver.trial import STORES, VIRTUAL_LEASE_MS

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
MEMORY = "maxmemory-policy noeviction, and memory enough"
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
    "flush": "nobody but you may FLUSHALL (ACL)",
    "out-of-memory": MEMORY,
    "pause-replies-clock-back": STEADY_CLOCKS,
    "read-only": "no master that is made read-only under its clients",
    "restart-data-lost": SYNCED,
    "token-counter-failover": "no promotion of a replica that has not acknowledged the grant",
    "token-counter-restart": SYNCED,
}
NOT_MEASURED = (
    "Consul; and of etcd, ZooKeeper and databases what only their own stories show: each is compared with its own kind",
    "how often these faults happen to you, and how long they last: each cell is a schedule that can happen",
    "a resource that compares versions or owners itself, but for gc-pause with compare-and-set and random-token-cas",
    "what a lock costs: lockstorm compare measures that on your machine",
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
class Option:
    """A lock with a store mode, and what the stories made of it."""

    lock: str
    store: str
    survives: tuple[str, ...]  # scenarios; those that were fenced too
    damaged: tuple[str, ...]
    stuck: tuple[str, ...]
    unknown: tuple[str, ...]  # never played, inconclusive, or a control that does not hold

    @property
    def outcome(self) -> tuple[tuple[str, ...], ...]:
        return self.damaged, self.stuck, self.unknown

    def rank(self, needs: Needs) -> tuple[int, ...]:
        """The best is the smallest. For correctness damage counts first, above all what nobody can prevent. For
        efficiency somebody who waits for ever is worse than work that is done twice, and all that matters then is how
        much it takes."""
        lock = lock_named(self.lock)
        effort = lock["nodes"] * (1 + lock["replicas"])
        awkward = int(expires_too_early(lock, needs)) + int(needs.contention == "high" and lock["waits"] == "polling")
        if needs.purpose == "efficiency":
            return len(hard(self.stuck)), effort, len(self.stuck), awkward
        hopeless = len(hard(self.damaged)), len(hard(self.stuck))
        return *hopeless, len(self.damaged), len(self.stuck), len(self.unknown), awkward, effort


def hard(names: Iterable[str]) -> list[str]:
    """The stories among these that nobody can keep from happening."""
    return [name for name in names if name not in PREVENTION]


def expires_too_early(lock: dict[str, Any], needs: Needs) -> bool:
    return bool((needs.hold_ms or 0) >= VIRTUAL_LEASE_MS and lock["lease"] and not lock["renews"])


def read_cells(path: Path | None) -> tuple[list[dict[str, Any]], str]:
    """The cells of what `matrix --json` printed, or of the table of expected verdicts; and where they are from."""
    if path is None:
        told = "scenarios/expected.toml, which every test run holds against trials on real servers"
        return told_matrix()["cells"], told
    try:
        said = json.loads(path.read_text())
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except ValueError:
        raise UsageError(f"{path} is not JSON: lockstorm matrix --json prints what is wanted here") from None
    cells = said.get("cells") if isinstance(said, dict) else None
    if not isinstance(cells, list) or not cells:
        raise UsageError(f"{path} has no cells: lockstorm matrix --json prints what is wanted here")
    for number, cell in enumerate(cells):
        check_cell(cell, f"{path}: cell {number}")
    return cells, f"{path}, {len(cells)} cells that were played"


def check_cell(cell: object, where: str) -> None:
    known = {
        "scenario": list(scenarios()),
        "lock": [lock["name"] for lock in locks()],
        "store": list(STORES),
        "result": list(WORST_FIRST),
        "control": list(WORST_FIRST),
    }
    for key, names in known.items():
        value = cell.get(key) if isinstance(cell, dict) else None
        if not isinstance(value, str):
            raise UsageError(f"{where} says nothing about its {key}")
        choose(f"{key} in {where}", value, names)


def servers_of(lock: dict[str, Any]) -> tuple[str, ...]:
    """With which servers a lock can be used."""
    if lock["service"] == "etcd":
        return ("etcd",)
    if lock["nodes"] >= MAJORITY_NODES:
        return ("five",)
    return ("replicas",) if lock["replicas"] else ("single", "replicas")


def can_happen(scenario: str, servers: str | None) -> bool:
    """Whether a story can happen to these servers: only who has replicas can have a failover."""
    settings = scenarios()[scenario].settings
    replicated = settings.get("replicas", 0) > 0 or settings.get("topology", "single") != "single"
    return servers is None or servers == "replicas" or not replicated


@cache
def stories_of(lock: str, store: str) -> list[str]:
    """Those that are told of every lock that they fit: what only some were put to would tell against these."""
    return [name for name, *pair in pairs() if pair == [lock, store] and not scenarios()[name].locks]


def options_for(needs: Needs, cells: Iterable[dict[str, Any]]) -> list[Option]:
    """What can be used, the best first; equal ones in the order of the table of locks."""
    known = {(cell["scenario"], cell["lock"], cell["store"]): cell for cell in cells}
    options = []
    for lock in locks_on("etcd" if needs.servers == "etcd" else "redis"):  # of the same kind: told the same stories
        if lock["name"] == "none" or (needs.servers and needs.servers not in servers_of(lock)):
            continue
        for store in STORES_OF[needs.resource if lock["token"] else "plain"]:
            stories = [name for name in stories_of(lock["name"], store) if can_happen(name, needs.servers)]
            said = {name: known.get((name, lock["name"], store)) for name in stories}
            options.append(option_of(lock["name"], store, said))
    return sorted(options, key=lambda option: option.rank(needs))


def best_of(needs: Needs, options: list[Option]) -> list[Option]:
    """Those that nothing distinguishes from the first."""
    return [option for option in options if option.rank(needs) == options[0].rank(needs)]


def option_of(lock: str, store: str, cells: dict[str, dict[str, Any] | None]) -> Option:
    words = {name: word_of(cell) for name, cell in cells.items()}
    named = {
        word: tuple(name for name, said in words.items() if said == word)
        for word in ("survives", "damaged", "stuck", "unknown")
    }
    return Option(lock, store, **named)


def word_of(cell: dict[str, Any] | None) -> str:
    """What a cell says about a lock. Without a control that holds it says nothing about the fault."""
    if cell is None or cell["control"] != "holds" or cell["result"] == "inconclusive":
        return "unknown"
    return {"holds": "survives", "fenced": "survives", "violated": "damaged", "stuck": "stuck"}[cell["result"]]


def remarks_on(option: Option, needs: Needs) -> list[str]:
    """What follows from the traits of a lock, not from the matrix."""
    lock, remarks = lock_named(option.lock), []
    if needs.hold_ms and expires_too_early(lock, needs):
        remarks.append(f"nothing renews it: its lease has to be longer than {needs.hold_ms / 1000:g} s")
    if needs.hold_ms and lock["renews"]:
        remarks.append("a watchdog renews it as long as its process runs, even if the worker is stuck")
    if needs.contention == "high" and lock["waits"] == "polling":
        remarks.append("whoever waits polls: many who wait ask the server all the time")
    if needs.contention == "high" and not lock["fair"]:
        remarks.append("whoever waits may be overtaken")
    return remarks


def advise(needs: Needs, cells: list[dict[str, Any]], source: str) -> dict[str, Any]:
    """The options for these needs, the best first, and the table of decisions for all needs."""
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
        "sentence": sentence_of(needs, best),
        "recommended": [{"lock": option.lock, "store": option.store} for option in best],
        "prevention": {name: PREVENTION[name] for name in harmful if name in PREVENTION},
        "hopeless": hard(harmful),
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


def sentence_of(needs: Needs, best: list[Option]) -> str:
    """The answer."""
    first = best[0]
    if not (first.survives or first.damaged or first.stuck):
        return "Nothing is known about what could be used here."
    harm = first.stuck if needs.purpose == "efficiency" else first.damaged + first.stuck
    kept = "let the next one in" if needs.purpose == "efficiency" else "survived"
    tail = " What they do not survive costs work that is done twice." if needs.purpose == "efficiency" else ""
    if not harm:
        return f"These {kept} in every story that was played.{tail}"
    if not hard(harm):
        return f"These {kept} in every story but {len(harm)}, which can be prevented.{tail}"
    hopeless = len(hard(harm))
    return f"Nothing {kept} in every story. The closest failed in {len(harm)}, {hopeless} of which nobody can prevent."


def name_of(lock: str, store: str) -> str:
    return lock if store == "open" else f"{lock} with {store}"


def decisions(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each kind of need and of servers the best that was measured: the table that articles draw by experience."""
    rows = []
    for purpose, resource in (("efficiency", "plain"), ("correctness", "plain"), ("correctness", "checks-tokens")):
        for servers in SERVERS:
            needs = Needs(purpose, resource, servers)
            best = best_of(needs, options_for(needs, cells))
            rows.append(
                {
                    "for": purpose,
                    "resource": resource,
                    "servers": servers,
                    "best": [{"lock": option.lock, "store": option.store} for option in best],
                    "damaged": list(best[0].damaged),
                    "stuck": list(best[0].stuck),
                    "hopeless": hard(best[0].damaged + best[0].stuck),
                    "unknown": list(best[0].unknown),
                }
            )
    return rows
