"""Kept runs: one directory each, whole or marked as interrupted (docs/gate.md)."""

import contextlib
import fcntl
import hashlib
import json
import os
import platform
import secrets
import shutil
import string
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.driver.errors import UsageError
from harness.driver.machine import machine
from harness.gate.files import write_json, write_text
from harness.gate.plan import GatePlan
from harness.gate.policy import Policy

FORMAT = 1
LETTERS = string.ascii_lowercase + string.digits
LOCK_FILE = "run.lock"


class Run:
    """A run that is going on. Whatever ends the process ends the run: the lock file says who is still at it."""

    def __init__(self, policy: Policy, plan: GatePlan, version: str) -> None:
        begun = datetime.now(UTC)
        self.directory = make_directory(policy.runs, begun)
        self._lock = os.open(self.directory / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self.trials = self.directory / "trials"
        self.trials.mkdir()
        write_text(self.directory / "policy.toml", policy.text)
        self.said: dict[str, Any] = {
            "format": FORMAT,
            "id": self.directory.name,
            "state": "running",
            "started": stamp(begun),
            "ended": None,
            "policy": {"file": str(policy.file), "sha256": hashlib.sha256(policy.text.encode()).hexdigest()},
            "seed": policy.seed,
            "versions": versions(version),
            "trials": [{**job.as_json(), "played": False} for job in plan.jobs],
        }
        self._write()

    def note_played(self, name: str, result: dict[str, Any]) -> None:
        """Told at the end, in one piece: until then trials/NAME.json says that it was played."""
        self.said["versions"] |= result.get("versions", {})
        next(trial for trial in self.said["trials"] if trial["name"] == name)["played"] = True

    def end(self, state: str) -> None:
        self.said |= {"state": state, "ended": stamp(datetime.now(UTC))}
        self._write()
        os.close(self._lock)
        (self.directory / LOCK_FILE).unlink()

    def _write(self) -> None:
        write_json(self.directory / "run.json", self.said)


def stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def make_directory(runs: Path, begun: datetime) -> Path:
    """A new directory; two runs that begin in the same second differ in their letters."""
    while True:
        letters = "".join(secrets.choice(LETTERS) for _ in range(4))
        directory = runs / f"{begun.strftime('%Y-%m-%dT%H-%M-%SZ')}-{letters}"
        try:
            directory.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise UsageError(f"{directory}: {error.strerror}") from None
        return directory


def versions(version: str) -> dict[str, str]:
    """Of the tool, the machine and the server that it would start; trials tell which one they had."""
    found = machine()
    return {
        "lockstorm": version,
        "commit": str(found["commit"]),
        "redis-server": str(found["redis"]),
        "compiler": str(found["compiler"]),
        "python": platform.python_version(),
        "kernel": str(found["kernel"]),
    }


# --- runs that there are ---


def list_runs(runs: Path) -> list[dict[str, Any]]:
    """The newest first. A directory without a readable run.json is no run."""
    found = []
    for directory in sorted(runs.iterdir() if runs.is_dir() else (), reverse=True):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            found.append(describe(directory))
    return found


def describe(directory: Path) -> dict[str, Any]:
    said = json.loads((directory / "run.json").read_text())
    verdict = {"sentence": "", "exit": None}
    with contextlib.suppress(OSError, ValueError):
        verdict = json.loads((directory / "verdict.json").read_text())
    state = said["state"]
    return {
        "id": said["id"],
        "directory": str(directory),
        "state": "interrupted" if state == "running" and not is_alive(directory) else state,
        "started": said["started"],
        "ended": said["ended"],
        "trials": len(said["trials"]),
        "sentence": verdict["sentence"],
        "exit": verdict["exit"],
    }


def is_alive(directory: Path) -> bool:
    """Whether somebody is at it: the lock falls with its process, however that ends."""
    try:
        lock = os.open(directory / LOCK_FILE, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def remove_old(runs: Path, keep: int) -> list[str]:
    """Removes all but the newest `keep`; never one that is going on. Returns what was removed."""
    removed = []
    for each in list_runs(runs)[keep:]:
        if each["state"] != "running":
            shutil.rmtree(each["directory"])
            removed.append(str(each["id"]))
    return removed


def read_run(directory: Path) -> dict[str, Any]:
    """What run.json says."""
    try:
        said = json.loads((directory / "run.json").read_text())
    except OSError as error:
        raise UsageError(f"{directory} is not a kept run: {error.strerror}: run.json") from None
    except ValueError as error:
        raise UsageError(f"{directory}/run.json is not JSON: {error}") from None
    if not isinstance(said, dict) or said.get("format") != FORMAT or not isinstance(said.get("trials"), list):
        raise UsageError(f"{directory}/run.json is not of format {FORMAT}")
    return said


def read_results(directory: Path, said: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The result of each trial that was played."""
    for trial in said["trials"]:
        path = directory / "trials" / f"{trial['name']}.json"
        if path.exists():
            try:
                yield trial["name"], json.loads(path.read_text())
            except ValueError as error:
                raise UsageError(f"{path} is not JSON: {error}") from None
