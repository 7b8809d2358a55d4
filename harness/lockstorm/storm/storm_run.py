"""A storm's run: each fault begins at its time, or when its client comes to a checkpoint, and ends after its length.
Rules keep faults apart that cannot overlap."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import Any, NamedTuple

from lockstorm.native.library import Kind, TaskState
from lockstorm.results.storm_result import FaultCount, StormCourse
from lockstorm.storm.storm_faults import ALL_CLIENTS, BY_NAME, delays, forbids
from lockstorm.storm.storm_plan import StormPlan
from lockstorm.storm.storm_schedule import StormEvent
from lockstorm.trial.client import ANYWHERE, Client
from lockstorm.trial.fault import Fault, Target
from lockstorm.trial.settings import lease_late_in
from lockstorm.trial.trial import Trial

NS_PER_MS = 1_000_000
RESIDUE_LEASES = 2
GIVE_UP_MS = 50  # after which a client gives up that waits while another holds the lock


@dataclass
class Course:
    """What became of an event of the schedule."""

    event: StormEvent
    state: str = "waits"  # active, proved, not proved, skipped
    reason: str = ""
    injected_ms: float | None = None
    healed_ms: float | None = None
    fault: Fault | None = None

    def result(self) -> StormCourse:
        event = self.event
        times = self.injected_ms, self.healed_ms
        return StormCourse(event.at_ms, event.fault, event.target, self.state, self.reason, *times)


class _Timer(NamedTuple):
    at_ns: int
    order: int  # never the same
    act: Callable[[], None]


class StormRun:
    """One storm in one trial: `warm_up`, `run`, `drain`."""

    def __init__(self, trial: Trial, plan: StormPlan, watch: Callable[[Trial], None] | None = None) -> None:
        self.trial, self.plan, self.watch = trial, plan, watch
        self.course = [Course(event) for event in plan.schedule.events]
        self.clients = trial.clients(plan.schedule.clients)
        self._began_ns = trial.mono_ns
        self._timers: list[_Timer] = []
        self._armed: dict[str, Course] = {}  # target -> the fault that waits for its checkpoint
        self._active: list[Course] = []
        self._orders = count()
        self._usual: set[bytes] = set()  # keys that this lock always leaves at its servers

    def warm_up(self) -> None:
        """Has each client served once, before anything is broken: a first quiet phase. The keys that are then at the
        servers are those that this lock always leaves."""
        self.trial.recorder.number("bound_ms", self.plan.promised_ms)
        self.trial.recorder.phase("quiet")
        for client in self.clients:
            client.start_increment(work_ms=self.plan.work_ms)
        self.trial.finish(*self.clients)
        self._usual = set(self.trial.nodes.remains())

    def run(self) -> None:
        """Plays the schedule, from its first fault to the storm's end."""
        self.trial.recorder.phase("storm")
        self._began_ns = self.trial.mono_ns
        for course in self.course:
            self._at(course.event.at_ms, lambda course=course: self._reach(course))  # type: ignore[misc]
        self._keep_busy()
        end_ns = self._began_ns + self.plan.schedule.duration_ms * NS_PER_MS
        while self.trial.mono_ns < end_ns:
            next_ns = min(self._timers[0].at_ns, end_ns) if self._timers else end_ns
            self.trial.run([self._client(name) for name in self._armed], next_ns, first=True)
            self._begin_at_checkpoints()
            while self._timers and self._timers[0].at_ns <= self.trial.mono_ns < end_ns:
                heappop(self._timers).act()
                if self.watch:
                    self.watch(self.trial)

    def drain(self) -> None:
        """Heals every fault, the last one first; then each client ends the turn that it has begun and makes one more.
        The last clock record says until when the trial waited: a client not served by then never will be."""
        for course in list(self._armed.values()):
            self._disarm(course, "the storm was over before its client came to the checkpoint")
        while self._active:
            self._end(next((last for last in reversed(self._active) if not self._is_delayed(last)), self._active[-1]))
        for course in self.course:
            if course.state == "waits":
                course.state, course.reason = "skipped", "the storm was over before"
        self.trial.faults.heal()
        self._let_go()
        self.trial.recorder.number("bound_ms", self.plan.bound_ms)
        self.trial.recorder.phase("quiet")
        self._keep_busy()
        for client in self._living():
            client.wind_down()
        until_ns, held = self.trial.mono_ns + self.plan.quiet_ms * NS_PER_MS, True
        while held and self.trial.mono_ns < until_ns:
            self.trial.run(self._living(), until_ns)
            held = self._let_go()
        self.trial.clock.note()
        if all(client.state is TaskState.IDLE for client in self._living()):
            self._refuse_one()
            self._record_residue()

    def _let_go(self) -> bool:
        """Lets the clients go on that came to a checkpoint just before it was disarmed. True if there was one."""
        held = [client for client in self._living() if client.state is TaskState.HELD]
        for client in held:
            client.go_on()
        return bool(held)

    def _refuse_one(self) -> None:
        """In virtual time: while a client holds the lock, another tries once, and waits a little and gives up. Nothing
        of it may be left. Then it is served."""
        clients, is_single = self._living(), self.trial.lock.capacity == 1
        if len(clients) < 2 or not is_single or self.trial.settings.time == "real":
            return
        holder, other = clients[:2]
        holder.start_acquire()
        if not self._is_done(holder) or not holder.result().ok:
            return
        before = self.trial.residue.traces()
        for wait_ms in (0, min(GIVE_UP_MS, self.trial.lease_ms // 4)):
            other.start_acquire(wait_ms=wait_ms)
            if not self._is_done(other):
                return
            if other.result().ok:  # no lock, or one whose lease has ended
                other.release()
                break
            self.trial.residue.compare(before)
        holder.start_release()
        other.start_increment(work_ms=self.plan.work_ms)
        self._is_done(holder, other)

    def _is_done(self, *clients: Client) -> bool:
        """Whether these clients do their steps in the time in which a quiet phase serves everybody."""
        self.trial.run(list(clients), self.trial.mono_ns + self.plan.quiet_ms * NS_PER_MS)
        return all(client.state is TaskState.IDLE for client in clients)

    def _record_residue(self) -> None:
        """Records the keys that stay at the servers although no client holds or wants the lock: those that are there
        two leases later, do not expire in a third, and are not always left."""
        lease_ms, recorder = self.plan.schedule.lease_ms, self.trial.recorder
        self.trial.advance(RESIDUE_LEASES * lease_ms + lease_late_in(self.trial.settings, self.trial.lock))
        before = self.trial.nodes.remains()
        self.trial.advance(lease_ms)
        left, what = 0, self.trial.nodes.remains_of
        for key, rest_ms in sorted(self.trial.nodes.remains().items()):
            expires = 0 <= rest_ms <= before.get(key, rest_ms) - lease_ms // 2
            if key not in self._usual and not expires:
                left += 1
                recorder.record(Kind.RESIDUE, name=recorder.text(f"{what} {os.fsdecode(key)}"), value=1)
        if not left:
            recorder.record(Kind.RESIDUE, name=recorder.text(f"{what}s"), value=0)

    def _reach(self, course: Course) -> None:
        """Its time has come: it begins, or waits for its client's checkpoint, or is skipped."""
        event = course.event
        if not event.passage:
            self._begin(course)
        elif event.target in self._armed:
            course.state, course.reason = "skipped", "another fault waits for the same client's checkpoint"
        else:
            self._armed[event.target] = course
            self._client(event.target).hold_at(ANYWHERE, event.passage)

    def _begin_at_checkpoints(self) -> None:
        """Begins the faults whose clients are held at their checkpoints."""
        for name, course in list(self._armed.items()):
            client = self._client(name)
            if client.state is TaskState.GONE:
                self._disarm(course, f"{name} had ended")
            elif client.state is TaskState.HELD:
                del self._armed[name]
                client.record_checkpoint(client.held_at)
                self._begin(course)
                client.go_on()

    def _disarm(self, course: Course, reason: str) -> None:
        del self._armed[course.event.target]
        self._client(course.event.target).hold_at("", 0)
        course.state, course.reason = "skipped", reason

    def _begin(self, course: Course) -> None:
        event = course.event
        course.reason = self._obstacle(course)
        if course.reason:
            course.state = "skipped"
            return
        options: dict[str, Any] = {  # keyword arguments of the trial's fault
            name.replace("-", "_"): value for name, value in event.options.items()
        }
        fault = course.fault = Fault(self.trial.faults.driver, event.fault, self._target(event.target), **options)
        if not fault.prepares:
            self._inject(course)
        elif fault.attempt(fault.prepare):
            self._active.append(course)
            self._at(self._now_ms() + event.length_ms / 2, lambda: self._inject(course))
        else:
            course.state, course.reason = "skipped", fault.doubt

    def _inject(self, course: Course) -> None:
        """Its effect begins. A fault that has to be prepared was being prepared for the first half of its length."""
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
        """Its time is over; it lasts on while a server does not answer that must."""
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

    # --- which faults cannot overlap ---

    def _obstacle(self, course: Course) -> str:
        """Why a fault cannot begin now; "" if it can."""
        event = course.event
        for other in (active.event for active in self._active):
            if forbids(BY_NAME[other.fault], other.target, BY_NAME[event.fault], event.target):
                return f"{other.fault} was in effect on {other.target}"
        if self._is_client(event.target) and self._client(event.target).state is TaskState.GONE:
            return f"{event.target} had ended"
        return ""

    def _is_delayed(self, course: Course) -> bool:
        event, others = course.event, (active.event for active in self._active if active is not course)
        entry = BY_NAME[event.fault]
        return any(delays(BY_NAME[other.fault], other.target, entry, event.target) for other in others)

    # --- targets ---

    def _is_client(self, target: str) -> bool:
        return any(target == f"client-{each + 1}" for each in range(len(self.clients)))

    def _client(self, target: str) -> Client:
        """The client's latest life: a target has the name of its first."""
        return self.trial.client_processes.latest_on(self.clients[int(target.removeprefix("client-")) - 1].task)

    def _living(self) -> list[Client]:
        return [self.trial.client_processes.latest_on(client.task) for client in self.clients]

    def _target(self, target: str) -> Target:
        if self._is_client(target):
            return self._client(target)
        if target == ALL_CLIENTS:
            return None
        nodes = self.trial.nodes
        return target if ">" in target else nodes.master(nodes.named(target))

    def _keep_busy(self) -> None:
        """Gives each client without a step, such as a restarted one, a workload without end."""
        for client in self._living():
            if client.state is TaskState.IDLE:
                plan = self.plan
                client.start_workload(0, plan.work_ms, plan.work_ms, plan.wait_ms, plan.varied)

    # --- time ---

    def _now_ms(self) -> float:
        return (self.trial.mono_ns - self._began_ns) / NS_PER_MS

    def _at(self, at_ms: float, act: Callable[[], None]) -> None:
        heappush(self._timers, _Timer(self._began_ns + int(at_ms * NS_PER_MS), next(self._orders), act))


def count_faults(course: Iterable[Course]) -> list[FaultCount]:
    counts: dict[str, FaultCount] = {}
    for each in course:
        count = counts.setdefault(each.event.fault, FaultCount(each.event.fault))
        count.meant += 1
        count.injected += each.injected_ms is not None
        count.proved += each.state == "proved"
        count.skipped += each.state == "skipped"
    return [counts[name] for name in sorted(counts)]
