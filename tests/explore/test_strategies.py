"""What the strategies choose, in a small world that a C program plays: six tasks that can always take a step, three
clients, two nodes with two replicas each. Figures are of 4,000 seeds."""

import json
import subprocess
from math import sqrt
from typing import Any

import pytest

from tests.helpers.building import make

SEEDS = 4000
CLIENTS = 3


@pytest.fixture(scope="module")
def said() -> dict[str, Any]:
    program = make("build/tests/strategies") / "tests" / "strategies"
    done = subprocess.run([program], capture_output=True, text=True, timeout=600, check=True)
    read: dict[str, Any] = json.loads(done.stdout)
    return read


def assert_shares(counts: list[int], shares: list[float]) -> None:
    """Within five standard deviations of what a fair draw gives; a share of 0 never comes up."""
    total = sum(counts)
    assert total > 0 and len(counts) == len(shares)
    for count, share in zip(counts, shares, strict=True):
        assert abs(count - total * share) <= 5 * sqrt(total * share * (1 - share)), (counts, shares)


def test_pct_changes_the_order_twice_and_never_back(said: dict[str, Any]) -> None:
    """Two of the changes may fall on one step, or on the first, where they cannot be seen."""
    assert_shares(said["pct_first"], [1 / 6] * 6)
    none, one = 1 / 40**2, 3 * 39 / 40**2
    assert_shares(said["pct_changes"], [none, one, 1 - none - one, 0])
    first, *others = said["pct_moments"]
    assert 1600 < first < 1900 and all(1800 < each < 2200 for each in others)
    assert said["pct_back"] == [0]
    assert said["task_first"] == [1]


def test_the_other_strategies(said: dict[str, Any]) -> None:
    assert_shares(said["uniform"], [1 / 6] * 6)
    assert said["usual"] == [0, 0, 0, 0, SEEDS, 0]


@pytest.mark.parametrize("fault", ["pause", "failover", "clock", "reply"])
def test_a_fault_that_may_strike_once_mostly_does_at_any_moment(said: dict[str, Any], fault: str) -> None:
    assert_shares(said[f"{fault}_per_schedule"], [1 / 8, 7 / 8] + [0] * 15)
    assert_shares(said[f"{fault}_quarters"], [1 / 4] * 4)


def test_several_faults_of_a_kind(said: dict[str, Any]) -> None:
    assert_shares(said["restart_per_schedule"], [1 / 4] * 4 + [0] * 13)
    assert_shares(said["many_per_schedule"], [1 / 41] * 16 + [25 / 41])  # of up to 40, at most 16


def test_whom_a_fault_strikes(said: dict[str, Any]) -> None:
    """A client, a node, a replica (the second ones have high numbers), or a task: one in four is a watchdog."""
    assert_shares(said["pause_whom"], [1 / 3] * 3 + [0] * 5)
    assert_shares(said["restart_whom"], [1 / 2] * 2 + [0] * 6)
    assert_shares(said["failover_whom"], [1 / 4] * 2 + [0] * 5 + [1 / 2])
    assert_shares(said["reply_whom"], [1 / 4, 1 / 12] * 3 + [0] * 2)


def test_how_long_a_fault_lasts(said: dict[str, Any]) -> None:
    """In halves of a lease. A clock jumps backwards once in four times."""
    for fault in ("pause", "clock"):
        assert_shares(said[f"{fault}_halves"], [0, 1 / 4, 0, 1 / 2, 0, 0, 1 / 4])
    jumps = sum(said["clock_whom"])
    assert_shares([said["clock_backwards"][0], jumps - said["clock_backwards"][0]], [1 / 4, 3 / 4])
    assert said["pause_backwards"] == said["reply_backwards"] == [0]
    assert said["reply_halves"][1:] == said["restart_halves"][1:] == [0] * 6


def test_a_fault_that_is_not_allowed_yet_strikes_when_it_is(said: dict[str, Any]) -> None:
    assert said["late_struck"] == [20, 1]
    assert said["late_quiet"] == [21]


