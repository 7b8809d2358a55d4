"""The candidates of `lockstorm advise`: locks with a store mode, what they survive, and how they rank for some needs.

The cells say what a lock survives, and advice.toml which scenarios the operator of the servers can prevent.
"""

from collections.abc import Iterable
from functools import cache
from pathlib import Path

import msgspec

from lockstorm.base.errors import UsageError
from lockstorm.base.option_fields import choose
from lockstorm.base.read_file import read_json
from lockstorm.locks.lock_names import lock_named
from lockstorm.matrix.advice_result import Candidate, Needs
from lockstorm.matrix.matrix import expected_matrix
from lockstorm.native.library import locks, locks_on
from lockstorm.results.lock_entry import LockEntry
from lockstorm.results.matrix_result import MatrixCell
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
    "replicas": "a master with replicas; one of them takes over when it fails",
    "five": "five independent servers",
    "etcd": "etcd, a store built on consensus",
    "zookeeper": "ZooKeeper, a store built on consensus",
    "postgres": "a PostgreSQL database",
}
ON_REDIS = ("single", "replicas", "five")
NAMES_MOST = 6
CONTENTION = ("low", "high")
ADVICE = msgspec.toml.decode(Path(__file__).with_name("advice.toml").read_bytes())
PREVENTION = {name: how for how, names in ADVICE["prevention"].items() for name in names}  # by scenario


def candidate_rank(option: Candidate, needs: Needs) -> tuple[int, ...]:
    """Sort key; the smallest is the best. For correctness damage counts first, and unpreventable damage most. For
    efficiency a client that waits for ever is worse than work that is done twice; then the number of servers
    counts."""
    lock = lock_named(option.lock)
    effort = lock.nodes * (1 + lock.replicas)
    awkward = int(expires_too_early(lock, needs)) + int(needs.contention == "high" and lock.waits == "polling")
    if needs.purpose == "efficiency":
        return len(unpreventable(option.stuck)), effort, len(option.stuck), awkward
    failures = len(unpreventable(option.damaged)), len(unpreventable(option.stuck))
    return *failures, len(option.damaged), len(option.stuck), len(option.unknown), awkward, effort


def unpreventable(names: Iterable[str]) -> list[str]:
    """Those of these scenarios that no operator can prevent."""
    return [name for name in names if name not in PREVENTION]


def expires_too_early(lock: LockEntry, needs: Needs) -> bool:
    return bool((needs.hold_ms or 0) >= VIRTUAL_LEASE_MS and lock.lease and not lock.renews)


class PlayedCells(msgspec.Struct):
    """The part of the file that `matrix --json` writes that the advice needs."""

    cells: list[MatrixCell]


def read_cells(path: Path | None) -> tuple[list[MatrixCell], str]:
    """The cells of a file that `matrix --json` wrote (None: of the expected verdicts), and the name of their source."""
    if path is None:
        source = "scenarios/expected.toml, which every test run compares with trials on real servers"
        return expected_matrix().cells, source
    cells = read_json(path, PlayedCells, "lockstorm matrix --json prints such a file").cells
    if not cells:
        raise UsageError(f"{path} has no cells: lockstorm matrix --json prints such a file")
    for number, cell in enumerate(cells):
        check_cell(cell, f"{path}: cell {number}")
    return cells, f"{path}, {len(cells)} cells that were played"


def check_cell(cell: MatrixCell, where: str) -> None:
    names_of: dict[str, list[str]] = {
        "scenario": list(scenarios()),
        "lock": [lock.name for lock in locks()],
        "store": list(STORES),
        "result": list(WORST_FIRST),
        "control": list(WORST_FIRST),
    }
    for key, names in names_of.items():
        choose(f"{key} in {where}", getattr(cell, key), names)


def servers_of(lock: LockEntry) -> tuple[str, ...]:
    if lock.service != "redis":
        return (lock.service,)
    if lock.nodes >= MAJORITY_NODES:
        return ("five",)
    return ("replicas",) if lock.replicas else ("single", "replicas")


def can_happen(scenario: str, servers: str | None) -> bool:
    """Whether a scenario can happen with these servers: on Redis, a failover requires replicas."""
    settings = scenarios()[scenario].settings
    replicated = settings.get("replicas", 0) > 0 or settings.get("topology", "single") != "single"
    return servers not in ("single", "five") or not replicated


@cache
def scenarios_for(lock: str, store: str) -> list[str]:
    """The scenarios of a lock that are played with every lock to which they apply. A scenario that is restricted to a
    few locks would count against those locks only."""
    return [name for name, *pair in pairs() if pair == [lock, store] and not scenarios()[name].locks]


Cells = dict[tuple[str, str, str], MatrixCell]  # by scenario, lock and store


def cells_by_key(cells: Iterable[MatrixCell]) -> Cells:
    return {(cell.scenario, cell.lock, cell.store): cell for cell in cells}


def options_for(needs: Needs, cells: Iterable[MatrixCell]) -> list[Candidate]:
    """The candidates for these needs, the best first; equal ones in the order of the table of locks. Without servers:
    all on Redis, because locks of one service are played in the same scenarios."""
    service = "redis" if needs.servers in (None, *ON_REDIS) else needs.servers
    fitting = [lock for lock in locks_on(service) if not needs.servers or needs.servers in servers_of(lock)]
    return candidates_among(fitting, needs, cells_by_key(cells))


def candidates_among(fitting: Iterable[LockEntry], needs: Needs, by_key: Cells) -> list[Candidate]:
    """The candidates among these locks, the best first. An outbox gives out work and protects no resource."""
    options = []
    for lock in fitting:
        if lock.name == "none" or lock.once:
            continue
        for store in STORES_OF[needs.resource if lock.token else "plain"]:
            names = [name for name in scenarios_for(lock.name, store) if can_happen(name, needs.servers)]
            of_lock = {name: by_key.get((name, lock.name, store)) for name in names}
            options.append(candidate_of(lock.name, store, of_lock))
    return sorted(options, key=lambda option: candidate_rank(option, needs))


def best_of(needs: Needs, options: list[Candidate]) -> list[Candidate]:
    """The options with the same rank as the first."""
    return [option for option in options if candidate_rank(option, needs) == candidate_rank(options[0], needs)]


def candidate_of(lock: str, store: str, cells: dict[str, MatrixCell | None]) -> Candidate:
    outcomes = {name: advised_outcome(cell) for name, cell in cells.items()}
    by_outcome = {
        outcome: tuple(name for name, each in outcomes.items() if each == outcome)
        for outcome in ("survives", "damaged", "stuck", "unknown")
    }
    return Candidate(lock, store, **by_outcome)


def advised_outcome(cell: MatrixCell | None) -> str:
    """What a cell shows about a lock: a field of Candidate. If the control does not hold, the effect of the fault is
    unknown."""
    if cell is None or cell.control != "holds" or cell.result == "inconclusive":
        return "unknown"
    return {"holds": "survives", "fenced": "survives", "violated": "damaged", "stuck": "stuck"}[cell.result]


def names_in_short(names: Iterable[str], most: int = NAMES_MOST) -> str:
    names = list(names)
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
