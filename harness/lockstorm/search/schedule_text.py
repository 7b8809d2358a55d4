"""The text of a schedule, of a lock or of a library: a first line with the version, keys, and parts that begin with a
line of their own. A `#` begins a comment.

Version 1 had another first word for a schedule of a library, counted schedules from 0, and called the properties that a
library violates what it `breaks`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lockstorm.base.errors import UsageError

VERSION = 2
FIRST_WORD = "lockstorm-schedule"
FIRST_LINE = f"{FIRST_WORD} {VERSION}"
OLD_LOCK, OLD_LIBRARY = "lockstorm-schedule 1", "lockstorm-library-schedule 1"
OF_LIBRARY, OF_APPLICATION = "adapter", "app"  # the keys that only schedules of libraries, of applications, have
WORKLOAD = "workload"  # the line before the calls
COURSE = "schedule"  # the line before the deviations
LOOK_BYTES = 4096  # a comment before the first line may be long
LINE_MOST, LIBRARY_LINE_MOST = 160, 320  # SCHEDULE_LINE, WORKLOAD_LINE: buffers of the C program

Line = tuple[int, str]  # its number in the file, and the line without its comment


@dataclass(frozen=True)
class ScheduleText:
    """The lines of a file that are not empty, by part."""

    version: int
    of_library: bool
    of_application: bool
    head: list[Line]
    parts: Mapping[str, list[Line]]  # by the line that begins a part
    starts: Mapping[str, int]  # the number of that line


def is_schedule(path: Path) -> bool:
    """True for a schedule of any version; histories are binary or JSON."""
    words = tuple(f"{word} ".encode() for word in (FIRST_WORD, OLD_LIBRARY.partition(" ")[0]))
    try:
        with path.open("rb") as file:
            return any(line.startswith(words) for line in file.read(LOOK_BYTES).splitlines())
    except OSError:
        return False


def text_of(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text"
        raise UsageError(f"{path}: {reason}") from None


def schedule_text(text: str, name: str) -> ScheduleText:
    """Splits a text into its parts, which have to be in this order; `name` is for messages."""
    numbered = [(number, line.partition("#")[0].strip()) for number, line in enumerate(text.splitlines(), 1)]
    filled = [(number, line) for number, line in numbered if line]
    if not filled or filled[0][1] not in (FIRST_LINE, OLD_LOCK, OLD_LIBRARY):
        found = f"it begins with {filled[0][1][:40]!r}" if filled else "it is empty"
        place = filled[0][0] if filled else 1
        raise UsageError(f"{name}: line {place}: a schedule of this version begins with {FIRST_LINE!r}, but {found}")
    first = filled[0][1]
    keys = {line.partition(" ")[0] for _, line in filled} if first == FIRST_LINE else set[str]()
    of_library, of_application = first == OLD_LIBRARY or OF_LIBRARY in keys, OF_APPLICATION in keys
    has_workload = of_library or of_application
    line_most = LIBRARY_LINE_MOST if has_workload else LINE_MOST
    for number, line in filled:
        if len(line) >= line_most or not line.isprintable():
            raise UsageError(f"{name}: line {number}: it is longer than {line_most - 1} letters, or no text")
    parts = (WORKLOAD, COURSE) if has_workload else (COURSE,)
    words = [line for _, line in filled]
    places = []
    for part in parts:
        if part not in words:
            raise UsageError(f"{name}: line {filled[-1][0]}: the line {part!r} is missing")
        places.append(words.index(part))
        if places[-1] != max(places):
            raise UsageError(f"{name}: line {filled[places[-1]][0]}: {part!r} is before {parts[len(places) - 2]!r}")
    ends = [*places[1:], len(filled)]
    return ScheduleText(
        VERSION if first == FIRST_LINE else 1,
        of_library,
        of_application,
        filled[1 : places[0]],
        {part: filled[place + 1 : end] for part, place, end in zip(parts, places, ends, strict=True)},
        {part: filled[place][0] for part, place in zip(parts, places, strict=True)},
    )


def head_values(
    lines: list[Line], name: str, texts: tuple[str, ...], numbers: Mapping[str, tuple[int, int]]
) -> dict[str, str | int]:
    """The value of each key; `numbers`: keys of whole numbers, with their range."""
    head: dict[str, str | int] = {}
    for number, line in lines:
        key, _, value = line.partition(" ")
        where = f"{name}: line {number}"
        if key not in texts and key not in numbers:
            raise UsageError(f"{where}: there is no {key!r} in a schedule")
        if key in head:
            raise UsageError(f"{where}: {key} occurs twice")
        head[key] = _whole_number(key, value.strip(), *numbers[key], where) if key in numbers else value.strip()
    return head


def _whole_number(key: str, value: str, low: int, high: int, where: str) -> int:
    if not re.fullmatch("-?[0-9]{1,20}", value):
        raise UsageError(f"{where}: {key} {value!r} is not a whole number")
    if not low <= int(value) <= high:
        raise UsageError(f"{where}: {key} {int(value)}: from {low} to {high}")
    return int(value)
