"""A schedule that the explorer has found, as a text file: what it was found for, and in what it differs from the usual
course (harness/explorer/schedule.h). docs/explore.md describes it; any line may be edited by hand."""

import contextlib
import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from harness.driver import paths
from harness.driver.errors import UsageError
from harness.driver.library import locks_on
from harness.driver.lock_names import is_brought
from harness.driver.play import (
    LEASE_LIMIT_MS,
    PERMIT_LIMIT,
    PROPERTIES,
    SEED_LIMIT,
    Wish,
    checked,
    lock_named,
)
from harness.driver.scenario import TABLE_STORES
from harness.driver.services import real_time_reason

FOUND = paths.ROOT / "scenarios" / "found"
KEPT_MOST = 100  # of one name
LINE_MOST = 160  # SCHEDULE_LINE
NAME_MOST = LINE_MOST - len("lock ") - 1
VERSION = 1
FIRST_LINE = f"lockstorm-schedule {VERSION}"
FIRST_WORD, LOOK_BYTES = b"lockstorm-schedule ", 4096
COURSE = "schedule"  # the line after which the deviations stand
CLIENTS_MOST = 16  # WORLD_CLIENTS
REPLICAS_MOST = 2  # WORLD_REPLICAS
WAIT_FOR_EVER = -1
NUMBERS = {  # key: from, to
    "clients": (1, CLIENTS_MOST),
    "replicas": (0, REPLICAS_MOST),
    "turns": (1, 1000),
    "permits": (1, PERMIT_LIMIT),
    "fixed_lease": (0, 1),
    "extends": (0, 1),
    "lease_ms": (1, LEASE_LIMIT_MS),
    "wait_ms": (WAIT_FOR_EVER, LEASE_LIMIT_MS),
    "work_ms": (0, LEASE_LIMIT_MS),
    "bound_ms": (0, LEASE_LIMIT_MS),
    "seed": (0, SEED_LIMIT),
    "number": (0, 2**62),
}

OPTIONAL = ("extends",)  # a file that does not say it means 0


@dataclass(frozen=True)
class Found:
    """One schedule with everything that it depends on. `lines`: its deviations."""

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
    bound_ms: int  # how long a free lock may go unnoticed in the quiet; 0: there is none
    seed: int  # of the search
    number: int  # of the schedule in it
    violates: tuple[str, ...]
    lines: tuple[str, ...]
    line_numbers: tuple[int, ...] = ()  # where they stand in the file they were read from
    extends: int = 0  # clients extend their lease in the middle of their work

    @property
    def text(self) -> str:
        keys = ("lock", "store", *(key for key in NUMBERS if key not in OPTIONAL or getattr(self, key)))
        head = [f"{key} {getattr(self, key)}" for key in keys]
        violates = " ".join(("violates", *self.violates))
        return "\n".join([FIRST_LINE, *head, violates, COURSE, *self.lines]) + "\n"


def explorable(wish: Wish) -> tuple[dict[str, Any], str]:
    """The lock and the store mode, if its schedules can be searched: every message and every clock has to be the
    explorer's."""
    names = [lock["name"] for lock in locks_on("redis")]
    service = lock_named(wish.lock)["service"]
    if service != "redis":
        raise UsageError(
            f"{wish.lock} lives on {service}, and only locks on redis-servers can be explored: {', '.join(names)}"
        )
    if lock_named(wish.lock)["real_time_only"]:
        raise UsageError(f"{wish.lock} cannot be explored: {real_time_reason(lock_named(wish.lock))}")
    if is_brought(wish.lock) and ("#" in wish.lock or len(wish.lock) > NAME_MOST or not wish.lock.isprintable()):
        raise UsageError(f"{wish.lock} cannot be named in a schedule: a shorter path, and none with # in it, can be")
    if wish.store in TABLE_STORES:
        raise UsageError(f"--store {wish.store} is a table of PostgreSQL, which cannot be explored")
    lock, store, _ = checked(wish)
    return lock, store


