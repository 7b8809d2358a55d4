"""Kinds of services side by side: the best lock of each kind for some needs, what breaks it, and what it costs.

Different kinds meet different scenarios, so counts over all scenarios of a kind do not compare. `shared` has the
scenarios that were played with the best lock of every kind: their results compare.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import msgspec
from msgspec import structs

from lockstorm.base.errors import UsageError
from lockstorm.base.read_file import read_json
from lockstorm.locks.lock_names import lock_named
from lockstorm.matrix.advice_result import Break, Candidate, KindCost, KindRow, Kinds, MeasuredCost, Needs
from lockstorm.matrix.candidates import PREVENTION, Cells, best_of, candidates_among, cells_by_key, servers_of
from lockstorm.matrix.remedies import cautions
from lockstorm.native.library import locks
from lockstorm.results.lock_entry import LockEntry, Waits
from lockstorm.results.matrix_result import MatrixCell
from lockstorm.scenario.scenario import scenarios

JUDGED = ("mutual_exclusion", "integrity", "liveness")
WAITS_SIMPLEST_FIRST: tuple[str, ...] = get_args(Waits)
TRAITS = ("lease", "token", "reentrant", "fair", "renews")

Costs = dict[str, MeasuredCost]  # by lock


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


def compare_kinds(needs: Needs, cells: Iterable[MatrixCell], costs: Costs) -> Kinds:
    """The kind that survives most of the shared scenarios comes first; of equal ones, that with less damage, for
    efficiency that with fewer servers. For efficiency a lock survives what leaves nobody waiting."""
    by_key = cells_by_key(cells)
    best = {kind: best_of_kind(kind, needs, by_key) for kind in KINDS}
    shared = shared_scenarios(options[0] for options in best.values())
    rows = [kind_row(kind, needs, options, shared, by_key, costs) for kind, options in best.items()]
    rows.sort(key=lambda row: row_rank(row, needs))
    said = cautions(needs, [options[0] for options in best.values()])
    return Kinds(kinds_sentence(needs, rows, shared), said, shared, rows)


def row_rank(row: KindRow, needs: Needs) -> tuple[int, int]:
    if needs.purpose == "efficiency":
        return -row.shared_survived, row.cost.servers
    return -row.shared_survived, list(row.shared.values()).count("violated")


def best_of_kind(kind: ServiceKind, needs: Needs, by_key: Cells) -> list[Candidate]:
    """The best candidates of a kind, which have the same rank; the simplest lock first."""
    at_hand = structs.replace(needs, servers=kind.servers)
    options = candidates_among([lock for lock in locks() if kind.has(lock)], at_hand, by_key)
    return sorted(best_of(at_hand, options), key=simplicity)


def simplicity(option: Candidate) -> tuple[int, int, int]:
    """Sort key for candidates that rank alike: how a client waits, what the lock can do, and what damages it."""
    lock = lock_named(option.lock)
    traits = sum(getattr(lock, name) for name in TRAITS)
    return WAITS_SIMPLEST_FIRST.index(lock.waits), traits, len(option.damaged)


def shared_scenarios(options: Iterable[Candidate]) -> list[str]:
    """The scenarios that are known for all of these. A scenario that breaks few of them comes first. An option for
    which nothing is known is left out."""
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
    costs: Costs,
) -> KindRow:
    best = options[0]
    survived = best.survives if needs.purpose == "correctness" else best.survives + best.damaged
    known = {name: by_key[name, best.lock, best.store] for name in best.known}
    return KindRow(
        kind=kind.name,
        title=kind.title,
        **{name: getattr(best, name) for name in ("lock", "store", "survives", "damaged", "stuck", "unknown")},
        equal=[option.title for option in options[1:]],
        shared={name: known[name].result for name in shared if name in known},
        shared_survived=len(set(shared) & set(survived)),
        cautions=cautions(needs, options[:1]),
        properties={  # in how many scenarios each has which status; it is not judged in all of them
            name: dict(Counter(cell.verdict[name] for cell in known.values() if name in cell.verdict))
            for name in JUDGED
        },
        breaks=[
            Break(name, known[name].result, scenarios()[name].summary, known[name].reason, PREVENTION.get(name))
            for name in best.damaged + best.stuck
        ],
        cost=cost_of(kind, lock_named(best.lock), costs),
    )


def cost_of(kind: ServiceKind, lock: LockEntry, costs: Costs) -> KindCost:
    replicas = max(lock.replicas, int(kind.servers == "replicas"))
    measured = costs.get(lock.name) if replicas == lock.replicas else None  # compare starts no more than it needs
    return KindCost(lock.nodes * (1 + replicas), lock.waits, cost_text(lock), measured)


def cost_text(lock: LockEntry) -> str:
    """The part of a lock's explanation that says what it costs."""
    _, _, after = lock.explanation.partition("Costs: ")
    return " ".join(after.partition("\nBreaks:")[0].split())


def kinds_sentence(needs: Needs, rows: list[KindRow], shared: list[str]) -> str:
    """Which kinds survive most of the shared scenarios."""
    if not shared:
        return "No scenario was played with every kind of service, so their rows do not compare."
    most = rows[0].shared_survived
    titles = [f"{row.title} ({row.lock})" for row in rows if row.shared_survived == most]
    kept = "survive" if needs.purpose == "correctness" else "leave nobody waiting in"
    of_all = f"Of the {len(shared)} scenarios that were played with every kind of service,"
    if len(titles) == len(rows):
        return f"{of_all} all kinds {kept} {most}."
    return f"{of_all} these {kept} most, {most}: {', '.join(titles)}."


class ComparedCell(msgspec.Struct):
    """The part of a cell of `compare --json` that says what a lock costs."""

    lock: str
    clients: int
    rate: float | None
    requests_per_grant: float | None = None
    cost_ratio: float | None = None


class ComparedCosts(msgspec.Struct):
    cells: list[ComparedCell]


def read_costs(path: Path | None) -> Costs:
    """The cells of one client that asks without a pause in a file that `compare --json` wrote."""
    if path is None:
        return {}
    found = {}
    for cell in read_json(path, ComparedCosts, "lockstorm compare -o writes such a file").cells:
        if cell.clients == 1 and cell.rate is None and cell.requests_per_grant and cell.cost_ratio:
            found[cell.lock] = MeasuredCost(cell.requests_per_grant, cell.cost_ratio)
    if not found:
        raise UsageError(
            f"{path} has no costs of one client: lockstorm compare --waiters 1 --rate none -o writes such a file"
        )
    return found
