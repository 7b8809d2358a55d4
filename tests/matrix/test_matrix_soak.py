"""A choice of cells, repeated beside a burning core, and that a flake would be noticed."""

from pathlib import Path
from typing import Any

import pytest

from lockstorm.scenario import library_expected
from lockstorm.scenario.cells import CellKey
from lockstorm.scenario.expected import ExpectedCell, expected, pairs
from tests.soak import matrix_soak

# A lock of each way to wait, and of each number of servers.
CHOICE = ("set-nx-px", "set-nx-px-renew", "blpop", "pubsub", "fair", "redlock", "replica-wait", "set-nx-px-fenced")
SCENARIOS = (
    *("gc-pause", "packet-delay", "partition-holder"),
    *("clock-jump-node", "crash-restart-node", "failover-unreplicated"),
)


def chosen() -> list[CellKey]:
    """Each lock with the strictest store that it can be used with."""
    strictest = {(scenario, lock): store for scenario, lock, store in pairs()}
    return [(*pair, store) for pair, store in strictest.items() if pair[0] in SCENARIOS and pair[1] in CHOICE]


@pytest.mark.slow("repeats cells beside a busy core", seconds=12)
def test_no_flake_beside_a_burning_core() -> None:
    cell_keys = chosen()
    assert len(cell_keys) > len(CHOICE) and {cell_key[0] for cell_key in cell_keys} == set(SCENARIOS)
    result = matrix_soak.soak_matrix(cell_keys, 2, 1, lambda _: None)
    assert result.ok, "\n".join(matrix_soak.soak_report(result))
    assert matrix_soak.soak_report(result) == [
        f"clean: {4 * len(cell_keys)} trials, 0 cells not as expected, 0 of them flaky"
    ]


def test_the_burner_burns_and_goes() -> None:
    with matrix_soak.burner() as process:
        assert process.poll() is None
    assert not Path(f"/proc/{process.pid}").exists()


def test_a_trial_that_is_not_as_expected_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    cell_key: CellKey = ("gc-pause", "set-nx-px", "open")
    holds = {"mutual_exclusion": "holds", "integrity": "holds"}
    table: dict[CellKey, Any] = {**expected(), cell_key: ExpectedCell(*cell_key, holds, holds, "a mistake")}
    monkeypatch.setattr(library_expected, "expected", lambda: table)
    lines = matrix_soak.soak_report(matrix_soak.soak_matrix([cell_key], 1, 1, lambda _: None))
    assert lines[-1] == "FAILED: 2 trials, 1 cells not as expected, 0 of them flaky"
    assert "gc-pause with set-nx-px/open" in lines[0] and "again: ./lockstorm run gc-pause" in lines[0]
