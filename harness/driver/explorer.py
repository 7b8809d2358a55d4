"""The explorer's processes: per job, redis-servers by clocks that stand and one `explore` beside them, all on one core,
so that a command costs no wake-up across cores."""

import contextlib
import json
import math
import os
import socket
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from harness.driver import paths
from harness.driver.errors import Inconclusive, UsageError
from harness.driver.plugin import how_ended
from harness.driver.process import Nursery, on_core
from harness.driver.redis_server import OPTIONS, REPLICATION, START_LIMIT_S, mapped_clock

CLOCK_PAGE = struct.Struct("=64sq")  # preload/clock_page.h: nobody reads the text
EPOCH_NS = 1_767_225_600 * 10**9  # where every schedule's clock begins (world.c): one that starts elsewhere jumps
LOOK_EVERY_S = 0.05
STATE_REGISTERS = 4096  # SEARCH_REGISTERS
STATES_AT = 16  # in struct search_shared
NONE_VIOLATED = 2**64 - 1
DIGEST_BYTES = 8
HOLDS, VIOLATED, BAD = 0, 1, 2
GAVE_UP = 4  # its plug-in is none that can be explored
# One database is faster to flush than sixteen, and a timer at 1 Hz disturbs less than at 10.
SERVER_OPTIONS = (*OPTIONS, *REPLICATION, "--enable-debug-command", "local", "--databases", "1", "--hz", "1")

Tell = Callable[[dict[str, Any]], object]


@dataclass
class Job:
    """One core's share."""

    directory: Path
    core: int
    nodes: list[str] = field(default_factory=list)  # words for `explore`
    printed: int = 0  # bytes of its output that were read
    told: dict[str, Any] = field(default_factory=dict)
    done: dict[str, Any] = field(default_factory=dict)
    trouble: str = ""


