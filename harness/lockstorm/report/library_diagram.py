"""A schedule of a library as a space-time diagram: a lane for each thread of a client, and one for each resource,
whose bar is the lease as the server was asked for it. A pure function of the events of a replay and of the promises
that they break.

Bars of a thread, which are computed from its calls: it waits from an acquire to its answer; it holds from the answer
to the release of the same lock object and mode. docs/promises.md says when a hold is certain."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lockstorm.report.diagram import Bar, Diagram, Lane, NumberedEvidence, Row

NO_KEY, NO_END = -2, -1  # LEASE_NO_KEY, LEASE_WITHOUT_END
Called = tuple[int, int, int, str]  # client, thread, lock object, mode


def library_diagram(events: Sequence[dict[str, Any]], broken: Sequence[dict[str, Any]]) -> Diagram:
    """`events` and `broken` as a replay of a library returns them. Of each promise that is broken, the first is
    shown."""
    first = {each["promise"]: each for each in reversed(broken)}
    shown = sorted(first.values(), key=lambda each: int(each["event"]))
    tracer = _Tracer(events, {place for each in shown for place in (each["event"], each["other"])})
    for place, event in enumerate(events):
        tracer.add(place, event)
    return tracer.finish(shown)


@dataclass
class _Pause:
    bar: Bar
    until_ns: int


class _Tracer:
    def __init__(self, events: Sequence[dict[str, Any]], needed: set[int]) -> None:
        asked = [event for event in events if event["event"] == "ask"]
        threads = sorted({(event["client"], event["thread"]) for event in asked})
        clients = [client for client, _ in threads]
        self._several_threads = len(threads) > len(set(clients))
        self._several_locks = len({(event["client"], event["lock"]) for event in asked}) > len(set(clients))
        self._threads = {thread: place for place, thread in enumerate(threads)}
        resources = sorted({event["resource"] for event in asked})
        self._keys = {resource: len(threads) + place for place, resource in enumerate(resources)}
        self.lanes = [Lane(self._name(*thread), "client") for thread in threads]
        self.lanes += [Lane(f"resource-{resource}", "key") for resource in resources]
        self.rows, self.bars = list[Row](), list[Bar]()
        self._needed = needed  # events that show a broken promise have a row in any case
        self._row_of: dict[int, int] = {}  # event -> row
        self._waits: dict[int, Bar] = {}  # by the event that asked
        self._holds: dict[Called, list[Bar]] = {}
        self._leases: dict[int, Bar] = {}  # by resource
        self._ends_ns: dict[int, int] = {}  # by resource: when its lease ends, as it was read last; NO_KEY, NO_END
        self._pauses: list[_Pause] = []

    def _name(self, client: int, thread: int) -> str:
        return f"client-{client} thread-{thread}" if self._several_threads else f"client-{client}"

    def add(self, place: int, event: dict[str, Any]) -> None:
        while self._pauses and self._pauses[0].until_ns <= event["at_ns"] and self.rows:
            self._pauses.pop(0).bar.last = len(self.rows) - 1
        step = getattr(self, f"_{event['event']}", None)
        if step and not step(place, event):
            step = None
        if not step and place in self._needed:
            self._row(place, event, self._lane_of(event), _reading(event), "dim")

    def finish(self, broken: Sequence[dict[str, Any]]) -> Diagram:
        evidence = []
        for number, each in enumerate(broken, 1):
            rows = {self._row_of[place] for place in (each["event"], each["other"]) if place in self._row_of}
            evidence.append(NumberedEvidence(number, each["promise"], each["sentence"], tuple(sorted(rows))))
            for row in rows:
                self.rows[row].evidence.append(number)
        has_lease = any(bar.kind == "lease" for bar in self.bars)
        return Diagram(self.lanes, self.rows, self.bars, [], evidence, has_lease)

    def _row(self, place: int, event: dict[str, Any], lane: int, text: str, tone: str, kind: str = "") -> int:
        self._row_of[place] = len(self.rows)
        self.rows.append(Row(int(event["at_ns"]), lane, text, tone, kind or str(event["event"])))
        return len(self.rows) - 1

    def _bar(self, bar: Bar) -> Bar:
        """Adds a bar beside those of its lane and kind that have not ended."""
        taken = {each.track for each in self.bars if each.lane == bar.lane and each.kind == bar.kind and each.last < 0}
        bar.track = next(track for track in range(len(taken) + 1) if track not in taken)
        self.bars.append(bar)
        return bar

    def _lane_of(self, event: dict[str, Any]) -> int:
        if "resource" in event:
            return self._keys.get(event["resource"], -1)
        return self._threads.get((event.get("client", 0), event.get("thread", 1)), -1)

    # --- events: each returns whether it has a row ---

    def _ask(self, place: int, event: dict[str, Any]) -> bool:
        lane = self._threads[event["client"], event["thread"]]
        row = self._row(place, event, lane, self._asked(event), "dim")
        if event["call"] == "acquire":
            self._waits[place] = self._bar(Bar("wait", lane, row))
        if event["call"] == "release" and (holds := self._holds.get(_called(event))):
            held = holds.pop()
            held.last, held.ended = row, "its release was called"
        return True

    def _asked(self, event: dict[str, Any]) -> str:
        words = [event["call"].replace("_", " ")]
        words += [] if event["mode"] in ("exclusive", "permits") else [event["mode"]]
        words += [f"lock-{event['lock']}"] if self._several_locks else []
        if event["call"] == "acquire":
            words += [f"for {event['lease_ms']:,} ms" if event["lease"] == "given" else event["lease"]]
        return " ".join(words)

    def _answer(self, place: int, event: dict[str, Any]) -> bool:
        lane = self._threads[event["client"], event["thread"]]
        good = event["outcome"] == "ok"
        is_acquire = event["call"] == "acquire"
        text = {"ok": "granted" if is_acquire else "done", "unknown": "no outcome"}.get(event["outcome"], "refused")
        text += f", token {event['token']}" if "token" in event else ""
        text += ", cancelled" if event.get("cancelled") else ""
        tone = "good" if good and is_acquire else "" if good else "warn"
        row = self._row(place, event, lane, text, tone, f"{event['call']}-return")
        if wait := self._waits.pop(event["asked"], None):
            wait.last = row
        if good and is_acquire:
            self._holds.setdefault(_called(event), []).append(self._bar(Bar("belief", lane, row, label=event["form"])))
        return True

    def _lease(self, place: int, event: dict[str, Any]) -> bool:
        resource, left_ms = event["resource"], event["remaining_ms"]
        if resource not in self._keys or "node" in event:  # of several servers a majority counts, and is not drawn
            return False
        ends = left_ms if left_ms < 0 else event["at_ns"] // 1_000_000 + left_ms
        before = self._ends_ns.get(resource, NO_KEY)
        self._ends_ns[resource] = ends
        if ends == before:
            return False
        lane = self._keys[resource]
        row = self._row(place, event, lane, _reading(event), "", "lease-over" if left_ms == NO_KEY else "lease")
        if left_ms == NO_KEY:
            if bar := self._leases.pop(resource, None):
                bar.last, bar.ended = row, "the server has no key"
        elif resource not in self._leases:
            self._leases[resource] = self._bar(Bar("lease", lane, row))
        return True

    def _fault(self, place: int, event: dict[str, Any]) -> bool:
        lanes = [lane for (client, _), lane in self._threads.items() if client == event.get("client")]
        lasts_ms = (event["until_ns"] - event["at_ns"]) // 1_000_000
        text = f"{event['fault']}{f' for {lasts_ms:,} ms' if 0 < lasts_ms < 10**9 else ''}"
        row = self._row(place, event, lanes[0] if lanes else -1, text, "warn", "fault-inject")
        if event["fault"] in ("pause", "crash"):
            for lane in lanes:
                bar = self._bar(Bar("fault" if event["fault"] == "pause" else "gone", lane, row))
                if event["fault"] == "pause":
                    self._pauses.append(_Pause(bar, event["until_ns"]))
            self._pauses.sort(key=lambda each: each.until_ns)
        return True

    _late = _fault

    def _left(self, place: int, event: dict[str, Any]) -> bool:
        self._row(place, event, -1, f"the server still has the {event['left']}", "warn")
        return True

    def _end(self, place: int, event: dict[str, Any]) -> bool:
        self._row(place, event, -1, "the workload is over", "dim")
        return True


def _reading(event: dict[str, Any]) -> str:
    if event["event"] != "lease":
        return str(event["event"])
    left_ms = event["remaining_ms"]
    words = {NO_KEY: "free", NO_END: "held without an end"}.get(left_ms, f"held for {left_ms:,} ms more")
    return f"server-{event['node']}: {words}" if "node" in event else words


def _called(event: dict[str, Any]) -> Called:
    return event["client"], event["thread"], event["lock"], event["mode"]
