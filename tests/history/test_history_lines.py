"""Histories in JSON Lines that were written by hand or by another tool."""

import json
import subprocess
from pathlib import Path

import pytest

from lockstorm.base import paths

HEADER = '{"history": "lockstorm", "version": 1}'
STEPS = (
    ("A", "acquire-invoke", 1, ""),
    ("A", "acquire-return", 1, "ok"),
    ("B", "acquire-invoke", 1, ""),
    ("B", "acquire-return", 1, "ok"),
)


def told(lines: list[str], path: Path) -> "subprocess.CompletedProcess[str]":
    path.write_text("\n".join([HEADER, *lines, ""]))
    return subprocess.run([paths.program("check"), str(path)], capture_output=True, text=True)


def records() -> list[str]:
    return [
        json.dumps({"kind": kind, "actor": actor, "name": "stock", "op": op, "outcome": outcome or "unknown"})
        for actor, kind, op, outcome in STEPS
    ]


@pytest.mark.parametrize("first", [[], ['{"kind": "text", "text": "A"}'], ['{"kind": "note"}']])
def test_a_text_at_index_0_names_nobody(first: list[str], tmp_path: Path) -> None:
    """0 means nobody. An actor whose name stood there had no name, and the assumptions about it were not checked."""
    done = told([*first, *records()], tmp_path / "history.jsonl")
    assert done.returncode == 1, done.stderr
    evidence = json.loads(done.stdout)["verdict"]["mutual_exclusion"]["evidence"]
    assert "B was granted the lock" in evidence[0]["text"] and "while A " in evidence[0]["text"]
    again = told([*first, records()[0], *records()], tmp_path / "history.jsonl")
    assert "A began an operation before the last one had come back" in json.loads(again.stdout)["unfit"]


def test_lines_are_in_the_order_of_the_index(tmp_path: Path) -> None:
    lines = ['{"index": 0, "kind": "note"}', '{"index": 2, "kind": "note"}', '{"index": 1, "kind": "note"}']
    done = told(lines, tmp_path / "history.jsonl")
    assert done.returncode == 2 and "line 3: index 2 where 1 comes next" in done.stderr