class Explorer:
    """A context: servers run while it is open."""

    def __init__(self, nodes: int, jobs: int, replicas: int = 0) -> None:
        """`replicas`: of each node."""
        self._servers = [f"redis-{each + 1}" for each in range(nodes)]
        self._servers += [f"{name}-replica-{each + 1}" for each in range(replicas) for name in self._servers[:nodes]]
        self._job_count = jobs
        self._exit = contextlib.ExitStack()
        self.jobs: list[Job] = []

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as undo:
            self._nursery = Nursery()
            undo.callback(self._nursery.close)
            cores = sorted(os.sched_getaffinity(0))
            self.jobs = [self._job_start(each, cores[each % len(cores)]) for each in range(self._job_count)]
            for job in self.jobs:
                self._await_servers(job)
            self._exit = undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    # --- servers ---

    def _job_start(self, number: int, core: int) -> Job:
        job = Job(self._nursery.directory / f"job-{number + 1}", core)
        job.directory.mkdir(mode=0o700)
        for name in self._servers:
            own = job.directory / name  # what it saves for its replica is nobody else's
            own.mkdir(mode=0o700)
            listening, clock = job.directory / f"{name}.sock", job.directory / f"{name}.clock"
            clock.write_bytes(CLOCK_PAGE.pack(b"", EPOCH_NS))
            environment = mapped_clock(clock)
            command = [paths.redis_server(), *SERVER_OPTIONS, "--unixsocket", str(listening), "--dir", str(own)]
            with on_core(core):
                self._nursery.start(f"{job.directory.name}-{name}", command, environment=environment, near=True)
            job.nodes += ["--node", str(listening), "--clock", str(clock)]
        return job

    def _await_servers(self, job: Job) -> None:
        deadline = time.monotonic() + START_LIMIT_S
        for name in self._servers:
            while not _listens(job.directory / f"{name}.sock"):
                if time.monotonic() > deadline:
                    said = self._nursery.log_tail(f"{job.directory.name}-{name}")
                    raise Inconclusive(f"redis-server did not start: {said or 'it gave no reason'}")
                time.sleep(0.002)

    # --- one schedule ---

    def follow(self, words: Sequence[str], lines: Sequence[str], number: int) -> dict[str, Any]:
        """Runs one schedule on the first job's servers: what `explore --follow` says; the history is at `history`."""
        job = self.jobs[0]
        course = job.directory / "course"
        course.write_text("".join(f"{line}\n" for line in lines))
        self._run([job], [[*words, "--follow", str(course), "--number", str(number)]], lambda _: None)
        return job.done

    @property
    def history(self) -> Path:
        return self.jobs[0].directory / "history"

    # --- many ---

    def search(
        self,
        words: Sequence[str],
        most: int,
        tell: Tell,
        *,
        first: int = 0,
        stride: int = 1,
        seconds: int = 0,
        known: int = NONE_VIOLATED,
    ) -> "Searched":
        """The schedules first, first + stride, ... below `most`, by all jobs: whoever is free takes the next. `tell`
        gets sums of what they have done. `known`: a schedule that is known to violate something; what comes later is
        not made smaller any more."""
        shared, digests = self._nursery.directory / "shared", self._nursery.directory / "digests"
        shared.write_bytes(struct.pack("<QQ", known, 0) + bytes(STATE_REGISTERS))
        with digests.open("wb") as file:
            file.truncate(max(1, -(-(most - first) // stride)) * DIGEST_BYTES)  # a hole, as long as nobody writes
        words = [*words, "--first", str(first), "--stride", str(stride), "--most", str(most)]
        words += ["--seconds", str(seconds), "--shared", str(shared), "--digests", str(digests)]
        self._run(
            self.jobs,
            [words] * len(self.jobs),
            lambda told: tell({**told, "states": shared.read_bytes()[STATES_AT:]}),
        )
        elapsed_s = max(job.done["took_ns"] for job in self.jobs) / 1e9  # without what making it smaller took
        violated = struct.unpack("<Q", shared.read_bytes()[:DIGEST_BYTES])[0]
        tally = sum_up([job.done["done"] for job in self.jobs])
        found = next((job.done for job in self.jobs if job.done.get("number") == violated), None)
        stopped = found is not None and "--goes-on" not in words
        done = (violated - first) // stride + 1 if stopped else tally["schedules"]
        with digests.open("rb") as file:
            histories = file.read(done * DIGEST_BYTES)
        groups = [group for job in self.jobs for group in job.done["groups"]]
        exhausted = any(job.done["exhausted"] for job in self.jobs)
        states = shared.read_bytes()[STATES_AT:]
        return Searched(tally, histories, elapsed_s, found, self.jobs[0].done["horizon"], groups, exhausted, states)

    # --- the program ---

    def _run(self, jobs: Sequence[Job], commands: Sequence[Sequence[str]], tell: Tell) -> None:
        processes = []
        for job, words in zip(jobs, commands, strict=True):
            job.told, job.done, job.trouble = {}, {}, ""
            for name in ("history", "sink"):
                (job.directory / name).unlink(missing_ok=True)
            command = [paths.program("explore"), "--directory", str(job.directory), *job.nodes, *words]
            with on_core(job.core):
                processes.append(self._nursery.start(job.directory.name, command, near=True))
        while any([process.poll() is None for process in processes]):
            time.sleep(LOOK_EVERY_S)
            for job in jobs:
                self._read(job)
            tell(sum_up([job.told for job in jobs if job.told]))
        for job, process, words in zip(jobs, processes, commands, strict=True):
            self._read(job)
            if process.returncode not in (HOLDS, VIOLATED, BAD) or not job.done:
                raise why_ended(words, process.returncode, job.trouble)

    def _read(self, job: Job) -> None:
        """What its program has printed since: objects, or what it complains of."""
        with (self._nursery.directory / f"{job.directory.name}.log").open("rb") as log:
            log.seek(job.printed)
            whole = log.read().rpartition(b"\n")[0]
        job.printed += len(whole) + 1 if whole else 0
        for line in whole.decode(errors="replace").splitlines():
            if not line.startswith("{"):
                job.trouble = line
            elif "told" in (said := json.loads(line)):
                job.told = said["told"]
            else:
                job.done = said
                job.told = said.get("done", {})


@dataclass(frozen=True)
class Searched:
    """What came of a search."""

    tally: dict[str, Any]  # of all schedules that were tried, those beyond the first violation too
    digests: bytes  # of the histories in order, without a gap; the last one violates, if one does and that is the end
    elapsed_s: float
    found: dict[str, Any] | None
    horizon: int  # steps of the usual course
    groups: list[dict[str, Any]]  # which properties schedules violate, how many of them, and the first, per job
    exhausted: bool  # there are no more schedules within the bound
    states: bytes  # that were seen: registers for count_states


def _listens(path: Path) -> bool:
    """The file is there a moment before anybody can connect."""
    with socket.socket(socket.AF_UNIX) as link:
        return link.connect_ex(str(path)) == 0


def states_joined(one: bytes, other: bytes) -> bytes:
    return bytes(map(max, one, other)) if one else other


def count_states(registers: bytes) -> int:
    """About how many different states have left these registers (HyperLogLog; within 2 % or so)."""
    size = len(registers)
    empty = registers.count(0)
    if not size or empty == size:
        return 0
    estimate = 0.7213 / (1 + 1.079 / size) * size**2 / sum(2.0**-rank for rank in registers)
    if estimate <= 2.5 * size and empty:
        estimate = size * math.log(size / empty)
    return round(estimate)


def sum_up(tallies: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Numbers are added, objects field by field; of a text the first that says something."""
    total: dict[str, Any] = {}
    for tally in tallies:
        for key, value in tally.items():
            if isinstance(value, dict):
                total[key] = sum_up([total.get(key, {}), value])
            elif isinstance(value, str):
                total[key] = total.get(key) or value
            else:
                total[key] = total.get(key, 0) + value
    return total


def why_ended(words: Sequence[str], status: int | None, said: str) -> UsageError | Inconclusive:
    """Why the program that was told these words did not do it."""
    plugin = words[words.index("--plugin") + 1] if "--plugin" in words else ""
    if plugin and status == GAVE_UP:
        return UsageError(f"plugin:{plugin}: {said}")
    who = f"plugin:{plugin}: the explorer, which hosts it," if plugin else "the explorer"
    if status and status < 0 and not said:
        return Inconclusive(f"{who} ended {how_ended(status)}")
    return Inconclusive(f"{who} ended early: {said or 'it gave no reason'}")


def bad_line(said: dict[str, Any], line_numbers: Sequence[int], name: str) -> UsageError | None:
    """The error in a schedule that could not be followed, by its line in the file."""
    if "line" not in said:
        return None
    return UsageError(f"{name}: line {line_numbers[said['line'] - 1]}: {said['reason']}")
