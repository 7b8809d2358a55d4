"""In virtual time the same seed gives the same history, byte for byte, however busy the machine is."""

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from lockstorm.scenario.play import play
from lockstorm.trial.settings import TrialSettings
from tests.helpers.busy import cpu_burner
from tests.helpers.daily import daily
from tests.helpers.support import ENVIRONMENT, processes_below, short_directory

REPETITIONS = 100


def history_of(request: TrialSettings, path: Path) -> str:
    result = play(request, save=path)
    assert result.exit in (0, 1), result.sentence
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    path.unlink()
    return digest


@pytest.mark.slow("a hundred trials beside a busy processor", seconds=15)
def test_a_hundred_verdicts_beside_a_cpu_burner_are_one(tmp_path: Path) -> None:
    request = TrialSettings("set-nx-px", "gc-pause", store="open", seed=7)
    with cpu_burner():
        histories = {history_of(request, tmp_path / "history") for _ in range(REPETITIONS)}
    assert len(histories) == 1


SCENARIOS = ("lost-credits", "contention", "gc-pause-read")
# Each lock with the scenario in which it is played every day.
DAILY = {
    "blpop-renew": "gc-pause-read",
    "fair": "gc-pause-read",
    "multi": "lost-credits",
    "none": "contention",
    "permit-semaphore": "gc-pause-read",
    "pubsub": "contention",
    "redlock-renew": "lost-credits",
    "replica-wait": "contention",
    "set-nx-px": "lost-credits",
    "set-nx-px-fenced": "contention",
}
EVERY = [(scenario, lock) for lock in DAILY for scenario in SCENARIOS]


@pytest.mark.parametrize(
    ("scenario", "lock"),
    daily(EVERY, [(scenario, lock) for lock, scenario in DAILY.items()], "each lock is played in one scenario", 3),
)
def test_the_same_seed_gives_the_same_history(scenario: str, lock: str, tmp_path: Path) -> None:
    request = TrialSettings(lock, scenario, seed=11)
    with cpu_burner():
        histories = {history_of(request, tmp_path / "history") for _ in range(3)}
    assert len(histories) == 1


def test_another_seed_gives_another_history(tmp_path: Path) -> None:
    histories = {history_of(TrialSettings("set-nx-px", "contention", seed=seed), tmp_path / "h") for seed in range(5)}
    assert len(histories) == 5


# A trial whose driver waits for a line before the step in which its server will not answer for a long time.
AWAITED = """
import sys
from lockstorm.trial import trial_scheduler
from tests.helpers.support import trial
trial_scheduler.TURN_LIMIT_MS = 5000  # less than the machine will stand still
with trial("pubsub", seed=5) as running:
    one, two = running.clients(2)
    print(running.server.process.pid, flush=True)
    sys.stdin.readline()
    {step}
    results = one.acquire(), two.acquire(wait_ms=500), one.release(), two.acquire()
    print(*(result.outcome.name for result in results))
    running.save(running.sandbox.directory / "kept")
    print((running.sandbox.directory / "kept").read_bytes().hex())
"""
STEPS = {
    "a client waits for its answer": "assert one.acquire().ok and one.release().ok",
    "the trial waits until nothing is in flight": "running.settle()",
}
STANDS_S, LATER_S = 11.0, 0.5


@contextmanager
def driver_of(step: str) -> Iterator[tuple["subprocess.Popen[bytes]", int, Path]]:
    """A trial's driver, the process of the trial's server, and the directory of the trial's other processes."""
    with short_directory() as directory:
        command = [sys.executable, "-c", AWAITED.format(step=step)]
        environment = {**ENVIRONMENT, "TMPDIR": str(directory)}
        with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as driver:
            assert driver.stdout
            try:
                yield driver, int(driver.stdout.readline()), directory
            finally:
                driver.kill()
                signal_all(processes_below(directory), signal.SIGCONT)


def signal_all(processes: Iterable[int], number: signal.Signals) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, number)


def history_left_by(driver: "subprocess.Popen[bytes]") -> bytes:
    outcomes, history = driver.communicate(b"\n", timeout=600)[0].splitlines()
    assert outcomes == b"OK REFUSED OK OK"
    return history


@pytest.mark.lengthy("stops two trials for 11 s")
def test_a_machine_that_stands_still_changes_nothing() -> None:
    """All processes of a trial are stopped together, while some of them wait for a server's answer, and continued
    together; the server is the last to be given a processor."""
    undisturbed = {}
    for step in STEPS.values():
        with driver_of(step) as (driver, _, _):
            undisturbed[step] = history_left_by(driver)
    asks, settles = STEPS.values()
    with driver_of(asks) as one, driver_of(settles) as two:
        stopped = []
        for driver, server, directory in (one, two):
            os.kill(server, signal.SIGSTOP)
            assert driver.stdin
            driver.stdin.write(b"\n")
            driver.stdin.flush()
            stopped += [driver.pid, *(pid for pid in processes_below(directory) if pid != server)]
        time.sleep(LATER_S)  # all of them come to where they wait for the server
        signal_all(stopped, signal.SIGSTOP)
        time.sleep(STANDS_S)
        signal_all(stopped, signal.SIGCONT)
        time.sleep(LATER_S)
        signal_all((one[1], two[1]), signal.SIGCONT)
        assert history_left_by(one[0]) == undisturbed[asks]
        assert history_left_by(two[0]) == undisturbed[settles]
