"""What virtual time costs a library: an acquire and release beside the same in real time, and a whole trial."""

import statistics
import time

from lockstorm.base.errors import NotInstalled
from lockstorm.libraries.library_cost import turn_us
from lockstorm.locks.adapter import PREFIX, adapter_entry
from lockstorm.scenario.play import play
from lockstorm.search.explore import search_schedules
from lockstorm.search.search_plan import SearchRequest, plan_search
from lockstorm.search.search_result import SearchResult
from lockstorm.trial.settings import TrialSettings

LIBRARIES = ("redis-py", "python-redis-lock", "node-redlock-5", "redis-semaphore", "redsync", "redisson")
SEARCH_TARGETS = {  # schedules of 20 steps a second, on one core
    "redis-py": 300,
    "redsync": 300,
    "python-redis-lock": None,
    "node-redlock-5": 150,
    "redis-semaphore": None,
    "redisson": 50,
}


def missing(library: str) -> str:
    """Why a library cannot be measured here; empty if it can."""
    try:
        adapter_entry(PREFIX + library)
    except NotInstalled as reason:
        return str(reason)
    return ""


def turn_ratio(library: str, turns: int, rounds: int) -> tuple[float, float]:
    """Virtual over real time, the median of rounds; and the us in virtual time."""
    lock = PREFIX + library
    pairs = [(turn_us(lock, "virtual", turns), turn_us(lock, "real", turns)) for _ in range(rounds)]
    return statistics.median(virtual / real for virtual, real in pairs), statistics.median(
        virtual for virtual, _ in pairs
    )


def searched(library: str, seconds: int) -> SearchResult:
    """A search in one process, which goes on after what it finds."""
    plan = plan_search(SearchRequest(PREFIX + library, seconds=seconds, workers=1, keep_going=True))
    return search_schedules(plan, lambda _: None)


def trial_s(library: str) -> float:
    """A gc-pause, from the start of its servers to the verdict."""
    began = time.perf_counter()
    play(TrialSettings(PREFIX + library, "gc-pause", time="virtual"))
    return time.perf_counter() - began
