"""The promises of libraries: by hand, in random workloads of a right lock, and of the same with one mistake."""

import subprocess
from pathlib import Path

import pytest

from lockstorm.base import paths
from tests.helpers.building import make
from tests.helpers.ideal_lock import MISTAKES, RandomWorkload
from tests.helpers.promise_judge import WrittenWorkload, promises_broken, workloads_of

FILES = sorted((paths.ROOT / "tests" / "promises").glob("*.txt"))
BY_HAND = [
    pytest.param(workload, id=f"{file.stem}: {workload.title}")
    for file in FILES
    for workload in workloads_of(file.read_text())
]
RANDOM, RANDOM_SLOW, TOGETHER = 1500, 20000, 500
FEW = 20  # most mistakes are seen at once
MISTAKEN_MOST = 8000  # workloads in which a mistake has to be seen


@pytest.fixture(scope="module")
def program() -> Path:
    return make("build/tests/promises_judge") / "tests" / "promises_judge"


@pytest.mark.parametrize("workload", BY_HAND)
def test_a_workload_by_hand_breaks_what_its_first_line_says(program: Path, workload: WrittenWorkload) -> None:
    [broken] = promises_broken(program, [workload.text])
    assert sorted(each.promise for each in broken) == sorted(workload.broken), broken
    last = len(workload.text.splitlines())
    assert all(each.other <= each.line <= last for each in broken)


def test_each_promise_is_broken_and_kept_by_hand() -> None:
    workloads = [workload for file in FILES for workload in workloads_of(file.read_text())]
    source = (paths.ROOT / "checkers" / "promises" / "promise_judge.c").read_text()
    names = {line.split('"')[1] for line in source.splitlines() if "[PROMISE_" in line}
    assert names == {name for workload in workloads for name in workload.broken}
    for file in FILES:
        assert {bool(workload.broken) for workload in workloads_of(file.read_text())} == {True, False}, file


def test_the_document_names_each_promise() -> None:
    text = (paths.ROOT / "docs" / "promises.md").read_text()
    broken = {name for file in FILES for workload in workloads_of(file.read_text()) for name in workload.broken}
    assert {name for name in broken if f"| `{name}` |" not in text} == set()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("0 A sleep", "line 2: no event: A sleep"),
        ("0 A acquire soon", "line 2: no option of a call: soon"),
        ("0 A ok", "line 2: nothing is under way of client 0, thread 1"),
        ("now idle", "line 2: no time in ms: now"),
        ("facts speed=3", "line 2: no fact: speed=3"),
        ("0 late 7", "line 2: no client: 7"),
    ],
)
def test_a_line_that_is_not_understood_is_named(program: Path, line: str, reason: str) -> None:
    judged = subprocess.run([program], input=f"kept: one\n{line}\n", capture_output=True, text=True)
    assert (judged.returncode, judged.stderr.strip()) == (2, reason)


@pytest.mark.parametrize(
    ("events", "reasons"),
    [
        ("0 A acquire given=2000|0 A ok|2000 B acquire|2000 B ok", ["client-1: its lease was over"]),
        ("0 A acquire given=2000|0 A ok|1000 A release|1000 A ok|1000 B acquire|1000 B ok", []),
        (
            "0 A acquire renewed|0 A ok|9 still A until=3000|3000 B acquire|3000 B ok",
            ["client-1: its lease may have been over: it, or a server, was disturbed for too long to renew it"],
        ),
        ("0 A acquire given=2000|0 A ok|9 gone A|9 B acquire|9 B ok", ["client-1: its client had ended"]),
        (
            "0 A acquire given=2000|0 A ok|9 error A|9 B acquire|9 B ok",
            ["client-1: a command of its client was answered with an error, or its connection ended"],
        ),
        (
            "0 B acquire|0 B ok|1 B release|1 lost B|1 B unknown|2 A acquire|2 A ok|3 B acquire|3 B ok",
            ["client-2: an earlier command of its client may have ended it"],
        ),
        # which of two is stale is named once, also beside a third holder
        (
            "0 A acquire given=2000|0 A ok|2000 B acquire|2000 B ok|2001 B release|2001 B ok|2002 C acquire|2002 C ok",
            ["client-1: its lease was over"],
        ),
        ("0 A acquire read given=2000|0 A ok|2000 B acquire read|2000 B ok", []),  # readers do not exclude each other
        ("0 A acquire given=2000|0 A ok|1000 B acquire|1000 B ok", []),  # that is violated
    ],
)
def test_a_second_hold_that_is_allowed_is_named_with_the_reason(program: Path, events: str, reasons: list[str]) -> None:
    text = "\n".join(["kept: one", "facts owner=thread default=2000 divisor=3", *events.split("|"), ""])
    judged = subprocess.run([program, "--excused"], input=text, capture_output=True, text=True, check=True)
    lines = [line.split("\t") for line in judged.stdout.splitlines()]
    named = [words[-1] for words in lines if words[1] == "excused"]
    assert [sentence.partition("because ")[2] for sentence in named] == [
        reason.replace(": ", " does not certainly hold: ", 1) for reason in reasons
    ]


def alarms(program: Path, seeds: range, mistake: str = "") -> list[str]:
    """The promises broken, with the seed and the sentence."""
    workloads = [RandomWorkload(seed, mistake).text for seed in seeds]
    return [
        f"{each.promise}: seed {seed}: {each.sentence}"
        for seed, broken in zip(seeds, promises_broken(program, workloads), strict=True)
        for each in broken
    ]


@pytest.mark.lengthy(reason="plays 1,500 random workloads")
def test_a_right_lock_breaks_no_promise(program: Path) -> None:
    for first in range(0, RANDOM, TOGETHER):
        assert alarms(program, range(first, first + TOGETHER)) == []


@pytest.mark.slow(reason="20,000 random workloads", seconds=60)
def test_a_right_lock_breaks_no_promise_in_many_workloads(program: Path) -> None:
    for first in range(RANDOM, RANDOM + RANDOM_SLOW, TOGETHER):
        assert alarms(program, range(first, first + TOGETHER)) == []


@pytest.mark.parametrize(("mistake", "promises"), MISTAKES.items(), ids=list(MISTAKES))
def test_one_mistake_of_the_lock_is_found(program: Path, mistake: str, promises: tuple[str, ...]) -> None:
    first, together = 0, FEW
    while first < MISTAKEN_MOST:
        found = alarms(program, range(first, first + together), mistake)
        if any(each.startswith(f"{name}: ") for each in found for name in promises):
            return
        first, together = first + together, min(2 * together, TOGETHER)
    pytest.fail(f"not found in {MISTAKEN_MOST} workloads")
