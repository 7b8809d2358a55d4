"""A client of a trial: its steps, and the results of these."""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass

from lockstorm.base.errors import Inconclusive, UsageError
from lockstorm.native.library import (
    FOREVER,
    Kind,
    Object,
    Outcome,
    Step,
    StepKind,
    StepResult,
    TaskState,
    Varied,
    library,
)
from lockstorm.process.process import Process
from lockstorm.trial.settings import WAIT_FOR_EVER
from lockstorm.trial.trial_context import TrialContext

# Checkpoints inside a library are named by what it was asked. Its program can be held only when something has come for
# it, which it has not seen (NEWS, harness/supervisor/supervisor_main.c): the servers tell which of these moments it is.
AFTER_REPLY = "after-acquire-reply"  # the answers to acquire have come
AFTER_REFUSAL = "after-refusal"  # the answer to its first command that asks for a lock which another client holds
BEFORE_FREEING = "before-freeing"  # the answer before the command that frees the lock, or the question to release it
NEWS = "after-news"
BEFORE_RELEASE = "before-release"  # where each lock is before it sends anything for a release
ANYWHERE = "*"  # every checkpoint (SHARED_PAGE_ANYWHERE)
# The checkpoints at which a client that is held is an ordinary holder, who takes long (harness/client/client.c).
OUTSIDE_THE_LOCK = ("after-acquire", "before-read", "after-validity-check", "before-write", "after-write")


@dataclass(frozen=True)
class Result:
    """The result of a client's step."""

    outcome: Outcome
    token: int
    value: int
    version: int
    turns: int
    error: str

    @property
    def ok(self) -> bool:
        return self.outcome is Outcome.OK


