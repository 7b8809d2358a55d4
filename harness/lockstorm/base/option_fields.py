"""Options of a command as fields of a dataclass.

A field describes its option once: flag, kind, range, help. The description yields the option of the command line, the
check of its range, and its words in the command that repeats a run. So a new option is one new field."""

import dataclasses
from difflib import get_close_matches
from typing import Any, Literal

from lockstorm.base.durations import FOREVER_MS, FOREVER_TEXT, UNITS_MS, duration_text, parse_duration_ms
from lockstorm.base.errors import UsageError

Kind = Literal["number", "text", "names", "duration", "path", "flag"]
Unit = Literal["ms", "s"]
KEY = "option"


@dataclasses.dataclass(frozen=True)
class Option:
    """One option. `within`: the least and the most of a number or a duration; a duration from -1 on may also be
    "forever". `unit`: of the field that holds a duration. `is_repeated`: the command that repeats a run has the option
    even when it has its default."""

    flag: str
    help: str
    kind: Kind
    metavar: str | None = None
    within: tuple[int, int] | None = None
    is_repeated: bool = False
    unit: Unit = "ms"

    @property
    def key(self) -> str:
        """What the option is called in a file and in Python."""
        return self.flag.removeprefix("--").replace("-", "_")

    def read_duration(self, text: str) -> int:
        """The duration in the option's unit. UsageError for a text that is not one."""
        if text == FOREVER_TEXT and self.within and self.within[0] == FOREVER_MS:
            return FOREVER_MS
        try:
            value_ms = parse_duration_ms(text, self.unit)
        except UsageError as error:
            raise UsageError(f"{self.flag} {error}") from None
        if value_ms % UNITS_MS[self.unit]:
            raise UsageError(f"{self.flag} {text}: whole seconds, such as 60s or 2min")
        return value_ms // UNITS_MS[self.unit]

    def text(self, value: Any) -> str:
        """A value as a user writes it."""
        return duration_text(value * UNITS_MS[self.unit]) if self.kind == "duration" else str(value)

    def check(self, value: Any) -> None:
        """Raises UsageError for a value outside its range; None is always allowed."""
        if value is None or self.within is None or self.within[0] <= value <= self.within[1]:
            return
        low, high = self.within
        is_open = self.kind == "duration" and low == FOREVER_MS
        least, forever = self.text(0 if is_open else low), ", or forever" if is_open else ""
        raise UsageError(f"{self.flag} {self.text(value)}: from {least} to {self.text(high)}{forever}")


def option(flag: str, help_: str, kind: Kind = "text", *, default: Any = None, **more: Any) -> Any:
    """A dataclass field that is an option. None as default: the usual value, which depends on the other settings."""
    if kind == "flag":
        default = False
    return dataclasses.field(default=default, metadata={KEY: Option(flag, help_, kind, **more)})


def options_of(owner: Any) -> dict[str, Option]:
    """The options of a dataclass, or of one of its values, by the names of their fields, in the order of the fields."""
    return {field.name: field.metadata[KEY] for field in dataclasses.fields(owner) if KEY in field.metadata}


def choose(kind: str, name: str, known: list[str]) -> str:
    """`name` if it is known; otherwise an error that names the nearest one."""
    if name in known:
        return name
    near = get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(known)}"
    raise UsageError(f"there is no {kind} called {name!r}: {hint}")


def check_range(flag: str, value: int | None, low: int, high: int) -> None:
    """Raises UsageError for a value outside [low, high]; None is always allowed."""
    if value is not None and not low <= value <= high:
        raise UsageError(f"{flag} {value}: from {low} to {high}")


def check_ranges(owner: Any) -> None:
    """Raises UsageError for the first option of a value that is outside its range."""
    for name, each in options_of(owner).items():
        each.check(getattr(owner, name))


def option_words(owner: Any, *names: str) -> list[str]:
    """The options of a value as the words of a command line: those that differ from their defaults, flags last.
    `names`: only the options of these fields, in this order."""
    defaults = {field.name: field.default for field in dataclasses.fields(owner)}
    known = options_of(owner)
    words, flags = [], []
    for name in names or known:
        each, value = known[name], getattr(owner, name)
        if value is None or (value == defaults[name] and not each.is_repeated):
            continue
        if each.kind == "flag":
            flags.append(each.flag)
        else:
            words += [each.flag, each.text(value)]
    return words + flags
