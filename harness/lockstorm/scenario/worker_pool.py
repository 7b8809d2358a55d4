"""Worker processes that play trials in parallel. Only the verdict of a trial leaves its worker.

A worker (`python -m lockstorm.scenario.worker_pool CORE`) reads requests from its standard input, one JSON object per
line, and answers each with a line. It ends when its input ends and when its parent ends. In virtual time only one
process of a trial runs at a time, so all of them stay on one core: waking a process on another core costs more than
its work.
"""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NoReturn, Self, TypeVar

import msgspec

from lockstorm.base import paths
from lockstorm.base.errors import LockstormError
from lockstorm.results.matrix_result import TrialSummary
from lockstorm.results.verdict import TrialResult, Verdict
from lockstorm.scenario.play import inconclusive, play, trial_command
from lockstorm.trial.settings import TrialSettings

Request = TypeVar("Request")

PlainAnswer = dict[str, Any]  # JSON of what a module plays, or {"error": reason}: `read` makes a type of it
END_LIMIT_S = 120.0
MEMORY, MEMORY_ROOM_BYTES = "/dev/shm", 1 << 30  # files are cheapest here; used if this much space is free
EXTRA_WORKERS = 1  # trials also wait: for replicas to catch up, for servers to start
REAL_TIME_WORKERS_PER_CORE = 3


class Worker:
    """A worker process, started by the constructor. It plays one request at a time."""

    def __init__(self, core: int, module: str = "lockstorm.scenario.worker_pool", directory: str | None = None) -> None:
        self.core = core
        self.playing: tuple[int, Any] | None = None
        command = [paths.program("spawn"), sys.executable, "-m", module, str(core)]
        environment = {**os.environ, "LOCKSTORM_PARENT": str(os.getpid()), "PYTHONPATH": paths.python_path()}
        environment |= {"TMPDIR": directory} if directory else {}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)

    @property
    def output(self) -> int:
        assert self.process.stdout
        return self.process.stdout.fileno()

    def begin(self, number: int, request: Any) -> None:
        assert self.process.stdin
        self.playing = number, request
        with suppress(BrokenPipeError):  # the worker has died: answer() sees its end of file
            self.process.stdin.write(msgspec.json.encode(request) + b"\n")
            self.process.stdin.flush()

    def answer(self) -> tuple[int, PlainAnswer | None]:
        """The number of the request and the worker's answer (None if the worker has died)."""
        assert self.process.stdout and self.playing
        (number, _), self.playing = self.playing, None
        line = self.process.stdout.readline()
        if not line:
            return number, None
        answer: PlainAnswer = json.loads(line)
        return number, answer

    def end(self) -> None:
        """Ends the worker. A trial that is running is aborted, and cleans up after itself."""
        assert self.process.stdin and self.process.stdout
        if self.playing:
            self.process.terminate()
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(END_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


class TrialPool:
    """A context manager that plays requests: WorkerPool does in parallel on this machine."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """Every request has ended, or was given up."""

    def play_all(self, requests: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """Yields the number and the answer of each request, as it ends."""
        raise NotImplementedError


def worker_count(requests: Sequence[TrialSettings]) -> int:
    """Number of workers for these requests. In real time workers mostly wait, so a core carries several."""
    cores = len(os.sched_getaffinity(0))
    waiting = all(request.time == "real" for request in requests)
    return cores * (REAL_TIME_WORKERS_PER_CORE if waiting else 1) + EXTRA_WORKERS


class WorkerPool(TrialPool):
    """A context manager: all workers have ended when its block ends. `module` defines what the workers play and answer;
    here a TrialSettings and its summary."""

    module = "lockstorm.scenario.worker_pool"
    in_memory = True  # keep trials' directories in memory: they are short-lived, a few megabytes each

    def __init__(self, size: int | None = None) -> None:
        self._cores = sorted(os.sched_getaffinity(0))
        self._size = size or len(self._cores) + EXTRA_WORKERS
        self._workers: list[Worker] = []

    def __exit__(self, *exception: object) -> None:
        for worker in self._workers:
            worker.end()

    def read(self, answer: PlainAnswer) -> Any:
        """Converts a worker's answer from JSON."""
        return msgspec.convert(answer, TrialSummary)

    def lost(self, request: Any, reason: str) -> Any:
        """The answer for a request that was not played to its end: its worker died, or ran into an error."""
        return trial_summary(request, inconclusive(reason))

    def play_all(self, requests: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """Plays all requests, starting them in this order. Yields each number and answer as the request ends. One that
        cannot be played does not keep the others from being played."""
        todo = list(enumerate(requests))[::-1]
        while len(self._workers) < min(self._size, len(todo)):
            self._start(self._cores[len(self._workers) % len(self._cores)])
        for worker in self._workers[: len(todo)]:
            worker.begin(*todo.pop())
        while busy := {worker.output: worker for worker in self._workers if worker.playing}:
            for descriptor in select.select(list(busy), [], [])[0]:
                worker = busy[descriptor]
                number, answer = worker.answer()
                if answer is None:
                    reason = f"the process that played it ended (status {worker.process.wait()})"
                    done, worker = self.lost(requests[number], reason), self._replace(worker)
                elif "error" in answer:
                    done = self.lost(requests[number], answer["error"])
                else:
                    done = self.read(answer)
                if todo:
                    worker.begin(*todo.pop())
                yield number, done

    def _replace(self, dead: Worker) -> Worker:
        dead.end()
        self._workers.remove(dead)
        return self._start(dead.core)

    def _start(self, core: int) -> Worker:
        self._workers.append(Worker(core, self.module, memory_directory() if self.in_memory else None))
        return self._workers[-1]


def memory_directory() -> str | None:
    """The directory in memory for the trials' private directories; None if it is full or the user has set TMPDIR."""
    with suppress(OSError):
        there = os.statvfs(MEMORY)
        roomy = there.f_bavail * there.f_frsize >= MEMORY_ROOM_BYTES and os.access(MEMORY, os.W_OK)
        return MEMORY if roomy and "TMPDIR" not in os.environ else None
    return None


def trial_summary(request: TrialSettings, played: Verdict | TrialResult) -> TrialSummary:
    statuses = {name: played.properties[name].status for name in played.required}
    played_again = played.played_again if isinstance(played, TrialResult) else 0
    return TrialSummary(dict(statuses), played.sentence, trial_command(request), played_again)


def work_off(
    core: int, kind: type[Request], time_of: Callable[[Request], str], play_one: Callable[[Request], Any]
) -> None:
    """Worker loop: reads requests of this type from standard input, plays each, prints the answer."""
    signal.signal(signal.SIGTERM, give_up)
    cores = os.sched_getaffinity(0)
    for line in sys.stdin:
        request = msgspec.json.decode(line, type=kind)
        os.sched_setaffinity(0, {core} if time_of(request) == "virtual" else cores)
        try:
            answer = play_one(request)
        except LockstormError as error:
            answer = {"error": str(error)}
        print(json.dumps(msgspec.to_builtins(answer)), flush=True)


def play_request(request: TrialSettings) -> TrialSummary:
    return trial_summary(request, play(request))


def give_up(signal_number: int, frame: object) -> NoReturn:
    """Handles SIGTERM: the exception unwinds the trial, which cleans up."""
    raise SystemExit(128 + signal_number)


if __name__ == "__main__":
    work_off(int(sys.argv[1]), TrialSettings, lambda request: request.time, play_request)
