"""Reads the input of a report: a history in binary form or JSON Lines, a matrix, a table of lock libraries, or a kept
run of the gate."""

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
LIBRARY_KEYS = {"adapter", "figures", "findings", "sentence", "use", "beware"}


@dataclass
class Recorded:
    """A history and its verdict, as `lockstorm check` judges it."""

    name: str
    events: list[Event]
    verdict: Verdict


def read_source(path: Path) -> Recorded | dict[str, Any]:
    """Reads a history, the object that `lockstorm matrix --json` or `lockstorm libraries --json` prints, or a kept run
    of the gate. Raises UsageError for anything else."""
    if path.is_dir():
        return read_gate_run(path)
    try:
        with path.open("rb") as file:
            magic = file.read(len(MAGIC))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    if magic == MAGIC:
        return Recorded(path.name, read_history(path), judge_file(str(path), None))
    matrix = read_matrix(path) or read_libraries(path)
    return matrix if matrix is not None else read_lines(path)


def read_recorded(path: Path) -> Recorded:
    source = read_source(path)
    if not isinstance(source, Recorded):
        raise UsageError(
            f"{path} is a {table_word(source)}: a history is needed here (lockstorm run -o FILE writes one)"
        )
    return source


def is_libraries(table: dict[str, Any]) -> bool:
    return "libraries" in table


def table_word(table: dict[str, Any]) -> str:
    return "table of libraries" if is_libraries(table) else "matrix"


def read_matrix(path: Path) -> dict[str, Any] | None:
    """The matrix in a file; None if the file is not one JSON object with cells."""
    return _read_table(path, "cells", CELL_KEYS, "lockstorm matrix --json")


def read_libraries(path: Path) -> dict[str, Any] | None:
    """The table of libraries in a file; None if the file is not one JSON object with libraries."""
    table = _read_table(path, "libraries", LIBRARY_KEYS, "lockstorm libraries --json")
    if table is not None and not isinstance(table.get("promises"), dict):
        raise UsageError(f"{path} lacks promises; lockstorm libraries --json writes such a file")
    return table


def _read_table(path: Path, name: str, keys: set[str], written_by: str) -> dict[str, Any] | None:
    """The JSON object in a file whose list `name` has objects with these keys; None if it has no such list."""
    try:
        table = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return None
    if not isinstance(table, dict) or name not in table:
        return None
    if not isinstance(table[name], list):
        raise UsageError(f"{path}: {name} must be a list, as {written_by} prints it")
    for number, each in enumerate(table[name]):
        if not isinstance(each, dict) or not each.keys() >= keys:
            missing = ", ".join(sorted(keys - each.keys())) if isinstance(each, dict) else "an object"
            raise UsageError(f"{path}: {name}[{number}] lacks {missing}; {written_by} writes such a file")
    return table


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
