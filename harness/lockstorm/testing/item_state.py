"""What the modules of the plug-in know of a test together: the names of options, and what hangs on an item."""

import os
import shlex
from typing import Protocol

import pytest

MARKER = "lockstorm"
SEED, REPORT, GATE = "lockstorm_seed", "lockstorm_report", "lockstorm_gate"  # in config.option
BUDGET = "lockstorm_budget"  # there, and in pytest's configuration file


class PlaysTrials(Protocol):
    """What a test has that plays trials: a TrialRunner, or an item of a gate."""

    played_again: int  # how often trials were played again inside the test, because the machine stood still
    usual_seed: int | None  # that of its trials, if --lockstorm-seed sets it

    def kept_lines(self) -> list[str]:
        """Keeps what the trials of a test that has not passed have left; lines that name it."""

    def explain_by_stall(self, error: BaseException | None) -> None:
        """Raises Stalled in the place of what the test has ended with, if the machine stood still before."""

    def end_call(self) -> None:
        """The test function has ended: what its fixtures close from now on is not needed any more."""


PLAYING = pytest.StashKey[PlaysTrials]()  # of an item whose trials are being played
BUDGET_S = pytest.StashKey[int | None]()  # of the config: of a search that names none
PLAY = pytest.StashKey[int]()  # of an item: 1, 2, ...: its play, of those in which the machine stood still


def command_again(item: pytest.Item) -> str:
    playing = item.stash.get(PLAYING, None)
    words = ["pytest", item.nodeid]
    if not isinstance(item, pytest.Function):
        words.append(f"--lockstorm-gate={os.path.relpath(item.path, item.config.rootpath)}")
    if playing and playing.usual_seed is not None:
        words += ["--lockstorm-seed", str(playing.usual_seed)]
    return shlex.join(words)
