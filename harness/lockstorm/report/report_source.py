"""Reads the input of a report: a history in binary form or JSON Lines, a matrix, or a kept run of the gate."""

import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lockstorm.base import paths
from lockstorm.base.errors import UsageError
from lockstorm.native.judgement import read_history
from lockstorm.results.event import Event
from lockstorm.results.verdict import Verdict
from lockstorm.scenario.play import judge_file

MAGIC = b"lckstorm"
CELL_KEYS = {"lock", "scenario", "result", "expected", "control"}


@dataclass
class Recorded:
    """A history and its verdict, as `lockstorm check` judges it."""

    name: str
    events: list[Event]
    verdict: Verdict


def read_source(path: Path) -> Recorded | dict[str, Any]:
    """Reads a history, the object that `lockstorm matrix --json` prints, or a kept run of the gate. Raises UsageError
    for anything else."""
    if path.is_dir():
        return read_gate_run(path)
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
        raise UsageError(f"{path} is a matrix: a history is needed here (lockstorm run -o FILE writes one)")
    return source


def read_matrix(path: Path) -> dict[str, Any] | None:
    """The matrix in a file; None if the file is not one JSON object with cells."""
    try:
        matrix = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return None
    if not isinstance(matrix, dict) or "cells" not in matrix:
        return None
    cells = matrix["cells"]
    if not isinstance(cells, list):
        raise UsageError(f"{path}: cells must be a list, as lockstorm matrix --json prints it")
    for number, cell in enumerate(cells):
        if not isinstance(cell, dict) or not cell.keys() >= CELL_KEYS:
            missing = ", ".join(sorted(CELL_KEYS - cell.keys())) if isinstance(cell, dict) else "an object"
            raise UsageError(f"{path}: cell {number} lacks {missing}; lockstorm matrix --json writes such a file")
    return matrix


def read_gate_run(directory: Path) -> dict[str, Any]:
    """The cells of a kept run of the gate (docs/gate.md)."""
    verdict = directory / "verdict.json"
    if not (directory / "run.json").exists():
        raise UsageError(f"{directory} is not a kept run of the gate: lockstorm runs lists them")
    cells = read_matrix(verdict) if verdict.exists() else None
    if cells is None:
        raise UsageError(f"{directory} has no verdict: it was interrupted, or it is still running (lockstorm runs)")
    return cells


def read_lines(path: Path) -> Recorded:
    """Reads a history in JSON Lines by way of the binary form, which gives every record its index and its names."""
    verdict = judge_file(str(path), None)
    with tempfile.TemporaryDirectory(prefix="lockstorm-report-") as directory:
        binary = Path(directory) / "history"
        words = [paths.program("history"), "from-json", str(path), str(binary)]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode != 0:
            raise UsageError(done.stderr.strip())
        return Recorded(path.name, read_history(binary), verdict)


def parameters_of(events: list[Event]) -> dict[str, Any]:
    """The recorded parameters of the trial: scenario, lock, store, lease_ms, ..."""
    names = {event.index: event.text for event in events if event.text is not None}
    parameters = {}
    for event in events:
        if event.kind == "parameter":
            value = event.value
            parameters[str(event.name)] = names.get(value, value) if event.flags & 1 else value
    return parameters
