"""Reads the input of a report: a history in binary form or JSON Lines, a matrix, a table of lock libraries, or a kept
run of the gate."""

import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from lockstorm.base import paths
from lockstorm.base.errors import UsageError
from lockstorm.native.judgement import read_history
from lockstorm.results.event import Event
from lockstorm.results.gate_verdict import GateVerdict
from lockstorm.results.matrix_result import MatrixResult
from lockstorm.results.verdict import Verdict
from lockstorm.scenario.play import judge_file

MAGIC = b"lckstorm"
LIBRARY_KEYS = {"adapter", "figures", "findings", "sentence", "use", "beware"}


@dataclass
class Recorded:
    """A history and its verdict, as `lockstorm check` judges it."""

    name: str
    events: list[Event]
    verdict: Verdict


def read_source(path: Path) -> Recorded | MatrixResult | GateVerdict | dict[str, Any]:
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


def table_word(table: MatrixResult | GateVerdict | dict[str, Any]) -> str:
    return "table of libraries" if isinstance(table, dict) else "matrix"


def read_matrix(path: Path) -> MatrixResult | GateVerdict | None:
    """The matrix, or the verdict of a gate, in a file; None if the file is not one JSON object with cells."""
    table = _json_object(path)
    if table is None or "cells" not in table:
        return None
    try:
        return msgspec.convert(table, GateVerdict) if "policy" in table else msgspec.convert(table, MatrixResult)
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: {error}; lockstorm matrix --json writes such a file") from None


def _json_object(path: Path) -> dict[str, Any] | None:
    try:
        table = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return None
    return table if isinstance(table, dict) else None


def read_libraries(path: Path) -> dict[str, Any] | None:
    """The table of libraries in a file; None if the file is not one JSON object with libraries."""
    table = _json_object(path)
    if table is None or "libraries" not in table:
        return None
    written_by = "lockstorm libraries --json"
    if not isinstance(table["libraries"], list):
        raise UsageError(f"{path}: libraries must be a list, as {written_by} prints it")
    for number, each in enumerate(table["libraries"]):
        if not isinstance(each, dict) or not each.keys() >= LIBRARY_KEYS:
            missing = ", ".join(sorted(LIBRARY_KEYS - each.keys())) if isinstance(each, dict) else "an object"
            raise UsageError(f"{path}: libraries[{number}] lacks {missing}; {written_by} writes such a file")
    if not isinstance(table.get("promises"), dict):
        raise UsageError(f"{path} lacks promises; {written_by} writes such a file")
    return table


def read_gate_run(directory: Path) -> MatrixResult | GateVerdict:
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


def parameters_of(events: list[Event]) -> dict[str, str | int]:
    """The recorded parameters of the trial: scenario, lock, store, lease_ms, ..."""
    names = {event.index: event.text for event in events if event.text is not None}
    parameters = {}
    for event in events:
        if event.kind == "parameter":
            value = event.value
            parameters[str(event.name)] = names.get(value, value) if event.flags & 1 else value
    return parameters
