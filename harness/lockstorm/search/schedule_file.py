"""A schedule as a text file: its context, what clients ask a library for, and its deviations from the usual course.
docs/explore.md and docs/explore-libraries.md describe the file; any line may be edited by hand."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lockstorm.base.errors import UsageError, at_place
from lockstorm.locks.adapter import PREFIX
from lockstorm.locks.lock_names import APP_PREFIX, is_user_supplied, lock_named
from lockstorm.native.library import locks_on
from lockstorm.results.lock_entry import LockEntry
from lockstorm.results.properties import PROPERTIES, current_name
from lockstorm.scenario.play import check_settings
from lockstorm.scenario.scenario import TABLE_STORES
from lockstorm.search.schedule_text import (
    COURSE,
    FIRST_LINE,
    LINE_MOST,
    WORKLOAD,
    ScheduleText,
    head_values,
    schedule_text,
    text_of,
)
from lockstorm.servers.lacking_commands import lacking_commands
from lockstorm.servers.services import real_time_reason
from lockstorm.trial.settings import LEASE_LIMIT_MS, PERMIT_LIMIT, SEED_LIMIT, WAIT_FOR_EVER, TrialSettings

NAME_MOST = LINE_MOST - len("lock ") - 1
CLIENTS_MOST = 16  # WORLD_CLIENTS
REPLICAS_MOST = 2  # WORLD_REPLICAS
VARIES_WORK, VARIES_TURNS, VARIES_PATIENCE, VARIES_OPERATIONS, VARIED_ALL = 1, 2, 4, 8, 15  # enum world_varied
NUMBERS = {  # key: from, to
    "clients": (1, CLIENTS_MOST),
    "replicas": (0, REPLICAS_MOST),
    "turns": (1, 1000),
    "permits": (1, PERMIT_LIMIT),
    "fixed_lease": (0, 1),
    "extends": (0, 1),
    "checks_validity": (0, 1),
    "in_order": (0, 1),
    "varied": (0, VARIED_ALL),
    "lease_ms": (1, LEASE_LIMIT_MS),
    "wait_ms": (WAIT_FOR_EVER, LEASE_LIMIT_MS),
    "work_ms": (0, LEASE_LIMIT_MS),
    "bound_ms": (0, LEASE_LIMIT_MS),
    "calm_bound_ms": (0, LEASE_LIMIT_MS),
    "seed": (0, SEED_LIMIT),
    "number": (1, 2**62),
}
LIBRARY_LEASE_LIMIT_MS = 10_000_000
LIBRARY_NUMBERS = {
    "lease_ms": (1, LIBRARY_LEASE_LIMIT_MS),
    "permits": (1, 1000),
    "seed": (0, 2**62),
    "number": (1, 2**62),
}
APPLICATION_NUMBERS = {key: LIBRARY_NUMBERS[key] for key in ("lease_ms", "seed", "number")}
LACKING, ONE_NODE = "without", "one_node_cluster"  # keys of ServerKind
OPTIONAL = ("extends", "checks_validity", "in_order", "varied", "calm_bound_ms")  # 0 in a file without it

CLIENT, INSTANCE = re.compile(r"\bclient-(\d+)"), re.compile(r"\binstance-(\d+)")

Head = dict[str, object]  # the keys of a file, by the names of the fields of a schedule


@dataclass(frozen=True)
class ServerKind:
    """What the redis-servers of a search are, if not the usual ones."""

    without: tuple[str, ...] = ()  # commands that they lack
    one_node_cluster: bool = False  # each is a cluster of one node

    @property
    def lines(self) -> list[str]:
        """In a schedule."""
        lacking = [f"{LACKING} {','.join(self.without)}"] if self.without else []
        return lacking + [f"{ONE_NODE} 1"] * self.one_node_cluster


USUAL_SERVERS = ServerKind()


@dataclass(frozen=True, kw_only=True)
class ScheduleContext:
    """What all schedules of a search have in common."""

    lock: str
    store: str
    clients: int
    replicas: int  # of each node
    turns: int
    permits: int
    fixed_lease: int
    lease_ms: int
    wait_ms: int
    work_ms: int
    bound_ms: int  # liveness: how long a free lock may stay unclaimed; 0: liveness is not judged
    seed: int  # of the search
    extends: int = 0  # clients extend their lease in the middle of their work
    checks_validity: int = 0  # clients do not write after the end of the validity that the lock stated
    varied: int = 0  # what is drawn for each client, instead of the same for all
    calm_bound_ms: int = 0  # the bound of a schedule in which no fault struck; 0: bound_ms
    in_order: int = 0  # fairness is judged: the history has order_ms, and some clients give up sooner than others
    servers: ServerKind = USUAL_SERVERS


@dataclass(frozen=True, kw_only=True)
class ScheduleFile(ScheduleContext):
    """One schedule with everything that it depends on."""

    number: int  # of the schedule in its search: the random numbers of clients depend on it
    violates: tuple[str, ...]
    lines: tuple[str, ...]  # its deviations
    line_numbers: tuple[int, ...] = ()  # of the deviations in the file that they were read from
    struck: Mapping[str, str] = field(default_factory=dict)  # deviation -> what it strikes or changes; a comment

    @property
    def text(self) -> str:
        keys = ("lock", "store", *(key for key in NUMBERS if key not in OPTIONAL or getattr(self, key)))
        return _written(self, keys, COURSE, *self.annotated)

    @property
    def annotated(self) -> list[str]:
        """Its deviations as lines, each with what it strikes or changes as a comment."""
        return [f"{line}  # {self.struck[line]}" if line in self.struck else line for line in self.lines]


@dataclass(frozen=True, kw_only=True)
class HostedContext:
    """What all schedules of a search have in common whose clients are programs that the search hosts."""

    lease_ms: int  # of a library the default
    permits: int = 1
    seed: int  # of the search
    servers: ServerKind = USUAL_SERVERS

    @property
    def lock(self) -> str:
        """What is tried, as results name it."""
        raise NotImplementedError

    @property
    def title(self) -> str:
        """Its name, for the reader."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class HostedSchedule(HostedContext):
    """One schedule of hosted programs with everything that it depends on."""

    number: int  # of the schedule in its search: random numbers of the programs depend on it
    violates: tuple[str, ...]  # promises, or properties of applications
    workload: tuple[str, ...]
    deviations: tuple[str, ...]
    line_numbers: tuple[int, ...] = ()  # of workload and deviations in the file that they were read from

    @property
    def keys(self) -> tuple[str, ...]:
        """Of the head of its file."""
        raise NotImplementedError

    @property
    def text(self) -> str:
        return _written(self, self.keys, WORKLOAD, *self.workload, COURSE, *self.deviations)

    @property
    def lines(self) -> tuple[str, ...]:
        """What the program of the search reads."""
        return (*self.workload, *self.deviations)


