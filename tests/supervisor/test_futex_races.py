"""Threads race for mutexes, conditions, barriers and semaphores, by thousands of calls of futex; some waits have
limits, some are cancelled. No wake is lost, and what they have done together is what they do natively."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.supervising import LANGUAGES, output_of

FUTEX = 202  # on x86-64
LEAST_CALLS = 5000  # glibc 2.36 asks 10,400 times, 2.41 7,400 times
ROUNDS = int(os.environ.get("LOCKSTORM_FUTEX_ROUNDS", "400"))


@pytest.mark.parametrize("kind", [[], ["pi"]], ids=["plain", "priority inheritance"])
def test_races_end_as_they_do_natively(kind: list[str], tmp_path: Path) -> None:
    command = [*LANGUAGES["c"].command("futex_races"), str(ROUNDS), *kind]
    native = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert native.returncode == 0, native.stdout
    assert output_of(*command, trace=tmp_path / "calls") == native.stdout
    futex = re.findall(rf" {FUTEX}\(", (tmp_path / "calls").read_text())
    assert len(futex) >= LEAST_CALLS


# As BEAM's schedulers wait actively: the limit of each wait is over when it begins.
LOOKS = """
import ctypes, time
word, nothing, call, count = ctypes.c_uint32(), (ctypes.c_long * 2)(), ctypes.CDLL(None).syscall, 0
began = time.monotonic_ns()
while count < 5000 and time.monotonic_ns() - began < 3_000_000:
    call(202, ctypes.byref(word), 128, 0, nothing, None, 0)  # FUTEX_WAIT, private
    count += 1
print(count, time.monotonic_ns() - began)
"""


def test_waits_whose_limit_is_over_are_looks() -> None:
    # The 200th look at one time takes a millisecond, and ends 50 us late as each wait does.
    assert output_of(sys.executable, "-c", LOOKS) == "600 3150000\n"
