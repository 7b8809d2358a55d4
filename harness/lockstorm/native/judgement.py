"""Judges a recorded history, by the program `check` or in this process, and converts it to JSON."""

import ctypes
import subprocess
from pathlib import Path

import msgspec

from lockstorm.base import paths
from lockstorm.base.atomic_file import new_file
from lockstorm.base.errors import UsageError
from lockstorm.base.shared_objects import check_started
from lockstorm.native.library import Message, library
from lockstorm.results.event import Event
from lockstorm.results.verdict import Verdict


def judge_history(path: Path, require: str | None = None, *words: str) -> Verdict:
    """The verdict of `check` on a history; `words`: more options of `check`. Raises UsageError for a damaged file."""
    command = [paths.program("check"), *([f"--require={require}"] if require else []), *words, "--", str(path)]
    return msgspec.json.decode(output_of(command, "check"), type=Verdict)


def output_of(command: list[str], name: str) -> str:
    """What a program of the project prints. UsageError with its reason, if it does not do what it was asked for."""
    done = subprocess.run(command, capture_output=True, text=True)
    check_started(done)
    if done.returncode not in (0, 1, 3):
        raise UsageError(done.stderr.strip() or f"{name} ended with status {done.returncode}")
    return done.stdout


def judge_in_process(path: Path, require: str | None = None) -> Verdict:
    """The same for the history of a trial that has just ended, without starting a program."""
    message = Message()
    text = library().trial_verdict(bytes(path), require.encode() if require else None, message)
    if not text:
        raise UsageError(str(message))
    try:
        return msgspec.json.decode(ctypes.string_at(text), type=Verdict)
    finally:
        library().describe_free(text)


def save_history(history: Path, path: Path) -> None:
    message = Message()
    try:
        with new_file(path) as temporary:
            if not library().history_save(bytes(history), bytes(temporary), message):
                raise UsageError(f"the history was not saved: {str(message).replace(str(temporary), str(path))}")
    except OSError as error:
        raise UsageError(f"the history was not saved: {path}: {error.strerror}") from None


def read_history(path: Path) -> list[Event]:
    done = subprocess.run([paths.program("history"), "to-json", str(path)], capture_output=True, text=True)
    check_started(done)
    if done.returncode != 0:
        raise UsageError(done.stderr.strip())
    try:
        return msgspec.json.Decoder(Event).decode_lines(done.stdout.partition("\n")[2])
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: a record that this version does not know: {error}") from None
