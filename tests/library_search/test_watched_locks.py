"""A small lock that was made outside of lockstorm is not accused; with one mistake it is, by the default search."""

from dataclasses import replace
from pathlib import Path

import pytest

from lockstorm.base import paths
from lockstorm.search.replay import replay_library
from lockstorm.search.schedule_file import read_library_schedule
from tests.helpers.planting_watched import plant_watched
from tests.helpers.searching import library_plan, search_json

FOUND = paths.ROOT / "tests" / "library_search" / "found"
# The watchdog does not ask whose the key is.
BLIND = {"RENEW, 1, self.name, value,": "\"return redis.call('pexpire', KEYS[1], ARGV[1])\", 1, self.name,"}

PUBLISHES = " redis.call('publish', KEYS[1], 'free') return 1"
SILENT = {PUBLISHES: " return 1"}  # a release publishes nothing
EARLY = {  # it publishes before it deletes
    **SILENT,
    "        return self.link.eval(RELEASE": """        self.link.publish(self.name, "free")
        return self.link.eval(RELEASE""",
}

# It says that it is fair, and its waiters poll.
POLLS = {
    "ears.get_message(timeout=rest)": "time.sleep(0.05)",
    '"waits": "push"': '"waits": "polling", "fair": True',
}
STATED = {'"waits": "push"': '"waits": "polling"', '"lease_key"': '"poll_ms": 50, "lease_key"'}
TRIES = {**STATED, "ears.get_message(timeout=rest)": "time.sleep(min(rest, 0.05))"}
SLEEPS = {**STATED, "ears.get_message(timeout=rest)": "time.sleep(rest)"}  # for what is left of the lease
# The token is in a variable of the thread, which all lock objects share.
OF_CLASS = {
    "self.value": "self.mine.value",
    "class WatchedLock:\n": "class WatchedLock:\n    mine = threading.local()\n",
}


@pytest.mark.lengthy("plays 150 schedules")
def test_the_right_lock_is_not_accused(tmp_path: Path) -> None:
    result = search_json(library_plan(plant_watched(tmp_path), schedules=150))
    assert result["found"] is None and result["exit"] == 0, result["sentence"]


@pytest.mark.lengthy("plays some hundred schedules")
def test_a_renewal_that_asks_no_owner_is_found(tmp_path: Path) -> None:
    result = search_json(library_plan(plant_watched(tmp_path, BLIND), schedules=400, seed=3))
    assert result["exit"] == 1 and result["found"]["violates"] == ["ownership"], result["sentence"]
    assert "which holds nothing, extended the lease of" in result["sentence"]


@pytest.mark.lengthy("plays up to fifty schedules")
@pytest.mark.parametrize("mistake", [SILENT, EARLY], ids=["silent", "early"])
def test_a_release_that_wakes_nobody_is_found(tmp_path: Path, mistake: dict[str, str]) -> None:
    """The waiter sleeps until the lease would have ended: two leases are allowed only where something was struck."""
    result = search_json(library_plan(plant_watched(tmp_path, mistake), schedules=50))
    assert result["exit"] == 1 and result["found"]["violates"] == ["liveness"], result["sentence"]


@pytest.mark.lengthy("plays some hundred schedules")
def test_a_lock_that_polls_more_seldom_than_it_states_is_found(tmp_path: Path) -> None:
    """A waiter is refused at its end beside a free lock, where two leases are not over (issue #55)."""
    wrong = search_json(library_plan(plant_watched(tmp_path, SLEEPS), schedules=100))
    assert wrong["exit"] == 1 and wrong["found"]["violates"] == ["liveness"], wrong["sentence"]
    assert "waits beside a free lock" in wrong["sentence"]
    right = search_json(library_plan(plant_watched(tmp_path, TRIES), schedules=300))
    assert right["exit"] == 0, right["sentence"]


@pytest.mark.lengthy("plays some hundred schedules")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_token_that_all_locks_of_a_thread_share_is_found(tmp_path: Path, seed: int) -> None:
    """Within a hold another lock object of the same thread is asked to release (issue #55)."""
    result = search_json(library_plan(plant_watched(tmp_path, OF_CLASS), schedules=400, seed=seed))
    assert result["exit"] == 1 and "ownership" in result["found"]["violates"], result["sentence"]


@pytest.mark.lengthy("plays up to two hundred schedules")
def test_a_lock_that_says_that_it_is_fair_and_polls_is_found(tmp_path: Path) -> None:
    result = search_json(library_plan(plant_watched(tmp_path, POLLS), schedules=200))
    assert result["exit"] == 1 and result["found"]["violates"] == ["fairness"], result["sentence"]


@pytest.mark.parametrize(("changes", "violates"), [(BLIND, ["ownership", "renewal"]), ({}, [])], ids=["blind", "right"])
def test_a_stale_holder_does_not_excuse_what_it_renews(
    tmp_path: Path, changes: dict[str, str], violates: list[str]
) -> None:
    """The release of client-2 fails, so its lease ends after 2 s, at 7.5 s. client-1, which was paused for longer,
    keeps the key alive from 5.5 s on, and client-3 is refused."""
    schedule = read_library_schedule(FOUND / "stale-holder-renews.schedule")
    again = replay_library(replace(schedule, adapter=plant_watched(tmp_path, changes)), "the schedule")
    assert again.violates == violates, again.sentence
    assert (
        "not required, because client-1 does not certainly hold: its lease may have been over"
        in again.excused[0].sentence
    )
    refused = [each for each in again.events if (each.client, each.call, each.outcome) == (3, "acquire", "refused")]
    assert bool(refused) == bool(violates)
