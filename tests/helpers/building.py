"""Builds targets of the Makefile for tests, one process at a time."""

import fcntl
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from lockstorm.base import paths

# libFuzzer and the sanitizers are clang's; any report ends the process.
SANITIZERS = {
    "asan": "-fsanitize=address,undefined -fno-sanitize-recover=all",
    "tsan": "-fsanitize=thread -fno-sanitize-recover=all",
}


def built(sanitizer: str | None = None) -> Path:
    """The directory of a build."""
    return paths.ROOT / "build" / (sanitizer or "")


@cache
def make(*targets: str, sanitizer: str | None = None) -> Path:
    """Builds targets of the Makefile, once in a run, and returns the build directory. The launcher and other workers
    wait meanwhile. To find that nothing is to be done takes make a third of a second."""
    variables = []
    if sanitizer:
        variables = ["CC=clang", f"EXTRA={SANITIZERS[sanitizer]}", f"BUILD=build/{sanitizer}"]
    with (paths.ROOT / "build" / "set-up.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        command = ["make", "-s", "-j", str(os.cpu_count() or 1), *variables, *targets]
        done = subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return built(sanitizer)


def need_clang() -> None:
    if not shutil.which("clang"):
        pytest.skip("clang is not installed")
