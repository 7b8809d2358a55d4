"""`make nightly`: all tests, and what takes hours. Each step has a bound; one that fails or takes longer fails the
night, and the next one begins."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from lockstorm.base import paths

ALL_TESTS = ("./lockstorm", "test", "--all")
GRACE_S = 60.0  # for a step to tidy up after SIGINT


@dataclass(frozen=True)
class Step:
    name: str
    minutes: float  # at most
    command: tuple[str, ...]


def make(*words: str, minutes: float) -> Step:
    return Step(" ".join(words), minutes, ("make", "-s", *words))


STEPS = (
    Step("all tests", 90, ALL_TESTS),
    *(
        Step(f"tests in real time, again ({turn})", 30, ("./lockstorm", "test", "--all", "-m", "waits"))
        for turn in (1, 2)
    ),
    make("sanitize", minutes=60),
    make("fuzz", "FUZZ_SECONDS=300", minutes=45),
    make("oracle", minutes=60),
    make("porcupine", minutes=60),
    make("mutants-short", minutes=20),
    make("mutants", "MUTANTS=30", minutes=120),
    make("servers", minutes=30),
    make("explore-soak", "SCHEDULES=20000", minutes=60),
    make("soak", minutes=180),
)


def outcome(step: Step) -> str:
    """Empty if it has passed within its bound. What it has started ends with it: each step has a process group."""
    started = subprocess.Popen(step.command, cwd=paths.ROOT, start_new_session=True)
    try:
        status = started.wait(step.minutes * 60)
        return f"ended with {status}" if status else ""
    except subprocess.TimeoutExpired:
        return f"took more than {step.minutes:g} minutes"
    finally:
        if started.poll() is None:
            stop(started)


def stop(started: subprocess.Popen[bytes]) -> None:
    os.killpg(started.pid, signal.SIGINT)
    try:
        started.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        os.killpg(started.pid, signal.SIGKILL)
        started.wait()


def night(steps: Sequence[Step]) -> int:
    lines, failed = [], False
    for step in steps:
        began = time.monotonic()
        print(f"--- {step.name} (at most {step.minutes:g} minutes)", flush=True)
        wrong = outcome(step)
        failed |= bool(wrong)
        lines.append(f"{(time.monotonic() - began) / 60:6.1f} min  {step.name}: {wrong or 'passed'}")
    print("\n".join(["---", *lines]), flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(night(STEPS))
