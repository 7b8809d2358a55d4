"""Measures of the cost of a lock: pure functions over the acquires, their answers and the releases of a history.

Like the checkers, they use the order of the records, and the time stamps only for durations. Two processes that append
at the same time may have stamps in the opposite order: a negative duration counts as 0.
"""

import math
from bisect import bisect_right, insort
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from lockstorm.base.errors import Inconclusive
from lockstorm.native.library import Kind, Message, Outcome, ReaderState, Record, library


class LockEvent(NamedTuple):
    """A client's record about the lock. `granted` is true only for an answer (ACQUIRE_RETURN) that grants the lock."""

    kind: int
    client: int
    mono_ns: int
    granted: bool = False


class HandOvers(NamedTuple):
    """The time from each release to the grant of a client that waited for it; `unserved`: the number of releases for
    which the history ended before that."""

    took_ns: list[int]
    unserved: int


ACQUIRE, ANSWER, RELEASE = Kind.ACQUIRE_INVOKE, Kind.ACQUIRE_RETURN, Kind.RELEASE_INVOKE


def read_events(path: Path) -> tuple[list[LockEvent], bool]:
    """All records about the lock in a binary history, which may still be open, and whether it ran full. Leaves out torn
    records, whose writers were stopped in the middle."""
    lib, message, record = library(), Message(), Record()
    reader = lib.history_reader_open(bytes(path), message)
    if not reader:
        raise Inconclusive(str(message))
    events = []
    kinds = (ACQUIRE, ANSWER, RELEASE)
    while (state := lib.history_reader_next(reader, False, record)) != ReaderState.END:
        if state == ReaderState.DAMAGED:
            lib.history_reader_close(reader)
            raise Inconclusive(f"{path} is damaged")
        if state == ReaderState.RECORD and record.kind in kinds:
            granted = record.kind == ANSWER and record.outcome == Outcome.OK
            events.append(LockEvent(record.kind, record.actor, record.mono_ns, granted))
    full = bool(lib.history_reader_dropped(reader))
    lib.history_reader_close(reader)
    return events, full


def events_from(events: Sequence[LockEvent], begun_ns: int) -> list[LockEvent]:
    """The events of a window that begins at begun_ns: those from the first one with such a stamp on, after the acquires
    that were pending then."""
    begin = next((place for place, event in enumerate(events) if event.mono_ns >= begun_ns), len(events))
    pending_acquires: dict[int, LockEvent] = {}
    for event in events[:begin]:
        pending_acquires.pop(event.client, None)
        if event.kind == ACQUIRE:
            pending_acquires[event.client] = event
    return [*pending_acquires.values(), *events[begin:]]


def grant_times(events: Sequence[LockEvent]) -> int:
    return sum(event.granted for event in events)


def waits_ns(events: Sequence[LockEvent]) -> list[int]:
    """The time from each acquire to its grant."""
    pending_acquires: dict[int, int] = {}
    took = []
    for event in events:
        if event.kind == ACQUIRE:
            pending_acquires[event.client] = event.mono_ns
        elif event.granted and event.client in pending_acquires:
            took.append(max(0, event.mono_ns - pending_acquires[event.client]))
    return took


def hand_overs(events: Sequence[LockEvent]) -> HandOvers:
    """The time from every release while clients waited to the first grant of one of these clients. The grant of a
    client that asked after the release does not count."""
    pending_acquires: dict[int, int] = {}
    pending: list[tuple[int, int]] = []  # releases not yet followed by a grant to a waiter: place, time
    took = []
    for place, event in enumerate(events):
        if event.kind == ACQUIRE:
            pending_acquires[event.client] = place
        elif event.kind == ANSWER:
            since = pending_acquires.pop(event.client, place)
            while event.granted and pending and pending[-1][0] > since:
                took.append(max(0, event.mono_ns - pending.pop()[1]))
        elif pending_acquires:
            pending.append((place, event.mono_ns))
    return HandOvers(took, len(pending))


def gaps_ns(events: Sequence[LockEvent]) -> list[int]:
    """The time from every release while clients waited to the next grant, to any client."""
    waiting: set[int] = set()
    released_ns: int | None = None
    took = []
    for event in events:
        if event.kind == ACQUIRE:
            waiting.add(event.client)
        elif event.kind == RELEASE:
            released_ns = event.mono_ns if waiting else None
        else:
            waiting.discard(event.client)
            if event.granted and released_ns is not None:
                took.append(max(0, event.mono_ns - released_ns))
                released_ns = None
    return took


def overtakings(events: Sequence[LockEvent]) -> list[int]:
    """For every acquire, the number of later acquires that were granted before it was answered. Acquires that are
    unanswered at the end come last."""
    pending_acquires: dict[int, int] = {}
    granted: list[int] = []  # the places of the acquires granted so far, sorted
    passed = []
    for place, event in enumerate(events):
        if event.kind == ACQUIRE:
            pending_acquires[event.client] = place
        elif event.kind == ANSWER and event.client in pending_acquires:
            since = pending_acquires.pop(event.client)
            passed.append(len(granted) - bisect_right(granted, since))
            if event.granted:
                insort(granted, since)
    return passed + [len(granted) - bisect_right(granted, since) for since in pending_acquires.values()]


def most_holders(events: Sequence[LockEvent]) -> int:
    """The largest number of simultaneous holders, each from its grant to the invocation of its release."""
    holders: set[int] = set()
    most = 0
    for event in events:
        if event.granted:
            holders.add(event.client)
            most = max(most, len(holders))
        elif event.kind == RELEASE:
            holders.discard(event.client)
    return most


def last_grant_ns(events: Sequence[LockEvent]) -> int | None:
    return next((event.mono_ns for event in reversed(events) if event.granted), None)


def waiting_at_the_end(events: Sequence[LockEvent]) -> int:
    waiting: set[int] = set()
    for event in events:
        if event.kind == ACQUIRE:
            waiting.add(event.client)
        elif event.kind == ANSWER:
            waiting.discard(event.client)
    return len(waiting)


def percentile(values: Sequence[int], percent: float) -> int | None:
    """The percentile by nearest rank; None if there are no values."""
    if not values:
        return None
    return sorted(values)[max(1, math.ceil(len(values) * percent / 100)) - 1]
