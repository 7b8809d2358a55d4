"""Workers that play trials side by side, a process each, so that nothing but the verdict leaves a trial.

A worker (`python -m harness.driver.crew CORE`) reads wishes from its standard input, a line of JSON each, and answers
each with a line. It ends with its input, and with its parent. In virtual time one process of a trial works at a
time, so all of them stay on one core: waking somebody on another one costs more than what is to be done there.
"""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any, NoReturn, Self

from harness.driver import paths
from harness.driver.errors import LockstormError, UsageError
from harness.driver.play import Wish, inconclusive, play, replay_command

END_LIMIT_S = 30.0
MEMORY, MEMORY_ROOM_BYTES = "/dev/shm", 1 << 30  # where files cost least to make, if it has so much room
MORE_THAN_CORES = 1  # a trial also waits: for a replica that follows, for a server that starts
WAITING_PER_CORE = 3


class Worker:
    """Started by the constructor; plays one wish at a time."""

    def __init__(self, core: int, module: str = "harness.driver.crew", directory: str | None = None) -> None:
        self.core = core
        self.playing: tuple[int, Any] | None = None
        command = [paths.program("leash"), sys.executable, "-m", module, str(core)]
        environment = {**os.environ, "LOCKSTORM_PARENT": str(os.getpid()), "PYTHONPATH": str(paths.ROOT)}
        environment |= {"TMPDIR": directory} if directory else {}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)

    @property
    def output(self) -> int:
        assert self.process.stdout
        return self.process.stdout.fileno()

    def begin(self, number: int, wish: Any) -> None:
        assert self.process.stdin
        self.playing = number, wish
        with suppress(BrokenPipeError):  # it has died: its end of file says so
            self.process.stdin.write(json.dumps(asdict(wish)).encode() + b"\n")
            self.process.stdin.flush()

    def answer(self) -> tuple[int, dict[str, Any] | None]:
        """What the wish came to, by its number; None: the worker has died of it. Raises UsageError for a wish that
        cannot be played."""
        assert self.process.stdout and self.playing
        (number, _), self.playing = self.playing, None
        line = self.process.stdout.readline()
        if not line:
            return number, None
        said: dict[str, Any] = json.loads(line)
        if "error" in said:
            raise UsageError(said["error"])
        return number, said

    def end(self) -> None:
        """A trial that is going on is given up, and cleans up after itself."""
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


def crew_size(wishes: Sequence[Wish]) -> int:
    """How many workers play them. In real time they mostly wait."""
    cores = len(os.sched_getaffinity(0))
    waiting = all(wish.time == "real" for wish in wishes)
    return cores * (WAITING_PER_CORE if waiting else 1) + MORE_THAN_CORES


class Crew:
    """Some workers; all have ended when the block does, however it does. What they play, and what they answer, is what
    their module serves; here it is a wish, and its summary."""

    module = "harness.driver.crew"
    in_memory = True  # trials are short: a few megabytes are all that they leave to be removed

    def __init__(self, size: int | None = None) -> None:
        self._cores = sorted(os.sched_getaffinity(0))
        self._size = size or len(self._cores) + MORE_THAN_CORES
        self._workers: list[Worker] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        for worker in self._workers:
            worker.end()

    def lost(self, wish: Any, reason: str) -> dict[str, Any]:
        """The answer for a wish whose worker died."""
        return summary(wish, inconclusive(reason))

    def play_all(self, wishes: Sequence[Any]) -> Iterator[tuple[int, dict[str, Any]]]:
        """Plays all of them, begun in this order; gives each by its number, as they end."""
        todo = list(enumerate(wishes))[::-1]
        while len(self._workers) < min(self._size, len(todo)):
            self._start(self._cores[len(self._workers) % len(self._cores)])
        for worker in self._workers[: len(todo)]:
            worker.begin(*todo.pop())
        while busy := {worker.output: worker for worker in self._workers if worker.playing}:
            for descriptor in select.select(list(busy), [], [])[0]:
                worker = busy[descriptor]
                number, said = worker.answer()
                if said is None:
                    reason = f"the process that played it ended (status {worker.process.wait()})"
                    said, worker = self.lost(wishes[number], reason), self._replace(worker)
                if todo:
                    worker.begin(*todo.pop())
                yield number, said

    def _replace(self, dead: Worker) -> Worker:
        dead.end()
        self._workers.remove(dead)
        return self._start(dead.core)

    def _start(self, core: int) -> Worker:
        self._workers.append(Worker(core, self.module, memory_directory() if self.in_memory else None))
        return self._workers[-1]


def memory_directory() -> str | None:
    """Where trials have their private directories when there is room in memory and the user wants them nowhere else."""
    with suppress(OSError):
        there = os.statvfs(MEMORY)
        roomy = there.f_bavail * there.f_frsize >= MEMORY_ROOM_BYTES and os.access(MEMORY, os.W_OK)
        return MEMORY if roomy and "TMPDIR" not in os.environ else None
    return None


def summary(wish: Wish, played: dict[str, Any]) -> dict[str, Any]:
    """One trial, as small as the matrix needs it."""
    statuses = {name: played["verdict"][name]["status"] for name in played["required"]}
    return {"statuses": statuses, "sentence": played["sentence"], "replay": replay_command(wish)}


def serve(core: int, time_of: Callable[[dict[str, Any]], str], play_one: Callable[[dict[str, Any]], Any]) -> None:
    """Plays what comes in, each in its kind of time."""
    signal.signal(signal.SIGTERM, give_up)
    cores = os.sched_getaffinity(0)
    for line in sys.stdin:
        wanted = json.loads(line)
        os.sched_setaffinity(0, {core} if time_of(wanted) == "virtual" else cores)
        try:
            said = play_one(wanted)
        except LockstormError as error:
            said = {"error": str(error)}
        print(json.dumps(said), flush=True)


def play_wish(wanted: dict[str, Any]) -> dict[str, Any]:
    wish = Wish(**wanted)
    return summary(wish, play(wish))


def give_up(signal_number: int, frame: object) -> NoReturn:
    """The trial is cleaned up on the way out."""
    raise SystemExit(128 + signal_number)


if __name__ == "__main__":
    serve(int(sys.argv[1]), lambda wanted: str(wanted["time"]), play_wish)
