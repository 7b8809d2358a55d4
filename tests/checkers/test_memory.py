"""How much memory a judgement takes: pages of the history that are behind it are given back."""

import subprocess
import sys
from pathlib import Path

import pytest

from lockstorm.base import paths
from tests.helpers.building import make

SMALL, LARGE = 1_000_000, 8_000_000  # records of 64 bytes
MORE_MIB = 8  # at most; the records of the difference have 427 MiB

# The highest resident memory of a program counts from its parent's: this parent is a small one.
WAITS = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE)
assert done.returncode == 0, done
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def resident_mib(history: Path) -> float:
    judged = [sys.executable, "-S", "-c", WAITS, str(paths.program("check")), str(history)]
    return int(subprocess.run(judged, capture_output=True, check=True).stdout) / 1024


@pytest.mark.slow("writes half a gigabyte", 8)
def test_a_judgement_takes_no_more_memory_for_a_history_eight_times_as_long(tmp_path: Path) -> None:
    writer = make("build/bench/make_history") / "bench" / "make_history"
    took = {}
    for records in (SMALL, LARGE):
        history = tmp_path / "history"
        subprocess.run([writer, history, str(records)], check=True)
        took[records] = resident_mib(history)
        history.unlink()
    assert took[LARGE] < took[SMALL] + MORE_MIB, took
