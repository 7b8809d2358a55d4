"""What a stand-alone program does that shows a schedule of a library without lockstorm: calls, readings and
cancellations at given times, and what shows at the end that the promise was broken."""

from collections.abc import Sequence
from dataclasses import dataclass

from lockstorm.base.errors import UsageError
from lockstorm.results.call_event import NO_END, NO_KEY, BrokenPromise, CallEvent

GAP_MS = 25  # between two steps that have the same time in the schedule: their order is kept
SETTLE_MS = 300  # after the last step
LATE_MS = 5000  # after that, calls that were answered in the schedule are waited for no longer
READING = -1  # in the place of a call's number: the main thread's reading of a key


@dataclass(frozen=True)
class Call:
    """A call: `number` counts from 1 in the order in which they are made. `ask` is its event."""

    number: int
    at_ms: int | None  # None: as soon as the call before it in its thread is answered
    after: int  # what came first: a call of another thread that was answered at the same time, READING, or 0: nothing
    thread: tuple[int, int]  # client, and thread of it
    words: str
    ask: CallEvent


@dataclass(frozen=True)
class MainStep:
    """What the main thread does: it cancels a call, or reads how long the key of a resource remains."""

    at_ms: int
    cancels: int = 0
    reads: int = 0
    after: tuple[int, ...] = ()  # before a key is read, the numbers of the calls that were answered then, ...
    gap_ms: int = 0  # ... and how long ago the last of them was


@dataclass(frozen=True)
class Proof:
    """What shows that the promise is broken. `kind`: "granted" (call `number` is granted before call `before`, if that
    is not 0, is made), "outcome" (call `number` ends with `outcome`), "slow" (it takes more than `limit_ms`),
    "unanswered" (call `number` has no answer), "below", "above" (what was read is less or more than `limit_ms`),
    "endless" (what was read is -1)."""

    kind: str
    number: int = 0
    before: int = 0
    outcome: str = ""
    limit_ms: int = 0


@dataclass(frozen=True)
class Plan:
    calls: tuple[Call, ...]
    steps: tuple[MainStep, ...]
    proof: Proof | None  # None: every promise was kept
    outcomes: dict[int, str]  # of the calls that were answered until then, which a run has to repeat
    end_ms: int

    @property
    def late_ms(self) -> int:
        return self.end_ms + LATE_MS

    @property
    def threads(self) -> dict[tuple[int, int], list[Call]]:
        """The calls of each thread."""
        by_thread: dict[tuple[int, int], list[Call]] = {}
        for call in self.calls:
            by_thread.setdefault(call.thread, []).append(call)
        return by_thread


