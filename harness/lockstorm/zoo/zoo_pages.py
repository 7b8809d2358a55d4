"""The track record: the bug zoo as a GitHub table, from its entries and from the record of the last full run
(scenarios/zoo/record.json). `make zoo` writes the record and the table in docs/zoo.md; a test checks
that the pages are up to date.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from lockstorm.base import paths
from lockstorm.base.atomic_file import write_json, write_text
from lockstorm.base.errors import UsageError
from lockstorm.base.marked_pages import page_with
from lockstorm.zoo.zoo import GOOD, ExploredBug, ScriptedBug, TriedBug, ZooResult, zoo_entry, zoo_numbers
from lockstorm.zoo.zoo_entries import ZOO, Bug, bugs
from lockstorm.zoo.zoo_table import explored_text, fixed_text, numbers_text, scripted_text

RECORD = ZOO / "record.json"
BEGIN, END = "<!-- zoo: begin, written by make zoo -->", "<!-- zoo: end -->"
RECORDED = {  # the part of an entry's result that is the same on every machine
    "scripted": ("bug", "fixed"),
    "explored": ("bug", "schedules", "violates", "faults", "fixed", "fixed_schedules"),
}
KEY = ("lock", "fixed", "property", "scenario", "request", "explore")  # a record is out of date if one has changed
Key = dict[str, object]  # of a record: values of an entry's file


class RecordedBug(msgspec.Struct, frozen=True):
    key: Key
    scripted: ScriptedBug | None
    explored: ExploredBug | None


class ZooRecord(msgspec.Struct, frozen=True):
    entries: dict[str, RecordedBug]  # by the name of the bug


def record_key(bug: Bug) -> Key:
    return {name: getattr(bug, name) for name in KEY}


def read_record(path: Path = RECORD) -> dict[str, RecordedBug]:
    """The record of each bug, by name. Raises UsageError when the file is not a record."""
    if not path.exists():
        return {}
    try:
        return msgspec.json.decode(path.read_bytes(), type=ZooRecord).entries
    except msgspec.MsgspecError as error:
        raise UsageError(
            f"{path}: it is no record of a zoo ({error}): remove it, and run lockstorm zoo --record"
        ) from None


def updated_record(result: ZooResult, path: Path = RECORD) -> dict[str, RecordedBug]:
    """The record with the bugs that were caught now; the other bugs keep their old record."""
    known = read_record(path)
    for entry in result.entries:
        if entry.result == "caught":
            known[entry.name] = RecordedBug(record_key(bugs()[entry.name]), entry.scripted, entry.explored)
    return {name: known[name] for name in sorted(bugs()) if name in known}


def record_json(record: Mapping[str, RecordedBug]) -> dict[str, object]:
    entries = {}
    for name, bug in record.items():
        shown = {"scripted": bug.scripted, "explored": bug.explored}
        kept = {how: each and {key: getattr(each, key) for key in RECORDED[how]} for how, each in shown.items()}
        entries[name] = {"key": bug.key, **kept}
    return {"entries": entries}


def write_record(result: ZooResult) -> list[str]:
    """Writes the record. Returns the bugs that were not recorded, because they were not caught."""
    write_json(RECORD, record_json(updated_record(result)), indent=1)
    return [entry.name for entry in result.entries if entry.result != "caught"]


def recorded_zoo() -> ZooResult:
    """The record as a result of run_zoo."""
    known = read_record()
    entries = []
    for bug in bugs().values():
        record = known.get(bug.name)
        record = record if record and record.key == record_key(bug) else None
        entry = zoo_entry(bug, record.scripted, record.explored) if record else zoo_entry(bug, None, None)
        entries.append(msgspec.structs.replace(entry, not_installed=""))
    return ZooResult(entries=entries, numbers=zoo_numbers(entries), seconds=None, interrupted=False, ok=True)


def bug_table(entries: Sequence[TriedBug]) -> str:
    lines = [
        "| bug | what happened | property | caught by the scenario | and by the explorer alone in | without the bug |",
        "|---|---|---|---|---|---|",
    ]
    for entry in entries:
        wrong = "" if entry.result in GOOD else f" **{entry.result}**"
        scenario = scripted_text(entry) if entry.scenario else "-"
        cells = (
            f"`{entry.lock}`: {entry.reference}{wrong}",
            entry.what,
            entry.property.replace("_", " "),
            scenario,
            f"{explored_text(entry)}{' (with options: ' + entry.tuned + ')' if entry.tuned else ''}",
            fixed_text(entry),
        )
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines) + "\n"


def zoo_section(result: ZooResult) -> str:
    """The table of all bugs, and the numbers."""
    return bug_table(result.entries) + "\n" + "\n".join(f"- {line}" for line in numbers_text(result)) + "\n"


def zoo_pages() -> dict[Path, str]:
    recorded = recorded_zoo()
    page = paths.ROOT / "docs" / "zoo.md"
    return {page: page_with(page, zoo_section(recorded), BEGIN, END)}


if __name__ == "__main__":
    for page, text in zoo_pages().items():
        write_text(page, text)
