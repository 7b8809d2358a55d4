"""Advice from the matrix: which lock, with which store, survives what - and what nobody has measured.

Nothing is known here beyond the cells: what harms a need, and what would prevent it, are the scenarios' own words.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.driver.cells import WORST_FIRST
from harness.driver.errors import UsageError
from harness.driver.library import locks
from harness.driver.matrix import told_matrix
from harness.driver.play import choose, lock_named
from harness.driver.scenario import MAJORITY_NODES, scenarios
from harness.driver.trial import STORES, VIRTUAL_LEASE_MS

PURPOSES = {
    "efficiency": "a lock that fails costs work that is done twice",
    "correctness": "a lock that fails damages what it protects",
}
RESOURCES = {"plain": "takes every write", "checks-tokens": "refuses a token older than one it has seen"}
SERVERS = {
    "single": "one server",
    "replicas": "a master with replicas, one of which takes over when it fails",
    "five": "five independent servers",
    "etcd": "a store built on consensus: etcd, ZooKeeper, Consul",
}
MEASURED = tuple(SERVERS)[:3]
CONTENTION = ("low", "high")
NOT_MEASURED = (
    "etcd, ZooKeeper, Consul and databases: none of them is in the matrix",
    "how often these faults happen to you, and how long they last: each cell is a schedule that can happen",
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

    def rank(self, purpose: str) -> tuple[int, ...]:
        """The best is the smallest. For correctness damage counts first. For efficiency somebody who waits for ever is
        worse than work that is done twice, and a server more than is needed is too much."""
        lock = lock_named(self.lock)
        count = lock["nodes"] * (1 + lock["replicas"])
        if purpose == "correctness":
            return len(self.damaged), len(self.stuck), len(self.unknown), count
        return len(self.stuck), count, len(self.damaged), len(self.unknown)


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
    if lock["nodes"] >= MAJORITY_NODES:
        return ("five",)
    return ("replicas",) if lock["replicas"] else ("single", "replicas")


def can_happen(scenario: str, servers: str | None) -> bool:
    """Whether a story can happen to these servers: only who has replicas can have a failover."""
    settings = scenarios()[scenario].settings
    replicated = settings.get("replicas", 0) > 0 or settings.get("topology", "single") != "single"
    return servers is None or servers == "replicas" or not replicated


def options_for(needs: Needs, cells: Iterable[dict[str, Any]]) -> list[Option]:
    """What can be used, the best first; equal ones in the order of the table of locks."""
    known = {(cell["scenario"], cell["lock"], cell["store"]): cell for cell in cells}
    options = []
    for lock in locks():
        if lock["name"] == "none" or (needs.servers and needs.servers not in servers_of(lock)):
            continue
        stories = [name for name, told in scenarios().items() if can_happen(name, needs.servers)]
        stories = [name for name in stories if not scenarios()[name].unfit(lock)]
        for store in STORES if lock["token"] and needs.resource == "checks-tokens" else STORES[:1]:
            options.append(option_of(lock["name"], store, {name: known.get((name, lock["name"], store)) for name in stories}))
    return sorted(options, key=lambda option: option.rank(needs.purpose))


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
    if needs.hold_ms and needs.hold_ms >= VIRTUAL_LEASE_MS and lock["lease"] and not lock["renews"]:
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
    best = [option for option in options if option.rank(needs.purpose) == options[0].rank(needs.purpose)]
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
        "prevention": {name: scenarios()[name].control for option in best for name in option.damaged + option.stuck},
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
    if not best:
        where = SERVERS[needs.servers] if needs.servers else "these needs"
        return f"Nothing was measured for {where}."
    first, names = best[0], ", ".join(name_of(option.lock, option.store) for option in best)
    unknown = f" {len(first.unknown)} more say nothing yet." if first.unknown else ""
    played = len(first.survives + first.damaged + first.stuck)
    if not played:
        return f"Nothing is known about {names}."
    if not first.damaged and not first.stuck:
        return f"{names}: survived all {played} stories that were played.{unknown}"
    harms = [f"{len(names_)} {word}" for names_, word in ((first.damaged, "do damage"), (first.stuck, "leave somebody waiting")) if names_]
    if needs.purpose == "correctness":
        return f"Nothing survives everything. Closest: {names}. Of {played} stories, {' and '.join(harms)}.{unknown}"
    return f"{names}: of {played} stories, {' and '.join(harms)}, which for efficiency means work done twice.{unknown}" if not first.stuck else f"{names}: of {played} stories, {' and '.join(harms)}.{unknown}"


def name_of(lock: str, store: str) -> str:
    return lock if store == "open" else f"{lock} with {store}"


def decisions(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For every kind of need and of servers the best that was measured: the table that articles draw from experience."""
    rows = []
    for purpose, resource in (("efficiency", "plain"), ("correctness", "plain"), ("correctness", "checks-tokens")):
        for servers in MEASURED:
            options = options_for(Needs(purpose, resource, servers), cells)
            best = [option for option in options if option.rank(purpose) == options[0].rank(purpose)]
            rows.append(
                {
                    "for": purpose,
                    "resource": resource,
                    "servers": servers,
                    "best": [{"lock": option.lock, "store": option.store} for option in best],
                    "damaged": list(best[0].damaged),
                    "stuck": list(best[0].stuck),
                    "unknown": list(best[0].unknown),
                }
            )
    return rows
