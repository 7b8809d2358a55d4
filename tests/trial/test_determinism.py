"""In virtual time the same seed gives the same history, byte for byte, however busy the machine is."""

import hashlib
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lockstorm.scenario.play import play
from lockstorm.trial.settings import TrialSettings

REPETITIONS = 100


@contextmanager
def cpu_burner() -> Iterator[None]:
    """Two processes that use all the processor time that they get."""
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


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


@pytest.mark.parametrize("scenario", ["lost-credits", "contention", "gc-pause-read"])
@pytest.mark.parametrize(
    "lock",
    [
        "blpop-renew",
        "fair",
        "multi",
        "none",
        "permit-semaphore",
        "pubsub",
        "redlock-renew",
        "replica-wait",
        "set-nx-px",
        "set-nx-px-fenced",
    ],
)
def test_the_same_seed_gives_the_same_history(scenario: str, lock: str, tmp_path: Path) -> None:
    request = TrialSettings(lock, scenario, seed=11)
    with cpu_burner():
        histories = {history_of(request, tmp_path / "history") for _ in range(3)}
    assert len(histories) == 1


def test_another_seed_gives_another_history(tmp_path: Path) -> None:
    histories = {history_of(TrialSettings("set-nx-px", "contention", seed=seed), tmp_path / "h") for seed in range(5)}
    assert len(histories) == 5