class Client:
    """A client process. A `start_` method gives it a step and returns at once; `finish` runs the trial until the step
    is done. The other steps do both."""

    def __init__(self, trial: TrialContext, host: str, resource: bytes, task: int, life: int = 1) -> None:
        self.trial = trial
        self.host = host  # its clocks, links and tasks are those of all lives of the client
        self.life = life
        self.name = host if life == 1 else f"{host}.{life}"
        self.resource = resource  # the name of what the lock protects
        self.identity = trial.recorder.text(self.name)
        self.task = task  # of its worker; the watchdog has the next number
        self.process: Process | None = None
        self.ended = False  # on purpose
        self.next_life: Client | None = None
        self.group = ""  # the name of the process that it shares with others; empty: it has its own

    @property
    def pid(self) -> int:
        assert self.process
        return self.process.pid

    @property
    def process_name(self) -> str:
        return self.group or self.name

    # --- steps ---

    def acquire(self, wait_ms: int = -1) -> Result:
        """Asks for the lock and waits for it for wait_ms; -1: as long as the pattern itself does."""
        return self._do(StepKind.ACQUIRE, wait_ms=wait_ms)

    def start_acquire(self, wait_ms: int = -1) -> None:
        self._start(StepKind.ACQUIRE, wait_ms=wait_ms)

    def release(self) -> Result:
        return self._do(StepKind.RELEASE)

    def start_release(self) -> None:
        self._start(StepKind.RELEASE)

    def renew(self) -> Result:
        return self._do(StepKind.RENEW)

    def is_held(self) -> Result:
        """Asks the lock whether this client holds it: OK yes, REFUSED no, UNKNOWN where the pattern cannot say."""
        return self._do(StepKind.IS_HELD)

    def read(self, what: Object = Object.COUNTER) -> Result:
        return self._do(StepKind.READ, object=what)

    def write(self, value: int, what: Object = Object.COUNTER) -> Result:
        """Writes a value that was computed from what this client read last under its grant."""
        return self._do(StepKind.WRITE, object=what, value=value)

    def start_write(self, value: int, what: Object = Object.COUNTER) -> None:
        self._start(StepKind.WRITE, object=what, value=value)

    def add(self, value: int, what: Object = Object.COUNTER) -> Result:
        """Makes the store add the value, atomically."""
        return self._do(StepKind.ADD, object=what, value=value)

    def work(self, work_ms: int) -> Result:
        return self._do(StepKind.SLEEP, work_ms=work_ms)

    def start_increment(self, by: int = 1, work_ms: int = 0, token: int = 0) -> None:
        """Starts: acquire, read the counter, work, write the sum, release. `token`: the application's own, which is
        used instead of the lock's, or 0."""
        fields = {"object": Object.COUNTER, "wait_ms": -1, "value": by, "work_ms": work_ms, "turns": 1, "token": token}
        self._start(StepKind.WORKLOAD, **fields)

    def increment(self, by: int = 1, work_ms: int = 0) -> Result:
        self.start_increment(by, work_ms)
        return self.finish()

    def start_workload(
        self,
        duration_ms: int,
        work_ms: int,
        think_ms: int,
        wait_ms: int = WAIT_FOR_EVER,
        varied: Varied = Varied.NOTHING,
    ) -> None:
        """Starts to increment again and again, for duration_ms. `varied`: what is drawn for each client and turn,
        from the trial's seed, instead of the same for all."""
        renews = self.trial.lock.renews and not self.trial.settings.fixed_lease
        self._start(
            StepKind.WORKLOAD,
            object=Object.COUNTER,
            wait_ms=wait_ms,
            value=1,
            work_ms=work_ms,
            think_ms=think_ms,
            duration_ms=duration_ms,
            lease_ms=self.trial.lease_ms,
            varied=varied,
            renews=int(renews),
        )

    def start_hold(self, turns: int = 0, pace_us: int = 0, work_ms: int = 0) -> None:
        """Starts to acquire and release without access to the store, until that was tried `turns` times (0: no limit)
        or the history is full; the n-th time not before n * pace_us."""
        self._start(StepKind.HOLD, wait_ms=-1, turns=turns, pace_us=pace_us, work_ms=work_ms)

    # --- waiting ---

    def finish(self) -> Result:
        """Runs the trial until this client's step is done."""
        self.go_on()
        self.trial.scheduler.run([self])
        return self.result()

    def run_to(self, checkpoint: str, nth: int = 1) -> None:
        """Runs the trial until this client comes to a checkpoint (ANYWHERE: to any) for the n-th time, and holds it
        there. Inside a library there are AFTER_REPLY, AFTER_REFUSAL, and BEFORE_FREEING, whose `nth` is the result of
        `news_before_freeing`. Raises Inconclusive if it never comes there."""
        inside = self.trial.lock.adapter and checkpoint in (AFTER_REPLY, AFTER_REFUSAL, BEFORE_FREEING)
        if not (self._comes_inside(checkpoint, nth) if inside else self._comes_to(self.task, checkpoint, nth)):
            raise Inconclusive(f"{self.name} never came to the checkpoint {checkpoint}{self._way_out(checkpoint)}")
        self.record_checkpoint(checkpoint if checkpoint != ANYWHERE else self.held_at)

    def _comes_inside(self, checkpoint: str, nth: int) -> bool:
        """Whether the library comes to that moment; it is held there then."""
        servers = self.trial.nodes
        before, asked = servers.contents(), servers.asked()
        if checkpoint == BEFORE_FREEING:
            comes = self._comes_to(self.task, BEFORE_RELEASE)
            if comes and nth > 1:  # the first news is the question
                self.go_on()
                comes = self._comes_to(self.task + 1, NEWS, nth)
            return comes and servers.contents() == before
        if checkpoint == AFTER_REFUSAL:  # the holder's lease must not be over then
            until_ns = self.trial.scheduler.mono_ns + self.trial.lease_ms * 1_000_000 // 2
            return self._has_news_until(lambda: servers.asked() > asked, until_ns)

        def is_everywhere() -> bool:
            changed = sum(now != then for now, then in zip(servers.contents(), before, strict=True))
            return changed >= min(self.trial.lock.nodes, len(before))

        return self._has_news_until(is_everywhere)

    def news_before_freeing(self) -> int:
        """Has a library release the lock, which it holds, and counts how often something comes for its program before
        it sends the command that frees the lock; the question is the first. Raises Inconclusive if no command does."""
        servers, news = self.trial.nodes, 0
        self.start_release()
        self._comes_to(self.task, BEFORE_RELEASE)
        held = servers.contents()
        self.go_on()
        while self._comes_to(self.task + 1, NEWS) and servers.contents() == held:
            news += 1
            self.go_on()
        self.finish()
        if servers.contents() == held:
            raise Inconclusive(f"the release of {self.name} changed nothing at the servers: no command frees the lock")
        return news

    def _has_news_until(self, condition: Callable[[], bool], until_ns: int = FOREVER) -> bool:
        """Whether something comes for the library's program with which the condition is met; it is held there then."""
        while self._comes_to(self.task + 1, NEWS, until_ns=until_ns):
            if condition():
                return True
            library().scheduler_continue(self.trial.scheduler, self.task + 1)
        return False

    def _comes_to(self, task: int, checkpoint: str, nth: int = 1, until_ns: int = FOREVER) -> bool:
        lib, scheduler = library(), self.trial.scheduler
        lib.scheduler_arm(scheduler, task, checkpoint.encode(), nth)
        scheduler.run([self] if task == self.task else [self, LibraryProgram(self)], until_ns, first=task != self.task)
        held: bool = lib.scheduler_state(scheduler, task) == TaskState.HELD
        if not held:
            lib.scheduler_arm(scheduler, task, b"", 0)
        return held

    def _way_out(self, checkpoint: str) -> str:
        """What the author of a plug-in can do about a checkpoint that is in the lock's own code."""
        if not self.trial.lock.plugin or checkpoint in (ANYWHERE, *OUTSIDE_THE_LOCK):
            return ""
        mark = f'env_checkpoint(env, "{checkpoint}")'
        return f": a plug-in marks it with {mark}; `lockstorm docs test-your-own-lock` says where each is"

    def run_for(self, limit_ms: float, checkpoint: str) -> bool:
        """Runs the trial until this client has done its step or is held at the checkpoint, at most limit_ms. True: it
        is held there."""
        return self.run_until(self.trial.scheduler.mono_ns + int(limit_ms * 1_000_000), checkpoint)

    def ends_within(self, limit_ms: float) -> bool:
        """Runs the trial until this client has done its step, at most limit_ms. Whether it has."""
        self.go_on()
        self.run_until(self.trial.scheduler.mono_ns + int(limit_ms * 1_000_000), None)
        return self.state is TaskState.IDLE

    def run_until(self, until_ns: int, checkpoint: str | None) -> bool:
        """The same, until the trial's clock reaches until_ns at most. None: what is armed already holds the client."""
        lib, scheduler = library(), self.trial.scheduler
        if checkpoint is not None:
            lib.scheduler_arm(scheduler, self.task, checkpoint.encode(), 1)
        scheduler.run([self], until_ns)
        lib.scheduler_arm(scheduler, self.task, b"", 0)
        held = bool(lib.scheduler_state(scheduler, self.task) == TaskState.HELD)
        if held:
            self.record_checkpoint(checkpoint or "")
        return held

    def record_checkpoint(self, checkpoint: str) -> None:
        recorder = self.trial.recorder
        recorder.is_disturbed |= checkpoint not in OUTSIDE_THE_LOCK
        recorder.record(Kind.CHECKPOINT, name=recorder.text(checkpoint), value=self.identity)

    def go_on(self) -> None:
        """Lets the client go on if it, or its library, is held at a checkpoint."""
        for task in (self.task, LibraryProgram(self).task) if self.trial.lock.adapter else (self.task,):
            if library().scheduler_state(self.trial.scheduler, task) == TaskState.HELD:
                library().scheduler_continue(self.trial.scheduler, task)

    @property
    def state(self) -> TaskState:
        return TaskState(library().scheduler_state(self.trial.scheduler, self.task))

    def hold_at(self, checkpoint: str, nth: int = 1) -> None:
        """Arms a checkpoint (ANYWHERE: each): it holds the client when that passes it for the n-th time from now on;
        0 disarms."""
        library().scheduler_arm(self.trial.scheduler, self.task, checkpoint.encode(), nth)

    @property
    def held_at(self) -> str:
        name: bytes = library().scheduler_held_at(self.trial.scheduler, self.task)
        return name.decode()

    def wind_down(self) -> None:
        """Ends its workload after one more grant."""
        library().scheduler_wind_down(self.trial.scheduler, self.task)

    def result(self) -> Result:
        raw: StepResult = library().scheduler_result_of(self.trial.scheduler, self.task)
        error = bytes(raw.error).decode(errors="replace")
        return Result(Outcome(raw.outcome), raw.token, raw.value, raw.version, raw.turns, error)

    # --- inside ---

    def _start(self, kind: StepKind, **fields: int) -> None:
        state = self.state
        if state is not TaskState.IDLE:
            raise UsageError(f"{self.name} is {state.name.lower()}, it cannot take another step now")
        library().scheduler_step(self.trial.scheduler, self.task, ctypes.byref(Step(kind=kind, **fields)))

    def _do(self, kind: StepKind, **fields: int) -> Result:
        self._start(kind, **fields)
        return self.finish()


class LibraryProgram:
    """The program of a client's library, under its supervisor: the client's second task, in virtual time."""

    def __init__(self, client: Client) -> None:
        self.name, self.task = client.name, client.task + 1
