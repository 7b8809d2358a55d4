"""A schedule at work: faults begin and end at their times, or where their clients come to a checkpoint, and keep out of
each other's way by rules."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from harness.driver.fault import Fault, Target
from harness.driver.library import Kind, StrandState
from harness.driver.schedule import Event
from harness.driver.storm_faults import ALL_CLIENTS, BY_NAME, delays, forbids
from harness.driver.trial import ANYWHERE, Client, Trial

if TYPE_CHECKING:
    from harness.driver.storm import Plan

NS_PER_MS = 1_000_000
RESIDUE_LEASES = 2
FAULTS_KEYS = b"lockstorm:"
HELD = """SELECT pid || ' with an advisory lock' FROM pg_locks WHERE locktype = 'advisory'
UNION SELECT pid || ' with an open transaction' FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"""


@dataclass
class Course:
    """What became of an event."""

    event: Event
    state: str = "waits"  # active, proved, not proved, skipped
    reason: str = ""
    injected_ms: float | None = None
    healed_ms: float | None = None
    fault: Fault | None = None

    def as_json(self) -> dict[str, Any]:
        said: dict[str, Any] = {"at_ms": self.event.at_ms, "fault": self.event.fault, "target": self.event.target}
        said |= {"state": self.state, "reason": self.reason}
        said |= {"injected_ms": self.injected_ms, "healed_ms": self.healed_ms}
        return {key: value for key, value in said.items() if value not in (None, "")}


@dataclass(order=True)
class _Due:
    at_ns: int
    order: int
    act: Callable[[], None] = field(compare=False)


class Weather:
    """The schedule at work in one trial."""

    def __init__(self, trial: Trial, plan: "Plan", watch: Callable[[Trial], None] | None = None) -> None:
        self.trial, self.plan, self.watch = trial, plan, watch
        self.course = [Course(event) for event in plan.schedule.events]
        self.clients = trial.clients(plan.schedule.clients)
        self._began_ns = trial.mono_ns
        self._agenda: list[_Due] = []
        self._armed: dict[str, Course] = {}  # target -> what lands at its next checkpoint
        self._active: list[Course] = []
        self._dues = 0
        self._usual: set[bytes] = set()  # keys that this lock leaves at its servers

    def warm_up(self) -> None:
        """Everybody makes one turn: what is at the servers afterwards is what this lock always leaves there."""
        for client in self.clients:
            client.start_increment(work_ms=self.plan.work_ms)
        self.trial.finish(*self.clients)
        self._usual = set(self._keys())

    def blow(self) -> None:
        """The storm, from its first fault to its end."""
        self.trial.phase("storm")
        self._began_ns = self.trial.mono_ns
        for course in self.course:
            self._at(course.event.at_ms, lambda course=course: self._strike(course))  # type: ignore[misc]
        self._keep_busy()
        end_ns = self._began_ns + self.plan.schedule.duration_ms * NS_PER_MS
        while self.trial.mono_ns < end_ns:
            next_ns = min(self._agenda[0].at_ns, end_ns) if self._agenda else end_ns
            self.trial.run([self._client(name) for name in self._armed], next_ns, first=True)
            self._strike_the_held()
            while self._agenda and self._agenda[0].at_ns <= self.trial.mono_ns < end_ns:
                heappop(self._agenda).act()
                if self.watch:
                    self.watch(self.trial)

    def calm(self) -> None:
        """Everything is healed, the last first; everybody ends the turn it is at and makes one more. The history says
        until when that was waited for: whoever has not been served by then never will be."""
        for course in list(self._armed.values()):
            self._disarm(course, "the storm was over before its client came to the checkpoint")
        while self._active:
            self._end(next((last for last in reversed(self._active) if not self._is_delayed(last)), self._active[-1]))
        for course in self.course:
            if course.state == "waits":
                course.state, course.reason = "skipped", "the storm was over before"
        self.trial.heal()
        self._let_go()
        self.trial.phase("quiet")
        self._keep_busy()
        for client in self._living():
            client.wind_down()
        until_ns, held = self.trial.mono_ns + self.plan.quiet_ms * NS_PER_MS, True
        while held and self.trial.mono_ns < until_ns:
            self.trial.run(self._living(), until_ns)
            held = self._let_go()
        self.trial.note_clock()
        if all(client.state is StrandState.IDLE for client in self._living()):
            self._look_for_residue()

    def _let_go(self) -> bool:
        """Lets whoever had just come to a checkpoint, when none was wanted any more, go on. Whether there was one."""
        held = [client for client in self._living() if client.state is StrandState.HELD]
        for client in held:
            client.go_on()
        return bool(held)

    def _look_for_residue(self) -> None:
        """Nobody holds or wants the lock: what is at the servers two leases later, is not there usually and does not
        run out in the third, will stay."""
        lease_ms = self.plan.schedule.lease_ms
        self.trial.advance(RESIDUE_LEASES * lease_ms)
        before = self._keys()
        self.trial.advance(lease_ms)
        left, what = 0, "session" if self.trial.databases else "key"
        for key, rest_ms in sorted(self._keys().items()):
            runs_out = 0 <= rest_ms <= before.get(key, rest_ms) - lease_ms // 2
            if key not in self._usual and not runs_out:
                left += 1
                self.trial.record(Kind.RESIDUE, name=self.trial.text(f"{what} {os.fsdecode(key)}"), value=1)
        if not left:
            self.trial.record(Kind.RESIDUE, name=self.trial.text(f"{what}s"), value=0)

    def _keys(self) -> dict[bytes, int]:
        """What is at the nodes, but for what faults have put there, and for how long in ms; below 0: for ever. In a
        database that is what sessions hold: a row is not gone when its lease is over."""
        if self.trial.databases:
            return {os.fsencode(row[0]): -1 for each in self.trial.databases for row in each.session.rows(HELD)}
        links = [self.trial.master(node).link for node in self.trial.servers]
        keys = {os.fsencode(key): int(link.pttl(key)) for link in links for key in link.keys("*")}
        return {key: rest_ms for key, rest_ms in keys.items() if not key.startswith(FAULTS_KEYS)}

    # --- one fault ---

    def _strike(self, course: Course) -> None:
        """Its time has come: it begins, waits for its client's checkpoint, or finds somebody in its way."""
        event = course.event
        if not event.passage:
            self._begin(course)
        elif event.target in self._armed:
            course.state, course.reason = "skipped", "another fault waits for the same client's checkpoint"
        else:
            self._armed[event.target] = course
            self._client(event.target).hold_at(ANYWHERE, event.passage)

    def _strike_the_held(self) -> None:
        """Faults whose client has come to its checkpoint begin there."""
        for name, course in list(self._armed.items()):
            client = self._client(name)
            if client.state is StrandState.GONE:
                self._disarm(course, f"{name} had ended")
            elif client.state is StrandState.HELD:
                del self._armed[name]
                trial = self.trial
                trial.record(Kind.CHECKPOINT, name=trial.text(client.held_at), value=client.identity)
                self._begin(course)
                client.go_on()

    def _disarm(self, course: Course, reason: str) -> None:
        del self._armed[course.event.target]
        self._client(course.event.target).hold_at("", 0)
        course.state, course.reason = "skipped", reason

    def _begin(self, course: Course) -> None:
        event = course.event
        course.reason = self._in_the_way(course)
        if course.reason:
            course.state = "skipped"
            return
        options: dict[str, Any] = {name.replace("-", "_"): value for name, value in event.options.items()}
        fault = course.fault = Fault(self.trial, event.fault, self._target(event.target), **options)
        if not fault.prepares:
            self._inject(course)
        elif fault.attempt(fault.prepare):
            self._active.append(course)
            self._at(self._now_ms() + event.length_ms / 2, lambda: self._inject(course))
        else:
            course.state, course.reason = "skipped", fault.doubt

    def _inject(self, course: Course) -> None:
        """Its effect begins; one that had to be prepared was that for the first half of its time."""
        assert course.fault
        if course.fault.healed:
            return
        course.injected_ms = self._now_ms()
        if course in self._active:
            self._active.remove(course)
        if not course.fault.attempt(course.fault.inject):
            self._conclude(course, proved=False)
            return
        course.state = "active"
        self._active.append(course)
        left_ms = course.event.length_ms / 2 if course.fault.prepares else course.event.length_ms
        if BY_NAME[course.event.fault].lasts:
            self._at(self._now_ms() + left_ms, lambda: self._end_when_possible(course))
        else:
            self._end(course)

    def _end_when_possible(self, course: Course) -> None:
        """Its time is over; while a server does not answer that must, it lasts on."""
        if course.state != "active":
            return
        if self._is_delayed(course):
            self._at(self._now_ms() + 1, lambda: self._end_when_possible(course))
        else:
            self._end(course)

    def _end(self, course: Course) -> None:
        assert course.fault
        self._active.remove(course)
        proved = course.fault.conclude()
        if course.fault.injected:
            self._conclude(course, proved=proved)
        else:
            course.state, course.reason = "skipped", "the storm was over before"

    def _conclude(self, course: Course, *, proved: bool) -> None:
        assert course.fault
        course.state = "proved" if proved else "not proved"
        course.reason = course.fault.report if proved else course.fault.doubt
        course.healed_ms = self._now_ms()
        self._keep_busy()

    # --- who is in whose way ---

    def _in_the_way(self, course: Course) -> str:
        """Why a fault cannot begin now; empty: it can."""
        event = course.event
        for other in (active.event for active in self._active):
            if forbids(BY_NAME[other.fault], other.target, BY_NAME[event.fault], event.target):
                return f"{other.fault} was in effect on {other.target}"
        if self._is_client(event.target) and self._client(event.target).state is StrandState.GONE:
            return f"{event.target} had ended"
        return ""

    def _is_delayed(self, course: Course) -> bool:
        event, others = course.event, (active.event for active in self._active if active is not course)
        entry = BY_NAME[event.fault]
        return any(delays(BY_NAME[other.fault], other.target, entry, event.target) for other in others)

    # --- whom ---

    def _is_client(self, target: str) -> bool:
        return any(target == f"client-{each + 1}" for each in range(len(self.clients)))

    def _client(self, target: str) -> Client:
        """Who lives there now: a target has the name of the first life."""
        return self.trial.client_on(self.clients[int(target.removeprefix("client-")) - 1].strand)

    def _living(self) -> list[Client]:
        return [self.trial.client_on(client.strand) for client in self.clients]

    def _target(self, target: str) -> Target:
        if self._is_client(target):
            return self._client(target)
        if target == ALL_CLIENTS:
            return None
        databases = {database.name: database for database in self.trial.databases}
        if target in databases:
            return databases[target]
        return target if ">" in target else self.trial.master(self.trial.server_named(target))

    def _keep_busy(self) -> None:
        """Whoever has nothing to do - it has just begun its life - works."""
        for client in self._living():
            if client.state is StrandState.IDLE:
                client.start_workload(0, self.plan.work_ms, self.plan.work_ms)

    # --- when ---

    def _now_ms(self) -> float:
        return (self.trial.mono_ns - self._began_ns) / NS_PER_MS

    def _at(self, at_ms: float, act: Callable[[], None]) -> None:
        self._dues += 1
        heappush(self._agenda, _Due(self._began_ns + int(at_ms * NS_PER_MS), self._dues, act))


def count_faults(course: Iterable[Course]) -> list[dict[str, Any]]:
    """Per fault: how often it was meant, injected, seen to take effect, and left out as something was in its way."""
    counts: dict[str, dict[str, Any]] = {}
    for each in course:
        empty = {"name": each.event.fault, "meant": 0, "injected": 0, "proved": 0, "skipped": 0}
        count = counts.setdefault(each.event.fault, empty)
        count["meant"] += 1
        count["injected"] += each.injected_ms is not None
        count["proved"] += each.state == "proved"
        count["skipped"] += each.state == "skipped"
    return [counts[name] for name in sorted(counts)]
