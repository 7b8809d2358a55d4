"""The same seed: the same random numbers, hashes and addresses, the same order of threads, the same calls at the same
times. Another seed: other random numbers. In each language, with its garbage collector at work."""

import os
import platform
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.helpers.supervising import LANGUAGES, output_of

NAMES_PROCESSES = {61, 62, 129, 200, 234, 247, 297}  # wait4, kill, tkill, tgkill, waitid and the like, on x86-64
FUTEX, JOIN = 202, "109"  # the wait for the end of a thread, whose word is its id
EXECVE = 59  # the first one is the supervisor's own child's, whose addresses are not fixed yet
CALL = re.compile(r"(\S+) (\d+)/(\d+) (\d+)\((.*)\)")
# The sources that each line names; those of Java that do not follow from the seed follow from the time alone.
BY_TIME = {"java": ("hash", "map", "threads"), "c": ("addresses", "threads"), "python": ("address",)}
# Before Go 1.20 math/rand begins with 1, whatever the seed, and goroutines follow from it.
GO_OF_CHANCE, BY_CONSTANT = (1, 20), ("goroutines",)
STORMS = {"node": 300, "java": 400, "go": 1000}


def calls_of(trace: Path) -> list[str]:
    """The lines of a trace. Ids of processes and threads, which are the machine's, become their places in the order of
    appearance."""
    places: dict[str, str] = {}
    calls = []
    lines = [CALL.fullmatch(line) for line in trace.read_text().splitlines()]
    matches = [line.groups() for line in lines if line]
    assert len(matches) == len(lines)
    for _, process, thread, *_ in matches:
        places.setdefault(f"{int(process):x}", f"#{len(places)}")
        places.setdefault(f"{int(thread):x}", f"#{len(places)}")
    for moment, process, thread, number, arguments in matches:
        values = [] if int(number) == EXECVE else arguments.split(", ")
        if int(number) in NAMES_PROCESSES or (int(number) == FUTEX and values[1] == JOIN):
            values = [places.get(value, value) for value in values]
        calls.append(f"{moment} {places[f'{int(process):x}']}/{places[f'{int(thread):x}']} {number} {values}")
    return calls


def by_time(language: str) -> tuple[str, ...]:
    return BY_CONSTANT if language == "go" and go_version() < GO_OF_CHANCE else BY_TIME.get(language, ())


@cache
def go_version() -> tuple[int, ...]:
    said = subprocess.run(["go", "version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"go(\d+)\.(\d+)", said)
    assert found, said
    return tuple(map(int, found.groups()))


def run_twice(language: str, tmp_path: Path, *arguments: str) -> str:
    command = [*LANGUAGES[language].command("chance"), *arguments]
    first, second = (output_of(*command, seed=7, trace=tmp_path / each) for each in ("first", "second"))
    assert first.splitlines() == second.splitlines()
    one, other = calls_of(tmp_path / "first"), calls_of(tmp_path / "second")
    assert one == other, next(pair for pair in zip(one, other, strict=False) if pair[0] != pair[1])
    return first


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_the_same_seed_makes_the_same_calls_and_another_seed_other_numbers(language: str, tmp_path: Path) -> None:
    seven = run_twice(language, tmp_path).splitlines()
    eight = output_of(*LANGUAGES[language].command("chance"), seed=8).splitlines()
    follow = [(one, other) for one, other in zip(seven, eight, strict=True)
              if not one.startswith(by_time(language))]  # fmt: skip
    assert follow
    assert [one for one, other in follow if one == other] == []


@pytest.mark.slow("fills and frees memory for long", seconds=20)
@pytest.mark.parametrize("language", sorted(STORMS))
def test_a_storm_of_threads_beside_a_garbage_collector(language: str, tmp_path: Path) -> None:
    rounds = int(os.environ.get("LOCKSTORM_STORM_ROUNDS", STORMS[language]))
    run_twice(language, tmp_path, str(rounds))


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the counter of x86-64")
def test_the_counter_that_old_go_programs_begin_with_reads_0() -> None:
    program = LANGUAGES["c"].command("go_counter")
    alone = subprocess.run(program, capture_output=True, text=True, check=True).stdout.split()
    assert int(alone[1]) > 0 and int(alone[3]) > 0
    assert output_of(*program, seed=7).split() == ["rdtscp", "0", "rdtsc", "0"]
