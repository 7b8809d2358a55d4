"""What a diagram is: lanes, rows, bars, arrows, and the evidence of a verdict."""

from dataclasses import dataclass, field
from typing import Any

from harness.report.words import Event


@dataclass(frozen=True)
class Lane:
    """Somebody whom records are about. `kind`: client, lock (what its servers keep), node, store."""

    name: str
    kind: str


@dataclass
class Row:
    """One event. `record` is None where it was computed: a lease that runs out, a belief that ends."""

    at_ns: int  # since the history's first record
    lane: int  # -1: everybody's
    text: str
    tone: str
    kind: str
    record: Event | None = None
    blamed: list[int] = field(default_factory=list)  # numbers of the pieces of evidence that name it

    @property
    def index(self) -> int:
        return self.record.get("index", -1) if self.record else -1

    @property
    def lock(self) -> str:
        """The name of the lock that it is about, if it is about one."""
        return str(self.record.get("name", "")) if self.record else ""


@dataclass
class Bar:
    """Something that lasts, from row to row. `kind`: belief, overlap, lease, wait, fault, gone."""

    kind: str
    lane: int
    first: int
    last: int = -1  # -1: it had not ended
    label: str = ""
    track: int = 0  # beside how many others of its lane
    ended: str = ""  # why


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
class Blame:
    """One piece of evidence: a violated property's sentence, and the rows that show it."""

    number: int
    property: str
    text: str
    rows: tuple[int, ...]


@dataclass
class Diagram:
    lanes: list[Lane]
    rows: list[Row]
    bars: list[Bar]
    arrows: list[Arrow]
    blames: list[Blame]
    has_lease: bool = False
    clock_moved: bool = False  # a server's own clock, which leases follow, while they are drawn by the trial's


def blames_of(verdict: dict[str, Any], rows: list[Row]) -> list[Blame]:
    """The evidence of what is violated, in the order of its last records, numbered from 1 and noted at its rows."""
    place = {row.index: number for number, row in enumerate(rows) if row.record}
    found = []
    for name, said in verdict.items():
        for piece in said.get("evidence", []) if said["status"] == "violated" else []:
            at = tuple(sorted(place[record] for record in piece["records"] if record in place))
            found.append((at, name.replace("_", " "), piece["text"]))
    found.sort(key=lambda each: each[0][-1:] or (len(rows),))
    blames = [Blame(number, name, text, at) for number, (at, name, text) in enumerate(found, 1)]
    for blame in blames:
        for row in blame.rows:
            rows[row].blamed.append(blame.number)
    return blames
