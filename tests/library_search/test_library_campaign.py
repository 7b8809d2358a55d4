"""Campaigns of searches of libraries: however one is split, its result is the same."""

import json
from array import array
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lockstorm.base.atomic_file import write_json
from lockstorm.base.errors import UsageError
from lockstorm.results.verdict import ScheduleLines
from lockstorm.search.campaign import Campaign, SearchKey, read_campaign
from lockstorm.search.explore import merged, resumed, search_schedules
from lockstorm.search.explorer import UNPLAYED, SearchOutcome, _session_digests
from lockstorm.search.search_lines import FoundSchedule, SearchTally
from lockstorm.search.search_plan import SearchPlan
from lockstorm.search.sessions import session_numbers, whole_sessions
from tests.helpers.searching import library_plan
from tests.helpers.support import lockstorm

SAME = ("schedules", "tried", "calls", "steps", "history_sha256", "groups", "properties", "injected", "sentence")
KEY: SearchKey = {"lock": "adapter:redis-py", "build": "redis-py 8", "keep_going": True}


def plan_of(**chosen: Any) -> SearchPlan:
    return library_plan("redis-py", faults="none", **chosen)


def kept(path: Path, **chosen: Any) -> Campaign:
    """The campaign of a search, written to a file and read again."""
    result = search_schedules(plan_of(**chosen), lambda _: None, keep=partial(write_json, path, indent=1))
    assert result.properties, result.sentence
    return read_campaign(path)


def test_sessions_follow_each_other() -> None:
    ends = 0
    for session in range(20):
        numbers = session_numbers(session)
        assert numbers.start == ends
        ends = numbers.stop
        assert whole_sessions(numbers.start + 1) == whole_sessions(numbers.stop) == ends
    assert [len(session_numbers(each)) for each in (0, 3, 4, 19)] == [50, 50, 200, 200]


def made_up(shards: int, done: dict[int, int], **more: Any) -> Campaign:
    """A campaign in which so many schedules of each shard were tried; the digest of a schedule is its number."""
    digests = {}
    for shard, count in done.items():
        numbers = [number for session in range(shard - 1, 40, shards) for number in session_numbers(session)]
        digests[shard] = array("Q", numbers[:count]).tobytes()
    return Campaign(key={**KEY, **more}, shards=shards, digests=digests)


@pytest.mark.parametrize(
    ("shards", "done", "until"),
    [
        (1, {1: 330}, 330),
        (2, {1: 100, 2: 100}, 200),  # two short sessions each
        (2, {1: 300, 2: 100}, 400),
        (2, {1: 350, 2: 300}, 650),  # the first one is in the middle of a session
        (3, {3: 50, 1: 300, 2: 250}, 400),  # the first one is farther than the others
    ],
)
def test_the_histories_of_shards_are_in_order(shards: int, done: dict[int, int], until: int) -> None:
    campaign = made_up(shards, done)
    assert campaign.until == until == campaign.schedules
    assert list(campaign.histories()) == list(range(until))


def test_a_schedule_that_could_not_be_played_leaves_no_gap(tmp_path: Path) -> None:
    """The time of one program of two ended in the middle of its session. What is repeated has the other's, too."""
    digests = [7, UNPLAYED, 9] + [5] * 47 + [3] + [0] * 49 + [4] * 10 + [0] * 40
    path = tmp_path / "digests"
    path.write_bytes(array("Q", digests).tobytes())
    sessions = [session_numbers(each) for each in range(3)]
    histories, reached = _session_digests(path, sessions, 150, whole=False)
    assert ([*array("Q", histories)], reached) == (digests[:51], 110)
    campaign = Campaign(key=KEY, shards=1)
    campaign.add(1, SearchOutcome(SearchTally(), histories, reached, 1.0, None, 1, [], False, b"", []))
    assert (campaign.until, campaign.repeats, campaign.schedules, campaign.distinct) == (51, 110, 50, 4)


def test_what_counts_ends_with_what_was_found() -> None:
    campaign = made_up(2, {1: 100, 2: 100}, keep_going=False)
    campaign.found = FoundSchedule(131, 131, [], [], ScheduleLines(1), ScheduleLines(1))
    assert campaign.is_over and campaign.until == 131 and list(campaign.histories()) == list(range(131))


def test_a_shard_goes_on_where_it_has_stopped() -> None:
    campaign = made_up(2, {1: 300, 2: 100})
    assert campaign.next_session(1) == 6 and campaign.next_place(1) == session_numbers(6).start
    assert campaign.next_session(2) == 5 and campaign.next_place(2) == session_numbers(5).start


@pytest.mark.slow("plays one search three times; the command of a campaign is run every day", seconds=15)
def test_sessions_of_shards_together_are_the_whole(tmp_path: Path) -> None:
    whole = kept(tmp_path / "whole", schedules=100)
    parts = [(f"{each}", kept(tmp_path / f"{each}", schedules=100, shard=f"{each}/2")) for each in (2, 1)]
    assert [part.done(int(name)) for name, part in parts] == [50, 50]
    result, expected = merged(parts), merged([("whole", whole)])
    assert {key: getattr(result, key) for key in SAME} == {key: getattr(expected, key) for key in SAME}
    with pytest.raises(UsageError, match="two is of another campaign than one: seed is 2, not 1"):
        merged([("one", parts[0][1]), ("two", made_up(2, {1: 50}, **{**parts[0][1].key, "seed": 2}))])


@pytest.mark.slow("plays, interrupts and resumes searches by commands", seconds=9)
def test_the_command_of_a_campaign_of_a_library(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    words = ["--adapter", "redis-py", "--faults", "none", "--seed", "3"]
    done = lockstorm("explore", *words, "--schedules", "10", "--result", str(path), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["schedules"] == 50, "a session is played to its end"
    done = lockstorm("explore", "--resume", str(path), "--schedules", "100", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(path.read_text())["schedules"] == json.loads(done.stdout)["schedules"] == 100
    done = lockstorm("merge", str(path))
    assert done.returncode == 0 and "kept every promise in 100 schedules" in done.stdout, done.stderr
    for wrong, said in (
        (["--resume", str(path), "--seed", "2"], "--seed with --resume: the file sets it"),
        (["--resume", str(path), "--schedules", "100"], "nothing is left to try"),
        (["--resume", str(path), "--adapter", "redis-py"], "names the adapter"),
        ([*words, "--result", str(path)], "exists already"),
        ([*words, "--shard", "3/2"], "--shard 3/2: K/N, K from 1 to N"),
    ):
        done = lockstorm("explore", *wrong)
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr


def test_a_campaign_of_another_release_does_not_go_on() -> None:
    campaign = made_up(1, {1: 50}, **{**plan_of(schedules=100).key, "build": "redis-py 1.0"})
    with pytest.raises(UsageError, match=r"another build now: redis-py 1\.0 was tried, and here is redis-py "):
        resumed("kept", campaign, schedules=100)
