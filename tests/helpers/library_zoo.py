"""The zoo of libraries (scenarios/library_zoo.toml): published bugs of old releases, which a search of the release must
find, and a search of a repaired one must not. docs/library-zoo.md has the table; this module writes it anew:
`python -m tests.helpers.library_zoo`, with `--measure` and names also the numbers of the schedules."""

import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from lockstorm.base import paths
from lockstorm.base.atomic_file import write_json, write_text
from lockstorm.base.errors import UsageError
from lockstorm.base.marked_pages import page_with
from lockstorm.libraries.tried_release import install_old
from lockstorm.locks.adapter import PREFIX
from lockstorm.search.explore import search_schedules
from lockstorm.search.library_plan import PROMISES
from lockstorm.search.search_plan import SearchRequest, plan_search
from lockstorm.search.search_result import SearchResult

ENTRIES = paths.ROOT / "scenarios" / "library_zoo.toml"
RECORD = paths.ROOT / "scenarios" / "library_zoo.json"
PAGE = paths.ROOT / "docs" / "library-zoo.md"
BEGIN, END = "<!-- library zoo: begin -->", "<!-- library zoo: end -->"
SEEDS = (1, 2, 3)  # of the published figures
FIXED_LEAST = 500  # schedules in which the repaired release keeps the promise


@dataclass(frozen=True, kw_only=True)
class OldBug:
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


def search_release(bug: OldBug, version: str, schedules: int, seed: int = 1) -> SearchResult:
    """Searches a release for what breaks the promises of the bug."""
    request = SearchRequest(
        f"{PREFIX}{install_old(bug.library, version, bug.adapter)}",
        seed=seed,
        faults=bug.faults,
        schedules=schedules,
        require=",".join(bug.promises),
        forms=bug.forms,
    )
    return search_schedules(plan_search(request), lambda _: None)


def measured(bug: OldBug) -> list[int | None]:
    """For each of SEEDS the number of the first schedule that shows the bug; None: not found."""
    results = [search_release(bug, bug.broken, bug.schedules, seed) for seed in SEEDS]
    return [result.found.number if result.found and result.exit == 1 else None for result in results]


class LibraryFigures(msgspec.Struct, frozen=True):
    found: list[int | None] = []  # as of `measured`
    fixed_schedules: int = 0  # of the repaired release


def library_figures() -> dict[str, LibraryFigures]:
    """The kept figures, by the name of the entry."""
    return msgspec.json.decode(RECORD.read_bytes(), type=dict[str, LibraryFigures]) if RECORD.exists() else {}


def library_zoo_table(bugs: Sequence[OldBug], record: Mapping[str, LibraryFigures]) -> str:
    lines = [
        "| release | what happens | published | promise | shown by schedule, seeds 1, 2, 3 | repaired in, kept in |",
        "|---|---|---|---|---|---|",
    ]
    for bug in bugs:
        known = record.get(bug.name, LibraryFigures())
        numbers = ", ".join("-" if number is None else f"{number:,}" for number in known.found)
        cells = (
            f"`{bug.adapter}` {bug.broken}",
            bug.what,
            f"[{bug.name}]({bug.source})",
            ", ".join(f"`{promise}`" for promise in bug.promises),
            numbers + (" (no faults)" if bug.faults == "none" else "") + (" (some forms)" if bug.forms else ""),
            f"{bug.fixed}, {known.fixed_schedules:,} schedules",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def page_text() -> str:
    return page_with(PAGE, library_zoo_table(list(old_bugs().values()), library_figures()), BEGIN, END)


def measure_entries(names: Sequence[str]) -> None:
    """Measures entries, and keeps the figures of the others."""
    for name in names:
        bug = old_bugs()[name]
        found = measured(bug)
        fixed = search_release(bug, bug.fixed, max(FIXED_LEAST, 2 * max(each or 0 for each in found)))
        print(name, found, fixed.sentence, flush=True)
        if fixed.exit == 0 and None not in found:
            record = {**library_figures(), name: LibraryFigures(found, fixed.tried)}
            write_json(RECORD, {each: record[each] for each in old_bugs() if each in record}, indent=1)


if __name__ == "__main__":
    if "--measure" in sys.argv[1:]:
        measure_entries([word for word in sys.argv[1:] if word != "--measure"] or list(old_bugs()))
    write_text(PAGE, page_text())
