"""What virtual time costs a library: an acquire and release beside the same in real time, and a whole trial."""

import statistics
import time

from lockstorm.base.errors import NotInstalled
from lockstorm.locks.adapter import PREFIX, adapter_entry
from lockstorm.scenario.play import play, prepare_by_hand
from lockstorm.trial.settings import Time, TrialSettings
from lockstorm.trial.trial import Trial

LIBRARIES = ("redis-py", "python-redis-lock", "node-redlock-5", "redis-semaphore", "redsync", "redisson")
WARM_UP = 20
LEASE_MS = 30_000


def missing(library: str) -> str:
    """Why a library cannot be measured here; empty if it can."""
    try:
        adapter_entry(PREFIX + library)
    except NotInstalled as reason:
        return str(reason)
    return ""


def turn_us(library: str, kind: Time, turns: int) -> float:
    """An acquire and release without a competitor, through the proxy, in us of the machine's time."""
    with Trial(prepare_by_hand(TrialSettings(PREFIX + library, time=kind, lease_ms=LEASE_MS))) as trial:
        (one,) = trial.clients(1)
        for count in (WARM_UP, turns):
            one.start_hold(turns=count)
            began = time.perf_counter()
            one.finish()
        return (time.perf_counter() - began) * 1e6 / turns


def turn_ratio(library: str, turns: int, rounds: int) -> tuple[float, float]:
    """Virtual over real time, the median of rounds; and the us in virtual time."""
    pairs = [(turn_us(library, "virtual", turns), turn_us(library, "real", turns)) for _ in range(rounds)]
    return statistics.median(virtual / real for virtual, real in pairs), statistics.median(
        virtual for virtual, _ in pairs
    )


def trial_s(library: str) -> float:
    """A gc-pause, from the start of its servers to the verdict."""
    began = time.perf_counter()
    play(TrialSettings(PREFIX + library, "gc-pause", time="virtual"))
    return time.perf_counter() - began
