"""Workloads as text for build/tests/promises_judge, and what it says about them (tests/promises/README.md)."""

import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class BrokenPromise:
    promise: str
    line: int
    other: int
    expected_ms: int
    found_ms: int
    sentence: str


@dataclass(frozen=True)
class WrittenWorkload:
    title: str
    broken: tuple[str, ...]
    text: str


def workloads_of(text: str) -> list[WrittenWorkload]:
    """Each begins with a line "kept: title" or "broken PROMISE...: title"."""
    found: list[WrittenWorkload] = []
    for block in text.split("\n\n"):
        head, _, title = block.strip().partition("\n")[0].partition(": ")
        if head:
            found.append(WrittenWorkload(title, tuple(head.split()[1:]), block.strip() + "\n"))
    return found


def promises_broken(program: Path, workloads: list[str]) -> list[list[BrokenPromise]]:
    """Of each workload, in the order of the events. Lines count from the first workload's first one."""
    text = "\n".join(workloads)
    judged = subprocess.run([program], input=text, capture_output=True, text=True, check=False)
    assert judged.returncode == 0, judged.stderr
    found: list[list[BrokenPromise]] = [[] for _ in workloads]
    for line in judged.stdout.splitlines():
        number, promise, at, other, expected_ms, found_ms, sentence = line.split("\t")
        found[int(number) - 1].append(
            BrokenPromise(promise, int(at), int(other), int(expected_ms), int(found_ms), sentence)
        )
    return found
