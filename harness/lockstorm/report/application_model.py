"""A schedule of an application as a space-time diagram and a story: a lane for each request slot of an instance, locks
and transactions as bars. What requests did to locks and data stands between the calls, as their messages show it."""

import re
from bisect import bisect_right
from collections.abc import Sequence

from msgspec.structs import replace

from lockstorm.report.diagram import Bar, Diagram
from lockstorm.report.library_model import CallTracer, call_story, traced_diagram
from lockstorm.results.call_event import BrokenPromise, CallEvent, CallStoryLine, PlayedDeviation
from lockstorm.results.wire_access import WireAccess

WORDS = {  # {}: the lock, or the data
    "lock-granted": "gets {}",
    "lock-refused": "is refused {}",
    "lock-extended": "extends {}",
    "lock-released": "releases {}",
    "lock-release-refused": "releases nothing: {}",
    "transaction-begun": "begins a transaction",
    "transaction-committed": "commits its transaction",
    "transaction-rolled-back": "rolls its transaction back",
    "access-read": "reads {}",
    "access-write": "writes {}",
    "not-recognised": "sends a statement that is not understood",
}


def application_story(
    events: Sequence[CallEvent],
    accesses: Sequence[WireAccess],
    broken: Sequence[BrokenPromise],
    deviations: Sequence[PlayedDeviation] = (),
    calls: int = 0,
) -> list[CallStoryLine]:
    told, shown, played = _merged(events, accesses, broken, deviations)
    lines = call_story(told, shown, played, calls, ApplicationTracer)
    return [replace(line, who=_instance(line.who), what=_sent(_instance(line.what))) for line in lines]


def application_diagram(
    events: Sequence[CallEvent], accesses: Sequence[WireAccess], broken: Sequence[BrokenPromise]
) -> Diagram:
    told, shown, _ = _merged(events, accesses, broken, ())
    return traced_diagram(told, shown, ApplicationTracer)


def _sent(text: str) -> str:
    return re.sub("^calls ", "is sent ", text).replace("'s next call, ", "'s next request, ")


def _instance(text: str) -> str:
    return text.replace("client-", "instance-")


def _merged(
    events: Sequence[CallEvent],
    accesses: Sequence[WireAccess],
    broken: Sequence[BrokenPromise],
    deviations: Sequence[PlayedDeviation],
) -> tuple[list[CallEvent], list[BrokenPromise], list[PlayedDeviation]]:
    """All events in their order. Everything that names an event by its place names it by its new one."""
    asked = [event for event in events if event.kind == "ask"]
    shown = [(number, each) for number, each in enumerate(accesses) if each.kind in WORDS]
    before = [each.before for _, each in shown]

    def moved(place: int) -> int:
        return place + bisect_right(before, place)

    told, left, place_of = list[CallEvent](), list(shown), dict[int, int]()

    def tell(until: int) -> None:
        while left and left[0][1].before <= until:
            number, access = left.pop(0)
            place_of[number] = len(told)
            told.append(_wire_event(access, asked))

    for place, event in enumerate(events):
        tell(place)
        told.append(replace(event, asked=moved(event.asked)) if event.asked >= 0 else event)
    tell(len(events))
    placed = [(place_of.get(each.access, moved(each.event)), each) for each in broken]
    return (
        told,
        [replace(each, event=place, other=place) for place, each in placed],
        [replace(each, event=moved(each.event)) for each in deviations],
    )


def _wire_event(access: WireAccess, asked: Sequence[CallEvent]) -> CallEvent:
    known = 0 < access.request <= len(asked)
    thread = asked[access.request - 1].thread if known else 0
    return CallEvent(
        kind="wire",
        at_ns=access.at_ns,
        client=access.instance,
        thread=thread,
        access=access.kind,
        object=access.object,
        form=access.text,
    )


class ApplicationTracer(CallTracer):
    """Adds what requests do to locks and data."""

    def __init__(self, events: Sequence[CallEvent], broken: Sequence[BrokenPromise]) -> None:
        super().__init__(events, broken)
        self._locks: dict[tuple[int, str], Bar] = {}
        self._transactions: dict[int, Bar] = {}

    def _name(self, client: int, thread: int) -> str:
        return _instance(super()._name(client, thread))

    def _wire(self, place: int, event: CallEvent) -> None:
        lane, row = self.lane_of(event), len(self.rows)
        words = WORDS[event.access].format(event.object)
        quoted = event.access in ("access-write", "access-read", "not-recognised") and event.form
        story = f"{words}: {event.form}" if quoted else words
        tone = "good" if event.access == "lock-granted" else "dim" if event.access == "access-read" else ""
        self._row(place, event, lane, words, tone, self._name(*event.caller) if event.thread else "", story)
        if event.access == "lock-granted":
            self._locks[lane, event.object] = self._bar(Bar("belief", lane, row, label=event.object))
        if event.access == "lock-released" and (bar := self._locks.pop((lane, event.object), None)):
            bar.last, bar.ended = row, "it was released"
        if event.access == "transaction-begun":
            self._transactions[lane] = self._bar(Bar("transaction", lane, row))
        elif event.access.startswith("transaction-") and (bar := self._transactions.pop(lane, None)):
            bar.last, bar.ended = row, words
