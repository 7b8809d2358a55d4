"""Histories changed in ways that must not change what is said of them - other names, another time, a second lock in
between, another client at the end, nothing behind the first violation - and histories made small."""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from tests.helpers.checker_oracle import FOR_EVER, OPERATIONS, History, Json, OracleRecord
from tests.helpers.judging import Asked, judge

NO_GRANT = 2**32 - 1
STATES_AN_END = ("acquire-return", "validity")
# What is about the whole history and not about a lock, a client or an object.
COMMON = ("parameter", "phase", "fault-inject", "fault-prove", "rule", "checkpoint", "torn")
OF_ONE_LOCK = ("lock-open", "validity", "actor-exit", "store-read", "store-write", *OPERATIONS)


@dataclass(frozen=True)
class NamedHistory:
    names: list[str]
    records: History

    @property
    def first(self) -> int:
        return 1 + 2 * len(self.names)

    def judged(self, asked: Asked | None = None) -> Json:
        return judge(self.names, self.records, asked or Asked())

    def end_ns(self) -> int:
        return max((each.mono_ns for each in self.records), default=0)


def renumbered(records: Iterable[OracleRecord], first: int) -> History:
    """One after the other from `first` on; what names a record goes on naming it, and what names none names none."""
    records = list(records)
    place = {each.index: first + at for at, each in enumerate(records)}
    return [
        replace(each, index=first + at, grant=place.get(each.grant, NO_GRANT) if each.grant else 0)
        for at, each in enumerate(records)
    ]


def renamed(history: NamedHistory, new: dict[str, str]) -> NamedHistory:
    """The names are defined in the opposite order, so their numbers are other ones as well."""
    names = [new.get(each, each) for each in reversed(history.names)]
    records = [
        replace(each, actor=new.get(each.actor, each.actor), name=new.get(each.name, each.name))
        for each in history.records
    ]
    return NamedHistory(names, records)


def with_client_at_the_end(history: NamedHistory) -> NamedHistory:
    """A client that acquires and releases a lock of its own, when all else is over."""
    names = [*history.names, "newcomer", "own"]
    records = renumbered(history.records, 1 + 2 * len(names))
    grant = 2 + 2 * len(names) + len(records)
    for op, kind in enumerate(("acquire-invoke", "acquire-return", "release-invoke", "release-return")):
        record = OracleRecord(grant - 1 + op, kind, actor="newcomer", name="own", op=1 + op // 2)
        answered = "ok" if kind.endswith("return") else "unknown"
        under = grant if kind.startswith("release") else 0
        records.append(replace(record, outcome=answered, grant=under, mono_ns=history.end_ns()))
    return NamedHistory(names, records)


def later(history: NamedHistory, by_ns: int) -> NamedHistory:
    """The same at another time; a stamp of 0 means no stamp, and stays."""

    def moved_on(record: OracleRecord) -> OracleRecord:
        value = record.value
        if record.kind in STATES_AN_END and value not in (0, FOR_EVER):
            value += by_ns
        extra = record.extra + by_ns if record.kind == "acquire-return" and record.extra else record.extra
        return replace(record, mono_ns=record.mono_ns and record.mono_ns + by_ns, value=value, extra=extra)

    return replace(history, records=[moved_on(each) for each in history.records])


def smallest(history: NamedHistory, shows: Callable[[NamedHistory], bool]) -> NamedHistory:
    """Leaves out records, halves first, as long as what is left still `shows` it; then no single one can go."""
    size = max(1, len(history.records) // 2)
    while size:
        before, place = len(history.records), 0
        while place < len(history.records):
            fewer = without(history, place, size)
            if shows(fewer):
                history = fewer
            else:
                place += size
        size = size if size == 1 and len(history.records) < before else size // 2
    return history


def without(history: NamedHistory, place: int, size: int = 1) -> NamedHistory:
    rest = history.records[:place] + history.records[place + size :]
    return replace(history, records=renumbered(rest, history.first))


def cut(history: NamedHistory, last: int) -> NamedHistory:
    return NamedHistory(history.names, [each for each in history.records if each.index <= last])


@dataclass(frozen=True)
class Interleaved:
    """Two histories of other clients, locks and objects in one, and each of them in its place with nothing of the
    other but the stamps."""

    whole: NamedHistory
    parts: tuple[NamedHistory, NamedHistory]


def on_objects(history: NamedHistory, objects: dict[str, str]) -> NamedHistory:
    return replace(history, records=[replace(each, object=objects.get(each.object, "")) for each in history.records])


def interleaved(one: NamedHistory, other: NamedHistory, seed: int) -> Interleaved:
    """`other` keeps only what is about its clients and locks; its records stand before the last one of `one`."""
    one = on_objects(one, {"register": "register", "counter": "register", "set": "set"})
    other = on_objects(other, {"register": "counter", "counter": "counter", "set": "counter"})
    other = renamed(other, {name: f"{name}-2" for name in other.names})
    rng = random.Random(seed)
    guests = [each for each in other.records if each.kind in OF_ONE_LOCK]
    places = sorted(rng.randrange(len(one.records)) for _ in guests)
    names = [*one.names, *other.names]
    first = 1 + 2 * len(names)
    own = {each.index: first + at + sum(place <= at for place in places) for at, each in enumerate(one.records)}
    theirs = {each.index: first + place + at for at, (each, place) in enumerate(zip(guests, places, strict=True))}
    merged = {own[each.index]: moved(each, own, each.mono_ns) for each in one.records}
    now_ns = 0
    by_index = {theirs[each.index]: each for each in guests}
    for index in range(first, first + len(own) + len(theirs)):
        if index in merged:
            now_ns = max(now_ns, merged[index].mono_ns)
        else:
            merged[index] = moved(by_index[index], theirs, now_ns)
    records = [merged[index] for index in sorted(merged)]
    mine = set(own.values())
    alone = [replace_by_note(each, each.index in mine) for each in records]
    guest = [replace_by_note(each, each.index not in mine or each.kind in COMMON) for each in records]
    return Interleaved(NamedHistory(names, records), (NamedHistory(names, alone), NamedHistory(names, guest)))


def moved(record: OracleRecord, place: dict[int, int], mono_ns: int) -> OracleRecord:
    """At another index and stamp; the end of a validity moves with the stamp, and the beginning of an attempt."""
    value, extra = record.value, record.extra
    if record.kind == "acquire-return" and extra:
        extra = max(1, extra + mono_ns - record.mono_ns)
    if record.kind in STATES_AN_END and value not in (0, FOR_EVER):
        value = max(1, value + mono_ns - record.mono_ns)
    grant = place.get(record.grant, NO_GRANT) if record.grant else 0
    return replace(record, index=place[record.index], mono_ns=mono_ns, value=value, extra=extra, grant=grant)


def replace_by_note(record: OracleRecord, stays: bool) -> OracleRecord:
    return record if stays else OracleRecord(record.index, "note", mono_ns=record.mono_ns)
