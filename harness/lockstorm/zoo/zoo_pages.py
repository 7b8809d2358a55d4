"""The bug zoo for a terminal: a line for each bug, what is wrong below them, and the numbers. And the track record: the
zoo as a GitHub table, from its entries and from the record of the last full run (scenarios/zoo/record.json). `make zoo`
writes the record and the table in docs/zoo.md; a test checks that the pages are up to date.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lockstorm.base import paths
from lockstorm.base.atomic_file import write_json, write_text
from lockstorm.base.errors import UsageError
from lockstorm.base.marked_pages import page_with
from lockstorm.base.paths import runnable
from lockstorm.zoo.zoo import (
    GOOD,
    ExploredBug,
    ScriptedBug,
    TriedBug,
    ZooNumbers,
    ZooResult,
    shown_of,
    zoo_entry,
    zoo_numbers,
)
from lockstorm.zoo.zoo_entries import ZOO, Bug, bugs

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


STYLE = {
    "caught": "green",
    "missed": "bold red",
    "untriggered": "bold red",
    "accused": "bold red",
    "inconclusive": "yellow",
    "not installed": "dim",
    "not played": "dim",
}
MEANING = {
    "missed": "neither the scenario nor the explorer has caught the bug",
    "untriggered": "the scenario does not show the bug, although the explorer has found it",
    "accused": "the lock without the bug violates the property as well",
    "inconclusive": "the bug could not be judged",
}


def show_zoo(console: Console, result: ZooResult) -> None:
    entries = result.entries
    table = Table(box=None, padding=(0, 1), header_style="dim")
    for title in ("bug", "reference", "property", "", "scripted", "explorer", "without the bug"):
        table.add_column(title, no_wrap=title == "bug", overflow="fold")
    for entry in entries:
        table.add_row(
            Text(entry.name, "bold"),
            entry.reference,
            entry.property.replace("_", " "),
            Text(entry.result, STYLE[entry.result]),
            scripted_text(entry),
            explored_text(entry),
            fixed_text(entry),
        )
    console.print(table, "")
    for entry in entries:
        if entry.result in MEANING:
            show_wrong(console, entry)
    for line in numbers_text(result):
        console.print(Text(line, "bold green" if result.ok else "bold"))


def scripted_text(entry: TriedBug) -> str:
    if not entry.scenario:
        return "no scenario"
    if not entry.scripted:
        return f"{entry.scenario}: {'not installed' if entry.not_installed else 'not played'}"
    status = entry.scripted.bug
    return f"{entry.scenario}{'' if status == 'violated' else f': {status}'}"


def explored_text(entry: TriedBug) -> str:
    """The result of the explorer: the schedules and faults that it needed."""
    explored = entry.explored
    if not explored:
        return f"not: {entry.unexplored}" if entry.unexplored else "not asked"
    schedules = f"{explored.schedules:,} schedule{'s' if explored.schedules != 1 else ''}"
    if explored.bug != "violated":
        return f"not found in {schedules}"
    found = f"{schedules}: {', '.join(explored.faults) or 'the order of steps'}"
    others = [name for name in explored.violates if entry.property not in explored.violates]
    return f"{found}, seen as {' and '.join(others).replace('_', ' ')}" if others else found


def fixed_text(entry: TriedBug) -> str:
    shown = [each.fixed for each in shown_of(entry)]
    worst = next((status for status in ("violated", "inconclusive", "holds") if status in shown), "not played")
    explored = f", in {entry.explored.fixed_schedules:,} schedules too" if entry.explored else ""
    return f"{entry.fixed} {worst}{explored if worst == 'holds' else ''}"


def show_wrong(console: Console, entry: TriedBug) -> None:
    console.print(Text(f"{entry.name}: {entry.result}: {MEANING[entry.result]}", STYLE[entry.result]))
    for each in shown_of(entry):
        for status, good, lock, sentence, replay in (
            (each.bug, "violated", entry.lock, each.sentence, each.replay),
            (each.fixed, "holds", entry.fixed, each.fixed_sentence, each.fixed_replay),
        ):
            if status != good:
                console.print(Text(f"  {lock}: {sentence}"))
                if replay:
                    console.print(Text(f"  again: {runnable(replay)}", "dim"))
    console.print()


def numbers_text(result: ZooResult) -> list[str]:
    """How many bugs were found, and how many false alarms there were, in a few lines."""
    numbers = result.numbers
    lines = ["interrupted: incomplete numbers"] if result.interrupted else []
    lines.append(f"caught {share_text(numbers.caught, numbers)}, by their scenarios or the explorer")
    if numbers.hunted:
        median = numbers.median_schedules
        schedules = f", with {median:,.0f} schedules in the median" if median is not None else ""
        beyond = numbers.played - numbers.hunted
        unasked = f"; {numbers.found_as_it_comes} without an option but the lock" if numbers.found else ""
        unasked += f"; {beyond} {'is' if beyond == 1 else 'are'} beyond it" if beyond else ""
        lines.append(f"the explorer alone found {share_text(numbers.found, numbers)}{schedules}{unasked}")
    without = f" and {numbers.fixed_schedules:,} schedules" if numbers.hunted else ""
    lines.append(f"{numbers.false_alarms} false alarms without the bugs, in the same scenarios{without}")
    unavailable = Counter(entry.not_installed for entry in result.entries if entry.not_installed)
    for reason, count in unavailable.items():
        lines.append(f"{count} not installed ({reason})")
    return lines


def share_text(part: int, numbers: ZooNumbers) -> str:
    """The share of all bugs that were played; never rounded up."""
    percent = f" ({100 * part // numbers.played} %)" if numbers.played else ""
    return f"{part} of {numbers.played} bugs{percent}"


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