@dataclass(frozen=True, kw_only=True)
class LibraryContext(HostedContext):
    """Of a library."""

    adapter: str  # as --adapter names it
    library: str  # its name and version, for the reader

    @property
    def lock(self) -> str:
        return PREFIX + self.adapter

    @property
    def title(self) -> str:
        return self.library


@dataclass(frozen=True, kw_only=True)
class LibrarySchedule(LibraryContext, HostedSchedule):
    """One schedule of a library."""

    @property
    def keys(self) -> tuple[str, ...]:
        return ("adapter", "library", *LIBRARY_NUMBERS)


@dataclass(frozen=True, kw_only=True)
class ApplicationContext(HostedContext):
    """Of an application."""

    app: str  # the path of its file, as --app names it
    application: str  # its name

    @property
    def lock(self) -> str:
        return APP_PREFIX + self.app

    @property
    def title(self) -> str:
        return self.application


@dataclass(frozen=True, kw_only=True)
class ApplicationSchedule(ApplicationContext, HostedSchedule):
    """One schedule of an application."""

    @property
    def keys(self) -> tuple[str, ...]:
        return ("app", "application", *APPLICATION_NUMBERS)

    @property
    def text(self) -> str:
        """Its file calls instance-N what the program of the search calls client-N."""
        parts = (WORKLOAD, *self.workload, COURSE, *self.deviations)
        return _written(self, self.keys, *(CLIENT.sub(r"instance-\1", line) for line in parts))


