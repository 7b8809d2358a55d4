"""Tests in real time beside a machine that stands still."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import pytest

from lockstorm.base.errors import Stalled
from lockstorm.trial.stall_sentinel import TOO_LONG, explained_by_stalls, play_unstalled

PLAYS = [0]  # how often the running test has been played again


def plays_of_this_test() -> int:
    """How often the test that has just ended was played again; counts from 0 for the next one."""
    plays, PLAYS[0] = PLAYS[0], 0
    return plays


def unless_stalled(said: dict[str, Any]) -> dict[str, Any]:
    """The JSON of a command. Raises Stalled if it has no verdict because the machine stood still in each play."""
    if said["exit"] == Stalled.exit_status and TOO_LONG in said["sentence"]:
        raise Stalled(said["sentence"])
    return said


def beside_no_stall(limit_ms: float) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Plays a test again that has failed beside a stall, a few times at most. `limit_ms`: the shortest time limit that
    the test's assertions rest on; a stall is what lasts for more than a third of it."""

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        def play(**fixtures: Any) -> None:
            with explained_by_stalls(limit_ms, "time limit"):
                try:
                    test(**fixtures)
                except pytest.fail.Exception as failed:  # as of pytest.raises; it is no Exception
                    raise AssertionError(str(failed)) from failed

        @wraps(test)
        def played(**fixtures: Any) -> None:
            try:
                _, PLAYS[0] = play_unstalled(lambda _: play(**fixtures))
            except Stalled as stalled:
                PLAYS[0] = stalled.played_again
                raise

        return played

    return decorate
