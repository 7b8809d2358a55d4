"""A schedule of a library as a space-time diagram: a lane for each thread of a client, and one for each resource, whose
bar is the lease as it was read from the server. Rows also have the words of the story. A pure function of the events of
a replay and of the promises that they break.

The bars of a thread are computed from its calls: it waits from an acquire to its answer, and it holds from that answer
to the release of the same lock object and mode. docs/promises.md says when a hold is certain."""

from collections.abc import Sequence
from dataclasses import dataclass

from lockstorm.report.deviation_words import deviation_words
from lockstorm.report.diagram import Bar, Diagram, Lane, NumberedEvidence, Row
from lockstorm.results.call_event import (
    NEVER,
    NO_END,
    NO_KEY,
    BrokenPromise,
    CallEvent,
    CallStoryLine,
    PlayedDeviation,
    first_broken,
)

NS_PER_MS = 1_000_000
Called = tuple[int, int, int, str]  # client, thread, lock object, mode
OUTCOMES = {
    "acquire": {"ok": "granted", "refused": "refused", "unknown": "ends without an outcome"},
    "request": {"ok": "done", "refused": "refused", "unknown": "ends without an outcome"},
    "is_held": {"ok": "yes", "refused": "no", "unknown": "ends without an outcome"},
    "": {"ok": "done", "refused": "refused: not its own", "unknown": "ends without an outcome"},
}
FAULTS = {  # {}: how long it lasts, in ms
    "pause-client": "stands still for {} ms",
    "kill-client": "is killed",
    "hold-request": "its command is late by {} ms",
    "hold-reply": "the answer to it is late by {} ms",
    "drop-request": "its connection is lost with the command that is on its way",
    "lose-reply": "its connection is lost with the answer to a command that was executed",
    "error-reply": "its command is answered with an error and not executed",
    "clock-jump": "its clock jumps",
    "client-clock-jump": "its wall clock jumps",
    "crash-server": "restarts with its data",
    "crash-server-empty": "restarts without its data",
    "server-down": "one of them is down for good, and refuses connections",
    "server-silent": "one of them hangs for good, and answers nothing",
}


def library_diagram(events: Sequence[CallEvent], broken: Sequence[BrokenPromise]) -> Diagram:
    return traced_diagram(events, broken, CallTracer)


def traced_diagram(events: Sequence[CallEvent], broken: Sequence[BrokenPromise], tracer: "type[CallTracer]") -> Diagram:
    return _traced(events, broken, tracer)[0]


def _traced(
    events: Sequence[CallEvent], broken: Sequence[BrokenPromise], tracer_of: "type[CallTracer]"
) -> tuple[Diagram, dict[int, int]]:
    """The diagram, and for each of its rows the index of the event that it shows."""
    shown = first_broken(broken)
    tracer = tracer_of(events, shown)
    for place, event in enumerate(events):
        tracer.add(place, event)
    return tracer.finish(), {row: place for place, row in tracer.row_of.items()}


def call_story(
    events: Sequence[CallEvent],
    broken: Sequence[BrokenPromise],
    deviations: Sequence[PlayedDeviation] = (),
    calls: int = 0,
    tracer_of: "type[CallTracer] | None" = None,
) -> list[CallStoryLine]:
    """The events that a reader needs, each with the number of the line of the schedule that it comes from: of its
    `calls` lines of calls, then of its deviations. Of each broken promise the first event that shows it is marked."""
    diagram, event_of = _traced(events, broken, tracer_of or CallTracer)
    shown = {piece.shown_at: piece.text for piece in diagram.evidence}
    faults = {each.event: number for number, each in enumerate(deviations, calls + 1) if not deviation_words(each)[0]}
    orders = [(number, each) for number, each in enumerate(deviations, calls + 1) if deviation_words(each)[0]]
    story = list[CallStoryLine]()
    for row, told in enumerate(diagram.rows):
        at = event_of[row]
        while orders and orders[0][1].event <= at:
            number, each = orders.pop(0)
            story.append(CallStoryLine(told.at_ns / 1e9, *deviation_words(each), number=number))
        if told.story or row in shown:
            number = events[at].place or faults.get(at, 0)
            story.append(CallStoryLine(told.at_ns / 1e9, told.who, told.story, shown.get(row, ""), number))
    return story


@dataclass
class _Pause:
    bar: Bar
    until_ns: int