Schedule = ScheduleFile | LibrarySchedule | ApplicationSchedule


def _written(schedule: ScheduleFile | HostedSchedule, keys: Sequence[str], *lines: str) -> str:
    head = [f"{key} {getattr(schedule, key)}" for key in keys]
    return (
        "\n".join([FIRST_LINE, *head, *schedule.servers.lines, " ".join(("violates", *schedule.violates)), *lines])
        + "\n"
    )


def check_explorable(request: TrialSettings) -> tuple[LockEntry, str]:
    """The lock and the store mode. UsageError when its schedules cannot be searched: the explorer has to control every
    message and every clock."""
    names = [lock.name for lock in locks_on("redis")]
    service = lock_named(request.lock).service
    if service != "redis":
        raise UsageError(
            f"{request.lock} lives on {service}, and only locks on redis-servers can be explored: {', '.join(names)}"
        )
    if lock_named(request.lock).real_time_only:
        raise UsageError(f"{request.lock} cannot be explored: {real_time_reason(lock_named(request.lock))}")
    if is_user_supplied(request.lock) and (
        "#" in request.lock or len(request.lock) > NAME_MOST or not request.lock.isprintable()
    ):
        raise UsageError(f"{request.lock} cannot be named in a schedule: a shorter path, and none with # in it, can be")
    if request.store in TABLE_STORES:
        raise UsageError(f"--store {request.store} is a table of PostgreSQL, which cannot be explored")
    lock, store, _ = check_settings(request)
    return lock, store


def read_saved_schedule(path: Path) -> Schedule:
    """Raises UsageError with the line and the reason when the file is not a schedule."""
    return parse_schedule(text_of(path), str(path))


def parse_schedule(text: str, name: str) -> Schedule:
    """Reads a schedule from a text; `name` is for messages."""
    read = schedule_text(text, name)
    if read.of_application:
        return _application_schedule(read, name)
    return _library_schedule(read, name) if read.of_library else _lock_schedule(read, name)


def read_schedule_file(path: Path) -> ScheduleFile:
    """The same for a schedule of a C lock only."""
    return parse_schedule_file(text_of(path), str(path))


def parse_schedule_file(text: str, name: str) -> ScheduleFile:
    schedule = parse_schedule(text, name)
    if not isinstance(schedule, ScheduleFile):
        kind = "a library" if isinstance(schedule, LibrarySchedule) else "an application"
        raise UsageError(f"{name} is a schedule of {kind}, and one of a C lock is needed here")
    return schedule


def read_library_schedule(path: Path) -> LibrarySchedule:
    """The same for a schedule of a library only."""
    return parse_library_schedule(text_of(path), str(path))


def parse_library_schedule(text: str, name: str) -> LibrarySchedule:
    schedule = parse_schedule(text, name)
    if not isinstance(schedule, LibrarySchedule):
        kind = "a C lock" if isinstance(schedule, ScheduleFile) else "an application"
        raise UsageError(f"{name} is a schedule of {kind}, and one of a library is needed here")
    return schedule


def _head(read: ScheduleText, name: str, texts: tuple[str, ...], numbers: Mapping[str, tuple[int, int]]) -> Head:
    """The values of all keys, as this version means them."""
    violates = "violates" if read.version > 1 or not read.of_library else "breaks"
    known = {**numbers, ONE_NODE: (0, 1)} if read.version > 1 else {**numbers, "number": (0, 2**62)}
    head: Head = {**head_values(read.head, name, (*texts, LACKING, violates), known)}
    missing = [key for key in (*texts, *numbers, violates) if key not in head and key not in OPTIONAL]
    if missing:
        part, line = next(iter(read.starts.items()))
        raise UsageError(f"{name}: line {line}: {missing[0]} is missing before {part!r}")
    head["servers"] = _server_kind(read, head, name)
    head["violates"] = tuple(map(current_name, str(head.pop(violates)).split()))
    if read.version == 1:
        head["number"] = int(str(head["number"])) + 1
    return head


