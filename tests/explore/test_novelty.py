"""The strategy that learns: what it tries depends on the seed alone; it finds published bugs; what it learns helps."""

import json
import subprocess
from typing import Any

import pytest

from lockstorm.base.errors import UsageError
from lockstorm.search.campaign import Campaign
from lockstorm.search.explore import resumed, search_schedules
from lockstorm.search.replay import replay_schedule
from lockstorm.search.schedule_file import parse_schedule_file
from lockstorm.search.search_plan import SearchPlan, SearchRequest, plan_search
from tests.helpers.building import make
from tests.helpers.searching import search_json
from tests.helpers.support import lockstorm

SESSION = 256  # NOVELTY_SESSION


def planned(lock: str = "set-nx-px", **requests: Any) -> SearchPlan:
    return plan_search(SearchRequest(lock, strategy="novelty", **{"workers": 1, **requests}))


def search(lock: str = "set-nx-px", **requests: Any) -> dict[str, Any]:
    result = search_json(planned(lock, **requests))
    assert result["verdict"], result["sentence"]
    return result


def test_what_is_learned_helps() -> None:
    """An order of five steps of six tasks, which a schedule guesses once in 6^5: 51,200 schedules find it 6.6 times."""
    program = make("build/tests/novelty") / "tests" / "novelty"
    said = json.loads(subprocess.run([program], capture_output=True, text=True, timeout=600, check=True).stdout)
    assert said["drawn"] <= 20
    assert said["learned"] >= 3 * said["drawn"] and said["learned"] >= 20
    assert said["again"] == said["learned"] and said["sums"][0] == said["sums"][1]


@pytest.mark.lengthy("searches three sessions four times")
def test_the_same_schedules_with_any_number_of_processes() -> None:
    """With three sessions; the last one is cut short."""
    requests: dict[str, Any] = {"faults": "pause-client,lose-reply", "schedules": 2 * SESSION + 40, "keep_going": True}
    one, three = search(**requests), search(**requests, workers=3)
    assert one["schedules"] == three["schedules"] == 2 * SESSION + 40
    assert one["history_sha256"] == three["history_sha256"] == search(**requests, workers=2)["history_sha256"]
    assert one["states"] == three["states"]
    assert search(**requests, seed=2)["history_sha256"] != one["history_sha256"]


def test_it_tries_others_than_the_portfolio() -> None:
    requests: dict[str, Any] = {"faults": "pause-client", "schedules": 100, "keep_going": True}
    drawn = search_json(plan_search(SearchRequest("set-nx-px", workers=1, **requests)))
    assert search(**requests)["history_sha256"] != drawn["history_sha256"]


def test_a_search_goes_on_in_the_middle_of_a_session() -> None:
    requests: dict[str, Any] = {"faults": "pause-client", "keep_going": True}
    begun = planned(schedules=100, **requests)
    campaign = Campaign(key=begun.key, shards=1)
    search_schedules(begun, lambda _: None, campaign=campaign)
    assert campaign.done(1) == 100
    search_schedules(resumed("begun", campaign, schedules=300, workers=2), lambda _: None, campaign=campaign)
    whole = search(schedules=300, **requests)
    assert (campaign.done(1), campaign.history_sha256) == (300, whole["history_sha256"])
    assert campaign.tally.schedules == 300 and campaign.tally.steps == whole["steps"]


def test_a_bug_of_the_zoo_is_found_and_replayed() -> None:
    """redisson-2515: one answer that does not come ends the watchdog. A changed schedule has its parent's seed."""
    result = search("redisson-2515", schedules=2000)
    file = parse_schedule_file(result["found"]["file"], "found")
    verdict = replay_schedule(file, "found")
    assert verdict.steps == result["found"]["steps"]
    assert {entry.status for entry in verdict.properties.values()} >= {"violated"}


def test_a_time_limit_ends_with_a_whole_session() -> None:
    result = search(faults="pause-client", seconds=1, keep_going=True)
    assert result["schedules"] > 0 and result["schedules"] % SESSION == 0


def test_it_has_no_shards() -> None:
    with pytest.raises(UsageError, match="learns from one schedule to the next: it has no shards"):
        planned(shard="1/2", schedules=10)
    done = lockstorm("explore", "--lock", "set-nx-px", "--strategy", "novelty", "--shard", "1/2")
    assert done.returncode == 2 and "it has no shards" in done.stderr
    done = lockstorm("explore", "--lock", "set-nx-px", "--strategy", "novel")
    assert done.returncode == 2 and "novelty" in done.stderr
