"""Threads race for mutexes, conditions, barriers and semaphores, by thousands of calls of futex; some waits have
limits, some are cancelled. No wake is lost, and what they have done together is what they do natively."""

import os
import re
import subprocess
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
