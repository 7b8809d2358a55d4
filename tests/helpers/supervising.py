"""Programs under the supervisor, alone: how a test starts them, and the test programs of each language."""

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from lockstorm.base import paths
from lockstorm.process.cores import on_core
from tests.helpers.building import make

PROGRAMS = paths.ROOT / "tests" / "programs"
GO = "/usr/local/go/bin"
UNSUPERVISED = 75  # exit status of the supervisor
# What the shipped adapters use, so that Java starts fast.
JAVA = ("java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")


def supervisor_command(*words: str | Path, seed: int | None = None, trace: Path | None = None) -> list[str]:
    options = ["--alone"]
    options += [] if seed is None else ["--seed", str(seed)]
    options += [] if trace is None else ["--trace", str(trace)]
    return [paths.program("supervisor"), *options, *map(str, words)]


def supervised(
    *words: str | Path,
    seed: int | None = None,
    trace: Path | None = None,
    environment: dict[str, str] | None = None,
    limit_s: float = 120,
) -> subprocess.CompletedProcess[str]:
    """Runs a program under the supervisor, on one core, as in a trial. After `limit_s` it is killed with all that it
    has started, and the test fails."""
    command = supervisor_command(*words, seed=seed, trace=trace)
    with on_core(max(os.sched_getaffinity(0))):
        running = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, **(environment or {})},
        )
    try:
        output, errors = running.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGKILL)
        output, errors = running.communicate()
        pytest.fail(f"not over after {limit_s} s: {command}\n{output}{errors}")
    return subprocess.CompletedProcess(command, running.returncode, output, errors)


def output_of(*words: str | Path, **options: object) -> str:
    """What a program printed that ended well, and about which the supervisor had nothing to say."""
    done = supervised(*words, **options)  # type: ignore[arg-type]
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


@dataclass(frozen=True)
class Language:
    """How a test program is built and started."""

    name: str
    needs: str  # the command without which its tests are skipped

    def command(self, program: str) -> list[str]:
        """Of a program of tests/programs, which is named without its suffix. It is built when it has changed."""
        if not shutil.which(self.needs, path=f"{os.environ['PATH']}:{GO}"):
            pytest.skip(f"{self.needs} is not installed")
        match self.name:
            case "python":
                return [sys.executable, str(PROGRAMS / f"{program}.py")]
            case "node":
                return ["node", str(PROGRAMS / f"{program}.js")]
            case "java":
                name = "".join(word.capitalize() for word in program.split("_"))
                classes = make(f"build/tests/java/{name}.class") / "tests" / "java"
                return [*JAVA, "-cp", str(classes), name]
            case "go":
                return [str(make(f"build/tests/go/{program}") / "tests" / "go" / program)]
            case _:
                return [str(make(f"build/tests/{program}") / "tests" / program)]


LANGUAGES = {
    each.name: each
    for each in (
        Language("c", "cc"),
        Language("python", sys.executable),
        Language("node", "node"),
        Language("java", "javac"),
        Language("go", "go"),
    )
}
