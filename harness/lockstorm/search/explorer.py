"""The processes of a search. Each job has servers, whose clocks stand still, and one process of the program that
searches, all on one core: a command then wakes no other core."""

import contextlib
import math
import re
import socket
import struct
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from lockstorm.application.application_file import PORTS, Application, read_application
from lockstorm.application.application_job import write_job
from lockstorm.application.database_template import database_template
from lockstorm.base import paths
from lockstorm.base.errors import Inconclusive, UsageError
from lockstorm.base.hang_limit import START_LIMIT_S, HangLimit
from lockstorm.locks.adapter import library_environment
from lockstorm.locks.lock_names import lock_named
from lockstorm.locks.plugin import how_ended
from lockstorm.process.cores import claimed_cores, on_core
from lockstorm.process.line_client import LineClient
from lockstorm.process.process import Process, Sandbox, check_socket_path, flag_words
from lockstorm.results.lock_entry import LockEntry
from lockstorm.results.wire_access import RuleWarning
from lockstorm.search.application_plan import application_entry
from lockstorm.search.schedule_file import USUAL_SERVERS, ApplicationContext, HostedContext, ScheduleContext, ServerKind
from lockstorm.search.search_lines import (
    BadLine,
    FoundSchedule,
    IntroducedLine,
    ProgressLine,
    ReplayDone,
    SearchDone,
    SearchLine,
    SearchTally,
    ViolationGroup,
    read_line,
    tallies_joined,
)
from lockstorm.search.sessions import SESSION_OPTIONS, session_numbers
from lockstorm.servers.hosted_server import hosted_server
from lockstorm.servers.lacking_commands import lacking_options
from lockstorm.servers.redis_server import NOT_ON_DISK, OPTIONS, REPLICATION, check_no_cluster, mapped_clock
from lockstorm.servers.still_topology import (
    MASTER,
    STAND_STILL_NS,
    announced_port,
    await_cluster,
    is_sentinel,
    server_names,
    server_options,
    service_of,
)

CLOCK_PAGE = struct.Struct("=64sq")  # preload/clock_page.h; the text is not used
EPOCH_NS = 1_767_225_600 * 10**9  # where every schedule's clock begins (world.c)
POLL_S = 0.05
WORDS_MOST = 300  # letters of a program's last line
STATE_REGISTERS = 4096  # SEARCH_REGISTERS
STATES_AT = 16  # in struct search_shared
NONE_VIOLATED = 2**64 - 1
DIGEST_BYTES = 8
UNPLAYED = 2**64 - 1  # the digest of a schedule that could not be played
HOLDS, VIOLATED, BAD = 0, 1, 2
GAVE_UP = 4  # the plug-in cannot be explored
# One database is faster to flush than sixteen, and a timer at 1 Hz disturbs less than at 10.
SERVER_OPTIONS = flag_words(OPTIONS | NOT_ON_DISK | REPLICATION | {"databases": 1, "hz": 1})
SENTINEL_OPTIONS = ("--port", "0", "--bind", "127.0.0.1", "--daemonize", "no", "--unixsocketperm", "700")


@dataclass(frozen=True)
class SearchProgress:
    """What was tried by now. `states`: registers for count_states."""

    tally: SearchTally
    states: bytes = b""


OnProgress = Callable[[SearchProgress], object]


@dataclass
class SearchJob:
    """The processes on one core."""

    directory: Path
    core: int
    nodes: list[str] = field(default_factory=list)  # arguments of `explore`
    servers: dict[str, Process] = field(default_factory=dict)
    bytes_read: int = 0  # of its output
    progress: SearchTally = field(default_factory=SearchTally)
    done: SearchLine | None = None  # its result
    complaint: str = ""  # its last line that is no JSON

    def socket(self, server: str) -> Path:
        return self.directory / f"{server}.sock"

    def clock(self, server: str) -> Path:
        return self.directory / f"{server}.clock"


