"""A search that was cut into pieces is the search of one process, in whatever order its pieces were played."""

import dataclasses
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import structs

from lockstorm.campaigns.campaign_case import CampaignCase, PieceAnswer, play_case
from lockstorm.campaigns.search_pieces import PieceSearch
from lockstorm.search.explore import search_schedules
from lockstorm.search.search_plan import SearchRequest, plan_search
from lockstorm.servers.services import missing
from tests.application.described import CREDITS, described
from tests.helpers.searching import library_plan, search_json

TIMES = ("elapsed_ms", "schedules_per_s")  # what a clock has measured
# What counts schedules beyond the first violation, too: those that a job had begun, and those of shrinking.
OF_JOBS = ("tried", "steps", "commands", "states", "checkpoints", "injected", "groups", "verdict")


class ShuffledPool:
    """Plays cases in this process, in a random order; some answers come to nothing, as of a case that was given up."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.played = 0

    def play_all(self, cases: Sequence[CampaignCase], kind: type[PieceAnswer]) -> Iterator[tuple[int, PieceAnswer]]:
        order = list(range(len(cases)))
        self._random.shuffle(order)
        for number in order:
            self.played += 1
            yield number, msgspec.json.decode(msgspec.json.encode(play_case(cases[number])), type=kind)


def put_together(search: PieceSearch, seed: int) -> dict[str, Any]:
    played = search.play(ShuffledPool(seed))  # type: ignore[arg-type]  # play_all is all that it needs
    assert played.campaign and played.campaign.shards == 1
    result = msgspec.to_builtins(structs.replace(played, campaign=None))
    return {name: value for name, value in result.items() if name not in TIMES}


@pytest.mark.parametrize("seed", [1, 2])
def test_a_clean_search_of_a_lock(seed: int) -> None:
    request = SearchRequest("set-nx-px", faults="none", schedules=250, seed=seed)
    alone = search_json(plan_search(request))
    found = put_together(PieceSearch(request, 60), seed)
    assert found == {name: value for name, value in alone.items() if name not in TIMES}


@pytest.mark.lengthy("shrinks in several pieces")
@pytest.mark.parametrize("order", [1, 2])
def test_the_first_violation_of_a_lock_is_the_same(order: int) -> None:
    request = SearchRequest("redlock", faults="clock-jump", schedules=300, seed=6)
    alone = search_json(plan_search(request))
    assert alone["found"]["number"] == 64, "the third piece of twelve is meant to be the first that finds something"
    found = put_together(PieceSearch(request, 25), order)
    for name in found.keys() - {*OF_JOBS}:
        assert found[name] == alone[name], name


@pytest.mark.lengthy("plays sessions again, and keeps a part of them")
def test_a_search_that_learns_in_sessions() -> None:
    """The pieces begin in the middle of a session."""
    request = SearchRequest("set-nx-px", faults="none", schedules=600, strategy="novelty")
    alone = search_json(plan_search(request))
    found = put_together(PieceSearch(request, 200), 1)
    assert (found["history_sha256"], found["schedules"]) == (alone["history_sha256"], 600)


def test_a_search_that_goes_on_after_a_violation() -> None:
    request = SearchRequest("set-nx-px", faults="pause-client", schedules=200, keep_going=True)
    alone = search_json(plan_search(request))
    found = put_together(PieceSearch(request, 70), 1)
    left_out = (*TIMES, "states")  # each piece shrinks what it has found
    assert {name: found[name] for name in found if name != "states"} == {
        name: value for name, value in alone.items() if name not in left_out
    }
    assert len(found["groups"]) > 0


@pytest.mark.lengthy("starts programs for each session")
@pytest.mark.parametrize(("lock", "finds"), [("lock:set-nx-px", False), ("lock:set-nx-blind-del", True)])
def test_a_search_of_a_library(lock: str, finds: bool) -> None:
    plan = library_plan(lock, schedules=150, workers=1)
    alone = msgspec.to_builtins(search_schedules(plan, lambda _: None, keep=lambda _: None))
    found = put_together(PieceSearch(dataclasses.replace(plan.request, workers=None), 50), 1)
    assert bool(found["found"]) == finds, found["sentence"]
    for name in ("schedules", "history_sha256", "found", "sentence", "exit"):
        assert found[name] == alone[name], name


@pytest.mark.skipif(bool(missing("postgres")), reason=f"not installed: {missing('postgres')}")
@pytest.mark.lengthy("starts a service for each session")
@pytest.mark.parametrize(("mode", "finds"), [("late", False), ("early", True)])
def test_a_search_of_an_application(tmp_path: Path, mode: str, finds: bool) -> None:
    request = SearchRequest(f"app:{described(tmp_path, CREDITS, mode)}", schedules=100)
    alone = search_json(plan_search(dataclasses.replace(request, workers=1)))
    found = put_together(PieceSearch(request, 50), 1)
    assert bool(found["found"]) == finds, found["sentence"]
    for name in ("schedules", "history_sha256", "found", "sentence", "exit", "warnings"):
        assert found[name] == alone[name], name


@pytest.mark.parametrize("cut", [1, 50, 120, 200, 450, 10_000])
@pytest.mark.parametrize("schedules", [1, 50, 51, 200, 201, 1000])
def test_pieces_of_a_library_are_whole_sessions_without_a_gap(cut: int, schedules: int) -> None:
    request = SearchRequest("adapter:lock:fair", schedules=schedules)
    pieces = PieceSearch(request, cut).cases()
    assert pieces[0].first == 0
    ends = {case.first: case.until for case in PieceSearch(request, 1).cases()}
    firsts = [piece.first for piece in pieces] + [len(ends)]
    assert [piece.until for piece in pieces] == [ends[first - 1] for first in firsts[1:]]
    assert pieces[-1].until >= schedules


def test_pieces_of_a_lock_have_no_gap() -> None:
    cases = PieceSearch(SearchRequest("fair", schedules=25), 10).cases()
    assert [(case.first, case.until) for case in cases] == [(0, 10), (10, 20), (20, 25)]
