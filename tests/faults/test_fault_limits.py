"""Limits in real time: they end by the clock, however long the machine makes the caller wait between two looks."""

import ctypes
import re
import time

from lockstorm.base import paths
from lockstorm.native.library import library

SLEEP = re.compile(r"\b(nanosleep|clock_nanosleep|usleep|sleep|thrd_sleep)\s*\(|\bpoll\s*\(\s*NULL\b")

PAUSES_ADDED_UP = re.compile(r"\+=\s*(?:\w*_)?(?:POLL|PAUSE|NAP)_(?:US|MS|NS)\b")

# Every C file that sleeps between two looks, with the clock that ends its waiting.
SLEEPING = {
    "faults/common/real_time.c": "the deadline of real_time_pause",
    "harness/environment/adapter_session.c": "clock_real_deadline_ns",
    "harness/environment/http_session.c": "libcurl's limit for connecting",
    "harness/history/history_json.c": "no limit: follows a history until it has ended",
    "harness/process/reaper_main.c": "now_s",
    "harness/scheduler/quiescence.c": "clock_real_deadline_ns",
    "harness/scheduler/task_stops.c": "clock_real_deadline_ns",
}


def pause(until_ms: int, pause_us: int) -> bool:
    function = library().real_time_pause
    function.restype, function.argtypes = ctypes.c_bool, [ctypes.c_int64, ctypes.c_int64]
    return bool(function(until_ms, pause_us))


def deadline(limit_ms: int) -> int:
    function = library().real_time_deadline_ms
    function.restype, function.argtypes = ctypes.c_int64, [ctypes.c_int64]
    return int(function(limit_ms))


def now_ms() -> float:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) / 1e6


def test_a_deadline_is_as_far_away_as_its_limit() -> None:
    before_ms = now_ms()
    until_ms = deadline(700)
    assert before_ms + 699 <= until_ms <= now_ms() + 700


def test_a_limit_counts_time_and_not_pauses() -> None:
    """Each look takes 25 ms or more, each pause 1 ms: a limit of 200 ms is over after 8 looks, not after 200."""
    until_ms, looks = deadline(200), 0
    while pause(until_ms, 1000):
        time.sleep(0.025)
        looks += 1
    assert looks <= 8


def test_a_condition_is_looked_at_once_more_after_the_deadline() -> None:
    until_ms = deadline(500)
    assert pause(until_ms, 3_600_000_000), "look again"
    assert until_ms <= now_ms() < until_ms + 60_000, "it has slept until the deadline, not for an hour"
    assert not pause(until_ms, 3_600_000_000)


def test_after_the_deadline_nothing_sleeps() -> None:
    assert not pause(deadline(-1), 3_600_000_000)
    assert not pause(deadline(0), 3_600_000_000)


def test_nothing_else_sleeps_between_two_looks() -> None:
    """Who adds a file here has seen that its limit is a time, and not a number of pauses."""
    files = [path for room in ("faults", "harness", "checkers") for path in sorted((paths.ROOT / room).rglob("*.c"))]
    assert len(files) > 100
    texts = {str(path.relative_to(paths.ROOT)): path.read_text() for path in files}
    assert {path for path, text in texts.items() if SLEEP.search(text)} == set(SLEEPING)
    assert not [path for path, text in texts.items() if PAUSES_ADDED_UP.search(text)], "a limit is a time"
