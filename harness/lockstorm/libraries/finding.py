"""Findings: what current releases of lock libraries do other than they promise. A directory of findings/ each:
finding.toml, found.schedule, control.schedule, and where timing alone shows it a program in the library's language."""

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Literal

import msgspec

from lockstorm.base import paths
from lockstorm.base.errors import UsageError
from lockstorm.locks.adapter import shipped_adapters
from lockstorm.search.library_plan import PROMISES
from lockstorm.search.schedule_file import read_library_schedule

PLACE = paths.ROOT / "findings"
FILE, FOUND, CONTROL = "finding.toml", "found.schedule", "control.schedule"
PROGRAMS = ("Found.java", "found.py", "found.mjs", "found.go")

Reported = Literal["not found", "something near", "known"]


class Finding(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One difference between what a library promises and what it does."""

    title: str  # a sentence
    library: str
    adapter: str  # the shipped adapter that hosts it
    shown_in: list[str]  # releases that show it, oldest first; the last one is the shipped one
    absent_in: list[str] = []  # releases that were tried and do not show it
    breaks: list[str]  # promises (docs/promises.md)
    promise: str  # what the library's documentation says, quoted
    promise_at: str  # where
    what: str  # what happens instead, and why, by the source
    consequence: str  # how bad it is, for whom
    workaround: str  # that was tried
    change: str  # what its maintainers could change
    found_by: str = ""  # the command that finds it; empty: its schedule was written by hand
    found_at: int = 0  # the number of the schedule in that search, from 1
    natively: int = 0  # how often the program without lockstorm was run and showed it; 0: timing alone does not show it
    reported: Reported  # whether public trackers have it
    threads: list[str] = []  # the nearest
    looked_on: date  # at the trackers

    @property
    def release(self) -> str:
        return self.shown_in[-1]


def finding_names() -> list[str]:
    return sorted(path.parent.name for path in PLACE.glob(f"*/{FILE}"))


def finding_named(name: str, place: Path = PLACE) -> Finding:
    """Reads one. UsageError with the file and the reason when it is wrong."""
    path = place / name / FILE
    try:
        finding = msgspec.toml.decode(path.read_bytes(), type=Finding)
    except (OSError, msgspec.MsgspecError) as error:
        raise UsageError(f"{path}: {error.strerror if isinstance(error, OSError) else error}") from None
    for wrong in _mistakes(finding, path.parent):
        raise UsageError(f"{path}: {wrong}")
    return finding


def _mistakes(finding: Finding, directory: Path) -> Iterator[str]:
    if finding.adapter not in shipped_adapters():
        yield f"there is no shipped adapter {finding.adapter!r}"
    if unknown := set(finding.breaks) - set(PROMISES):
        yield f"there is no promise {', '.join(sorted(unknown))}"
    if not finding.breaks or not finding.shown_in:
        yield "breaks and shown_in each name one at least"
    if finding.reported != "not found" and not finding.threads:
        yield f"reported is {finding.reported!r}, and threads names none"
    schedule = read_library_schedule(directory / FOUND)
    if schedule.adapter != finding.adapter or not set(finding.breaks) <= set(schedule.violates):
        yield f"{FOUND} is of {schedule.adapter} and breaks {', '.join(schedule.violates)}"
    if bool(finding.natively) != (program_of(directory) is not None):
        yield "natively counts runs of a program: there is a count without a program, or a program without a count"


def findings() -> dict[str, Finding]:
    return {name: finding_named(name) for name in finding_names()}


def program_of(directory: Path) -> Path | None:
    """The program that shows it without lockstorm."""
    return next((directory / name for name in PROGRAMS if (directory / name).is_file()), None)
