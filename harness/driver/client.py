"""A client of a trial: what it is told to do, and what became of that."""

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.driver.errors import Inconclusive, UsageError
from harness.driver.library import Kind, Object, Outcome, Step, StepKind, StepResult, StrandState, library
from harness.driver.process import Process

if TYPE_CHECKING:
    from harness.driver.trial import Trial

ANYWHERE = "*"  # every checkpoint (STAGE_ANYWHERE)


@dataclass(frozen=True)
class Result:
    """What a step of a client came to."""

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
    """A client process. Methods that `start_` something return at once; `finish` runs the trial until it is done.
    The others do both."""

    def __init__(self, trial: "Trial", host: str, resource: bytes, strand: int, life: int = 1) -> None:
        self.trial = trial
        self.host = host  # whose clocks, links and places on the stage are those of all its lives
        self.life = life
        self.name = host if life == 1 else f"{host}.{life}"
        self.resource = resource  # the name of what its lock protects
        self.identity = trial.text(self.name)
        self.strand = strand
        self.process: Process | None = None
        self.ended = False  # on purpose
        self.next_life: Client | None = None

    @property
    def pid(self) -> int:
        assert self.process
        return self.process.pid

    # --- steps ---

    def acquire(self, wait_ms: int = -1) -> Result:
        """Asks for the lock; -1 waits as long as the pattern itself does."""
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
        """Asks the lock whether it is this client's: ok yes, refused no, unknown where the pattern cannot say."""
        return self._do(StepKind.IS_HELD)

    def read(self, what: Object = Object.COUNTER) -> Result:
        return self._do(StepKind.READ, object=what)

    def write(self, value: int, what: Object = Object.COUNTER) -> Result:
        """Writes a value that was computed from what this client last read under its grant."""
        return self._do(StepKind.WRITE, object=what, value=value)

    def start_write(self, value: int, what: Object = Object.COUNTER) -> None:
        self._start(StepKind.WRITE, object=what, value=value)

    def add(self, value: int, what: Object = Object.COUNTER) -> Result:
        """Lets the store add: atomic."""
        return self._do(StepKind.ADD, object=what, value=value)

    def work(self, work_ms: int) -> Result:
        return self._do(StepKind.SLEEP, work_ms=work_ms)

    def start_increment(self, by: int = 1, work_ms: int = 0, token: int = 0) -> None:
        """acquire, read the counter, work, write the sum, release; with a token of the application's own instead of the
        lock's, if one is given"""
        fields = {"object": Object.COUNTER, "wait_ms": -1, "value": by, "work_ms": work_ms, "turns": 1, "token": token}
        self._start(StepKind.WORKLOAD, **fields)

    def increment(self, by: int = 1, work_ms: int = 0) -> Result:
        self.start_increment(by, work_ms)
        return self.finish()

    def start_workload(self, duration_ms: int, work_ms: int, think_ms: int) -> None:
        """Increments again and again for a time."""
        self._start(
            StepKind.WORKLOAD,
            object=Object.COUNTER,
            wait_ms=-1,
            value=1,
            work_ms=work_ms,
            think_ms=think_ms,
            duration_ms=duration_ms,
        )

    def start_hold(self, turns: int = 0, pace_us: int = 0, work_ms: int = 0) -> None:
        """Acquires and releases, no access to the store in between, until that was tried `turns` times (0: no limit) or
        the history is full; the n-th time not before n * pace_us."""
        self._start(StepKind.HOLD, wait_ms=-1, turns=turns, pace_us=pace_us, work_ms=work_ms)

    # --- waiting ---

    def finish(self) -> Result:
        """Runs the trial until this client's step is done."""
        self.trial.finish(self)
        return self.result()

    def run_to(self, checkpoint: str, nth: int = 1) -> None:
        """Runs the trial until this client stands at the n-th passage of a checkpoint (ANYWHERE: of any), and holds it
        there."""
        lib, conductor = library(), self.trial.conductor
        lib.conductor_arm(conductor, self.strand, checkpoint.encode(), nth)
        self.trial.run([self])
        if lib.conductor_state(conductor, self.strand) != StrandState.HELD:
            lib.conductor_arm(conductor, self.strand, b"", 0)
            raise Inconclusive(f"{self.name} never came to the checkpoint {checkpoint}")
        self.trial.record(Kind.CHECKPOINT, name=self.trial.text(self.held_at), value=self.identity)

    def run_for(self, limit_ms: float, checkpoint: str) -> bool:
        """Runs the trial until this client has done its step or stands at the checkpoint (true), or for so long."""
        lib, trial = library(), self.trial
        lib.conductor_arm(trial.conductor, self.strand, checkpoint.encode(), 1)
        trial.run([self], trial.mono_ns + int(limit_ms * 1_000_000))
        lib.conductor_arm(trial.conductor, self.strand, b"", 0)
        held = bool(lib.conductor_state(trial.conductor, self.strand) == StrandState.HELD)
        if held:
            trial.record(Kind.CHECKPOINT, name=trial.text(checkpoint), value=self.identity)
        return held

    def go_on(self) -> None:
        """Lets a client that is held at a checkpoint go on."""
        if library().conductor_state(self.trial.conductor, self.strand) == StrandState.HELD:
            library().conductor_continue(self.trial.conductor, self.strand)

    @property
    def state(self) -> StrandState:
        return StrandState(library().conductor_state(self.trial.conductor, self.strand))

    def hold_at(self, checkpoint: str, nth: int = 1) -> None:
        """The n-th passage of this checkpoint from now on (ANYWHERE: of any) will hold it; 0: none will."""
        library().conductor_arm(self.trial.conductor, self.strand, checkpoint.encode(), nth)

    @property
    def held_at(self) -> str:
        name: bytes = library().conductor_held_at(self.trial.conductor, self.strand)
        return name.decode()

    def wind_down(self) -> None:
        """Lets its workload be done after one more turn that is granted."""
        library().conductor_wind_down(self.trial.conductor, self.strand)

    def result(self) -> Result:
        raw: StepResult = library().conductor_result_of(self.trial.conductor, self.strand)
        error = bytes(raw.error).decode(errors="replace")
        return Result(Outcome(raw.outcome), raw.token, raw.value, raw.version, raw.turns, error)

    # --- inside ---

    def _start(self, kind: StepKind, **fields: int) -> None:
        state = self.state
        if state is not StrandState.IDLE:
            raise UsageError(f"{self.name} is {state.name.lower()}, it cannot take another step now")
        library().conductor_step(self.trial.conductor, self.strand, ctypes.byref(Step(kind=kind, **fields)))

    def _do(self, kind: StepKind, **fields: int) -> Result:
        self._start(kind, **fields)
        return self.finish()
