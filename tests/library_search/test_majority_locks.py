"""A lock of a majority of servers is granted while a minority of them is down (redlock-rb #129)."""

from pathlib import Path

import pytest

from lockstorm.base.errors import UsageError
from tests.helpers.planting_majority import plant_majority
from tests.helpers.planting_watched import plant_watched
from tests.helpers.searching import library_plan, searched

RAISES = {"                pass\n": "                raise\n"}  # one server that is not reached is fatal
ALL = {"votes > len(self.links) // 2 and": "votes == len(self.links) and"}  # it needs all of them
SEEDS = [1, *(pytest.param(seed, marks=pytest.mark.slow("the same with another seed", seconds=60)) for seed in (2, 3))]


@pytest.mark.lengthy("searches some hundred schedules of a library")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("mistake", [RAISES, ALL], ids=["raises", "all"])
def test_a_lock_that_one_server_makes_fail_is_found(tmp_path: Path, mistake: dict[str, str], seed: int) -> None:
    result = searched(plant_majority(tmp_path, mistake), schedules=800, seed=seed)
    assert result["exit"] == 1 and result["found"]["violates"] == ["liveness"], result["sentence"]
    assert "is not granted the free lock while 1 of 3 servers is down" in result["sentence"]


@pytest.mark.lengthy("searches some hundred schedules of a library")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("fault", ["server-down", "server-silent", None])
def test_a_right_lock_of_a_majority_is_not_accused(tmp_path: Path, fault: str | None, seed: int) -> None:
    result = searched(plant_majority(tmp_path), faults=fault, schedules=200 if fault else 600, seed=seed)
    assert result["exit"] == 0, result["sentence"]
    assert all(result["injected"][name] for name in ([fault] if fault else ["server-down", "server-silent"]))


def test_a_lock_of_one_server_has_no_such_fault(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="it is for locks of a majority of servers"):
        library_plan(plant_watched(tmp_path), faults="server-down")
