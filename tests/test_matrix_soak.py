"""A choice of cells, repeated beside a burning core, and that a flake would be noticed."""

from pathlib import Path
from typing import Any

import pytest

from harness.driver import matrix as matrix_module
from harness.driver import matrix_soak
from harness.driver.cells import Trio
from harness.driver.expected import Cell, expected, pairs

# A lock of each way to wait, and of each number of servers.
CHOICE = ("set-nx-px", "set-nx-px-renew", "blpop", "pubsub", "fair", "redlock", "replica-wait", "set-nx-px-fenced")
STORIES = (
    *("gc-pause", "packet-delay", "partition-holder"),
    *("clock-jump-node", "crash-restart-node", "failover-unreplicated"),
)


def chosen() -> list[Trio]:
    """With the strictest store that a lock can be used with."""
    strictest = {(scenario, lock): store for scenario, lock, store in pairs()}
    return [(*pair, store) for pair, store in strictest.items() if pair[0] in STORIES and pair[1] in CHOICE]


def test_no_flake_beside_a_burning_core() -> None:
    trios = chosen()
    assert len(trios) > len(CHOICE) and {trio[0] for trio in trios} == set(STORIES)
    result = matrix_soak.soak(trios, 2, 1, lambda _: None)
    assert result["ok"], "\n".join(matrix_soak.told(result))
    assert matrix_soak.told(result) == [f"clean: {4 * len(trios)} trials, 0 cells not as expected, 0 of them flaky"]


def test_the_burner_burns_and_goes() -> None:
    with matrix_soak.burner() as process:
        assert process.poll() is None
    assert not Path(f"/proc/{process.pid}").exists()


def test_a_trial_that_is_not_as_expected_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    trio: Trio = ("gc-pause", "set-nx-px", "open")
    holds = {"mutual_exclusion": "holds", "integrity": "holds"}
    table: dict[Trio, Any] = {**expected(), trio: Cell(*trio, holds, holds, "a mistake")}
    monkeypatch.setattr(matrix_module, "expected", lambda: table)
    said = matrix_soak.told(matrix_soak.soak([trio], 1, 1, lambda _: None))
    assert said[-1] == "FAILED: 2 trials, 1 cells not as expected, 0 of them flaky"
    assert "gc-pause with set-nx-px/open" in said[0] and "again: ./lockstorm run gc-pause" in said[0]
