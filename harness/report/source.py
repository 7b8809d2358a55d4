"""What a report is made of: a recorded history in either form, or a matrix."""

import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.driver import paths
from harness.driver.errors import UsageError
from harness.driver.play import judge_file
from harness.driver.trial import read_history
from harness.report.words import Event

MAGIC = b"lckstorm"
CELL_KEYS = {"lock", "scenario", "result", "expected", "control"}


@dataclass
class Recorded:
    """A history and its verdict, as `lockstorm check` gives it."""

    name: str
    events: list[Event]
    verdict: dict[str, Any]


def read_source(path: Path) -> Recorded | dict[str, Any]:
    """A history, the object that `lockstorm matrix --json` prints, or a run that was kept. Anything else is a
    UsageError."""
    if path.is_dir():
        return read_run(path)
    try:
        with path.open("rb") as file:
            magic = file.read(len(MAGIC))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    if magic == MAGIC:
        return Recorded(path.name, read_history(path), judge_file(str(path), None))
    matrix = read_matrix(path)
    return matrix if matrix is not None else read_lines(path)


def read_recorded(path: Path) -> Recorded:
    source = read_source(path)
    if not isinstance(source, Recorded):
        raise UsageError(f"{path} is a matrix: a history is needed here (run -o FILE)")
    return source


def read_matrix(path: Path) -> dict[str, Any] | None:
    """The matrix in a file; None if the file is not one JSON object with cells."""
    try:
        said = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict) or "cells" not in said:
        return None
    cells = said["cells"]
    if not isinstance(cells, list):
        raise UsageError(f"{path}: cells has to be a list, as lockstorm matrix --json prints it")
    for number, cell in enumerate(cells):
        if not isinstance(cell, dict) or not cell.keys() >= CELL_KEYS:
            missing = ", ".join(sorted(CELL_KEYS - cell.keys())) if isinstance(cell, dict) else "an object"
            raise UsageError(f"{path}: cell {number} lacks {missing}; lockstorm matrix --json writes such a file")
    return said


def read_run(directory: Path) -> dict[str, Any]:
    """The cells of a kept run of the gate (docs/gate.md)."""
    verdict = directory / "verdict.json"
    if not (directory / "run.json").exists():
        raise UsageError(f"{directory} is a directory, and no run that was kept: lockstorm runs lists them")
    cells = read_matrix(verdict) if verdict.exists() else None
    if cells is None:
        raise UsageError(f"{directory} has no verdict: it was interrupted, or it still goes on (lockstorm runs)")
    return cells


def read_lines(path: Path) -> Recorded:
    """A history in JSON Lines. It goes through the binary form, where every record has its index and its names."""
    verdict = judge_file(str(path), None)
    with tempfile.TemporaryDirectory(prefix="lockstorm-report-") as directory:
        binary = Path(directory) / "history"
        words = [paths.program("history"), "from-json", str(path), str(binary)]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode != 0:
            raise UsageError(done.stderr.strip())
        return Recorded(path.name, read_history(binary), verdict)


def parameters_of(events: list[Event]) -> dict[str, Any]:
    """What the trial was told: scenario, lock, store, lease_ms, ..."""
    names = {event["index"]: event["text"] for event in events if event["kind"] == "text" and "text" in event}
    said = {}
    for event in events:
        if event["kind"] == "parameter":
            value = event.get("value", 0)
            said[str(event.get("name"))] = names.get(value, value) if event.get("flags", 0) & 1 else value
    return said
