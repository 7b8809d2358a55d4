"""Programs that make random calls with random arguments, while other threads change and unmap the memory that they
name, and that start and kill threads and processes. The supervisor neither crashes nor hangs nor touches what nobody
named; it is built with AddressSanitizer and UndefinedBehaviorSanitizer.

LOCKSTORM_HOSTILE_PROGRAMS=1000   number of programs (default 40), from seed LOCKSTORM_HOSTILE_SEED (1) on
"""

import os
from pathlib import Path

import pytest

from tests.helpers.building import make, need_clang
from tests.helpers.supervising import UNSUPERVISED, supervised

COUNT = int(os.environ.get("LOCKSTORM_HOSTILE_PROGRAMS", "40"))
FIRST = int(os.environ.get("LOCKSTORM_HOSTILE_SEED", "1"))
MANY = 1000
CALLS = "200"
LIMIT_S = 60
REPORTED = 99
BY_ALARM = 128 + 14  # a wait without an end, which its alarm ended
# What ends a program that does such things: its own doing, or a call that cannot be followed.
STATUSES = {0, 1, UNSUPERVISED, BY_ALARM, 128 + 6, 128 + 7, 128 + 9, 128 + 11}


def play(first: int, count: int, reports: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need_clang()
    program = make("build/tests/hostile_calls") / "tests" / "hostile_calls"
    monkeypatch.setenv("LOCKSTORM_PROGRAMS", str(make("build/asan/bin/supervisor", sanitizer="asan")))
    for variable in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
        monkeypatch.setenv(variable, f"exitcode={REPORTED}:log_path={reports}/report")
    for seed in range(first, first + count):
        done = supervised(program, str(seed), CALLS, limit_s=LIMIT_S)
        assert list(reports.iterdir()) == [], f"seed {seed}"
        assert done.returncode in STATUSES, f"seed {seed}: {done}"
        assert done.stdout in ("", "0 changed\n"), f"seed {seed}: {done}"
        assert (done.returncode == UNSUPERVISED) == (done.stderr != ""), f"seed {seed}: {done}"


@pytest.mark.lengthy("builds the supervisor with a sanitizer")
def test_hostile_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play(FIRST, COUNT, tmp_path, monkeypatch)


@pytest.mark.slow("plays a thousand programs", seconds=150)
def test_many_hostile_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play(FIRST + COUNT, MANY, tmp_path, monkeypatch)
