"""A second judge that the project did not write: Porcupine decides the same histories, with models of its own.

LOCKSTORM_PORCUPINE_HISTORIES=100000   number of random histories per model (default 1,000; `make porcupine`)
LOCKSTORM_PORCUPINE_SEED=7             seed of the first file of histories (a failure names the seed; default 1)
"""

import os
import random
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from lockstorm.base import paths
from lockstorm.native.linearizability import MODELS
from tests.checkers.test_linearizable import HISTORIES, POLICIES, about, program_at_hand
from tests.helpers.building import make
from tests.helpers.random_operations import (
    OWNED,
    HistoryMaker,
    HistoryReading,
    edn,
    for_porcupine,
    json_lines,
)

RANDOM_HISTORIES = int(os.environ.get("LOCKSTORM_PORCUPINE_HISTORIES", "1000"))
SEED = int(os.environ.get("LOCKSTORM_PORCUPINE_SEED", "1"))
FILES = 12  # at least: one for each way to read ambiguous outcomes
LARGEST_FILE = 1000
GO = "/usr/local/go/bin"
TIMEOUTS = ("unknown", "not-happened")


@pytest.fixture(scope="session")
def judges() -> Path:
    if not shutil.which("go", path=f"{os.environ['PATH']}:{GO}"):
        pytest.skip("Go is not installed")
    return make("build/tests/porcupine_judge") / "tests"


def lines_of(command: list[str], **options: str) -> list[str]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, **options)  # type: ignore[call-overload]
    assert done.returncode == 0, (command, done.stderr)
    return str(done.stdout).splitlines()


def reading_of(model: str, number: int) -> HistoryReading:
    """Each file of histories is read by other policies."""
    return HistoryReading(
        model,
        permits=1 + number % 3 if model == "semaphore" else 1,
        leases=model != "register" and number % 2 == 1,
        failed_release=number // 2 % 3,
        timeout_not_happened=number // 6 % 2 == 1,
    )


def made(reading: HistoryReading, seed: int, count: int) -> list[HistoryMaker]:
    rng, makers, first, position = random.Random(seed), list[HistoryMaker](), 0, 0
    for _ in range(count):
        maker = HistoryMaker(rng, reading, first, position)
        maker.make()
        makers.append(maker)
        first += 100
        position += len(maker.events)
    return makers


def ours(path: Path, reading: HistoryReading) -> list[str]:
    words = (reading.permits, int(reading.leases), reading.failed_release, int(reading.timeout_not_happened))
    return lines_of([str(program_at_hand("linearizable_each")), reading.model, *map(str, words), str(path)])


def theirs(judges: Path, operations: str, model: str, permits: int, leases: bool) -> list[str]:
    options = [f"-model={model}", f"-permits={permits}", f"-leases={str(leases).lower()}"]
    return lines_of([str(judges / "porcupine_judge"), *options], input=operations)


def exported(path: Path, reading: HistoryReading) -> list[str]:
    """What our own export makes of a file."""
    policies = (f"{POLICIES[reading.failed_release]}", f"--acquire-timeout={TIMEOUTS[reading.timeout_not_happened]}")
    return lines_of([paths.program("linearize"), f"--model={reading.model}", "--write=porcupine", *policies, str(path)])


def compare(judges: Path, path: Path, reading: HistoryReading, seed: int, count: int) -> Counter[str]:
    makers = made(reading, seed, count)
    number_of: dict[int, int] = {}
    last = sum(len(maker.events) for maker in makers)
    lines = [line for name, maker in enumerate(makers) for line in for_porcupine(maker, str(name), number_of, last)]
    path.write_text("".join(edn(maker, str(name)) for name, maker in enumerate(makers)))
    operations = json_lines(lines)
    if not reading.leases:
        assert exported(path, reading) == operations.splitlines(), (reading, seed)
    verdicts = dict(line.split() for line in ours(path, reading))
    leases = reading.leases and reading.model in OWNED  # else their ends are releases
    others = dict(line.split() for line in theirs(judges, operations, reading.model, reading.permits, leases))
    assert len(verdicts) == count
    for name, maker in enumerate(makers):
        # An object without operations is not in the export; it is linearizable.
        verdict, other = verdicts[str(name)], others.get(str(name), "true")
        assert verdict == other, f"we say {verdict}, Porcupine {other}: {reading}, seed {seed}\n{edn(maker, str(name))}"
    return Counter(verdicts.values())


@pytest.mark.parametrize("model", MODELS)
def test_porcupine_agrees_on_random_histories(judges: Path, model: str, tmp_path: Path) -> None:
    count = min(LARGEST_FILE, -(-RANDOM_HISTORIES // FILES))
    verdicts, number = Counter[str](), 0
    while verdicts.total() < RANDOM_HISTORIES:
        path = tmp_path / "histories.edn"
        verdicts += compare(judges, path, reading_of(model, number), SEED + number, count)
        number += 1
    print(f"{model}: {verdicts.total()} histories, {verdicts['false']} of them not linearizable: the same verdicts")
    assert all(verdicts[each] > verdicts.total() / 5 for each in ("true", "false")), (model, verdicts)


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
def test_porcupine_agrees_on_a_history_written_by_hand(judges: Path, path: Path) -> None:
    first = about(path)
    words = first.get("args", [])
    permits = int(words[words.index("--permits") + 1]) if "--permits" in words else 1
    reading = HistoryReading(first["model"])
    leases = "--leases" in words
    said = theirs(judges, "\n".join(exported(path, reading)), first["model"], permits, leases)
    holds = all(line.endswith("true") for line in said)
    assert holds == (first["expect"] == "holds"), (first["about"], said)


def test_another_question_gets_another_answer(judges: Path, tmp_path: Path) -> None:
    """Asked about a semaphore with one permit more, Porcupine calls fewer histories impossible."""
    reading = HistoryReading("semaphore", permits=2)
    makers = made(reading, SEED, 200)
    path, number_of = tmp_path / "histories.edn", dict[int, int]()
    path.write_text("".join(edn(maker, str(name)) for name, maker in enumerate(makers)))
    lines = [line for name, maker in enumerate(makers) for line in for_porcupine(maker, str(name), number_of, 10**6)]
    verdicts = dict(line.split() for line in ours(path, reading))
    others = dict(line.split() for line in theirs(judges, json_lines(lines), "semaphore", permits=3, leases=False))
    differ = {name for name, verdict in others.items() if verdict != verdicts[name]}
    assert differ and all(others[name] == "true" for name in differ)
