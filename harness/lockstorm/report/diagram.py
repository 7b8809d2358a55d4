"""What a diagram is: lanes, rows, bars, arrows, and the evidence of a verdict."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from lockstorm.results.event import Event
from lockstorm.results.verdict import PropertyVerdict


@dataclass(frozen=True)
class Lane:
    """One participant of the trial. `kind`: client, lock (its lease at the servers), node (a server), store."""

    name: str
    kind: str


@dataclass
class Row:
    """One event. `record` is None for a computed one: a lease that runs out, a belief that ends."""

    at_ns: int  # since the history's first record
    lane: int  # -1: all lanes
    text: str
    tone: str
    kind: str
    record: Event | None = None
    who: str = ""  # in the story
    story: str = ""  # its words there; empty: the story leaves it out
    style: str = ""  # ... and their style in a terminal
    holder: str = ""  # the client that was granted a lease last, if it runs at the server or is over now
    rest_ns: int = 0  # of that lease
    lease_ns: int = 0
    evidence: list[int] = field(default_factory=list)  # numbers of the pieces of evidence that name it
    number: int = 0  # of the line of the schedule that it comes from, from 1; 0: none

    @property
    def index(self) -> int:
        return (self.record.index or -1) if self.record else -1

    @property
    def lock(self) -> str:
        """The name of its lock; empty if it has none."""
        return str(self.record.name or "") if self.record else ""


@dataclass
class Bar:
    """A state that lasts from row to row. `kind`: belief, overlap, lease, transaction, wait, fault, gone."""

    kind: str
    lane: int
    first: int
    last: int = -1  # -1: it had not ended
    label: str = ""
    track: int = 0  # its column within the lane, from 0
    ended: str = ""  # the reason of its end


@dataclass(frozen=True)
class Arrow:
    """A message from a lane's row to another's. `state`: delivered, held, lost, twice, fired, unheard."""

    source: int
    target: int
    first: int
    last: int
    state: str
    label: str = ""


@dataclass(frozen=True)
class NumberedEvidence:
    """One piece of evidence: a violated property's sentence, and the rows that show it."""

    number: int
    property: str
    text: str
    rows: tuple[int, ...]
    shown_at: int = -1  # the row that the story marks with it


@dataclass
class Diagram:
    lanes: list[Lane]
    rows: list[Row]
    bars: list[Bar]
    arrows: list[Arrow]
    evidence: list[NumberedEvidence]
    has_lease: bool = False
    clock_moved: bool = False  # a fault moved a server's clock; leases are drawn by the trial's clock all the same


def numbered_evidence(verdict: Mapping[str, PropertyVerdict], rows: list[Row]) -> list[NumberedEvidence]:
    """The evidence of the violated properties, in the order of its last records, numbered from 1. Adds the numbers to
    the rows."""
    place = {row.index: number for number, row in enumerate(rows) if row.record}
    found = []
    for name, judged in verdict.items():
        for piece in judged.evidence if judged.status == "violated" else []:
            at = tuple(sorted(place[record] for record in piece.records if record in place))
            found.append((at, name.replace("_", " "), piece.text))
    found.sort(key=lambda each: each[0][-1:] or (len(rows),))
    numbered = [NumberedEvidence(number, name, text, at) for number, (at, name, text) in enumerate(found, 1)]
    for each in numbered:
        for row in each.rows:
            rows[row].evidence.append(each.number)
    return numbered


STORE_KINDS = ("store-read", "store-write")
CLIENT_KINDS = ("lock-open", "acquire-invoke", "read-invoke", "write-invoke", "release-invoke", "renew-invoke")


def lock_lane(lock: str) -> str:
    return f"lock {lock}"


def host_of(client: str) -> str:
    """The host of a client: `client-1` for `client-1.2`, which was started there after `client-1` had ended."""
    return re.sub(r"\.\d+$", "", client)


def natural(name: str) -> list[tuple[int, str]]:
    """A key that sorts client-2 before client-10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def lanes_of(events: list[Event]) -> list[Lane]:
    """Clients, then each lock that has a lease, then nodes, then stores."""
    actors = {str(event.actor) for event in events if event.kind in CLIENT_KINDS}
    clients = {host_of(actor) if host_of(actor) in actors else actor for actor in actors}
    stores = {str(event.actor) for event in events if event.kind in STORE_KINDS}
    locks = {str(event.name) for event in events if event.kind == "lock-open" and event.value}
    nodes: set[str] = set()
    for event in events:
        if event.kind in ("rule", "released"):
            nodes |= set(str(event.extra_name or "").split(">"))
        if event.kind == "fault-inject":
            nodes |= {target.rpartition(">")[2] for target in str(event.value_name or "").split(", ")}
    nodes -= clients | stores | {"", *map(str, actors)}
    kinds = (
        ("client", sorted(clients, key=natural)),
        ("lock", [lock_lane(lock) for lock in sorted(locks, key=natural)]),
        ("node", sorted(nodes, key=natural)),
        ("store", sorted(stores, key=natural)),
    )
    return [Lane(name, kind) for kind, names in kinds for name in names]
