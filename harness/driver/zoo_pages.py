"""The track record: the bug zoo as a GitHub table, from its entries and from what was recorded when all of it was last
played (scenarios/zoo/record.json). `make zoo` records, and writes it into docs/zoo.md and README.md; a test holds that
the pages say the same.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.driver import paths
from harness.driver.errors import UsageError
from harness.driver.matrix_pages import page_with
from harness.driver.zoo import GOOD, entry_of, numbers_of
from harness.driver.zoo_entries import ZOO, Bug, bugs
from harness.driver.zoo_table import explored_said, fixed_said, numbers_said, scripted_said

RECORD = ZOO / "record.json"
BEGIN, END = "<!-- zoo: begin, written by make zoo -->", "<!-- zoo: end -->"
KEPT = {  # of what an entry came to: what is the same wherever it is played
    "scripted": ("bug", "fixed"),
    "explored": ("bug", "schedules", "faults", "fixed", "fixed_schedules"),
}
FAMOUS = (
    "redis-py-818",
    "laravel-26213",
    "python-redis-lock-71",
    "redisson-5761",
    "node-redlock-296",
    "redbeat-163",
    "etcd-11456",
    "authentik-23876",
)


def key_of(bug: Bug) -> dict[str, Any]:
    """What a record is good for: when the entry plays something else, it is of no use any more."""
    return {name: getattr(bug, name) for name in ("lock", "fixed", "property", "scenario", "wish", "explore")}


def read_record(path: Path = RECORD) -> dict[str, Any]:
    """What was recorded, by name. Raises UsageError when it is not what it should be."""
    if not path.exists():
        return {}
    try:
        return dict(json.loads(path.read_text())["entries"])
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path}: it is no record of a zoo ({error}): remove it, and lockstorm zoo --record") from None


def recorded(result: Mapping[str, Any], path: Path = RECORD) -> dict[str, Any]:
    """The record with what was caught now in it; what was not keeps what was recorded of it."""
    known = read_record(path)
    for entry in result["entries"]:
        if entry["result"] == "caught":
            bug = bugs()[entry["name"]]
            kept = {how: entry[how] and {key: entry[how][key] for key in keys} for how, keys in KEPT.items()}
            known[bug.name] = {"key": key_of(bug), **kept}
    return {"entries": {name: known[name] for name in sorted(bugs()) if name in known}}


def write_record(result: Mapping[str, Any]) -> list[str]:
    """Which were not recorded: a track record is of what was caught."""
    RECORD.write_text(json.dumps(recorded(result), indent=1) + "\n")
    return [entry["name"] for entry in result["entries"] if entry["result"] != "caught"]


def told_zoo() -> dict[str, Any]:
    """The record in the form of a zoo that was played."""
    known = read_record()
    entries = []
    for bug in bugs().values():
        told = known.get(bug.name, {})
        told = told if told.get("key") == key_of(bug) else {}
        entries.append({**entry_of(bug, told.get("scripted"), told.get("explored")), "not_installed": ""})
    return {"entries": entries, "numbers": numbers_of(entries), "interrupted": False}


def table(entries: Sequence[Mapping[str, Any]]) -> str:
    """A row a bug."""
    lines = [
        "| bug | what happened | property | caught by the scenario | and by the explorer alone in | without the bug |",
        "|---|---|---|---|---|---|",
    ]
    for entry in entries:
        wrong = "" if entry["result"] in GOOD else f" **{entry['result']}**"
        scenario = scripted_said(entry) if entry["scenario"] else "-"
        cells = (
            f"`{entry['lock']}`: {entry['reference']}{wrong}",
            entry["what"],
            entry["property"].replace("_", " "),
            scenario,
            explored_said(entry),
            fixed_said(entry),
        )
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines) + "\n"


def tables(result: Mapping[str, Any]) -> str:
    """All of them, and the numbers."""
    return table(result["entries"]) + "\n" + "\n".join(f"- {line}" for line in numbers_said(result)) + "\n"


def famous(result: Mapping[str, Any]) -> str:
    """Some of them, and the numbers of all."""
    by_name = {entry["name"]: entry for entry in result["entries"]}
    lines = ["| bug | what happened | scenario | the explorer alone |", "|---|---|---|---|"]
    for name in FAMOUS:
        entry = by_name[name]
        cells = (entry["reference"], entry["what"], scripted_said(entry), explored_said(entry))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", "; ".join(numbers_said(result)).capitalize() + ".", ""])


def pages() -> dict[Path, str]:
    """Every page that shows the zoo, as it has to be."""
    told = told_zoo()
    shown = {"README.md": famous(told), "docs/zoo.md": tables(told)}
    return {paths.ROOT / name: page_with(paths.ROOT / name, text, BEGIN, END) for name, text in shown.items()}


if __name__ == "__main__":
    for page, text in pages().items():
        page.write_text(text)