def read_found(path: Path) -> Found:
    """Raises UsageError with the line and the reason when the file is not what it should be."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text"
        raise UsageError(f"{path}: {reason}") from None
    return parse_found(text, str(path))


def is_schedule(path: Path) -> bool:
    """Whether it looks like one, of any version; other kinds of files are binary or JSON."""
    try:
        with path.open("rb") as file:
            return any(line.startswith(FIRST_WORD) for line in file.read(LOOK_BYTES).splitlines())
    except OSError:
        return False


def parse_found(text: str, name: str) -> Found:
    """The same from a text; `name` is for messages."""
    numbered = [(number, line.partition("#")[0].strip()) for number, line in enumerate(text.splitlines(), 1)]
    for number, line in numbered:
        if len(line) >= LINE_MOST or not line.isprintable():
            raise UsageError(f"{name}: line {number}: it is longer than {LINE_MOST - 1} letters, or no text")
    told = [(number, line) for number, line in numbered if line]
    if not told or told[0][1] != FIRST_LINE:
        said = f"it begins with {told[0][1][:40]!r}" if told else "it is empty"
        place = told[0][0] if told else 1
        raise UsageError(f"{name}: line {place}: a schedule of this version begins with {FIRST_LINE!r}, but {said}")
    words = [line for _, line in told]
    if COURSE not in words:
        raise UsageError(f"{name}: line {told[-1][0]}: the line {COURSE!r} is missing, after which the choices stand")
    start = words.index(COURSE)
    head = _head(told[1:start], name)
    needed = [field.name for field in fields(Found) if not field.name.startswith("line") and field.name not in OPTIONAL]
    missing = [name for name in needed if name not in head]
    if missing:
        raise UsageError(f"{name}: line {told[start][0]}: {missing[0]} is missing before {COURSE!r}")
    where = {line.partition(" ")[0]: number for number, line in told[1:start]}
    course = told[start + 1 :]
    found = Found(**head, lines=tuple(line for _, line in course), line_numbers=tuple(number for number, _ in course))  # type: ignore[arg-type]
    _check_ground(found, where, name)
    return found


def _check_ground(found: Found, where: dict[str, int], name: str) -> None:
    """Whether the lock can be explored so; `where`: the line of each key."""
    wishes = {
        "lock": Wish("explore", found.lock),
        "store": Wish("explore", found.lock, found.store),
        "permits": Wish("explore", found.lock, permits=found.permits if found.permits > 1 else None),
        "fixed_lease": Wish("explore", found.lock, fixed_lease=bool(found.fixed_lease)),
    }
    for key, wish in wishes.items():
        try:
            lock, _ = explorable(wish)
        except UsageError as error:
            raise UsageError(f"{name}: line {where[key]}: {error}") from None
    if found.extends and not lock["renewable"]:
        raise UsageError(f"{name}: line {where['extends']}: {found.lock} cannot be extended by its holder")
    if found.replicas < lock["replicas"]:
        raise UsageError(f"{name}: line {where['replicas']}: {found.lock} needs {lock['replicas']} replica")


def keep_found(result: dict[str, Any], directory: Path = FOUND) -> Path:
    """Writes what a search has found, and how, under a name that says what it is about. What is kept already
    stays as it is; its path is returned all the same."""
    choices = [line.partition(": ")[2].split()[0] for line in result["found"]["choices"]]
    faults = [word for word in dict.fromkeys(choices) if word in result["injected"]]
    name = "-".join([result["lock"], *(faults or ["order"])])
    text = f"# {result['replay']}\n# {result['found']['sentence']}\n{result['found']['file']}"
    directory.mkdir(exist_ok=True)
    for number in range(1, KEPT_MOST):
        path = directory / f"{name}{f'-{number}' if number > 1 else ''}.schedule"
        with contextlib.suppress(FileExistsError), path.open("x") as file:
            file.write(text)
            return path
        if read_found(path).text == result["found"]["file"]:
            return path
    raise UsageError(f"--save: there are {KEPT_MOST} schedules called {name} in {directory}")


def _head(lines: list[tuple[int, str]], name: str) -> dict[str, object]:
    head: dict[str, object] = {}
    for number, line in lines:
        key, _, value = line.partition(" ")
        value = value.strip()
        if key not in ("lock", "store", "violates", *NUMBERS):
            raise UsageError(f"{name}: line {number}: there is no {key!r} in a schedule")
        if key in head:
            raise UsageError(f"{name}: line {number}: {key} is said twice")
        head[key] = _number(key, value, f"{name}: line {number}") if key in NUMBERS else value
        if key == "violates":
            head[key] = tuple(value.split())
            if unknown := set(value.split()) - set(PROPERTIES):
                raise UsageError(f"{name}: line {number}: there is no property called {min(unknown)!r}")
    return head


def _number(key: str, value: str, where: str) -> int:
    low, high = NUMBERS[key]
    if not re.fullmatch("-?[0-9]{1,20}", value):
        raise UsageError(f"{where}: {key} {value!r} is not a whole number")
    number = int(value)
    if not low <= number <= high:
        raise UsageError(f"{where}: {key} {number}: from {low} to {high}")
    return number
