"""What a history says about the cost of a lock: pure functions over who asked, was answered and released, in order.

Like the checkers they go by the order of the records; the stamps only say how long something took, and two processes
that append at once may carry them in the opposite order: a duration below 0 is 0.
"""

import math
from bisect import bisect_right, insort
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from harness.driver.errors import Inconclusive
from harness.driver.library import Kind, Message, Outcome, ReaderState, Record, library


class Event(NamedTuple):
    """A record of a client that concerns the lock. `granted`: of an answer (ACQUIRE_RETURN) only."""

    kind: int
    client: int
    mono_ns: int
    granted: bool = False


class HandOvers(NamedTuple):
    """How long after each release somebody who had been waiting for it was in; and for how many releases the history
    ended before that."""

    took_ns: list[int]
    unserved: int


ASK, ANSWER, RELEASE = Kind.ACQUIRE_INVOKE, Kind.ACQUIRE_RETURN, Kind.RELEASE_INVOKE


def read_events(path: Path) -> tuple[list[Event], bool]:
    """Everything about the lock in a binary history that may still be open, and whether it ran full. A record that is
    torn - its writer was stopped in the middle of it - is left out."""
    lib, message, record = library(), Message(), Record()
    reader = lib.history_reader_open(bytes(path), message)
    if not reader:
        raise Inconclusive(str(message))
    events = []
    wanted = (ASK, ANSWER, RELEASE)
    while (state := lib.history_reader_next(reader, False, record)) != ReaderState.END:
        if state == ReaderState.DAMAGED:
            lib.history_reader_close(reader)
            raise Inconclusive(f"{path} is damaged")
        if state == ReaderState.RECORD and record.kind in wanted:
            granted = record.kind == ANSWER and record.outcome == Outcome.OK
            events.append(Event(record.kind, record.actor, record.mono_ns, granted))
    full = bool(lib.history_reader_dropped(reader))
    lib.history_reader_close(reader)
    return events, full


def grants(events: Sequence[Event]) -> int:
    return sum(event.granted for event in events)


def waits_ns(events: Sequence[Event]) -> list[int]:
    """From ask to grant."""
    asked: dict[int, int] = {}
    took = []
    for event in events:
        if event.kind == ASK:
            asked[event.client] = event.mono_ns
        elif event.granted and event.client in asked:
            took.append(max(0, event.mono_ns - asked[event.client]))
    return took


def hand_overs(events: Sequence[Event]) -> HandOvers:
    """From every release at which somebody was waiting to the first grant of one of those who were. Whoever asks only
    after the release and is let in before them does not end it."""
    asked: dict[int, int] = {}
    pending: list[tuple[int, int]] = []  # releases that nobody who waited for them has followed yet
    took = []
    for place, event in enumerate(events):
        if event.kind == ASK:
            asked[event.client] = place
        elif event.kind == ANSWER:
            since = asked.pop(event.client, place)
            while event.granted and pending and pending[-1][0] > since:
                took.append(max(0, event.mono_ns - pending.pop()[1]))
        elif asked:
            pending.append((place, event.mono_ns))
    return HandOvers(took, len(pending))


def gaps_ns(events: Sequence[Event]) -> list[int]:
    """From every release at which somebody was waiting to the next grant, whoever got it."""
    waiting: set[int] = set()
    released_ns: int | None = None
    took = []
    for event in events:
        if event.kind == ASK:
            waiting.add(event.client)
        elif event.kind == RELEASE:
            released_ns = event.mono_ns if waiting else None
        else:
            waiting.discard(event.client)
            if event.granted and released_ns is not None:
                took.append(max(0, event.mono_ns - released_ns))
                released_ns = None
    return took


def overtakings(events: Sequence[Event]) -> list[int]:
    """For every ask, how many that were made later were granted earlier; those still waiting at the end come last."""
    asked: dict[int, int] = {}
    let_in: list[int] = []  # where each grant so far had been asked for, sorted
    passed = []
    for place, event in enumerate(events):
        if event.kind == ASK:
            asked[event.client] = place
        elif event.kind == ANSWER and event.client in asked:
            since = asked.pop(event.client)
            passed.append(len(let_in) - bisect_right(let_in, since))
            if event.granted:
                insort(let_in, since)
    return passed + [len(let_in) - bisect_right(let_in, since) for since in asked.values()]


def most_holders(events: Sequence[Event]) -> int:
    """How many held it at once, from each grant to the release's invocation."""
    return max(_holders(events), default=0)


def _holders(events: Sequence[Event]) -> Iterator[int]:
    holders: set[int] = set()
    for event in events:
        if event.granted:
            holders.add(event.client)
        elif event.kind == RELEASE:
            holders.discard(event.client)
        yield len(holders)


def last_grant_ns(events: Sequence[Event]) -> int | None:
    return next((event.mono_ns for event in reversed(events) if event.granted), None)


def waiting_at_the_end(events: Sequence[Event]) -> int:
    waiting: set[int] = set()
    for event in events:
        if event.kind == ASK:
            waiting.add(event.client)
        elif event.kind == ANSWER:
            waiting.discard(event.client)
    return len(waiting)


def percentile(values: Sequence[int], percent: float) -> int | None:
    """By nearest rank: the smallest value that at least that share does not exceed; None of nothing."""
    if not values:
        return None
    return sorted(values)[max(1, math.ceil(len(values) * percent / 100)) - 1]
