"""Prints the entries of a table: all as a list, or one in full."""

from collections.abc import Sequence
from typing import Any

import msgspec
from rich.table import Table
from rich.text import Text

from lockstorm.cli.terminal import console, print_json
from lockstorm.locks.lock_names import AS_ASKED
from lockstorm.results.fault_entry import FaultEntry
from lockstorm.results.lock_entry import LockEntry


class ScenarioEntry(msgspec.Struct, frozen=True):
    """A scenario as `lockstorm scenarios --json` lists it."""

    name: str
    kind: str  # what fails in it
    summary: str
    needs: list[str]
    times: list[str]
    source: str
    control: str


Entry = LockEntry | FaultEntry | ScenarioEntry


def show_list(
    kind: str,
    entries: Sequence[Entry],
    as_json: bool,
    marks: list[tuple[str, str]],
    last: tuple[str, str],
) -> int:
    """Prints a table of entries, or the JSON object {kind: entries}. `marks`: title and key of each yes/no column;
    `last`: those of the last column."""
    if as_json:
        print_json({kind: entries})
        return 0
    table = Table(box=None, padding=(0, 1), header_style="dim")
    for title in ("name", *(title for title, _ in marks), "", last[0]):
        table.add_column(title, no_wrap=title == "name", overflow="fold")
    for entry in entries:
        marked = [Text("yes", "green") if getattr(entry, key) else Text("-", "dim") for _, key in marks]
        table.add_row(Text(entry.name, "bold"), *marked, entry.summary, str(getattr(entry, last[1])))
    console().print(table)
    return 0


def explain(entry: Entry, as_json: bool, keys: tuple[str, ...]) -> int:
    """Prints one entry in full. `keys`: the fields to show, in order."""
    if as_json:
        print_json(entry)
        return 0
    out = console()
    out.print(Text(entry.name, "bold"), "-", entry.summary)
    out.print()
    if explanation := getattr(entry, "explanation", ""):
        out.print(explanation)
        out.print()
    table = Table(box=None, show_header=False, padding=(0, 1))
    for key in (*keys, "source"):
        table.add_row(Text(key.replace("_", " "), "dim"), value_text(key, getattr(entry, key)))
    out.print(table)
    return 0


def value_text(key: str, value: Any) -> str:
    """The value of an entry's field, for a reader."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if key == "options":
        rows = [(f"{word.name}={'…' if word.usual is None else word.usual}", word.meaning) for word in value]
        width = max((len(given) for given, _ in rows), default=0)
        return "\n".join(f"{given:{width}}  {meaning}" for given, meaning in rows) or "none"
    if isinstance(value, list):
        return ", ".join(value) or "nothing of a lock"
    return "as many as --permits asks for" if key == "capacity" and value == AS_ASKED else str(value)
