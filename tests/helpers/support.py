"""Helpers for tests of all rooms: the command, a trial driven by hand, short directories, processes."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from lockstorm.base import paths
from lockstorm.base.option_fields import options_of
from lockstorm.scenario.play import prepare_trial
from lockstorm.trial.settings import REPLY_LIMIT_MS, RESOURCE, TrialSettings, at_pace
from lockstorm.trial.stall_sentinel import pace_of
from lockstorm.trial.trial import Trial
from tests.helpers.forked_command import can_fork, run_forked

PLAY_NOW = [1]  # which play of the test that runs: it is played again when the machine stood still
ENVIRONMENT = {**os.environ, "PYTHONPATH": paths.python_path()}


def lockstorm(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs the command as a user does, from the checkout, without the launcher's set-up."""
    environment = options.get("env", ENVIRONMENT)
    if not options.keys() - {"env", "timeout"} and can_fork(environment):
        return run_forked(words, paths.ROOT, environment, options.get("timeout", 600))
    options = {"capture_output": True, "text": True, "timeout": 600, "env": ENVIRONMENT, "cwd": paths.ROOT, **options}
    return subprocess.run([sys.executable, "-m", "lockstorm", *words], **options)


def start_lockstorm(*words: str, **options: Any) -> subprocess.Popen[str]:
    """Starts the command and does not wait for its end."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": ENVIRONMENT, **options}
    return subprocess.Popen([sys.executable, "-m", "lockstorm", *words], cwd=paths.ROOT, **options)


@contextmanager
def trial(lock: str, *, scenario: str = "gc-pause", resource: bytes = RESOURCE, **requests: Any) -> Iterator[Trial]:
    """A trial of one lock, driven by hand. `requests`: fields of TrialSettings; those that a user cannot choose replace
    what `prepare_trial` fills in. In real time a test that is played again because the machine stood still has a slower
    pace, and a lease of less than a second is longer: assertions take both from the trial."""
    options = options_of(TrialSettings)
    chosen = {key: value for key, value in requests.items() if key in options}
    _, settings = prepare_trial(TrialSettings(lock, scenario, **chosen))
    own = {key: value for key, value in requests.items() if key not in options}
    settings = replace(settings, resource=resource, **own)
    if "pace" not in requests:
        is_short = (settings.lease_ms or REPLY_LIMIT_MS) < REPLY_LIMIT_MS
        settings = at_pace(settings, pace_of(PLAY_NOW[0]), lease_is_chosen=not is_short)
    with Trial(settings) as running:
        yield running


@contextmanager
def short_directory() -> Iterator[Path]:
    """A private directory whose path is short enough for a unix socket (pytest's tmp_path is not)."""
    with tempfile.TemporaryDirectory(prefix="ls-test-") as directory:
        yield Path(directory)


def processes_below(directory: Path) -> list[int]:
    """The processes that belong to a directory: their command line names it, or it is their working directory (a
    redis-server on a port replaces its command line by the port), or it is a reaper whose $TMPDIR it is."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                traces = (entry / "cmdline").read_bytes() + os.fsencode(os.readlink(entry / "cwd"))
                if (entry / "comm").read_text() == "reaper\n":
                    traces += (entry / "environ").read_bytes()
            except OSError:
                continue
            if str(directory).encode() in traces:
                found.append(int(entry.name))
    return found
