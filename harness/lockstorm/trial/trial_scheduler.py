"""A trial's scheduler, seen from Python: runs the trial, tells its time, and explains why a run stopped."""

import contextlib
import ctypes
import os
import signal
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from lockstorm.base.errors import Inconclusive, LockstormError, Unanswered
from lockstorm.native.library import FOREVER, Message, RunResult, TimeKind, library
from lockstorm.trial.client_groups import served_ms
from lockstorm.trial.settings import TrialSettings

PATIENCE_LEASES, PATIENCE_MS = 100, 3_600_000  # virtual time: how long a run without a bound may last
TURN_LIMIT_MS = 120_000  # virtual time: how long one task may keep the turn before the trial is given up
RUN_LIMIT_MS = 180_000  # real time: how long a run may last, beyond a workload's own duration; 100 polls take 150 s
TASKS_PER_CLIENT = 2  # worker and watchdog
LOOK_MS = 1000  # real time: how often a run that waits looks whether it can still come to a verdict


class ScheduledClient(Protocol):
    """A client whose step a run waits for. `task`: the number of its worker."""

    @property
    def name(self) -> str: ...

    @property
    def task(self) -> int: ...


class TrialScheduler:
    """The scheduler (harness/scheduler/scheduler.h) on a shared page that it makes at `page`.

    The object can be passed to a function of the C library as the scheduler's pointer.
    """

    def __init__(self, page: Path, settings: TrialSettings, lease_ms: int, plugin: str = "") -> None:
        """`plugin`: the lock's name, if it is a plug-in, whose code can keep the turn for ever."""
        lib, message = library(), Message()
        self.page = page
        self._plugin = plugin
        run_limit_ms = RUN_LIMIT_MS + (settings.duration_ms or 0) + served_ms(settings.grouped_clients)
        is_virtual = settings.time == "virtual"
        self._limit_ms = TURN_LIMIT_MS if is_virtual else run_limit_ms
        self._look_ms = self._limit_ms if is_virtual else LOOK_MS
        self._patience_ms = PATIENCE_MS + PATIENCE_LEASES * lease_ms + (settings.duration_ms or 0)
        self._exit = contextlib.ExitStack()
        tasks = TASKS_PER_CLIENT * settings.grouped_clients
        time_kind = TimeKind[settings.time.upper()]
        must_succeed(lib.shared_page_create(bytes(page), time_kind, settings.seed, tasks, message), message)
        self.handle: int = must_succeed(lib.scheduler_open(bytes(page), message), message)
        self._as_parameter_ = self.handle  # what ctypes passes
        self._exit.callback(lib.scheduler_close, self.handle)
        lib.scheduler_set_patience(self, self._patience_ms * 1_000_000)
        self._watch_signals()
        self.after_run: Callable[[], None] = lambda: None  # called after each run that went well; may raise
        self.while_waiting: Callable[[], None] = lambda: None  # called in a long run in real time; may raise
        self.explain_death: Callable[[int], LockstormError | None] = lambda pid: None  # of a client's process

    def close(self) -> None:
        self._exit.close()

    def _watch_signals(self) -> None:
        """During a call of C, Python only notes a signal; the scheduler sees it on this pipe and returns."""
        if threading.current_thread() is not threading.main_thread():
            return  # only the main thread handles signals, and Ctrl-C ends it
        reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        for end in (reading, writing):
            self._exit.callback(os.close, end)
        self._exit.callback(signal.set_wakeup_fd, before)
        library().scheduler_set_signal_fd(self, reading)

    @property
    def mono_ns(self) -> int:
        return int(library().scheduler_mono_ns(self))

    @property
    def wall_ns(self) -> int:
        return int(library().scheduler_wall_ns(self))

    def add_server(self, clock: Path | None, socket: Path | None) -> int:
        """The number of a new server. `clock`: the file that sets its clock; `socket`: where it answers in RESP."""
        message, paths = Message(), (bytes(path) if path else None for path in (clock, socket))
        number = int(library().scheduler_add_server(self, *paths, message))
        must_succeed(number >= 0, message)
        return number

    def run(self, awaited: Sequence[ScheduledClient], until_ns: int = FOREVER, *, first: bool = False) -> None:
        """Runs the trial until all of these clients are parked (`first`: one of them) or the clock reaches until_ns."""
        tasks = (ctypes.c_int * max(1, len(awaited)))(*(client.task for client in awaited))
        left_ms = self._limit_ms
        while True:
            look_ms = min(left_ms, self._look_ms)
            outcome = RunResult(library().scheduler_run(self, tasks, len(awaited), first, until_ns, look_ms))
            if outcome in (RunResult.DONE, RunResult.TIME):
                return self.after_run()
            if outcome is RunResult.INTERRUPTED:
                continue  # Python has run its own handler by now; without an exception there is nothing to do
            left_ms -= self._look_ms
            if outcome is RunResult.STUCK and left_ms > 0:
                self.while_waiting()
                continue
            if outcome is RunResult.DIED:
                dead: int = library().scheduler_dead(self)
                raise self.explain_death(dead) or Inconclusive(f"a client ended (process {dead})")
            raise Inconclusive(self._explain_stop(outcome, awaited))

    def _explain_stop(self, outcome: RunResult, awaited: Sequence[ScheduledClient]) -> str:
        names = ", ".join(client.name for client in awaited) or "nobody"
        if outcome is RunResult.LATE:
            return f"{names} did not come back within {self._patience_ms / 1000:g} s of the trial's time"
        if outcome is RunResult.QUIET:
            return f"nobody can go on: the trial waits for {names}, who waits for the trial"
        if outcome is RunResult.STUCK:
            late = f"{names} did not come back within {self._limit_ms / 1000:g} s"
            return self.unanswered or (f"{self._plugin}: {late}" if self._plugin else late)
        return "a server's clock could not be written"

    def settle(self) -> None:
        """Lets every message arrive that is in flight and that no fault holds back."""
        if not self.try_settle():
            raise Unanswered(self.unanswered)

    def try_settle(self) -> bool:
        """The same; False if a server, or the proxy, does not answer."""
        return bool(library().scheduler_settle(self))

    @property
    def unanswered(self) -> str:
        """Which server, or the proxy, did not answer when the scheduler last waited in vain; "" if it never did."""
        reason: bytes = library().scheduler_unanswered(self)
        return reason.decode(errors="replace")


def must_succeed(result: Any, message: Message) -> Any:
    """The result of a C function, which has written its error to `message` if the result is false."""
    if not result:
        raise Inconclusive(str(message))
    return result