def of_four_steps(others: int, bound: int) -> int:
    """The number of schedules of four steps, if at each step one of so many other things may happen."""
    return sum(ways * others**count for count, ways in enumerate((1, 4, 6)) if count <= bound)


def test_every_schedule_within_the_bound_once(said: dict[str, Any]) -> None:
    """Each step has two other choices. Schedules, distinct ones, the most faults in one, durations that are wrong."""
    assert said["none"] == [1, 1, 0, 0]
    assert said["one"] == [of_four_steps(2, 1)] * 2 + [0, 0]
    assert said["two"] == [of_four_steps(2, 2)] * 2 + [0, 0]
    of_two_faults = 6 * CLIENTS**2
    assert said["faults"] == [of_four_steps(2 + CLIENTS, 2) - of_two_faults] * 2 + [1, 0]
    assert said["more_faults"] == [of_four_steps(2 + CLIENTS, 2)] * 2 + [2, 0]
    assert said["failovers"] == [of_four_steps(2 + 4, 1)] * 2 + [1, 0]


def test_a_schedule_is_replayed_deviation_by_deviation(said: dict[str, Any]) -> None:
    """Each step is asked for twice, and each deviation takes effect once, at its step: the pause (1) of client 0, task
    2 because the crash is not allowed, task 3."""
    assert said["replay_kinds"] == [0, 0, 1, 0, 0, 0, 0, 0, 0, 0]
    assert said["replay_whom"] == [1, 1, 0, 1, 2, 1, 3, 1, 1, 1]


def test_a_few_faults_of_many_kinds(said: dict[str, Any]) -> None:
    """None in one schedule of eight, else one or two, of any kind; and no message to the resource is struck."""
    assert_shares(said["few_per_schedule"], [1 / 8, 7 / 16, 7 / 16, 0])
    assert_shares(said["few_kinds"], [1 / 3] * 3)
    assert said["few_on_store"] == [0]


def test_an_aimed_fault_strikes_rare_situations_as_often_as_common_ones(said: dict[str, Any]) -> None:
    """Five situations: task 0 sends to a node, 2 sends to the resource, the watchdogs 1 and 3 wait, 4 renews three
    times in one course, and 5 releases once in each. Quiet comes in every schedule, and no fault strikes after twice
    the usual number of steps. A fault of a server strikes the node that the task talks to."""
    assert_shares(said["aimed_message_whom"], [1 / 5, 1 / 10, 1 / 5, 1 / 10, 1 / 5, 1 / 5])
    assert_shares(said["aimed_message_before"], [1 / 3] * 3 + [0])
    assert_shares(said["aimed_client_whom"], [3 / 10, 3 / 10, 2 / 5, 0, 0, 0])
    elsewhere = 3 / 10  # of tasks that talk to no node: any is struck
    assert_shares(said["aimed_replica_whom"], [1 - 1 / 5 - elsewhere / 2, 1 / 5 + elsewhere / 2, 0, 0, 0, 0])
    for name in ("message", "client", "fitting", "replica"):
        strikes, quiet, late = said[f"aimed_{name}_ends"]
        assert_shares([SEEDS - strikes, strikes], [1 / 8, 7 / 8])
        assert (quiet, late) == (SEEDS, 0)


def test_an_aimed_fault_is_not_aimed_where_it_cannot_strike(said: dict[str, Any]) -> None:
    """Here it is allowed only for those who wait."""
    assert_shares(said["aimed_fitting_whom"], [1 / 3, 1 / 6, 1 / 3, 1 / 6, 0, 0])


def test_no_fault_is_aimed_at_the_resource_where_it_is_spared(said: dict[str, Any]) -> None:
    """Four situations are left. Of the two watchdogs, which do not send, number 3 sent to the resource before."""
    assert_shares(said["aimed_spared_whom"], [1 / 4, 1 / 4, 0, 0, 1 / 4, 1 / 4])
    strikes = said["aimed_spared_ends"][0]
    assert_shares([SEEDS - strikes, strikes], [1 / 8, 7 / 8])
