"""A schedule of a library as a text file: what hosts it, its workload, and its deviations from the usual course
(harness/library_search/library_schedule.h). docs/explore-libraries.md describes the file."""

import re
from dataclasses import dataclass
from pathlib import Path

from lockstorm.base.errors import UsageError

VERSION = 1
FIRST_WORD = "lockstorm-library-schedule"
FIRST_LINE = f"{FIRST_WORD} {VERSION}"
WORKLOAD, COURSE = "workload", "schedule"  # the lines before the calls, and before the deviations
LINE_MOST = 320  # WORKLOAD_LINE
LEASE_LIMIT_MS = 10_000_000
NUMBERS = {"lease_ms": (1, LEASE_LIMIT_MS), "permits": (1, 1000), "seed": (0, 2**62), "number": (0, 2**62)}
TEXTS = ("adapter", "library", "breaks")


@dataclass(frozen=True, kw_only=True)
class LibrarySchedule:
    """One schedule with everything that it depends on."""

    adapter: str  # as --adapter names it
    library: str  # its name and version, for the reader
    lease_ms: int  # the default of the library
    permits: int
    seed: int  # of the search
    number: int  # of the schedule in it: random numbers of the programs depend on it
    breaks: tuple[str, ...]  # promises
    workload: tuple[str, ...]
    deviations: tuple[str, ...]
    line_numbers: tuple[int, ...] = ()  # of workload and deviations in the file that they were read from

    @property
    def text(self) -> str:
        head = [f"{key} {getattr(self, key)}" for key in ("adapter", "library", *NUMBERS)]
        breaks = " ".join(("breaks", *self.breaks))
        return "\n".join([FIRST_LINE, *head, breaks, WORKLOAD, *self.workload, COURSE, *self.deviations]) + "\n"

    @property
    def lines(self) -> tuple[str, ...]:
        """What the program of the search reads."""
        return (*self.workload, *self.deviations)


def is_library_schedule(path: Path) -> bool:
    """Whether a file looks like a schedule of a library, of any version."""
    try:
        with path.open("rb") as file:
            return any(line.startswith(FIRST_WORD.encode()) for line in file.read(4096).splitlines())
    except OSError:
        return False


def read_library_schedule(path: Path) -> LibrarySchedule:
    """Raises UsageError with the line and the reason when the file is not such a schedule."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text"
        raise UsageError(f"{path}: {reason}") from None
    return parse_library_schedule(text, str(path))


def parse_library_schedule(text: str, name: str) -> LibrarySchedule:
    """Reads a schedule from a text; `name` is for messages."""
    numbered = [(number, line.partition("#")[0].strip()) for number, line in enumerate(text.splitlines(), 1)]
    filled = [(number, line) for number, line in numbered if line]
    for number, line in filled:
        if len(line) >= LINE_MOST or not line.isprintable():
            raise UsageError(f"{name}: line {number}: it is longer than {LINE_MOST - 1} letters, or no text")
    if not filled or filled[0][1] != FIRST_LINE:
        place = filled[0][0] if filled else 1
        raise UsageError(f"{name}: line {place}: a schedule of a library begins with {FIRST_LINE!r} in this version")
    words = [line for _, line in filled]
    for needed in (WORKLOAD, COURSE):
        if needed not in words:
            raise UsageError(f"{name}: line {filled[-1][0]}: the line {needed!r} is missing")
    begin, end = words.index(WORKLOAD), words.index(COURSE)
    if end < begin:
        raise UsageError(f"{name}: line {filled[end][0]}: {COURSE!r} stands before {WORKLOAD!r}")
    head = _head_of(filled[1:begin], name, filled[begin][0])
    calls, course = filled[begin + 1 : end], filled[end + 1 :]
    if not calls:
        raise UsageError(f"{name}: line {filled[begin][0]}: the workload has no calls")
    return LibrarySchedule(
        **head,  # type: ignore[arg-type]
        workload=tuple(line for _, line in calls),
        deviations=tuple(line for _, line in course),
        line_numbers=tuple(number for number, _ in (*calls, *course)),
    )


def _head_of(lines: list[tuple[int, str]], name: str, end: int) -> dict[str, object]:
    head: dict[str, object] = {}
    for number, line in lines:
        key, _, value = line.partition(" ")
        value = value.strip()
        if key not in (*TEXTS, *NUMBERS):
            raise UsageError(f"{name}: line {number}: there is no {key!r} in a schedule of a library")
        if key in head:
            raise UsageError(f"{name}: line {number}: {key} occurs twice")
        head[key] = _whole_number(key, value, f"{name}: line {number}") if key in NUMBERS else value
    for key in (*TEXTS, *NUMBERS):
        if key not in head:
            raise UsageError(f"{name}: line {end}: {key} is missing before {WORKLOAD!r}")
    head["breaks"] = tuple(str(head["breaks"]).split())
    return head


def _whole_number(key: str, value: str, where: str) -> int:
    low, high = NUMBERS[key]
    if not re.fullmatch("[0-9]{1,20}", value) or not low <= int(value) <= high:
        raise UsageError(f"{where}: {key} {value!r} is no whole number from {low} to {high}")
    return int(value)
