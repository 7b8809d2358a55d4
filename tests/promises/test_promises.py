"""What each call of a library promises (checkers/promises): workloads by hand, bugs of real libraries, a right lock
that is simulated and never accused, and the same with one mistake, which is found."""

from pathlib import Path

import pytest

from tests.helpers.ideal_lock import MISTAKES, RandomWorkload
from tests.helpers.promise_judge import WrittenWorkload, promises_broken, workloads_of

WRITTEN = [
    (path.stem, workload)
    for path in sorted(Path(__file__).parent.glob("*.txt"))
    for workload in workloads_of(path.read_text())
]
RIGHT, RIGHT_OF_ALL = 2_000, 20_000
BATCH, WRONG = 400, 8_000  # workloads that each mistake is looked for in, at most


@pytest.mark.parametrize(
    "workload", [each for _, each in WRITTEN], ids=[f"{name}-{each.title}" for name, each in WRITTEN]
)
def test_a_workload_by_hand_is_judged_as_written(workload: WrittenWorkload) -> None:
    (broken,) = promises_broken([workload.text])
    assert {each.promise for each in broken} == set(workload.broken), [each.sentence for each in broken]


def test_each_promise_is_broken_by_a_workload_and_kept_by_another() -> None:
    broken = {promise for _, workload in WRITTEN for promise in workload.broken}
    assert len(broken) == 14
    kept = {name for name, workload in WRITTEN if not workload.broken}
    assert kept == {name for name, _ in WRITTEN}


def accused(seeds: range) -> dict[int, list[str]]:
    judged = promises_broken([RandomWorkload(seed).text for seed in seeds])
    return {seed: [each.sentence for each in broken] for seed, broken in zip(seeds, judged, strict=True) if broken}


def test_a_right_lock_is_not_accused() -> None:
    assert accused(range(RIGHT)) == {}


@pytest.mark.slow("20,000 workloads of a right lock", seconds=30)
def test_a_right_lock_is_not_accused_in_many_workloads() -> None:
    assert accused(range(RIGHT, RIGHT_OF_ALL)) == {}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_lock_with_one_mistake_is_accused_of_it(mistake: str) -> None:
    for first in range(0, WRONG, BATCH):
        judged = promises_broken([RandomWorkload(seed, mistake).text for seed in range(first, first + BATCH)])
        if {each.promise for broken in judged for each in broken} & set(MISTAKES[mistake]):
            return
    pytest.fail(f"not found in {WRONG} workloads")
