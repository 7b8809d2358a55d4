"""Reads the input of a report: a history in binary form or JSON Lines, a matrix, a table of lock libraries, a kept run
of the gate, or the results of a campaign."""

import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import msgspec

from lockstorm.base import paths
from lockstorm.base.errors import UsageError
from lockstorm.base.read_file import read_json
from lockstorm.native.judgement import read_history
from lockstorm.results.campaign_result import CampaignResult
from lockstorm.results.event import Event
from lockstorm.results.gate_verdict import GateVerdict
from lockstorm.results.library_table import LibraryTable
from lockstorm.results.matrix_result import MatrixResult
from lockstorm.results.verdict import Verdict
from lockstorm.scenario.play import judge_file

MAGIC = b"lckstorm"
Table = MatrixResult | GateVerdict | LibraryTable | CampaignResult


@dataclass
class Recorded:
    """A history and its verdict, as `lockstorm check` judges it."""

    name: str
    events: list[Event]
    verdict: Verdict


def read_source(path: Path) -> Recorded | Table:
    """Reads a history, the object that `lockstorm matrix --json` or `lockstorm libraries --json` prints, a kept run of
    the gate, or a campaign's directory. Raises UsageError for anything else."""
    if path.is_dir():
        campaign = path / "campaign.json"
        return read_campaign_state(campaign) if campaign.exists() else read_gate_run(path)
    try:
        with path.open("rb") as file:
            magic = file.read(len(MAGIC))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    if magic == MAGIC:
        return Recorded(path.name, read_history(path), judge_file(str(path), None))
    return read_table(path) or read_lines(path)


def read_recorded(path: Path) -> Recorded:
    source = read_source(path)
    if not isinstance(source, Recorded):
        raise UsageError(
            f"{path} is a {table_word(source)}: a history is needed here (lockstorm run -o FILE writes one)"
        )
    return source


def table_word(table: Table) -> str:
    words = {LibraryTable: "table of libraries", CampaignResult: "campaign"}
    return words.get(type(table), "matrix")


def read_table(path: Path) -> Table | None:
    """The matrix, the verdict of a gate, the table of libraries or the campaign in a file; None if the file is not one
    JSON object with cells, libraries or entries."""
    try:
        keys = msgspec.json.decode(path.read_bytes(), type=dict[str, msgspec.Raw]).keys()
    except (ValueError, RecursionError):
        return None
    if "libraries" in keys:
        return read_json(path, LibraryTable, "lockstorm libraries --json writes such a file")
    if "entries" in keys:
        return read_campaign_state(path)
    if "cells" not in keys:
        return None
    kind: type[MatrixResult | GateVerdict] = GateVerdict if "policy" in keys else MatrixResult
    return read_json(path, kind, "lockstorm matrix --json writes such a file")


def read_campaign_state(path: Path) -> CampaignResult:
    return read_json(path, CampaignResult, "lockstorm campaign writes such a file")


def read_gate_run(directory: Path) -> MatrixResult | GateVerdict:
    """The cells of a kept run of the gate (docs/gate.md)."""
    verdict = directory / "verdict.json"
    if not (directory / "run.json").exists():
        raise UsageError(
            f"{directory} is not a kept run of the gate (lockstorm runs lists them), nor the directory of a campaign"
        )
    cells = read_table(verdict) if verdict.exists() else None
    if not isinstance(cells, MatrixResult | GateVerdict):
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
