"""Options of a command as fields of a dataclass.

A field describes its option once: flag, kind, range, help. The description yields the option of the command line, the
check of its range, and its words in the command that repeats a run. So a new option is one new field."""

import dataclasses
from difflib import get_close_matches
from typing import Any, Literal

from lockstorm.base.errors import UsageError

Kind = Literal["number", "text", "names", "duration", "path", "flag"]
KEY = "option"


@dataclasses.dataclass(frozen=True)
class Option:
    """One option. `low` and `high` bound a number, or a duration in ms; `is_repeated`: the command that repeats a run
    has it even when it has its default."""

    flag: str
    help: str
    kind: Kind
    metavar: str | None = None
    low: int | None = None
    high: int | None = None
    is_repeated: bool = False


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
        if each.low is not None and each.high is not None:
            check_range(each.flag, getattr(owner, name), each.low, each.high)


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
            words += [each.flag, f"{value}ms" if each.kind == "duration" else str(value)]
    return words + flags
