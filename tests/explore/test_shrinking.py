"""How a schedule is made smaller. A C program plays the violations: a schedule violates when certain deviations are in
it, with a certain number of clients."""

import json
import subprocess
from typing import Any

import pytest

from tests.helpers.building import make

ALONE_STEPS, ALONE_CLIENTS = 40, 2  # where the only fault of a schedule is tried as its only deviation
LEFT: dict[str, tuple[int, list[str]]] = {
    "two_of_eight": (2, ["before client-2 3: client-1", "before client-1 7: clock"]),
    "all_of_three": (2, ["before client-1 1: client-2", "before client-2 3: client-1", "before client-1 6: client-2"]),
    "what_has_no_effect": (2, ["before client-1 1: client-2"]),
    "another_client_moves_up": (
        2,
        [
            "before client-1 1: client-2",
            "before client-2 3: pause-client client-2 1000",
            "before client-2 4: lose-reply client-2-watchdog",
        ],
    ),
    "every_name": (
        2,
        [
            "before client-1 1: client-2-watchdog",
            "before client-16-watchdog 2: late-1",
            "before late-16 3: clock",
            "before clock 4: stream-1",
            "before stream-1-replica-2 5: stream-8-replica-2",
            "before client-1 6: failover redis-1",
            "before client-1 7: stall-replica redis-8-replica-2 1",
            "before client-1 8: clock-jump redis-1 -1000000000",
            "before client-1 9: client-clock-jump client-2 1000000000",
            "before client-1 10: crash-server redis-8",
            "before client-1 11: drop-message client-2",
            "before client-1 12: quiet",
        ],
    ),
    "the_fault_alone": (2, ["before client-2 17: pause-client client-2 1000"]),
    "the_fault_of_a_task_alone": (2, ["before client-1 40: lose-reply client-1"]),
    "the_fault_of_a_node_alone": (2, ["before client-2 1: crash-server redis-2"]),
    "the_fault_is_too_late_alone": (2, ["before client-1 41: kill-client client-1"]),
    "two_faults_are_not_one": (2, ["before client-1 1: kill-client client-1"]),
    "shorter": (1, ["before client-1 1: pause-client client-1 2250"]),
    "short_enough": (1, ["before client-1 1: pause-client client-1 2000"]),
    "within_its_runs": (
        2,
        ["before client-1 1: client-2", "before client-1 2: client-2", "before client-2 3: client-1"],
    ),
    "another_violation_is_another": (2, ["before client-1 1: client-2", "before client-1 2: client-2"]),
    "what_is_not_required_does_not_count": (2, ["before client-1 1: client-2", "before client-1 2: client-2"]),
}


@pytest.fixture(scope="module")
def said() -> dict[str, Any]:
    program = make("build/tests/shrinking") / "tests" / "shrinking"
    done = subprocess.run([program], capture_output=True, text=True, timeout=600, check=True)
    read: dict[str, Any] = json.loads(done.stdout)
    return read


def test_every_case_is_played(said: dict[str, Any]) -> None:
    assert said.keys() == {*LEFT, "fewer_calls", "control", "accepted", "left_over"}


def test_a_deviation_is_found_again_when_calls_before_it_are_dropped(said: dict[str, Any]) -> None:
    """It strikes the last step. There are as many steps as calls."""
    assert said["fewer_calls"] == {"calls": [2, 0], "lines": ["before client-1 2: pause-client client-1 1000"]}


def test_in_a_control_the_deviation_takes_effect(said: dict[str, Any]) -> None:
    """Without client-1's calls nothing is violated either, but there the pause does nothing."""
    assert said["control"] == {"calls": [2, 0], "lines": ["before client-1 1: pause-client client-1 1000"]}


def test_lines_that_are_none_are_refused(said: dict[str, Any]) -> None:
    assert said["accepted"] == []


def test_nothing_is_left_of_what_a_deviation_was_before_it_is_read(said: dict[str, Any]) -> None:
    assert said["left_over"] is False


@pytest.mark.parametrize("case", LEFT)
def test_what_is_left_of_a_schedule(said: dict[str, Any], case: str) -> None:
    assert (said[case]["clients"], said[case]["lines"]) == LEFT[case]
    assert not said[case]["asked_wrongly"]  # with the schedule's own seed and number


def test_no_more_schedules_are_run_than_allowed(said: dict[str, Any]) -> None:
    assert said["within_its_runs"]["runs"] == 3


def test_the_fault_alone_is_tried_step_by_step_and_client_by_client(said: dict[str, Any]) -> None:
    """Before anything else. Then the one deviation that is left is tried without, and with fewer clients."""
    assert said["the_fault_alone"]["runs"] == 17 * ALONE_CLIENTS + 3
    assert said["the_fault_of_a_task_alone"]["runs"] == ALONE_STEPS * ALONE_CLIENTS - 1 + 3
    assert said["the_fault_of_a_node_alone"]["runs"] == ALONE_CLIENTS + 3
