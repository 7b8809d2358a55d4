"""The machine on which measurements were made."""

import os
import platform
import subprocess
from pathlib import Path

import msgspec

from lockstorm.base import paths
from lockstorm.base.errors import Inconclusive


class Machine(msgspec.Struct, frozen=True):
    cpu: str
    cores: int
    kernel: str
    compiler: str
    redis: str  # version of redis-server
    commit: str


def machine() -> Machine:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    models = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return Machine(
        cpu=next(models, platform.machine()),
        cores=os.cpu_count() or 0,
        kernel=platform.release(),
        compiler=_first_line(os.environ.get("CC", "gcc"), "--version"),
        redis=_redis(),
        commit=_first_line("git", "describe", "--always", "--dirty"),
    )


def _redis() -> str:
    try:
        return _first_line(paths.redis_server(), "--version").split(" sha=")[0]
    except Inconclusive:
        return "no redis-server"


def _first_line(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=paths.ROOT)
    except OSError:
        return "unknown"
    return (done.stdout.splitlines() or ["unknown"])[0]
