"""Bugs planted in copies of real libraries (planted_bugs.toml) are found by the search, which knows only what the
library offers; the same copies without them are not accused."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lockstorm.base import paths
from lockstorm.search.library_plan import PROMISES
from lockstorm.search.replay import replay_library
from lockstorm.search.schedule_file import parse_library_schedule
from tests.helpers.planting_libraries import (
    PlantedBug,
    mended_library,
    plant_library,
    planted_bugs,
    searched_forms,
)
from tests.helpers.searching import library_plan, search_json

BUGS = planted_bugs()
ADAPTERS = sorted({bug.adapter for bug in BUGS})
# How many schedules a second a library is searched with on a quiet machine, by the ending of the file that is changed.
PACE = {".py": 100, ".js": 40, ".go": 60, ".class": 10}


def seconds(file: str, schedules: int) -> int:
    return 15 + schedules // PACE[Path(file).suffix]


def every_bug() -> Iterator[Any]:
    for bug in BUGS:
        slow = pytest.mark.slow("plays a search to its end", seconds=seconds(bug.file, bug.schedules // 3))
        lengthy = pytest.mark.lengthy("plays a search to its end")
        yield pytest.param(bug, id=bug.name, marks=lengthy if bug.daily else slow)


def every_library() -> Iterator[Any]:
    for adapter in ADAPTERS:
        of = [bug for bug in BUGS if bug.adapter == adapter]
        schedules, file = max(bug.schedules for bug in of), of[0].file
        slow = pytest.mark.slow("plays many schedules of a right library", seconds=seconds(file, schedules))
        yield pytest.param(adapter, file, schedules, id=adapter, marks=slow)


def searched(planted: str, adapter: str, schedules: int) -> dict[str, Any]:
    return search_json(library_plan(planted, schedules=schedules, workers=2, forms=searched_forms(adapter)))


@pytest.mark.parametrize("bug", list(every_bug()))
def test_a_bug_of_a_library_is_found_and_repeats(tmp_path: Path, bug: PlantedBug) -> None:
    planted = plant_library(tmp_path, bug.adapter, bug.file, bug.changes)
    result = searched(planted, bug.adapter, bug.schedules)
    assert result["exit"] == 1, result["sentence"]
    found = result["found"]
    assert set(found["violates"]) & set(bug.promises), result["sentence"]
    assert found["with_new_programs"] and len(found["workload"]) <= found["calls_before_shrinking"]
    again = replay_library(parse_library_schedule(found["file"], "found"), "found")
    assert (again.violates, again.sentence) == (found["violates"], found["sentence"])


@pytest.mark.parametrize(("adapter", "file", "schedules"), list(every_library()))
def test_a_library_without_the_bugs_is_not_accused(tmp_path: Path, adapter: str, file: str, schedules: int) -> None:
    planted = plant_library(tmp_path, adapter, file, mended_library(adapter))
    result = searched(planted, adapter, schedules)
    assert result["found"] is None and result["exit"] == 0, result["sentence"]


def test_the_bugs_are_of_many_kinds() -> None:
    assert len(BUGS) >= 12 and len({Path(bug.file).suffix for bug in BUGS}) >= 3
    promises = {promise for bug in BUGS for promise in bug.promises[:1]}
    assert len(promises) >= 5 and promises <= set(PROMISES)
    needs = [bug.needs for bug in BUGS]
    assert sum(need in ("a fault", "an order of messages", "a lease that runs out") for need in needs) >= 4
    others = ("nested calls", "two threads", "two lock objects", "a cancellation", "a renewal", "a watchdog")
    assert sum(need in others for need in needs) >= 3


def test_the_results_say_how_soon_each_bug_is_found() -> None:
    page = (paths.ROOT / "bench" / "results" / "planted-library-bugs.md").read_text()
    assert [bug.name for bug in BUGS if f"| {bug.name} | {bug.adapter} |" not in page] == []
