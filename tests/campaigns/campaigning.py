"""Campaigns for tests: a file, and what `lockstorm campaign` does with it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from lockstorm.base import paths

PROGRAM = [sys.executable, "-m", "lockstorm", "campaign"]


def environment() -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": paths.python_path(), "COLUMNS": "200"}


def campaign(directory: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Runs it in a directory, to its end."""
    return subprocess.run(
        [*PROGRAM, *words], cwd=directory, env=environment(), capture_output=True, text=True, timeout=300
    )


def written(directory: Path, text: str) -> str:
    (directory / "it.toml").write_text(text)
    return "it.toml"


def kept(results: Path, name: str) -> Any:
    return json.loads((results / f"{name}.json").read_text())


def answered(results: Path) -> list[str]:
    """The cases that have an answer, a name each, as often as they have one."""
    path = results / "cases.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line)["case"] for line in lines if line.endswith("}")]
