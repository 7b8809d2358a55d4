"""Linearizability: judges a history of lockstorm or of another tool by a model of the lock's interface."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lockstorm.base import paths
from lockstorm.native.judgement import output_of

MODELS = ("mutex", "owner-mutex", "reentrant-mutex", "fenced-mutex", "semaphore", "register")
OUTSIDE = (".edn",)  # suffixes of other tools' histories
FORMS = {"to-edn": "edn", "to-porcupine": "porcupine"}


@dataclass(frozen=True)
class LinearizeSettings:
    """The model, how to read ambiguous outcomes, and limits in MiB and s. None: the checker's default."""

    model: str
    permits: int | None = None
    initial: str | None = None
    release_policy: str | None = None
    acquire_timeout: str | None = None
    refused_renewal: str | None = None
    leases: bool = False
    memory_limit: float | None = None
    time_limit_ms: int | None = None

    def words(self) -> list[str]:
        limit_s = None if self.time_limit_ms is None else self.time_limit_ms / 1000
        options = vars(self) | {"leases": None, "time_limit_ms": None, "time_limit": limit_s}
        given = [f"--{name.replace('_', '-')}={value}" for name, value in options.items() if value is not None]
        return [*given, *(["--leases"] if self.leases else [])]


def needs_model(path: str) -> bool:
    """Whether a file is the history of another tool: only a model can judge it."""
    return Path(path).suffix in OUTSIDE


def linearize(path: str, settings: LinearizeSettings) -> dict[str, Any]:  # printed as the program writes it
    """The verdict of `linearize` on a file. Raises UsageError if the file cannot be read."""
    command = [paths.program("linearize"), *settings.words(), "--", path]
    return {"file": path, **json.loads(output_of(command, "linearize"))}


def operations_words(path: str, form: str, model: str) -> list[str]:
    """The command that writes the operations of a history that a model knows to standard output."""
    return [paths.program("linearize"), f"--model={model}", f"--write={FORMS[form]}", "--", path]
