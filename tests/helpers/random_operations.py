"""Small random histories of a lock's or a register's interface, as Jepsen EDN and as operations for Porcupine.

An object is simulated, operations overlap, answers are lost, processes crash, and in most of the histories some
answers are changed afterwards. What an answer means is worked out here once more, from docs/linearizable.md.
"""

import json
import random
from dataclasses import dataclass, field, replace
from typing import Any

OPERATIONS, PROCESSES, FIRST_TOKEN, VALUES = 12, 4, 5, 3
COUNTED = ("mutex", "semaphore")
OWNED = ("owner-mutex", "reentrant-mutex", "fenced-mutex")

Json = dict[str, Any]


@dataclass(frozen=True)
class HistoryReading:
    """The model of a history, and how its ambiguous outcomes are read. The policies are in the order of their help."""

    model: str
    permits: int = 1
    leases: bool = False
    failed_release: int = 0
    timeout_not_happened: bool = False


@dataclass
class RandomOperation:
    """An operation. Positions are those of its events in the file; `answer` is None while none came."""

    process: int
    kind: str
    call: int
    value: int | None = None
    expected: int | None = None
    end: int | None = None
    answer: str | None = None
    happened: bool = False


@dataclass
class SimulatedObject:
    """What a correct lock or register would do."""

    reading: HistoryReading
    owner: int | None = None
    depth: int = 0
    value: int | None = None

    def happen(self, operation: RandomOperation, rng: random.Random) -> bool:
        if operation.kind == "acquire":
            return self.acquire(operation, rng)
        if operation.kind in ("read", "write", "cas"):
            return self.access(operation)
        owned = self.reading.model in OWNED
        if self.depth == 0 or (owned and self.owner != operation.process):
            return False
        if operation.kind == "release":
            self.depth -= 1
            self.owner = self.owner if self.depth else None
        return True

    def acquire(self, operation: RandomOperation, rng: random.Random) -> bool:
        again = self.reading.model == "reentrant-mutex" and self.owner == operation.process
        free = self.depth < (self.reading.permits if self.reading.model == "semaphore" else 1)
        if not free and not again:
            return False
        self.owner, self.depth = operation.process, self.depth + 1
        if self.reading.model == "fenced-mutex":
            operation.value = self.value = (self.value or FIRST_TOKEN) + rng.randint(1, 2)
        return True

    def access(self, operation: RandomOperation) -> bool:
        if operation.kind == "read":
            operation.value = self.value
        elif operation.kind == "cas" and operation.expected != self.value:
            return False
        else:
            self.value = operation.value
        return True

    def lapse(self) -> None:
        self.owner, self.depth = None, 0


