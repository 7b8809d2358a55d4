"""What several tests need."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from harness.driver import paths
from harness.driver.play import Wish, settings_for
from harness.driver.trial import RESOURCE, Trial

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(paths.ROOT)}


def lockstorm(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs the command as a user does, from the checkout, without the launcher's set-up."""
    options = {"capture_output": True, "text": True, "timeout": 120, "env": ENVIRONMENT, **options}
    return subprocess.run([sys.executable, "-m", "harness.driver", *words], cwd=paths.ROOT, **options)


def start_lockstorm(*words: str, **options: Any) -> subprocess.Popen[str]:
    """The same without waiting."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": ENVIRONMENT, **options}
    return subprocess.Popen([sys.executable, "-m", "harness.driver", *words], cwd=paths.ROOT, **options)


@contextmanager
def trial(lock: str, *, resource: bytes = RESOURCE, **wishes: Any) -> Iterator[Trial]:
    """A trial of one lock, driven by hand. `wishes`: a Wish's fields, or a TrialSettings' where a Wish has none."""
    known = {field.name for field in fields(Wish)}
    wish = Wish(**{"scenario": "gc-pause", "lock": lock, **{key: wishes[key] for key in wishes if key in known}})
    _, settings = settings_for(wish)
    more = {key: wishes[key] for key in wishes if key not in known}
    with Trial(replace(settings, resource=resource, **more)) as running:
        yield running


@contextmanager
def short_directory() -> Iterator[Path]:
    """A private directory whose path is short enough for a unix socket (pytest's tmp_path is not)."""
    with tempfile.TemporaryDirectory(prefix="ls-test-") as directory:
        yield Path(directory)


def processes_below(directory: Path) -> list[int]:
    """The processes that have something to do with a directory: by their command lines, or because they are in it (a
    redis-server on a port writes that into its command line)."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                said = (entry / "cmdline").read_bytes() + os.fsencode(os.readlink(entry / "cwd"))
            except OSError:
                continue
            if str(directory).encode() in said:
                found.append(int(entry.name))
    return found
