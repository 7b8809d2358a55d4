"""Limits that only guard against hanging, in C (hang_limit.h) and in Python (hang_limit.py): they count
the time that passes while their process runs, not the number of looks, and not a time in which the machine stood
still."""

import ctypes
import os
import re
import signal
import time

import pytest

from lockstorm.base import paths
from lockstorm.base.hang_limit import HangLimit, await_readable
from lockstorm.native.library import library

MS = 1_000_000  # ns
SLEEP = re.compile(r"\b(nanosleep|clock_nanosleep|usleep|sleep|thrd_sleep)\s*\(|\bpoll\s*\(\s*NULL\b")

PAUSES_ADDED_UP = re.compile(r"\+=\s*(?:\w*_)?(?:POLL|PAUSE|NAP)_(?:US|MS|NS)\b")

# Every C file that sleeps between two looks, with the clock that ends its waiting.
SLEEPING = {
    "harness/environment/adapter_session.c": "hang_limit_deadline_ns",
    "harness/environment/http_session.c": "libcurl's limit for connecting",
    "harness/history/history_json.c": "no limit: follows a history until it has ended",
    "harness/process/reaper_main.c": "now_s",
    "harness/scheduler/hang_limit.c": "the deadline of hang_limit_pause",
    "harness/scheduler/quiescence.c": "hang_limit_deadline_ns",
    "harness/scheduler/task_stops.c": "hang_limit_deadline_ns",
    "harness/supervisor/supervisor_main.c": "no limit: a program that waits for what comes from outside",
    "harness/supervisor/turns.c": "hang_limit_deadline_ns",
}


def pause(until_ns: int, pause_us: int) -> bool:
    function = library().hang_limit_pause
    function.restype, function.argtypes = ctypes.c_bool, [ctypes.c_int64, ctypes.c_int64]
    return bool(function(until_ns, pause_us))


def deadline(limit_ms: int) -> int:
    """In ns."""
    function = library().hang_limit_deadline_ns
    function.restype, function.argtypes = ctypes.c_int64, [ctypes.c_int64]
    return int(function(limit_ms))


def readable(descriptor: int, limit_ms: int) -> bool:
    function = library().hang_limit_await_readable
    function.restype, function.argtypes = ctypes.c_bool, [ctypes.c_int, ctypes.c_int64]
    return bool(function(descriptor, deadline(limit_ms)))


def test_a_deadline_is_as_far_away_as_its_limit() -> None:
    now_ns = deadline(0)
    assert now_ns + 700 * MS <= deadline(700) < now_ns + 1400 * MS


def test_a_limit_counts_time_and_not_pauses() -> None:
    """Each look takes 25 ms or more, each pause 1 ms: a limit of 200 ms is over after 8 looks, not after 200."""
    until_ns, looks = deadline(200), 0
    while pause(until_ns, 1000):
        time.sleep(0.025)
        looks += 1
    assert looks <= 8


@pytest.mark.waits
def test_a_time_in_which_nothing_ran_is_not_counted() -> None:
    """A caller that has not looked for a second: the machine may have stood still."""
    until_ns, limit = deadline(1000), HangLimit(1.0)
    time.sleep(1.5)
    assert pause(until_ns, 0) and not limit.is_over()
    assert deadline(0) < until_ns - 800 * MS and limit.left_s() > 0.8


def test_a_look_may_be_long_where_that_is_announced() -> None:
    limit = HangLimit(0.4, look_s=1.0)
    time.sleep(0.5)
    assert limit.is_over()


@pytest.mark.waits
def test_a_process_that_was_stopped_goes_on_waiting() -> None:
    """Longer than the limit, which the old one would then have found to be over."""
    outcome, child_outcome = os.pipe()
    answer, child_answer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(child_outcome, b"r")
        os.write(child_outcome, b"%d" % readable(answer, 1000))
        os._exit(0)
    try:
        assert os.read(outcome, 1) == b"r"
        time.sleep(0.1)  # it waits
        os.kill(child, signal.SIGSTOP)
        os.waitpid(child, os.WUNTRACED)
        time.sleep(1.5)
        os.kill(child, signal.SIGCONT)
        time.sleep(0.1)  # time enough to give up
        os.write(child_answer, b".")
        assert os.read(outcome, 1) == b"1"
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        for end in (outcome, child_outcome, answer, child_answer):
            os.close(end)


def test_what_never_comes_is_given_up() -> None:
    reading, writing = os.pipe()
    began = time.monotonic()
    assert not readable(reading, 300)
    assert await_readable([reading], HangLimit(0.3)) == []
    assert time.monotonic() - began >= 0.6
    os.write(writing, b".")
    assert readable(reading, 0)
    assert await_readable([reading], HangLimit(0)) == [reading]
    os.close(reading)
    os.close(writing)


def test_a_condition_is_looked_at_once_more_after_the_deadline() -> None:
    until_ns, looks = deadline(500), 0
    while pause(until_ns, 3_600_000_000):  # an hour: no pause is so long that the caller does not look
        looks += 1
    assert looks >= 5, "the last of them after the deadline"
    assert not pause(until_ns, 3_600_000_000)


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