@dataclass
class HistoryMaker:
    """Makes one history. Its processes have numbers from `first` on, and its events positions from `position` on."""

    rng: random.Random
    reading: HistoryReading
    first: int
    position: int
    operations: list[RandomOperation] = field(default_factory=list)
    events: list[tuple[RandomOperation, bool]] = field(default_factory=list)
    processes: list[int] = field(default_factory=list)
    granted: set[int] = field(default_factory=set)

    def make(self) -> None:
        rng = self.rng
        thing = SimulatedObject(self.reading)
        counts = self.reading.model in COUNTED  # whom a hold belongs to does not matter: more must go wrong to be seen
        wanted, doubt = (
            rng.randint(3, OPERATIONS),
            rng.choice((0.0, 0.0, 0.1, 0.25) if counts else (0.0, 0.1, 0.25, 0.5)),
        )
        self.processes = [self.first + each for each in range(rng.randint(1, PROCESSES))]
        newest, under_way = self.processes[-1], dict[int, RandomOperation]()
        if rng.random() < (0.0 if counts else 0.6):
            self.begin_with_strays()
        while len(self.operations) < wanted or (under_way and rng.random() < 0.9):
            if thing.depth and self.reading.leases and rng.random() < 0.05:
                thing.lapse()
            place = rng.randrange(len(self.processes))
            process = self.processes[place]
            if process not in under_way:
                if len(self.operations) < wanted:
                    under_way[process] = self.call(process)
                continue
            self.may_happen(thing)
            if rng.random() < 0.5:
                continue
            operation = under_way.pop(process)
            if rng.random() < doubt / 3:  # a crash: a new process comes
                newest += 1
                self.processes[place] = newest
            else:
                self.answer(operation, thing, doubt)
        if rng.random() < 0.75:
            for _ in range(rng.randint(1, 5 if counts else 3)):
                self.change(rng.choice(self.operations))

    def begin_with_strays(self) -> None:
        """Operations that may happen at any later time make others ambiguous."""
        for _ in range(self.rng.randint(1, OPERATIONS // 3)):
            operation = self.call(self.rng.choice(self.processes), stray=True)
            operation.end, operation.answer = self.position + len(self.events), "info"
            self.events.append((operation, True))

    def call(self, process: int, stray: bool = False) -> RandomOperation:
        rng, model = self.rng, self.reading.model
        usual = rng.random() < (0.5 if model in COUNTED else 0.75)
        kind = "release" if (process in self.granted) == usual else "acquire"
        if model == "register":
            kind = rng.choice(("read", "write", "cas"))
        elif stray:
            kind = rng.choice(("acquire", "release"))
        elif rng.random() < (0.3 if model in OWNED else 0.05):
            kind = "renew"
        operation = RandomOperation(process, kind, self.position + len(self.events))
        if kind in ("write", "cas"):
            operation.value = rng.randrange(VALUES)
        if kind == "cas":
            operation.expected = rng.randrange(VALUES)
        self.operations.append(operation)
        self.events.append((operation, False))
        return operation

    def may_happen(self, thing: SimulatedObject) -> None:
        """One that was called may take effect, also after its answer was lost."""
        operation = self.rng.choice(self.operations)
        if not operation.happened and operation.answer in (None, "info") and self.rng.random() < 0.5:
            operation.happened = thing.happen(operation, self.rng)

    def answer(self, operation: RandomOperation, thing: SimulatedObject, doubt: float) -> None:
        if not operation.happened and self.rng.random() < 0.9:
            operation.happened = thing.happen(operation, self.rng)
        operation.end = self.position + len(self.events)
        operation.answer = "ok" if operation.happened else "fail"
        if self.rng.random() < doubt:
            operation.answer = "info"
        if operation.kind == "acquire" and operation.answer != "fail":
            self.granted.add(operation.process)
        elif operation.kind == "release":
            self.granted.discard(operation.process)
        self.events.append((operation, True))

    def change(self, operation: RandomOperation) -> None:
        if operation.end is None:
            return
        if operation.answer == "ok" and self.rng.random() < 0.25:
            operation.answer = self.rng.choice(("fail", "info"))
        elif operation.answer == "ok" and operation.kind in ("read", "write", "cas"):
            operation.value = self.rng.randrange(VALUES)
        elif operation.answer == "ok" and operation.kind == "acquire" and operation.value is not None:
            operation.value += self.rng.choice((-2, -1, 1, 2))
        else:
            operation.answer = "ok"
        if self.reading.model == "fenced-mutex" and operation.kind == "acquire" and operation.value is None:
            operation.value = FIRST_TOKEN + self.rng.randint(1, OPERATIONS)


def edn(maker: HistoryMaker, name: str) -> str:
    """The events as Jepsen writes them."""
    lines = []
    for operation, returns in maker.events:
        kind = operation.answer if returns else "invoke"
        value = "nil" if operation.value is None else str(operation.value)
        if operation.kind in ("release", "renew") or (operation.kind in ("acquire", "read") and kind != "ok"):
            value = "nil"
        elif operation.kind == "cas":
            value = f"[{operation.expected} {operation.value}]"
        lines.append(
            f"{{:type :{kind}, :process {operation.process}, :f :{operation.kind}, :value {value}, :lock {name}}}\n"
        )
    return "".join(lines)


def outcomes(maker: HistoryMaker) -> list[str | None]:
    """What each operation's answer means by the policies: ok, unknown, or None if it never happened."""
    reading, granted = maker.reading, dict[int, int]()
    nests = reading.model in ("reentrant-mutex", "semaphore")
    meant: dict[int, str | None] = {
        id(operation): None if operation.kind == "renew" else "unknown" for operation in maker.operations
    }
    for operation, returns in maker.events:
        if not returns:
            continue
        held = granted.get(operation.process, 0)
        outcome = {"ok": "ok", "info": "unknown"}.get(operation.answer or "")
        if operation.kind == "renew":
            outcome = "ok" if outcome == "ok" and reading.model in OWNED else None
        elif operation.kind == "acquire" and outcome == "ok":
            granted[operation.process] = held + 1 if nests else 1
        elif operation.kind == "acquire" and outcome == "unknown" and reading.timeout_not_happened:
            outcome = None
        elif operation.kind == "release" and outcome != "unknown":
            if outcome is None and held:
                outcome = ("unknown", None, "ok")[reading.failed_release]
            granted[operation.process] = max(held - 1, 0)
        meant[id(operation)] = outcome
    return [meant[id(operation)] for operation in maker.operations]


def lease_ends(maker: HistoryMaker) -> list[int]:
    """Where holds have no owners, the end of a lease is a release that nobody called, at any time after the answer of
    the grant, or after the call of a later renewal that succeeded. It is there unless the process was answered ok to a
    release. The earliest time of each: a position of the file, after the event that stands there."""
    ends: list[int] = []
    newest: dict[int, int] = {}  # process -> the place of its latest hold's end in the list
    dropped: set[int] = set()
    meant = {id(operation): outcome for operation, outcome in zip(maker.operations, outcomes(maker), strict=True)}
    for operation, returns in maker.events:
        if not returns or operation.end is None:
            continue
        if operation.kind == "acquire" and meant[id(operation)] == "ok":
            newest[operation.process] = len(ends)
            ends.append(operation.end)
        elif operation.kind == "renew" and operation.answer == "ok" and operation.process in newest:
            ends[newest[operation.process]] = operation.call
        elif operation.kind == "release" and meant[id(operation)] == "ok" and operation.process in newest:
            place = newest.pop(operation.process)
            dropped |= {place} if operation.answer == "ok" else set()
    return [end for place, end in enumerate(ends) if place not in dropped]


def for_porcupine(maker: HistoryMaker, name: str, number_of: dict[int, int], last: int) -> list[Json]:
    """The operations as `lockstorm history to-porcupine` writes them; unknown ones return at `last`. Ends of leases are
    between the events, so positions are doubled where there are any."""
    lines = []
    if maker.reading.leases and maker.reading.model in COUNTED:
        plain = replace(maker, reading=replace(maker.reading, leases=False))
        for each in for_porcupine(plain, name, number_of, last):
            lines.append(each | {"call": 2 * each["call"], "return": 2 * each["return"]})
        nobody = {"client": number_of.setdefault(-1, len(number_of)), "kind": "release", "outcome": "unknown"}
        ends = [{"call": 2 * end + 1, "return": 2 * last, "object": name} for end in lease_ends(maker)]
        return lines + [nobody | end for end in ends]
    for operation, outcome in zip(maker.operations, outcomes(maker), strict=True):
        client = number_of.setdefault(operation.process, len(number_of))
        if outcome is None:
            continue
        line: Json = {"client": client, "call": operation.call, "return": operation.end if outcome == "ok" else last}
        line |= {"kind": operation.kind, "outcome": outcome}
        if operation.value is not None and (outcome == "ok" or operation.kind in ("write", "cas")):
            line["value"] = operation.value
        if operation.expected is not None:
            line["from"] = operation.expected
        lines.append(line | {"object": name})
    return lines


def json_lines(lines: list[Json]) -> str:
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
