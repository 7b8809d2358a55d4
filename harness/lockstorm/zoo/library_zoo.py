"""The zoo of libraries (scenarios/library_zoo.toml): published bugs of old releases, which a search of the release must
find, and a search of a repaired one must not. docs/library-zoo.md has the table; this module writes it anew:
`python -m lockstorm.zoo.library_zoo`, with `--measure` and names also the numbers of the schedules."""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lockstorm.base import paths
from lockstorm.base.atomic_file import write_json, write_text
from lockstorm.base.errors import UsageError
from lockstorm.base.marked_pages import page_with
from lockstorm.locks.adapter import SHIPPED, library_environment
from lockstorm.search.library_plan import PROMISES, plan_library_search
from lockstorm.search.library_search import search_library

ENTRIES = paths.ROOT / "scenarios" / "library_zoo.toml"
RECORD = paths.ROOT / "scenarios" / "library_zoo.json"
PAGE = paths.ROOT / "docs" / "library-zoo.md"
BEGIN, END = "<!-- library zoo: begin -->", "<!-- library zoo: end -->"
SEEDS = (1, 2, 3)  # of the published figures
FIXED_LEAST = 500  # schedules in which the repaired release keeps the promise


@dataclass(frozen=True, kw_only=True)
class OldBug:
    """One published bug of a library."""

    name: str
    library: str  # as adapters/install-old names it
    adapter: str  # the shipped adapter that hosts it
    broken: str  # a release with the bug
    fixed: str  # a release without it
    what: str
    source: str  # where it is published
    promises: tuple[str, ...]  # that the search requires; the bug breaks one of them
    schedules: int  # the most that the search needs
    faults: str = "usual"
    forms: str | None = None  # of acquires that are drawn, where a later bug would be found by others

    def adapter_of(self, version: str) -> str:
        """The path for --adapter; adapters/install-old makes it."""
        return str(paths.cache("adapters") / "old" / f"{self.library}-{version}" / "adapters" / self.adapter)


def old_bugs(path: Path = ENTRIES) -> dict[str, OldBug]:
    """All entries by name. UsageError for an entry that is wrong."""
    found: dict[str, OldBug] = {}
    for entry in tomllib.loads(path.read_text())["bug"]:
        try:
            bug = OldBug(**{**entry, "promises": tuple(entry["promises"])})
        except (TypeError, KeyError) as error:
            raise UsageError(f"{path}: {entry.get('name', 'an entry without a name')}: {error}") from None
        if bug.name in found or set(bug.promises) - set(PROMISES):
            raise UsageError(f"{path}: {bug.name}: its name is taken, or there is no such promise")
        found[bug.name] = bug
    return found


def install_old(library: str, version: str) -> None:
    """Fetches a release, unless it is there. UsageError when that fails."""
    environment = {**os.environ, **library_environment()}
    done = subprocess.run([SHIPPED / "install-old", library, version], env=environment)
    if done.returncode:
        raise UsageError(f"adapters/install-old {library} {version} has failed")


def search_release(bug: OldBug, version: str, schedules: int, seed: int = 1) -> dict[str, Any]:
    """Searches a release for what breaks the promises of the bug, and returns the result of `explore --adapter`."""
    install_old(bug.library, version)
    options: dict[str, Any] = {
        "schedules": schedules,
        "seed": seed,
        "faults": bug.faults,
        "require": ",".join(bug.promises),
    }
    options |= {"forms": bug.forms} if bug.forms else {}
    return search_library(plan_library_search(bug.adapter_of(version), options), lambda _: None)


def measured(bug: OldBug) -> list[int | None]:
    """For each of SEEDS the number of the first schedule that shows the bug, counted from 1; None: not found."""
    numbers: list[int | None] = []
    for seed in SEEDS:
        result = search_release(bug, bug.broken, bug.schedules, seed)
        numbers.append(result["found"]["number"] + 1 if result["exit"] == 1 else None)
    return numbers


def library_figures() -> dict[str, Any]:
    """What was measured of each entry, by name: the numbers of schedules, and of those of the repaired release."""
    return dict(json.loads(RECORD.read_text())) if RECORD.exists() else {}


def library_zoo_table(bugs: Sequence[OldBug], record: dict[str, Any]) -> str:
    """The entries as a table of the page."""
    lines = [
        "| release | what happens | published | promise | shown by schedule, seeds 1, 2, 3 | repaired in, kept in |",
        "|---|---|---|---|---|---|",
    ]
    for bug in bugs:
        known = record.get(bug.name, {"found": [], "fixed_schedules": 0})
        numbers = ", ".join("-" if number is None else f"{number:,}" for number in known["found"])
        cells = (
            f"`{bug.adapter}` {bug.broken}",
            bug.what,
            f"[{bug.name}]({bug.source})",
            ", ".join(f"`{promise}`" for promise in bug.promises),
            numbers + (" (no faults)" if bug.faults == "none" else "") + (" (some forms)" if bug.forms else ""),
            f"{bug.fixed}, {known['fixed_schedules']:,} schedules",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def page_text() -> str:
    """The up-to-date text of the page."""
    return page_with(PAGE, library_zoo_table(list(old_bugs().values()), library_figures()), BEGIN, END)


def measure_entries(names: Sequence[str]) -> None:
    """Measures entries, and keeps the figures of the others."""
    for name in names:
        bug = old_bugs()[name]
        found = measured(bug)
        fixed = search_release(bug, bug.fixed, max(FIXED_LEAST, 2 * max(each or 0 for each in found)))
        print(name, found, fixed["sentence"], flush=True)
        if fixed["exit"] == 0 and None not in found:
            record = {**library_figures(), name: {"found": found, "fixed_schedules": fixed["schedules"]}}
            write_json(RECORD, {each: record[each] for each in old_bugs() if each in record}, indent=1)


if __name__ == "__main__":
    if "--measure" in sys.argv[1:]:
        measure_entries([word for word in sys.argv[1:] if word != "--measure"] or list(old_bugs()))
    write_text(PAGE, page_text())
