"""A schedule as a text file: its context, and its deviations from the usual course (harness/explorer/schedule.h).
docs/explore.md describes the file; any line may be edited by hand."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from lockstorm.base import paths
from lockstorm.base.atomic_file import new_file
from lockstorm.base.errors import UsageError
from lockstorm.locks.lock_names import is_user_supplied, lock_named
from lockstorm.native.library import locks_on
from lockstorm.results.lock_entry import LockEntry
from lockstorm.results.properties import PROPERTIES
from lockstorm.scenario.play import check_settings
from lockstorm.scenario.scenario import TABLE_STORES
from lockstorm.search.schedule_text import COURSE, begins_with, head_values, schedule_text, text_of
from lockstorm.servers.services import real_time_reason
from lockstorm.trial.settings import LEASE_LIMIT_MS, PERMIT_LIMIT, SEED_LIMIT, WAIT_FOR_EVER, TrialSettings

FOUND = paths.ROOT / "scenarios" / "found"
SAVED_MOST = 100  # schedules with the same name
LINE_MOST = 160  # SCHEDULE_LINE
NAME_MOST = LINE_MOST - len("lock ") - 1
VERSION = 1
FIRST_WORD = "lockstorm-schedule"
FIRST_LINE = f"{FIRST_WORD} {VERSION}"
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
    "seed": (0, SEED_LIMIT),
    "number": (0, 2**62),
}
OPTIONAL = ("extends", "checks_validity", "in_order", "varied")  # 0 in a file without it


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
    in_order: int = 0  # fairness is judged: the history has order_ms, and some clients give up sooner than others


@dataclass(frozen=True, kw_only=True)
class ScheduleFile(ScheduleContext):
    """One schedule with everything that it depends on."""

    number: int  # of the schedule in its search: the random numbers of clients depend on it
    violates: tuple[str, ...]
    lines: tuple[str, ...]  # its deviations
    line_numbers: tuple[int, ...] = ()  # of the deviations in the file that they were read from
    struck: Mapping[str, str] = field(default_factory=dict)  # deviation -> the command that it strikes; a comment

    @property
    def text(self) -> str:
        keys = ("lock", "store", *(key for key in NUMBERS if key not in OPTIONAL or getattr(self, key)))
        head = [f"{key} {getattr(self, key)}" for key in keys]
        violates = " ".join(("violates", *self.violates))
        return "\n".join([FIRST_LINE, *head, violates, COURSE, *self.annotated]) + "\n"

    @property
    def annotated(self) -> list[str]:
        """Its deviations as lines, each with the command that it strikes as a comment."""
        return [f"{line}  # {self.struck[line]}" if line in self.struck else line for line in self.lines]


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


def read_schedule_file(path: Path) -> ScheduleFile:
    """Raises UsageError with the line and the reason when the file is not a schedule."""
    return parse_schedule_file(text_of(path), str(path))


def is_schedule(path: Path) -> bool:
    return begins_with(path, FIRST_WORD)


def parse_schedule_file(text: str, name: str) -> ScheduleFile:
    """Reads a schedule from a text; `name` is for messages."""
    read = schedule_text(text, name, FIRST_LINE, (COURSE,), LINE_MOST)
    head: dict[str, object] = {**head_values(read.head, name, ("lock", "store", "violates"), NUMBERS)}
    where = {line.partition(" ")[0]: number for number, line in read.head}
    keys = [each.name for each in fields(ScheduleFile) if each.name not in ("lines", "line_numbers", "struck")]
    missing = [key for key in keys if key not in head and key not in OPTIONAL]
    if missing:
        raise UsageError(f"{name}: line {read.starts[COURSE]}: {missing[0]} is missing before {COURSE!r}")
    head["violates"] = violates = tuple(str(head["violates"]).split())
    if unknown := set(violates) - set(PROPERTIES):
        raise UsageError(f"{name}: line {where['violates']}: there is no property called {min(unknown)!r}")
    course = read.parts[COURSE]
    lines, line_numbers = tuple(line for _, line in course), tuple(number for number, _ in course)
    schedule = ScheduleFile(**head, lines=lines, line_numbers=line_numbers)  # type: ignore[arg-type]
    _check_context(schedule, where, name)
    return schedule


def _check_context(schedule: ScheduleFile, where: dict[str, int], name: str) -> None:
    """Whether the lock can be explored in this context; `where`: the line of each key."""
    requests = {
        "lock": TrialSettings(schedule.lock, "explore"),
        "store": TrialSettings(schedule.lock, "explore", store=schedule.store),
        "permits": TrialSettings(schedule.lock, "explore", permits=schedule.permits if schedule.permits > 1 else None),
        "fixed_lease": TrialSettings(schedule.lock, "explore", fixed_lease=bool(schedule.fixed_lease)),
    }
    for key, request in requests.items():
        try:
            lock, _ = check_explorable(request)
        except UsageError as error:
            raise UsageError(f"{name}: line {where[key]}: {error}") from None
    if schedule.extends and not lock.renewable:
        raise UsageError(f"{name}: line {where['extends']}: {schedule.lock} cannot be extended by its holder")
    if schedule.replicas < lock.replicas:
        raise UsageError(f"{name}: line {where['replicas']}: {schedule.lock} needs {lock.replicas} replica")


def save_schedule(result: dict[str, Any], directory: Path = FOUND) -> Path:
    """Writes the schedule that a search has found, with the command that found it, under a name made of the lock and
    the faults. A schedule that is there already is left alone. Returns its path."""
    choices = [line.partition(": ")[2].split()[0] for line in result["found"]["choices"]]
    faults = [word for word in dict.fromkeys(choices) if word in result["injected"]]
    name = "-".join([result["lock"], *(faults or ["order"])])
    text = f"# {result['replay']}\n# {result['found']['sentence']}\n{result['found']['file']}"
    directory.mkdir(exist_ok=True)
    for number in range(1, SAVED_MOST):
        path = directory / f"{name}{f'-{number}' if number > 1 else ''}.schedule"
        with contextlib.suppress(FileExistsError):
            with new_file(path) as temporary:
                temporary.write_text(text)
            return path
        if read_schedule_file(path).text == parse_schedule_file(result["found"]["file"], str(path)).text:
            return path
    raise UsageError(f"--save: there are {SAVED_MOST} schedules called {name} in {directory}")
