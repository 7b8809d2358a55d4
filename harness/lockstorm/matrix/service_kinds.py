"""Kinds of services side by side: the best lock of each kind for some needs, what breaks it, and what it costs.

Different kinds meet different scenarios, so counts over all scenarios of a kind do not compare. `shared` has the
scenarios that were played with the best lock of every kind: their results compare.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from lockstorm.base.errors import UsageError
from lockstorm.locks.lock_names import lock_named
from lockstorm.matrix.candidates import (
    PREVENTION,
    Candidate,
    Cells,
    Needs,
    candidate_name,
    candidates_among,
    cells_by_key,
    servers_of,
)
from lockstorm.matrix.remedies import cautions
from lockstorm.native.library import locks
from lockstorm.results.lock_entry import LockEntry, Waits
from lockstorm.scenario.scenario import scenarios

JUDGED = ("mutual_exclusion", "integrity", "liveness")
WAITS_SIMPLEST_FIRST: tuple[str, ...] = get_args(Waits)
TRAITS = ("lease", "token", "reentrant", "fair", "renews")
MEASURED = ("requests_per_grant", "cost_ratio")  # of one client, by lockstorm compare


@dataclass(frozen=True)
class ServiceKind:
    """`servers`: a key of SERVERS; scenarios that cannot happen there do not count."""

    name: str
    title: str
    servers: str
    has: Callable[[LockEntry], bool]


def on_redis(servers: str) -> Callable[[LockEntry], bool]:
    return lambda lock: servers in servers_of(lock)


KINDS = (
    ServiceKind("redis", "one Redis server", "single", on_redis("single")),
    ServiceKind("redis-replicas", "Redis with replicas", "replicas", on_redis("replicas")),
    ServiceKind("redlock", "Redlock on five Redis", "five", on_redis("five")),
    ServiceKind(
        "postgres-session",
        "PostgreSQL session",
        "postgres",
        lambda lock: lock.service == "postgres" and not lock.lease and not lock.transaction,
    ),
    ServiceKind(
        "postgres-transaction",
        "PostgreSQL transaction",
        "postgres",
        lambda lock: lock.service == "postgres" and lock.transaction,
    ),
    ServiceKind(
        "postgres-lease",
        "PostgreSQL lease row",
        "postgres",
        lambda lock: lock.service == "postgres" and lock.lease,
    ),
    ServiceKind("etcd", "etcd", "etcd", lambda lock: lock.service == "etcd"),
    ServiceKind("zookeeper", "ZooKeeper", "zookeeper", lambda lock: lock.service == "zookeeper"),
)


def compare_kinds(needs: Needs, cells: Iterable[dict[str, Any]], costs: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """As `advise --json` prints it: `shared`, the scenarios that compare; and `rows`, the kind that survives most of
    them first; of equal ones, that with less damage, for efficiency that with fewer servers. For efficiency a lock
    survives what leaves nobody waiting."""
    by_key = cells_by_key(cells)
    best = {kind: best_of_kind(kind, needs, by_key) for kind in KINDS}
    shared = shared_scenarios(options[0] for options in best.values())
    rows = [kind_row(kind, needs, options, shared, by_key, costs) for kind, options in best.items()]
    rows.sort(key=lambda row: row_rank(row, needs))
    return {
        "sentence": kinds_sentence(needs, rows, shared),
        "cautions": cautions(needs, [options[0] for options in best.values()]),
        "shared": shared,
        "rows": rows,
    }


def row_rank(row: dict[str, Any], needs: Needs) -> tuple[int, int]:
    if needs.purpose == "efficiency":
        return -row["shared_survived"], row["cost"]["servers"]
    return -row["shared_survived"], list(row["shared"].values()).count("violated")


def best_of_kind(kind: ServiceKind, needs: Needs, by_key: Cells) -> list[Candidate]:
    """The best candidates of a kind, which have the same rank; the simplest lock first."""
    at_hand = replace(needs, servers=kind.servers)
    options = candidates_among([lock for lock in locks() if kind.has(lock)], at_hand, by_key)
    best = [option for option in options if option.rank(at_hand) == options[0].rank(at_hand)]
    return sorted(best, key=simplicity)


def simplicity(option: Candidate) -> tuple[int, int, int]:
    """Sort key for candidates that rank alike: how a client waits, what the lock can do, and what damages it."""
    lock = lock_named(option.lock)
    traits = sum(getattr(lock, name) for name in TRAITS)
    return WAITS_SIMPLEST_FIRST.index(lock.waits), traits, len(option.damaged)


def shared_scenarios(options: Iterable[Candidate]) -> list[str]:
    """The scenarios that are known for all of these, without those of which nothing is known at all; a scenario that
    breaks few of them comes first."""
    known = [option for option in options if option.known]
    names = set.intersection(*(set(option.known) for option in known)) if known else set()
    broken = Counter(name for option in known for name in option.damaged + option.stuck)
    return sorted(names, key=lambda name: (broken[name], name))


def kind_row(
    kind: ServiceKind,
    needs: Needs,
    options: list[Candidate],
    shared: list[str],
    by_key: Cells,
    costs: dict[str, dict[str, Any]],
) -> dict[str, Any]:
    best = options[0]
    survived = best.survives if needs.purpose == "correctness" else best.survives + best.damaged
    known = {name: by_key[name, best.lock, best.store] for name in best.known}
    return {
        "kind": kind.name,
        "title": kind.title,
        "lock": best.lock,
        "store": best.store,
        "equal": [candidate_name(option.lock, option.store) for option in options[1:]],
        "survives": list(best.survives),
        "damaged": list(best.damaged),
        "stuck": list(best.stuck),
        "unknown": list(best.unknown),
        "shared": {name: known[name]["result"] for name in shared if name in known},
        "shared_survived": len(set(shared) & set(survived)),
        "cautions": cautions(needs, options[:1]),
        "properties": {name: dict(property_counts(name, known.values())) for name in JUDGED},
        "breaks": [break_of(name, known[name]) for name in best.damaged + best.stuck],
        "cost": cost_of(kind, lock_named(best.lock), costs),
    }


def property_counts(name: str, cells: Iterable[dict[str, Any]]) -> Counter[str]:
    """In how many of these cells the property has which status. It is not judged in all of them."""
    verdicts = [cell["verdict"] for cell in cells if isinstance(cell.get("verdict"), dict)]
    return Counter(str(verdict[name]) for verdict in verdicts if name in verdict)


def break_of(scenario: str, cell: dict[str, Any]) -> dict[str, Any]:
    return {
        "scenario": scenario,
        "result": cell["result"],
        "summary": scenarios()[scenario].summary,
        "reason": cell.get("reason") or "",
        "prevention": PREVENTION.get(scenario),
    }


def cost_of(kind: ServiceKind, lock: LockEntry, costs: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """`text`: what the catalogue says. `measured`: by lockstorm compare; None: not measured."""
    replicas = max(lock.replicas, int(kind.servers == "replicas"))
    cell = costs.get(lock.name) if replicas == lock.replicas else None  # compare starts no more than the lock needs
    return {
        "servers": lock.nodes * (1 + replicas),
        "waits": lock.waits,
        "text": cost_text(lock),
        "measured": {name: cell[name] for name in MEASURED} if cell else None,
    }


def cost_text(lock: LockEntry) -> str:
    """The part of a lock's explanation that says what it costs."""
    _, _, after = lock.explanation.partition("Costs: ")
    return " ".join(after.partition("\nBreaks:")[0].split())


