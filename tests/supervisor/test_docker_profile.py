"""Virtual time of libraries under Docker's default seccomp profile: it works, or a sentence names the flag to give."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from lockstorm.base import paths
from tests.helpers import docker_profile

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the profile's numbers are those of x86-64")
EXAMINE = "from lockstorm.cli.commands.doctor_command import live_for_an_hour; print(live_for_an_hour())"


def in_docker(capability: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, docker_profile.__file__, capability, *words]
    environment = {**os.environ, "PYTHONPATH": paths.python_path()}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)


def test_the_flag_that_is_missing_is_named() -> None:
    done = in_docker("none", sys.executable, "-c", EXAMINE)
    assert done.returncode == 1
    assert done.stderr.endswith("(pidfd_getfd: Operation not permitted); in Docker, --cap-add SYS_PTRACE allows it\n")


def test_a_trial_says_which_flag_is_missing() -> None:
    done = in_docker("none", sys.executable, "-m", "lockstorm", "run", "gc-pause", "--adapter", "redis-py", "--quiet")
    assert done.returncode == 3
    assert "in Docker, --cap-add SYS_PTRACE allows it" in done.stdout


def test_with_the_flag_it_works_and_what_is_left_to_chance_is_said() -> None:
    done = in_docker("SYS_PTRACE", sys.executable, "-c", EXAMINE)
    assert (done.returncode, done.stderr) == (0, "")
    assert "waited for an hour at once" in done.stdout
    assert "addresses cannot be fixed here" in done.stdout and "seccomp=unconfined" in done.stdout


def test_without_the_profile_addresses_are_fixed() -> None:
    done = subprocess.run([sys.executable, "-c", EXAMINE], capture_output=True, text=True, timeout=120)
    assert done.stdout == "an unmodified program waited for an hour at once, by its own clock\n"


@pytest.mark.parametrize("library", ["redis-py", "redsync"])
def test_the_history_is_the_same_as_without_the_profile(library: str, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "lockstorm", "run", "gc-pause", "--adapter", library, "--quiet", "-o"]
    within = in_docker("SYS_PTRACE", *words, str(tmp_path / "within"))
    environment = {**os.environ, "PYTHONPATH": paths.python_path()}
    outside = subprocess.run([*words, str(tmp_path / "outside")], capture_output=True, timeout=120, env=environment)
    assert (within.returncode, outside.returncode) == (1, 1), within.stderr
    assert (tmp_path / "within").read_bytes() == (tmp_path / "outside").read_bytes()
