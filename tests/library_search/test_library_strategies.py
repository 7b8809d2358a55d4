"""The strategies that a search of a library has in common with one of a C lock."""

from pathlib import Path

import pytest

from lockstorm.search.explore import search_words
from tests.helpers.searching import library_plan, search_json
from tests.helpers.support import lockstorm
from tests.library_search.test_library_search import MISTAKES, planted


@pytest.mark.parametrize("strategy", ["novelty", "uniform", "pct", "exhaustive"])
def test_a_strategy_repeats_itself(strategy: str, tmp_path: Path) -> None:
    plan = library_plan(planted(tmp_path), faults="pause-client", schedules=40, strategy=strategy, workers=1)
    first, again = search_json(plan), search_json(plan)
    assert first["strategy"] == strategy and first["schedules"] == 40
    assert first["history_sha256"] == again["history_sha256"] and first["exit"] == 0


def test_strategies_differ(tmp_path: Path) -> None:
    adapter = planted(tmp_path)
    histories = {
        search_json(library_plan(adapter, faults="none", schedules=20, strategy=strategy, workers=1))["history_sha256"]
        for strategy in ("portfolio", "usual", "uniform", "pct")
    }
    assert len(histories) == 4


def test_the_exhaustive_one_varies_a_single_workload(tmp_path: Path) -> None:
    """Its schedules make the same calls, in orders that differ."""
    plan = library_plan(planted(tmp_path), faults="none", schedules=60, strategy="exhaustive", deviations=1)
    assert search_words(plan)[-2:] == ["--deviations", "1"]
    result = search_json(plan)
    one = search_json(library_plan(planted(tmp_path), faults="none", schedules=1, strategy="exhaustive", deviations=1))
    assert one["calls"] > 0 and result["calls"] == one["calls"] * result["tried"]
    assert result["distinct"] > 1


def test_one_that_learns_finds_a_mistake(tmp_path: Path) -> None:
    was, becomes, promise = MISTAKES["a second holder"]
    plan = library_plan(planted(tmp_path, was, becomes), faults="none", schedules=400, strategy="novelty")
    assert promise in search_json(plan)["found"]["violates"]


def test_what_goes_from_one_schedule_to_the_next_has_no_shards(tmp_path: Path) -> None:
    adapter = planted(tmp_path)
    for strategy in ("novelty", "exhaustive"):
        done = lockstorm("explore", "--adapter", adapter, "--strategy", strategy, "--shard", "1/2")
        assert (done.returncode, "it has no shards" in done.stderr) == (2, True), done.stderr