def kinds_sentence(needs: Needs, rows: list[dict[str, Any]], shared: list[str]) -> str:
    """Which kinds survive most of the shared scenarios."""
    if not shared:
        return "No scenario was played with every kind of service, so their rows do not compare."
    most = rows[0]["shared_survived"]
    titles = [f"{row['title']} ({row['lock']})" for row in rows if row["shared_survived"] == most]
    kept = "survive" if needs.purpose == "correctness" else "leave nobody waiting in"
    of_all = f"Of the {len(shared)} scenarios that were played with every kind of service,"
    if len(titles) == len(rows):
        return f"{of_all} all kinds {kept} {most}."
    return f"{of_all} these {kept} most, {most}: {', '.join(titles)}."


def read_costs(path: Path | None) -> dict[str, dict[str, Any]]:
    """The cells of one client in a file that `compare --json` wrote, by lock."""
    if path is None:
        return {}
    try:
        result = json.loads(path.read_text())
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except ValueError:
        raise UsageError(f"{path} is not JSON: lockstorm compare -o writes such a file") from None
    cells = result.get("cells") if isinstance(result, dict) else None
    found = {cell["lock"]: cell for cell in cells if is_cost(cell)} if isinstance(cells, list) else {}
    if not found:
        raise UsageError(
            f"{path} has no costs of one client: lockstorm compare --waiters 1 --rate none -o writes such a file"
        )
    return found


def is_cost(cell: object) -> bool:
    """Whether this is a cell of lockstorm compare about one client that asks without a pause."""
    if not isinstance(cell, dict) or not isinstance(cell.get("lock"), str):
        return False
    numbers = all(isinstance(cell.get(name), (int, float)) for name in MEASURED)
    return numbers and cell.get("clients") == 1 and cell.get("rate") is None
