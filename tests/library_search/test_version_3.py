"""What version 3 of the protocol can ask (decision 0145): each mistake is found, and the same adapter without it is not
accused."""

from pathlib import Path

import pytest

from lockstorm.locks.adapter import AdapterProgram, adapter_facts
from lockstorm.search.replay import replay_library
from lockstorm.search.schedule_file import parse_library_schedule
from tests.helpers.planting_tasks import ASKS, EVICTS, FORGETS, MUTE, VERSION_2, plant_tasks
from tests.helpers.searching import searched

SHRUGS = (  # a renewal that ends takes the lock for lost
    f"        return {ASKS}EXTEND, 1, self.name, self.held(), lease_ms)",
    "        token, self.token = self.held(), None\n"
    f"        done = {ASKS}EXTEND, 1, self.name, token, lease_ms)\n        self.token = token\n        return done",
)


CRIES = ("            if not kept:\n", "            if kept:\n")  # ... and cries wolf
LATE = ("            if not kept:\n", "            misses = 0 if kept else misses + 1\n            if misses > 3:\n")
COUNTS = ("    async def renew(self, lease_ms):\n", "    async def renew(self, lease_ms):\n        misses = 0\n")


@pytest.mark.lengthy("plays a search")
def test_versions_1_and_2_go_on(tmp_path: Path) -> None:
    """An adapter that answers version 2 is asked nothing of version 3: its mistake is not seen."""
    old, new = plant_tasks(tmp_path, VERSION_2, FORGETS), plant_tasks(tmp_path)
    facts = adapter_facts(old)
    assert facts and (facts.protocol, facts.cancels, facts.over) == (2, (), ())
    with AdapterProgram(new) as program:
        assert program.hello(1).protocol == 1
    result = searched(old, schedules=40, faults="none")
    assert result["exit"] == 0 and result["tried"] == 40, result["sentence"]


@pytest.mark.lengthy("plays a search")
def test_a_release_that_failed_is_asked_once_more(tmp_path: Path) -> None:
    result = searched(plant_tasks(tmp_path, FORGETS), schedules=300, faults="none")
    assert result["exit"] == 1 and result["found"]["violates"] == ["release"], result["sentence"]
    calls = result["found"]["workload"]
    assert any(" over" in line or " cancel-at=" in line for line in calls) and any(" again" in line for line in calls)


@pytest.mark.lengthy("plays a search")
def test_a_renewal_that_was_cancelled_does_not_give_the_lock_up(tmp_path: Path) -> None:
    result = searched(plant_tasks(tmp_path, SHRUGS), schedules=300, faults="none")
    assert result["exit"] == 1 and result["found"]["violates"] == ["ownership"], result["sentence"]


@pytest.mark.lengthy("plays a search")
@pytest.mark.parametrize("mistakes", [[MUTE], [CRIES], [COUNTS, LATE]], ids=["missing", "false", "late"])
def test_notices_of_loss(tmp_path: Path, mistakes: list[tuple[str, str]]) -> None:
    result = searched(plant_tasks(tmp_path, *mistakes), schedules=600, require="loss")
    assert result["exit"] == 1 and result["found"]["violates"] == ["loss"], result["sentence"]


SHARED = (  # a release ends the watchdog of all locks of its client
    "        if self.watchdog:\n            self.watchdog.cancel()\n",
    "        for lock in self.library.locks:\n            if lock.watchdog:\n                lock.watchdog.cancel()\n",
)


@pytest.mark.lengthy("plays a search")
def test_two_locks_of_a_client_are_renewed_together(tmp_path: Path) -> None:
    result = searched(plant_tasks(tmp_path, SHARED), schedules=300, faults="none", require="renewal")
    assert result["exit"] == 1 and result["found"]["violates"] == ["renewal"], result["sentence"]


@pytest.mark.lengthy("plays a search, shrinks what it found, and replays it")
def test_settings_are_drawn_and_belong_to_the_schedule(tmp_path: Path) -> None:
    """A cache of one lock is full when a client holds two. A watchdog of a lock that was evicted goes on for ever: its
    program is not used for another schedule, in which shrinking would take it for a part of that one."""
    result = searched(plant_tasks(tmp_path, EVICTS), schedules=800, faults="none", require="ownership")
    assert result["exit"] == 1 and result["found"]["violates"] == ["ownership"], result["sentence"]
    found = result["found"]
    assert found["workload"][0] == "settings capacity=1" and len(found["workload"]) <= 6
    again = replay_library(parse_library_schedule(found["file"], "found"), "found")
    assert again.violates == found["violates"]
    without = found["file"].replace("settings capacity=1", "settings capacity=100")
    assert replay_library(parse_library_schedule(without, "without"), "without").violates == []


@pytest.mark.lengthy("plays a hundred schedules")
@pytest.mark.parametrize("faults", ["none", "usual"])
def test_an_adapter_of_version_3_is_not_accused(tmp_path: Path, faults: str) -> None:
    result = searched(plant_tasks(tmp_path), schedules=100, faults=faults)
    assert result["exit"] == 0 and result["tried"] == 100, result["sentence"]