class CallTracer:
    """Makes the diagram, event by event."""

    def __init__(self, events: Sequence[CallEvent], broken: Sequence[BrokenPromise]) -> None:
        asked = [event for event in events if event.kind == "ask"]
        threads = sorted({event.caller for event in asked})
        clients = {client for client, _ in threads}
        self._several_threads = len(threads) > len(clients)
        self._several_locks = len({(event.client, event.lock) for event in asked}) > len(clients)
        self._threads = {thread: place for place, thread in enumerate(threads)}
        resources = sorted({event.resource for event in asked if event.resource})
        self._several_resources = len(resources) > 1
        self._keys = {resource: len(threads) + place for place, resource in enumerate(resources)}
        self.lanes = [Lane(self._name(*thread), "client") for thread in threads]
        self.lanes += [Lane(f"resource-{resource}", "key") for resource in resources]
        self.rows, self.bars = list[Row](), list[Bar]()
        self._broken = broken
        self._showing = {each.event for each in broken}
        self._needed = self._showing | {each.other for each in broken}  # these have a row in any case
        self.row_of: dict[int, int] = {}  # event -> row
        self._waits: dict[int, Bar] = {}  # by the event that asked
        self._holds: dict[Called, list[Bar]] = {}
        self._leases: dict[int, Bar] = {}  # by resource
        self._ends_ms: dict[int, int] = {}  # by resource: when its lease ends, as it was read last; NO_KEY, NO_END
        self._pauses: list[_Pause] = []

    def _name(self, client: int, thread: int) -> str:
        return f"client-{client} thread-{thread}" if self._several_threads else f"client-{client}"

    def lane_of(self, event: CallEvent) -> int:
        return self._threads.get(event.caller, -1)

    def add(self, place: int, event: CallEvent) -> None:
        while self._pauses and self._pauses[0].until_ns <= event.at_ns and self.rows:
            self._pauses.pop(0).bar.last = len(self.rows) - 1
        step = getattr(self, f"_{event.kind}", None)
        if step:
            step(place, event)
        if place in self._needed and place not in self.row_of:
            self._needed_row(place, event)

    def finish(self) -> Diagram:
        evidence = []
        for number, each in enumerate(self._broken, 1):
            rows = {self.row_of[place] for place in (each.event, each.other) if place in self.row_of}
            shown_at = self.row_of[each.event]
            evidence.append(NumberedEvidence(number, each.promise, each.sentence, tuple(sorted(rows)), shown_at))
            for row in rows:
                self.rows[row].evidence.append(number)
        has_lease = any(bar.kind == "lease" for bar in self.bars)
        return Diagram(self.lanes, self.rows, self.bars, [], evidence, has_lease)

    def _row(self, place: int, event: CallEvent, lane: int, text: str, tone: str, who: str, story: str) -> Row:
        self.row_of[place] = len(self.rows)
        row = Row(event.at_ns, lane, text, tone, event.kind, who=who, story=story)
        self.rows.append(row)
        return row

    def _needed_row(self, place: int, event: CallEvent) -> None:
        if event.kind == "lease":
            who = f"server-{event.node}" if event.node else "server"
            text = f"{who}: {_reading(event)}" if event.node else _reading(event)
            story = self._lease_story(event) if place in self._showing else ""
            self._row(place, event, self._keys.get(event.resource, -1), text, "dim", who, story)
            return
        lane = self._threads.get((event.client, event.thread or 1), -1)
        who, story = f"client-{event.client}" if event.client else "", _executed_story(event) if event.longer_ms else ""
        self._row(place, event, lane, story or event.kind, "dim", who, story)

    def _bar(self, bar: Bar) -> Bar:
        """Adds a bar beside those of its lane and kind that have not ended."""
        taken = {each.track for each in self.bars if each.lane == bar.lane and each.kind == bar.kind and each.last < 0}
        bar.track = next(track for track in range(len(taken) + 1) if track not in taken)
        self.bars.append(bar)
        return bar

    # --- events: each adds a row, or none for what is not new ---

    def _ask(self, place: int, event: CallEvent) -> None:
        lane = self._threads[event.caller]
        row = len(self.rows)
        if event.call == "request":
            self._row(
                place, event, lane, event.form or "", "dim", self._name(*event.caller), f"request {event.form}"
            ).number = event.place
            self._waits[place] = self._bar(Bar("wait", lane, row))
            return
        lock = [f"lock-{event.lock}"] if self._several_locks else []
        mode = [] if event.mode in ("exclusive", "permits") else [event.mode]
        text = [event.call.replace("_", " "), *mode, *lock]
        story = [event.call, *mode, *lock, *([f"of resource-{event.resource}"] if self._several_resources else [])]
        how = [*(["again"] if event.again else []), *(["with a context that has ended"] if event.over else [])]
        if event.call == "acquire":
            text.append(f"for {event.lease_ms:,} ms" if event.lease == "given" else event.lease)
            story.append(f"by {event.form}: {_lease_words(event)}, {_wait_words(event)}")
            self._waits[place] = self._bar(Bar("wait", lane, row))
        if event.call == "release" and (holds := self._holds.get(_called(event))):
            held = holds.pop()
            held.last, held.ended = row, "its release was called"
        who, told = self._name(*event.caller), " ".join(story + how)
        self._row(place, event, lane, " ".join(text), "dim", who, told).number = event.place

    def _answer(self, place: int, event: CallEvent) -> None:
        lane, row = self._threads[event.caller], len(self.rows)
        good, is_acquire = event.outcome == "ok", event.call == "acquire"
        text = {"ok": "granted" if is_acquire else "done", "unknown": "no outcome"}.get(event.outcome, "refused")
        called = event.form if event.call == "request" else event.call
        story = f"{called}: {OUTCOMES.get(event.call, OUTCOMES[''])[event.outcome]}"
        more = (f", token {event.token}" if event.token else "") + (", cancelled" if event.cancelled else "")
        story += more + (f" ({event.error})" if event.error else "")
        tone = "good" if good and is_acquire else "" if good else "warn"
        self._row(place, event, lane, text + more, tone, self._name(*event.caller), story).kind = f"{event.call}-return"
        if wait := self._waits.pop(event.asked, None):
            wait.last = row
        if good and is_acquire:
            belief = Bar("belief", lane, row, label=event.form or "")
            self._holds.setdefault(_called(event), []).append(self._bar(belief))

    def _lease(self, place: int, event: CallEvent) -> None:
        """Of several servers a majority counts: a single reading is shown only if it is evidence."""
        resource, left_ms = event.resource, event.left_ms
        if resource not in self._keys or event.node:
            return
        ends_ms = left_ms if left_ms < 0 else event.at_ns // NS_PER_MS + left_ms
        before = self._ends_ms.get(resource, NO_KEY)
        self._ends_ms[resource] = ends_ms
        if ends_ms == before:
            return
        lane, row = self._keys[resource], len(self.rows)
        made = self._row(place, event, lane, _reading(event), "", "server", self._lease_story(event))
        if left_ms == NO_KEY:
            made.kind = "lease-over"
            if bar := self._leases.pop(resource, None):
                bar.last, bar.ended = row, "the server has no key"
        elif resource not in self._leases:
            self._leases[resource] = self._bar(Bar("lease", lane, row))

    def _lease_story(self, event: CallEvent) -> str:
        return f"the lock{f' of resource-{event.resource}' if self._several_resources else ''} is {_reading(event)}"

    def _notice(self, place: int, event: CallEvent) -> None:
        lane = self._threads.get(event.caller, -1)
        lock = f" of lock-{event.lock}" if self._several_locks else ""
        self._row(place, event, lane, "told: lost", "warn", self._name(*event.caller), f"is told of the loss{lock}")

    def _fault(self, place: int, event: CallEvent) -> None:
        lanes = [lane for (client, _), lane in self._threads.items() if client == event.client]
        lasts_ms = (event.until_ns - event.at_ns) // NS_PER_MS
        text = f"{event.fault}{f' for {lasts_ms:,} ms' if 0 < lasts_ms < 10**9 else ''}"
        row, who = len(self.rows), f"client-{event.client}" if event.client else "server"
        self._row(place, event, lanes[0] if lanes else -1, text, "warn", who, _fault_story(event)).kind = "fault-inject"
        if event.fault in ("pause-client", "kill-client") and event.until_ns != NEVER:
            for lane in lanes:
                bar = self._bar(Bar("fault" if event.fault == "pause-client" else "gone", lane, row))
                if event.fault == "pause-client":
                    self._pauses.append(_Pause(bar, event.until_ns))
            self._pauses.sort(key=lambda each: each.until_ns)

    _late = _fault

    def _left(self, place: int, event: CallEvent) -> None:
        self._row(
            place, event, -1, f"the server still has the {event.left}", "warn", "server", f"still has the {event.left}"
        )

    def _end(self, place: int, event: CallEvent) -> None:
        self._row(place, event, -1, "the workload is over", "dim", "", "the workload is over")


