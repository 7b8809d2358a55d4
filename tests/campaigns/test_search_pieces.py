"""A search that was cut into pieces is the search of one process, in whatever order its pieces were played."""

import random
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pytest

from lockstorm.campaigns.campaign_case import CampaignCase, LibraryPiece, LockPiece, play_case
from lockstorm.campaigns.campaign_file import LibrarySearchEntry, LockSearchEntry
from lockstorm.campaigns.search_pieces import LibrarySearch, LockSearch, PieceSearch
from lockstorm.search.explore import search_schedules
from lockstorm.search.library_plan import plan_library_search
from lockstorm.search.library_search import search_library
from lockstorm.search.search_plan import SearchRequest, plan_search

TIMES = ("elapsed_ms", "schedules_per_s")  # what a clock has measured
# What counts schedules beyond the first violation, too: those that a job had begun, and those of shrinking.
OF_JOBS = ("tried", "steps", "commands", "states", "checkpoints", "injected", "groups", "verdict")


class ShuffledPool:
    """Plays cases in this process, in a random order; some answers come to nothing, as of a case that was given up."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.played = 0

    def play_all(self, cases: Sequence[CampaignCase]) -> Iterator[tuple[int, dict[str, Any]]]:
        order = list(range(len(cases)))
        self._random.shuffle(order)
        for number in order:
            self.played += 1
            yield number, msgspec.json.decode(msgspec.json.encode(play_case(cases[number])))


def put_together(search: PieceSearch, seed: int) -> dict[str, Any]:
    result = search.play(ShuffledPool(seed))  # type: ignore[arg-type]  # play_all is all that it needs
    assert result.pop("campaign")["shards"] == 1
    return {name: value for name, value in result.items() if name not in TIMES}


@pytest.mark.parametrize("seed", [1, 2])
def test_a_clean_search_of_a_lock(seed: int) -> None:
    request = SearchRequest("set-nx-px", faults="none", schedules=250, seed=seed)
    alone = search_schedules(plan_search(request), lambda _: None)
    found = put_together(LockSearch(LockSearchEntry("it", request, 60)), seed)
    assert found == {name: value for name, value in alone.items() if name not in TIMES}


@pytest.mark.lengthy("shrinks in several pieces")
@pytest.mark.parametrize("order", [1, 2])
def test_the_first_violation_of_a_lock_is_the_same(order: int) -> None:
    request = SearchRequest("redlock", faults="clock-jump", schedules=300, seed=6)
    alone = search_schedules(plan_search(request), lambda _: None)
    assert alone["found"]["number"] == 63, "the third piece of twelve is meant to be the first that finds something"
    found = put_together(LockSearch(LockSearchEntry("it", request, 25)), order)
    for name in found.keys() - {*OF_JOBS}:
        assert found[name] == alone[name], name


@pytest.mark.lengthy("plays sessions again, and keeps a part of them")
def test_a_search_that_learns_in_sessions() -> None:
    """The pieces begin in the middle of a session."""
    request = SearchRequest("set-nx-px", faults="none", schedules=600, strategy="novelty")
    alone = search_schedules(plan_search(request), lambda _: None)
    found = put_together(LockSearch(LockSearchEntry("it", request, 200)), 1)
    assert (found["history_sha256"], found["schedules"]) == (alone["history_sha256"], 600)


def test_a_search_that_goes_on_after_a_violation() -> None:
    request = SearchRequest("set-nx-px", faults="pause-client", schedules=200, keep_going=True)
    alone = search_schedules(plan_search(request), lambda _: None)
    found = put_together(LockSearch(LockSearchEntry("it", request, 70)), 1)
    left_out = (*TIMES, "states")  # each piece shrinks what it has found
    assert {name: found[name] for name in found if name != "states"} == {
        name: value for name, value in alone.items() if name not in left_out
    }
    assert len(found["groups"]) > 0


@pytest.mark.lengthy("starts programs for each session")
@pytest.mark.parametrize(("lock", "finds"), [("lock:set-nx-px", False), ("lock:set-nx-blind-del", True)])
def test_a_search_of_a_library(lock: str, finds: bool) -> None:
    chosen = {"schedules": 150, "seed": 1}
    alone = search_library(plan_library_search(lock, {**chosen, "workers": 1}), lambda _: None, keep=lambda _: None)
    search = LibrarySearch(LibrarySearchEntry("it", lock, chosen, 50))
    found = put_together(search, 1)
    assert bool(found["found"]) == finds, found["sentence"]
    for name in ("histories", "history_sha256", "found", "sentence", "exit"):
        assert found[name] == alone[name], name


@pytest.mark.parametrize("cut", [1, 50, 120, 200, 450, 10_000])
@pytest.mark.parametrize("schedules", [1, 50, 51, 200, 201, 1000])
def test_pieces_of_a_library_are_whole_sessions_without_a_gap(cut: int, schedules: int) -> None:
    cases = LibrarySearch(LibrarySearchEntry("it", "lock:fair", {"schedules": schedules}, cut)).cases()
    pieces = [case for case in cases if isinstance(case, LibraryPiece)]
    assert len(pieces) == len(cases) and pieces[0].session == 0
    whole = LibrarySearch(LibrarySearchEntry("it", "lock:fair", {"schedules": schedules}, 1)).cases()
    ends = {case.session: case.until for case in whole if isinstance(case, LibraryPiece)}
    firsts = [piece.session for piece in pieces] + [len(ends)]
    assert [piece.until for piece in pieces] == [ends[first - 1] for first in firsts[1:]]
    assert pieces[-1].until >= schedules


def test_pieces_of_a_lock_have_no_gap() -> None:
    cases = LockSearch(LockSearchEntry("it", SearchRequest("fair", schedules=25), 10)).cases()
    assert [(case.first, case.until) for case in cases if isinstance(case, LockPiece)] == [(0, 10), (10, 20), (20, 25)]
