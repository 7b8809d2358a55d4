"""A schedule of a library as a text file: what hosts it, its workload, and its deviations from the usual course
(harness/library_search/library_schedule.h). docs/explore-libraries.md describes the file."""

from dataclasses import dataclass
from pathlib import Path

from lockstorm.base.errors import UsageError
from lockstorm.results.properties import current_name
from lockstorm.search.schedule_text import COURSE, begins_with, head_values, schedule_text, text_of

VERSION = 1
FIRST_WORD = "lockstorm-library-schedule"
FIRST_LINE = f"{FIRST_WORD} {VERSION}"
WORKLOAD = "workload"  # the line before the calls
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
    return begins_with(path, FIRST_WORD)


def read_library_schedule(path: Path) -> LibrarySchedule:
    """Raises UsageError with the line and the reason when the file is not such a schedule."""
    return parse_library_schedule(text_of(path), str(path))


def parse_library_schedule(text: str, name: str) -> LibrarySchedule:
    """Reads a schedule from a text; `name` is for messages."""
    read = schedule_text(text, name, FIRST_LINE, (WORKLOAD, COURSE), LINE_MOST)
    head: dict[str, object] = {**head_values(read.head, name, TEXTS, NUMBERS)}
    missing = [key for key in (*TEXTS, *NUMBERS) if key not in head]
    if missing:
        raise UsageError(f"{name}: line {read.starts[WORKLOAD]}: {missing[0]} is missing before {WORKLOAD!r}")
    head["breaks"] = tuple(map(current_name, str(head["breaks"]).split()))
    calls, course = read.parts[WORKLOAD], read.parts[COURSE]
    if not calls:
        raise UsageError(f"{name}: line {read.starts[WORKLOAD]}: the workload has no calls")
    return LibrarySchedule(
        **head,  # type: ignore[arg-type]
        workload=tuple(line for _, line in calls),
        deviations=tuple(line for _, line in course),
        line_numbers=tuple(number for number, _ in (*calls, *course)),
    )