class Explorer:
    """A context manager: the servers run while it is open."""

    def __init__(
        self,
        lock: LockEntry,
        jobs: int,
        replicas: int = 0,
        server: str | None = None,
        servers: ServerKind = USUAL_SERVERS,
        application: Application | None = None,
    ) -> None:
        """`replicas`: of each node; `server`: the program of all, None for the usual redis-server. Servers of another
        service are supervised by the job's own program, which starts them. Sentinels, or a cluster, are one node."""
        service, topology = lock.service, lock.adapter.topology if lock.adapter else "single"
        self._service, self._topology = service, topology
        self._server = paths.redis_server(server) if service == "redis" else ""
        self._kind = servers
        self._program = paths.program("explore")
        self._application = application
        self._database: Path | None = None  # a data directory with the tables of the application
        added = library_environment() if lock.adapter and not application else {}
        self._environment = [f"{name}={value}" for name, value in added.items()]
        nodes = lock.nodes or 1
        self._servers = [f"{service}-{each + 1}" for each in range(nodes)]
        self._servers += [f"{name}-replica-{each + 1}" for each in range(replicas) for name in self._servers[:nodes]]
        if topology != "single":
            self._servers = server_names(topology, one_node=self._kind.one_node_cluster)
        if application:
            self._servers = ["redis-1"] if "redis" in application.services else []
        self._has_ports = topology != "single" or self._kind.one_node_cluster  # servers say where they are
        self._job_count = jobs
        self._exit = contextlib.ExitStack()
        self.jobs: list[SearchJob] = []

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as undo:
            self._sandbox = Sandbox(near=True)
            undo.callback(self._sandbox.close)
            if self._application and "postgres" in self._application.services:
                self._database = database_template(self._sandbox, self._application.database)
            cores = undo.enter_context(claimed_cores(self._job_count))
            self.jobs = [self._job_start(each, core) for each, core in enumerate(cores)]
            for job in self.jobs:
                self._await_servers(job)
            self._exit = undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    # --- servers ---

    def _job_start(self, number: int, core: int) -> SearchJob:
        if (
            self._service != "redis" or self._application
        ):  # a supervisor that is killed leaves the servers' own children
            self._sandbox.reap_by_environment()
        job = SearchJob(self._sandbox.directory / f"job-{number + 1}", core)
        job.directory.mkdir(mode=0o700)
        if self._application:
            self._application_start(job, self._application)
            return job
        if self._service == "redis":
            self._redis_start(job)
            return job
        for name in self._servers:
            address, start = hosted_server(self._service, self._sandbox, job.directory / name)
            job.nodes += ["--service", self._service, "--node", address, "--start", str(start)]
        return job

    def _application_start(self, job: SearchJob, application: Application) -> None:
        for service in application.services:
            job.nodes += ["--service", service, "--at", str(PORTS[service])]
            if service == "redis":
                self._redis_start(job)
                continue
            address, start = hosted_server(service, self._sandbox, job.directory / "postgres-1", self._database)
            job.nodes += ["--node", address, "--start", str(start), "--database", application.database.name]
        job.nodes += ["--app", str(write_job(application, self._sandbox, job.directory))]

    def _redis_start(self, job: SearchJob) -> None:
        directories = [job.directory / name for name in self._servers]  # each writes its snapshot into its own
        for own in directories:
            own.mkdir(mode=0o700)
        added: list[list[str]] = [[]] * len(directories)
        if self._has_ports:
            added = server_options(self._topology, self._sandbox, directories)
            job.nodes += ["--master", MASTER] if self._topology == "sentinel" else []
        for place, (name, own) in enumerate(zip(self._servers, directories, strict=True)):
            listening, clock = job.socket(name), job.clock(name)
            check_socket_path(listening)
            clock.write_bytes(CLOCK_PAGE.pack(b"", STAND_STILL_NS if is_sentinel(name) else EPOCH_NS))
            options = (
                [*SENTINEL_OPTIONS] if is_sentinel(name) else [*SERVER_OPTIONS, *lacking_options(self._kind.without)]
            )
            command = [*options, "--unixsocket", str(listening), "--dir", str(own)]
            command = [*added[place], *command] if is_sentinel(name) else [*command, *added[place]]
            with on_core(job.core):
                job.servers[name] = self._sandbox.start(
                    f"{job.directory.name}-{name}", [self._server, *command], environment=mapped_clock(clock)
                )
            if self._has_ports:
                job.nodes += ["--service", service_of(self._topology, name), "--at", str(announced_port(place))]
            job.nodes += ["--node", str(listening), "--clock", str(clock)]

    def _await_servers(self, job: SearchJob) -> None:
        limit = HangLimit(START_LIMIT_S)
        for name in job.servers:
            while not _listens(job.socket(name)):
                if job.servers[name].poll() is not None or limit.is_over():
                    complaint = self._sandbox.log_tail(f"{job.directory.name}-{name}")
                    raise Inconclusive(f"redis-server did not start: {complaint or 'it gave no reason'}")
                time.sleep(0.002)
        if self._topology == "cluster" or self._kind.one_node_cluster:
            names = list(job.servers)
            await_cluster([*map(job.socket, names)], [*map(job.clock, names)], _clock_move, EPOCH_NS)
        elif self._topology == "single":
            for name in job.servers:
                self._check_no_cluster(job, name)

    def _check_no_cluster(self, job: SearchJob, name: str) -> None:
        """A cluster of one node that --server starts listens at a second port, and ends if another job's has it."""
        try:
            with contextlib.closing(LineClient(job.socket(name))) as client:
                check_no_cluster(name, client)
        except OSError as error:
            complaint = self._sandbox.log_tail(f"{job.directory.name}-{name}")
            raise Inconclusive(f"redis-server ended at once: {complaint or error}") from None

    # --- one schedule ---

    def replay(self, words: Sequence[str], lines: Sequence[str], number: int) -> ReplayDone | BadLine:
        """Runs one schedule on the first job's servers; the history is at `history`."""
        job = self.jobs[0]
        course = job.directory / "course"
        course.write_text("".join(f"{line}\n" for line in lines))
        self.run([job], [*words, "--replay", str(course), "--number", str(number - 1)], lambda _: None)
        assert isinstance(job.done, ReplayDone | BadLine)
        return job.done

    def introduce(self, words: Sequence[str]) -> IntroducedLine:
        """What the programs of the first job say of themselves, and what single requests to an application do."""
        job = self.jobs[0]
        self.run([job], [*words, "--hello"], lambda _: None)
        assert isinstance(job.done, IntroducedLine)
        return job.done

    @property
    def history(self) -> Path:
        return self.jobs[0].directory / "history"

    # --- many ---

    def search(
        self,
        words: Sequence[str],
        most: int,
        on_progress: OnProgress,
        *,
        first: int = 0,
        stride: int = 1,
        seconds: int = 0,
        known: int | None = None,
        in_sessions: bool = False,
        whole_sessions: bool = False,
    ) -> "SearchOutcome":
        """Runs the schedules first, first + stride, ... below `most`, counted from 0; each job that is free takes the
        next one. `in_sessions`: first and stride count sessions; `whole_sessions`: those that have begun are played to
        their end. `known`: the number of a schedule that violates something; later ones are not shrunk."""
        shared, digests = self._sandbox.directory / "shared", self._sandbox.directory / "digests"
        before = NONE_VIOLATED if known is None else known - 1
        shared.write_bytes(struct.pack("<QQ", before, 0) + bytes(STATE_REGISTERS))
        room = most if in_sessions else max(1, -(-(most - first) // stride))
        with digests.open("wb") as file:
            file.truncate(room * DIGEST_BYTES)  # a sparse file
        options = {"most": most, "seconds": seconds, "stride": stride, "shared": shared, "digests": digests}
        options |= {"first-session": first, **SESSION_OPTIONS} if in_sessions else {"first": first}
        words = [*words, *flag_words(options)]
        words += ["--whole-sessions"] if whole_sessions else []
        self.run(self.jobs, words, lambda tally: on_progress(SearchProgress(tally, shared.read_bytes()[STATES_AT:])))
        results = [job.done for job in self.jobs if isinstance(job.done, SearchDone)]
        violated, taken = struct.unpack("<QQ", shared.read_bytes()[:STATES_AT])
        tally = tallies_joined([each.done for each in results])
        stopped = violated != NONE_VIOLATED and "--keep-going" not in words
        if in_sessions:
            sessions = [session_numbers(first + each * stride) for each in range(taken)]
            until = min(most, violated + 1) if stopped else most
            histories, reached = _session_digests(digests, sessions, until, whole=whole_sessions)
        else:
            done = (violated - first) // stride + 1 if stopped else tally.schedules
            histories, reached = _first_digests(digests, done), 0
        return SearchOutcome(
            tally=tally,
            digests=histories,
            reached=reached,
            elapsed_s=max(each.took_ns for each in results) / 1e9,  # without the time for shrinking
            found=next((each.found for each in results if each.found and each.found.number == violated + 1), None),
            horizon=results[0].horizon,
            groups=[group for each in results for group in each.groups],
            exhausted=any(each.exhausted for each in results),
            states=shared.read_bytes()[STATES_AT:],
            warnings=next((each.warnings for each in results if each.warnings), []),
        )

    # --- the program ---

    def run(self, jobs: Sequence[SearchJob], words: Sequence[str], on_tally: Callable[[SearchTally], object]) -> None:
        """Runs the program with these words on each job's servers, to the end. `on_tally` gets the sum of their
        tallies; the result of each is then its job's `done`."""
        processes = []
        for job in jobs:
            job.progress, job.done, job.complaint = SearchTally(), None, ""
            for name in ("history", "sink"):
                (job.directory / name).unlink(missing_ok=True)
            command = [self._program, "--directory", str(job.directory), *job.nodes, *words]
            with on_core(job.core):
                processes.append(self._sandbox.start(job.directory.name, command, environment=self._environment))
        while any([process.poll() is None for process in processes]):
            time.sleep(POLL_S)
            for job in jobs:
                self._read(job)
            on_tally(tallies_joined([job.progress for job in jobs]))
        for job, process in zip(jobs, processes, strict=True):
            self._read(job)
            if process.returncode not in (HOLDS, VIOLATED, BAD) or not job.done:
                if self._application:
                    raise application_ended(self._application, process.returncode, job)
                raise why_ended(words, process.returncode, job.complaint)

    def _read(self, job: SearchJob) -> None:
        """Reads what its program has printed since: JSON objects, or a complaint."""
        with (self._sandbox.directory / f"{job.directory.name}.log").open("rb") as log:
            log.seek(job.bytes_read)
            whole = log.read().rpartition(b"\n")[0]
        job.bytes_read += len(whole) + 1 if whole else 0
        for line in whole.decode(errors="replace").splitlines():
            if not line.startswith("{"):
                job.complaint = line
            elif isinstance(printed := read_line(line), ProgressLine):
                job.progress = printed.progress
            else:
                job.done = printed
                job.progress = printed.done if isinstance(printed, SearchDone) else SearchTally()


@dataclass(frozen=True)
class SearchOutcome:
    """What a search, or a slice of one, came to."""

    tally: SearchTally  # of all schedules that were run, including those after the first violation
    digests: bytes  # of the histories in order, without a gap, up to the first violation if the search stops there
    reached: int  # no later schedule was tried, also beyond a gap, which the end of its time leaves in a session
    elapsed_s: float
    found: FoundSchedule | None
    horizon: int  # steps of the usual course
    groups: list[ViolationGroup]  # for each job
    exhausted: bool  # no schedule within the bound is left
    states: bytes  # that occurred: registers for count_states
    warnings: list[RuleWarning]  # of an application


def explorer_for(context: ScheduleContext | HostedContext, jobs: int, server: str | None = None) -> Explorer:
    if isinstance(context, ApplicationContext):
        application = read_application(Path(context.app))
        return Explorer(application_entry(application), jobs, server=server, application=application)
    replicas = context.replicas if isinstance(context, ScheduleContext) else 0
    return Explorer(lock_named(context.lock), jobs, replicas, server, context.servers)


def _first_digests(path: Path, count: int) -> bytes:
    with path.open("rb") as file:
        return file.read(count * DIGEST_BYTES)


def _session_digests(path: Path, sessions: Sequence[range], until: int, *, whole: bool) -> tuple[bytes, int]:
    """The digests of the schedules of these sessions below `until`, in order, and the number of the last one that was
    tried. Of sessions that need not have been played to their end: up to the first schedule that was not tried."""
    parts, reached = [], 0
    with path.open("rb") as file:
        for numbers in sessions:
            file.seek(numbers.start * DIGEST_BYTES)
            parts.append(file.read(max(0, min(numbers.stop, until) - numbers.start) * DIGEST_BYTES))
            tried = [place for place, digest in enumerate(array("Q", parts[-1])) if digest]
            reached = max(reached, numbers.start + tried[-1] + 1 if tried else 0)
    digests = b"".join(parts)
    if whole:
        return digests, reached
    untried = next((place for place, digest in enumerate(array("Q", digests)) if digest == 0), None)
    return digests if untried is None else digests[: untried * DIGEST_BYTES], reached


def _clock_move(clock: Path, wall_ns: int) -> None:
    """In the file's place: the server has mapped it."""
    with clock.open("r+b") as page:
        page.write(CLOCK_PAGE.pack(b"", wall_ns))


def _listens(path: Path) -> bool:
    """Whether a server accepts connections: its socket exists a moment earlier."""
    with socket.socket(socket.AF_UNIX) as link:
        return link.connect_ex(str(path)) == 0


def states_joined(one: bytes, other: bytes) -> bytes:
    return bytes(map(max, one, other)) if one else other


def count_states(registers: bytes) -> int:
    """The estimated number of distinct states that these registers have seen (HyperLogLog; within about 2 %)."""
    size = len(registers)
    empty = registers.count(0)
    if not size or empty == size:
        return 0
    estimate = 0.7213 / (1 + 1.079 / size) * size**2 / sum(2.0**-rank for rank in registers)
    if estimate <= 2.5 * size and empty:
        estimate = size * math.log(size / empty)
    return round(estimate)


def why_ended(words: Sequence[str], status: int | None, complaint: str) -> UsageError | Inconclusive:
    """The error for a program that ended without a result."""
    plugin = words[words.index("--plugin") + 1] if "--plugin" in words else ""
    if plugin and status == GAVE_UP:
        return UsageError(f"plugin:{plugin}: {complaint}")
    who = f"plugin:{plugin}: the explorer, which hosts it," if plugin else "the explorer"
    if status and status < 0 and not complaint:
        return Inconclusive(f"{who} ended {how_ended(status)}")
    return Inconclusive(f"{who} ended early: {complaint or 'it gave no reason'}")


def application_ended(application: Application, status: int | None, job: SearchJob) -> UsageError | Inconclusive:
    """The same for one that runs an application: with the last words of the instance that it is about."""
    reason = job.complaint.removeprefix("explore: ") or "the explorer gave no reason"
    if status == BAD:
        return UsageError(f"{application.file}: {reason}")
    if about := re.match(r"instance (\d+)", reason):
        if reason.endswith("it ended with status 0"):
            reason += " (a service that makes itself a daemon has to stay in the foreground)"
        reason += _last_words(job.directory / f"client-{about[1]}.log")
    return Inconclusive(reason)


def _last_words(log: Path) -> str:
    """What a program has written to its standard error last."""
    text = log.read_text(errors="replace") if log.is_file() else ""
    lines = [line.strip() for line in text.splitlines() if any(map(str.isalnum, line))]
    return f"; it said last: {lines[-1][:WORDS_MOST]}" if lines else "; it said nothing"


def played_whole(done: ReplayDone | BadLine, line_numbers: Sequence[int], name: str) -> ReplayDone:
    """UsageError for a schedule that could not be replayed, with its line in the file; without `line_numbers`, among
    its lines."""
    if isinstance(done, BadLine):
        line = line_numbers[done.line - 1] if line_numbers else done.line
        raise UsageError(f"{name}: line {line}: {done.reason}")
    return done
