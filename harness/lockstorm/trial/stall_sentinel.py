"""Real time: keeps a verdict from being taken from a trial during which the machine stood still
(harness/scheduler/stall_sentinel.h), and plays such a trial again."""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from lockstorm.base.errors import Inconclusive, Stalled, UsageError
from lockstorm.native.library import Stall, StallKind, library

PLAYS_MOST = 5  # of one trial
PACE_MOST = 4  # more would make clients wait longer for an answer than a short bound allows
PLAYED_AGAIN_WITHIN_S = 300.0  # a trial that stalled is not played again once its plays have taken this long
TOLERATED = 1 / 3  # of the shortest time that a verdict rests on: a watchdog renews its lease after a third of it
TOO_LONG = f"more than {TOLERATED:.0%} of the "  # in the reason of a trial that a stall has made inconclusive
LOOKS = 4  # in the time that is tolerated

Played = TypeVar("Played")


class StallSentinel:
    """Watches the driver and its descendants from its construction until `stop`."""

    def __init__(self, rests_on_ms: float, what: str) -> None:
        """`rests_on_ms`: the shortest time that the verdict rests on; `what`: its name ("lease")."""
        self.tolerated_ms = rests_on_ms * TOLERATED
        self._what = f"{what} of {rests_on_ms:g} ms"
        period_ns = max(1, int(self.tolerated_ms / LOOKS * 1_000_000))
        self._handle: int | None = library().stall_sentinel_start(period_ns)
        if not self._handle:
            raise Inconclusive("no thread could be started to watch whether the machine stands still")
        self._stalled: Stalled | None = None

    def stop(self) -> None:
        if self._handle:
            library().stall_sentinel_stop(self._handle)
            self._handle = None

    def find_stall(self) -> Stalled | None:
        """The longest stall since the start, if it was longer than is tolerated."""
        if self._handle:
            stall = Stall()
            library().stall_sentinel_longest(self._handle, stall)
            if stall.length_ns > self.tolerated_ms * 1_000_000:
                self._stalled = Stalled(f"{describe_stall(stall)}, {TOO_LONG}{self._what}")
        return self._stalled

    def must_not_stall(self) -> None:
        """Raises Stalled if there was a stall that is not tolerated."""
        if stalled := self.find_stall():
            raise stalled

    def explain(self, error: BaseException | None) -> None:
        """Raises Stalled in the place of what the trial has ended with, if the machine stood still before."""
        if not isinstance(error, Exception) or isinstance(error, Stalled | UsageError):
            return
        if stalled := self.find_stall():
            raise stalled from error


@contextlib.contextmanager
def explained_by_stalls(rests_on_ms: float, what: str, verdict: type[UsageError] | None = None) -> Iterator[None]:
    """Raises Stalled in the place of an error of its body, if the machine stood still before for longer than is
    tolerated. `rests_on_ms` and `what` as of StallSentinel; `verdict`: a kind of UsageError that is one."""
    sentinel = StallSentinel(rests_on_ms, what)
    try:
        yield
    except Exception as error:
        if verdict and isinstance(error, verdict):
            sentinel.must_not_stall()
        sentinel.explain(error)
        raise
    finally:
        sentinel.stop()


def describe_stall(stall: Stall) -> str:
    length = f"{stall.length_ns / 1e9:.2f} s"
    if stall.kind == StallKind.THREAD:
        return f"{bytes(stall.process).decode(errors='replace')} waited {length} for a processor"
    if stall.kind == StallKind.WALL_CLOCK:
        return f"the machine's wall clock jumped by {length}"
    return f"the machine stood still for {length}"


def pace_of(play: int) -> int:
    """The pace (TrialSettings.pace) of the first play, the second, ...: 1, 2, 4, 4, ..."""
    return min(1 << (play - 1), PACE_MOST)


def play_unstalled(play: Callable[[int], Played]) -> tuple[Played, int]:
    """What `play` returns, which gets the pace, and how often it was played again because the machine had stood still.
    Raises Stalled, with that number as its `played_again`, if the machine stands still each time."""
    give_up_s = time.monotonic() + PLAYED_AGAIN_WITHIN_S
    played_again = 0
    while True:
        try:
            return play(pace_of(played_again + 1)), played_again
        except Stalled as stalled:
            if played_again + 1 >= PLAYS_MOST or time.monotonic() > give_up_s:
                stalled.played_again = played_again
                raise
            played_again += 1
