"""Kept runs: a directory each, complete or marked as interrupted (docs/gate.md)."""

import contextlib
import fcntl
import hashlib
import os
import platform
import secrets
import shutil
import string
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import msgspec

from lockstorm.base.atomic_file import write_json, write_text
from lockstorm.base.errors import UsageError
from lockstorm.base.version import VERSION
from lockstorm.gate.app_judge import SEARCHES, schedule_file
from lockstorm.gate.gate_plan import GatePlan
from lockstorm.gate.gate_policy import Policy
from lockstorm.process.machine import machine
from lockstorm.results.gate_verdict import PolicyDigest
from lockstorm.results.kept_run import FORMAT, ListedRun, RunDocument, RunState
from lockstorm.results.verdict import TrialResult
from lockstorm.search.search_result import SearchResult

LETTERS = string.ascii_lowercase + string.digits
LOCK_FILE = "run.lock"
Result = TypeVar("Result")


class Run:
    """A run that is going on. The process holds a lock on its lock file: when the process ends, for whatever reason,
    readers see that the run has ended."""

    def __init__(self, policy: Policy, plan: GatePlan) -> None:
        begun = datetime.now(UTC)
        self.directory = make_directory(policy.runs, begun)
        self._lock = os.open(self.directory / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self.trials = self.directory / "trials"
        self.trials.mkdir()
        write_text(self.directory / "policy.toml", policy.text)
        self.document = RunDocument(
            id=self.directory.name,
            state="running",
            started=utc_text(begun),
            policy=PolicyDigest(str(policy.file), hashlib.sha256(policy.text.encode()).hexdigest()),
            seed=policy.seed,
            versions=versions_now(),
            trials=[job.kept() for job in plan.jobs],
            searches=[app.kept() for app in policy.apps],
        )
        self._write()

    def note_played(self, name: str, result: TrialResult) -> None:
        """Marks a trial as played. `end` writes run.json; until then trials/NAME.json shows that it was played."""
        self.document.versions |= result.versions
        next(trial for trial in self.document.trials if trial.name == name).played = True

    def keep_search(self, name: str, result: SearchResult, *, cut: bool) -> None:
        """Writes the result of a search, and the smallest schedule that violates something. `cut`: the budget of time
        ended it."""
        search = next(each for each in self.document.searches if each.name == name)
        search.played, search.cut = True, cut
        (self.directory / SEARCHES).mkdir(exist_ok=True)
        if result.schedule:
            write_text(self.directory / schedule_file(name), result.schedule)
        write_json(search_file(self.directory, name), result)
        self._write()

    def end(self, state: RunState) -> None:
        """Writes the final state, "complete" or "interrupted", and releases the lock file."""
        self.document.state, self.document.ended = state, utc_text(datetime.now(UTC))
        self._write()
        os.close(self._lock)
        (self.directory / LOCK_FILE).unlink()

    def _write(self) -> None:
        write_json(self.directory / "run.json", self.document)


def utc_text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def make_directory(runs: Path, begun: datetime) -> Path:
    """A new directory, named by time and random letters: two runs may begin in the same second."""
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


def versions_now() -> dict[str, str]:
    """Versions of the tool, the machine and its redis-server. The results of trials replace them by those they used."""
    found = machine()
    return {
        "lockstorm": VERSION,
        "commit": found.commit,
        "redis-server": found.redis,
        "compiler": found.compiler,
        "python": platform.python_version(),
        "kernel": found.kernel,
    }


# --- existing runs ---


def list_runs(runs: Path) -> list[ListedRun]:
    """The runs in a directory, newest first. A directory without a readable run.json is no run."""
    found = []
    for directory in sorted(runs.iterdir() if runs.is_dir() else (), reverse=True):
        with contextlib.suppress(OSError, ValueError):
            found.append(describe_run(directory))
    return found


class Ended(msgspec.Struct):
    """The part of a verdict that the list of runs shows."""

    sentence: str = ""
    exit: int | None = None


def describe_run(directory: Path) -> ListedRun:
    document = msgspec.json.decode((directory / "run.json").read_bytes(), type=RunDocument)
    verdict = Ended()
    with contextlib.suppress(OSError, ValueError):
        verdict = msgspec.json.decode((directory / "verdict.json").read_bytes(), type=Ended)
    return ListedRun(
        id=document.id,
        directory=str(directory),
        state="interrupted" if document.state == "running" and not is_going_on(directory) else document.state,
        started=document.started,
        ended=document.ended,
        trials=len(document.trials),
        searches=len(document.searches),
        sentence=verdict.sentence,
        exit=verdict.exit,
    )


def is_going_on(directory: Path) -> bool:
    """Whether a process holds the lock file of the run: the kernel releases the lock when the process ends."""
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


def remove_old_runs(runs: Path, keep: int) -> list[str]:
    """Removes all but the newest `keep` runs, except runs that are going on. Returns the ids of the removed runs."""
    removed = []
    for each in list_runs(runs)[keep:]:
        if each.state != "running":
            shutil.rmtree(each.directory)
            removed.append(each.id)
    return removed


def read_kept_run(directory: Path) -> RunDocument:
    """The content of run.json. Raises UsageError if the directory is not a kept run."""
    try:
        return msgspec.json.decode((directory / "run.json").read_bytes(), type=RunDocument)
    except OSError as error:
        raise UsageError(f"{directory} is not a kept run: {error.strerror}: run.json") from None
    except msgspec.ValidationError as error:
        raise UsageError(f"{directory}/run.json is not of format {FORMAT}: {error}") from None
    except ValueError as error:
        raise UsageError(f"{directory}/run.json is not JSON: {error}") from None


def search_file(directory: Path, name: str) -> Path:
    """Of the result of a search in a kept run."""
    return directory / SEARCHES / f"{name}.json"


def read_results(directory: Path, document: RunDocument) -> Iterator[tuple[str, TrialResult]]:
    """The name and the result of each trial that was played."""
    for trial in document.trials:
        path = directory / "trials" / f"{trial.name}.json"
        if path.exists():
            yield trial.name, read_result(path, TrialResult, "a trial")


def read_searches(directory: Path, document: RunDocument) -> dict[str, SearchResult]:
    """The results of the searches that were made, by their names."""
    files = {search.name: search_file(directory, search.name) for search in document.searches}
    return {name: read_result(file, SearchResult, "a search") for name, file in files.items() if file.exists()}


def read_result(path: Path, kind: type[Result], what: str) -> Result:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except msgspec.ValidationError as error:
        raise UsageError(f"{path} is not the result of {what}: {error}") from None
    except ValueError as error:
        raise UsageError(f"{path} is not JSON: {error}") from None