def standalone_plan(events: Sequence[CallEvent], broken: BrokenPromise | None) -> Plan:
    """`broken`: the promise to show, as replay_on returns it. UsageError if timing alone does not show it."""
    struck = next((event for event in events if event.kind in ("fault", "late")), None)
    if struck:
        raise UsageError(f"a program against a plain server cannot show it: the schedule needs {struck.fault}")
    if over := next((event.call for event in events if event.over), None):
        raise UsageError(f"a program cannot show it: {over} is called with a context that has ended")
    calls, steps, numbers, last_ms = list[Call](), list[MainStep](), dict[int, int](), -GAP_MS
    reading = broken.event if broken and events[broken.event].kind == "lease" else None
    for place, event in enumerate(events):
        if event.kind != "ask" and place != reading:
            continue
        at_once = event.kind == "ask" and event.call != "cancel" and _follows_at_once(events, place)
        if not at_once:
            last_ms = max(event.at_ns // 1_000_000, last_ms + GAP_MS)
        if place == reading:
            steps.append(_reading(events, place, last_ms, numbers))
        elif event.call == "cancel":
            steps.append(MainStep(last_ms, cancels=numbers[_cancelled(events, place)]))
        else:
            numbers[place] = len(calls) + 1
            at_ms, after = (None, 0) if at_once else (last_ms, _answered_first(events, place, numbers))
            after = READING if at_ms is not None and reading is not None and place > reading else after
            calls.append(Call(numbers[place], at_ms, after, event.caller, _words(event), event))
    proof = _proof(events, broken, numbers) if broken else None
    shown_ms = events[broken.event].at_ns // 1_000_000 if broken else 0
    outcomes = {
        numbers[event.asked]: event.outcome
        for event in events[: broken.event if broken else None]
        if event.kind == "answer" and event.outcome != "unknown" and event.asked in numbers
    }
    return Plan(tuple(calls), tuple(steps), proof, outcomes, max(shown_ms, last_ms) + SETTLE_MS)


def _reading(events: Sequence[CallEvent], place: int, at_ms: int, numbers: dict[int, int]) -> MainStep:
    """What a key is then depends on the answers before: on a slow machine they come later, and so does the reading."""
    answers = [event for event in events[:place] if event.kind == "answer" and event.asked in numbers]
    gap_ns = events[place].at_ns - max((event.at_ns for event in answers), default=events[place].at_ns)
    after = tuple(numbers[event.asked] for event in answers)
    return MainStep(at_ms, reads=events[place].resource, after=after, gap_ms=gap_ns // 1_000_000)


def _follows_at_once(events: Sequence[CallEvent], place: int) -> bool:
    """Whether a call is made when the one before it in its thread is answered, with no work between."""
    thread = events[place].caller
    return any(
        event.kind == "answer"
        and event.at_ns == events[place].at_ns
        and event.call != "cancel"
        and event.caller == thread
        for event in events[:place]
    )


def _answered_first(events: Sequence[CallEvent], place: int, numbers: dict[int, int]) -> int:
    """The number of the call of another thread that was answered last before a call is made, at the same time."""
    answers = [event for event in events[:place] if event.kind == "answer" and event.asked in numbers]
    last, ask = answers[-1] if answers else None, events[place]
    if not last or last.caller == ask.caller:
        return 0
    return numbers[last.asked] if last.at_ns + GAP_MS * 1_000_000 >= ask.at_ns else 0


def _words(event: CallEvent) -> str:
    mode = "" if event.mode in ("exclusive", "permits") else f" {event.mode}"
    return f"client-{event.client} thread-{event.thread}: {event.call}{mode} lock-{event.lock}"


def _cancelled(events: Sequence[CallEvent], place: int) -> int:
    """The acquire that a cancellation ends: the last call of its thread."""
    asks = [at for at, event in enumerate(events[:place]) if event.kind == "ask" and event.call != "cancel"]
    cancelled = max(at for at in asks if events[at].caller == events[place].caller)
    if events[cancelled].call != "acquire":
        raise UsageError(f"a program cannot show it: a {events[cancelled].call} is cancelled")
    return cancelled


def _proof(events: Sequence[CallEvent], broken: BrokenPromise, numbers: dict[int, int]) -> Proof:
    promise, place = broken.promise, broken.event
    shown, expected_ms, found_ms = events[place], broken.expected_ms, broken.found_ms
    middle_ms = (expected_ms + found_ms) // 2
    if shown.kind == "answer":
        number = numbers[shown.asked]
        if promise == "mutual_exclusion":
            return Proof("granted", number, before=_next_of_holder(events, broken, numbers))
        if promise == "wait":
            return Proof("slow", number, limit_ms=middle_ms)
        if promise == "ownership":
            return Proof("outcome", number, outcome=shown.outcome)
    elif shown.kind == "lease":
        if found_ms == NO_END:
            return Proof("endless")
        if promise in ("lease-too-short", "renewal") and found_ms < expected_ms:
            return Proof("below", limit_ms=middle_ms)
        return Proof("above", limit_ms=middle_ms if expected_ms > 0 else NO_KEY)
    elif shown.kind in ("idle", "end"):
        waiting = _unanswered(events[:place])
        if waiting:
            return Proof("unanswered", numbers[broken.other if broken.other in waiting else waiting[0]])
    raise UsageError(f"no program for a broken promise {promise!r} that shows in this way: {broken.sentence}")


def _unanswered(events: Sequence[CallEvent]) -> list[int]:
    answered = {event.asked for event in events if event.kind == "answer"}
    return [
        at for at, event in enumerate(events) if event.kind == "ask" and event.call == "acquire" and at not in answered
    ]


def _next_of_holder(events: Sequence[CallEvent], broken: BrokenPromise, numbers: dict[int, int]) -> int:
    """The number of the first call that the holder makes of its lock after the grant beside it; 0: no such call."""
    holder = events[broken.other]
    for at in range(broken.event + 1, len(events)):
        event = events[at]
        same = (event.caller, event.resource) == (holder.caller, holder.resource)
        if event.kind == "ask" and same and at in numbers:
            return numbers[at]
    return 0