def _server_kind(read: ScheduleText, head: Head, name: str) -> ServerKind:
    """Takes its keys from the head."""
    lines = {line.partition(" ")[0]: number for number, line in read.head}
    lacking = head.pop(LACKING, None)
    with at_place(f"{name}: line {lines.get(LACKING, 0)}"):
        without = lacking_commands(str(lacking), None, LACKING) if lacking else ()
    return ServerKind(without, bool(head.pop(ONE_NODE, 0)))


def _lock_schedule(read: ScheduleText, name: str) -> ScheduleFile:
    head = _head(read, name, ("lock", "store"), NUMBERS)
    where = {line.partition(" ")[0]: number for number, line in read.head}
    violates = head["violates"]
    assert isinstance(violates, tuple)
    if unknown := set(violates) - set(PROPERTIES):
        raise UsageError(f"{name}: line {where['violates']}: there is no property called {min(unknown)!r}")
    course = read.parts[COURSE]
    lines, line_numbers = tuple(line for _, line in course), tuple(number for number, _ in course)
    schedule = ScheduleFile(**head, lines=lines, line_numbers=line_numbers)  # type: ignore[arg-type]
    _check_context(schedule, where, name)
    return schedule


def _library_schedule(read: ScheduleText, name: str) -> LibrarySchedule:
    head = _head(read, name, ("adapter", "library"), LIBRARY_NUMBERS)
    return LibrarySchedule(**head, **_hosted_parts(read, name))  # type: ignore[arg-type]


def _application_schedule(read: ScheduleText, name: str) -> ApplicationSchedule:
    head = _head(read, name, ("app", "application"), APPLICATION_NUMBERS)
    parts = _hosted_parts(read, name)
    for part in ("workload", "deviations"):  # files of before have client-N
        parts[part] = tuple(INSTANCE.sub(r"client-\1", line) for line in parts[part])  # type: ignore[attr-defined]
    return ApplicationSchedule(**head, **parts)  # type: ignore[arg-type]


def _hosted_parts(read: ScheduleText, name: str) -> dict[str, object]:
    """The fields of the parts behind the head."""
    calls, course = read.parts[WORKLOAD], read.parts[COURSE]
    if not calls:
        raise UsageError(f"{name}: line {read.starts[WORKLOAD]}: the workload has no calls")
    return {
        "workload": tuple(line for _, line in calls),
        "deviations": tuple(line for _, line in course),
        "line_numbers": tuple(number for number, _ in (*calls, *course)),
    }


def _check_context(schedule: ScheduleFile, where: dict[str, int], name: str) -> None:
    """Whether the lock can be explored in this context; `where`: the line of each key."""
    requests = {
        "lock": TrialSettings(schedule.lock, "explore"),
        "store": TrialSettings(schedule.lock, "explore", store=schedule.store),
        "permits": TrialSettings(schedule.lock, "explore", permits=schedule.permits if schedule.permits > 1 else None),
        "fixed_lease": TrialSettings(schedule.lock, "explore", fixed_lease=bool(schedule.fixed_lease)),
    }
    for key, request in requests.items():
        with at_place(f"{name}: line {where[key]}"):
            lock, _ = check_explorable(request)
    if schedule.extends and not lock.renewable:
        raise UsageError(f"{name}: line {where['extends']}: {schedule.lock} cannot be extended by its holder")
    if schedule.replicas < lock.replicas:
        raise UsageError(f"{name}: line {where['replicas']}: {schedule.lock} needs {lock.replicas} replica")