def _reading(event: CallEvent) -> str:
    words = {NO_KEY: "free", NO_END: "held without an end"}
    return words.get(event.left_ms) or f"held for {event.left_ms:,} ms more"


def _executed_story(event: CallEvent) -> str:
    if event.longer_ms == NO_END:
        return "its command makes the key live without an end"
    return f"its command {'makes a key for' if event.makes else 'extends the lease by'} {event.longer_ms:,} ms"


def _lease_words(event: CallEvent) -> str:
    words = {"renewed": "lease renewed by the watchdog", "endless": "lease without an end"}
    given = f"lease {event.lease_ms} ms" if event.lease == "given" else "the library's default lease"
    return words.get(event.lease, given)


def _wait_words(event: CallEvent) -> str:
    return {"none": "no wait", "forever": "waits for ever"}.get(event.wait, f"waits at most {event.wait_ms} ms")


def _fault_story(event: CallEvent) -> str:
    if event.until_ns == NEVER and event.fault == "pause-client":
        return "closes its connection, on which it has heard nothing while it stood still"
    if event.until_ns == NEVER:
        late = "an answer" if event.fault == "hold-reply" else "a command"
        return f"closes the connection on which {late} is late"
    return FAULTS[event.fault].format(f"{(event.until_ns - event.at_ns) / 1e6:,.0f}")


def _called(event: CallEvent) -> Called:
    return event.client, event.thread, event.lock, event.mode
