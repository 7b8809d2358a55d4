"""The time of a trial: lets it pass, up to a lease's end or past it, and checks the servers' clocks."""

from lockstorm.base.errors import Inconclusive, UsageError
from lockstorm.native.library import Kind, Outcome, TaskState, library
from lockstorm.trial.client import Client
from lockstorm.trial.nodes import AnyNodes
from lockstorm.trial.settings import lease_late_in
from lockstorm.trial.trial_context import TrialContext

REAL_CONTROL_MS = 100  # a fault within a lease of 10 s: not even on a busy machine does it outlast the lease
REAL_BEYOND_MS = 3_000  # past the lease: a poller may have just begun its longest sleep
REAL_BEYOND_NOTHING_MS = 300  # for a lock without a lease: no other client gets it anyhow


class TrialClock:
    """Advances the trial's clock."""

    def __init__(self, trial: TrialContext, nodes: AnyNodes) -> None:
        self._trial, self._nodes = trial, nodes

    def host_wall_ms(self, client: Client) -> int:
        """The wall clock of a client's host, in ms since 1970."""
        return int(library().scheduler_host_wall_ns(self._trial.scheduler, client.task)) // 1_000_000

    def advance(self, duration_ms: float) -> None:
        """Lets duration_ms of the trial's time pass; clients go on with their steps meanwhile."""
        self._trial.scheduler.run([], until_ns=self._trial.scheduler.mono_ns + int(duration_ms * 1_000_000))
        self.note()

    def note(self) -> None:
        """Records the time, after reading it back from every server."""
        proved = self._trial.settings.time == "real" or self.prove()
        outcome = Outcome.OK if proved else Outcome.UNKNOWN
        self._trial.recorder.record(Kind.CLOCK, outcome=outcome, value=self._trial.scheduler.mono_ns)

    def prove(self) -> bool:
        """Reads the time back from every node that works. Raises Inconclusive if its clock is not where the trial has
        set it."""
        scheduler = self._trial.scheduler
        for server in self._nodes.clocked:
            if not library().scheduler_server_works(scheduler, server.number):
                continue
            shown, meant = server.time_us(), library().scheduler_server_wall_us(scheduler, server.number)
            if shown != meant - meant % server.clock_step_us:
                raise Inconclusive(f"the clock of {server.name} stands at {shown} us instead of {meant} us")
        return True

    def approach_lease_end(self) -> None:
        """Lets nine tenths of a lease pass, so that a client which starts to wait then polls less often. Does nothing
        in a control, nor in real time, where the rest of the lease might be too short for a busy machine."""
        if not self._trial.settings.control and self._trial.settings.time == "virtual":
            self.advance(self._trial.lease_ms * 0.9)

    def outlast_lease(self, other: Client, checkpoint: str | None = None) -> None:
        """Lets time pass until the other client has done its step or is held at a checkpoint, at most two leases (in
        real time one lease and some seconds): a lock that never expires lets no other client in. In a control: a time
        that is safely within the lease. UsageError if the other client has no step under way: nothing would be waited
        for."""
        settings, lease_ms = self._trial.settings, self._trial.lease_ms
        if other.state is TaskState.IDLE:
            raise UsageError(f"outlast_lease: {other.name} has no step under way: give it one, as start_increment does")
        if settings.control:
            self.advance(lease_ms / 10 if settings.time == "virtual" else REAL_CONTROL_MS)
            return
        beyond_ms = lease_ms if settings.time == "virtual" else self._real_beyond_ms()
        other.run_until(self._trial.scheduler.mono_ns + (lease_ms + beyond_ms) * 1_000_000, checkpoint)

    def _real_beyond_ms(self) -> int:
        trial = self._trial
        late_ms = lease_late_in(trial.settings, trial.lock)
        return REAL_BEYOND_MS + late_ms if trial.lock.lease else REAL_BEYOND_NOTHING_MS
