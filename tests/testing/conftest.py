"""A team's own suite in a directory of its own, in which pytest is run as they do."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.support import ENVIRONMENT

# Option of pytest -> the plug-in that it belongs to. Loading all plug-ins that are installed here takes as long as all
# else that such a run does; a run with all of them is this one.
PLUGINS = {"-n": "xdist.plugin", "--reruns": "pytest_rerunfailures"}
OWN_PLUGIN = "lockstorm.testing.pytest_plugin"


class Suite:
    """The files of the suite; `run` runs pytest and returns its output."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.status = 0

    def write(self, name: str, text: str) -> Path:
        path = self.directory / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    def run(self, *words: str, **variables: str) -> str:
        """stdout and stderr together; `status` is the exit status of the last run."""
        kept = {key: value for key, value in ENVIRONMENT.items() if key != "CI" and not key.startswith("PYTEST")}
        programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        plugins = [OWN_PLUGIN, *(name for option, name in PLUGINS.items() if option in words)]
        loaded = [word for name in plugins for word in ("-p", name)]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *loaded, "--basetemp", "kept-by-pytest", *words],
            cwd=self.directory,
            env={**kept, "PATH": programs, "COLUMNS": "300", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.status = done.returncode
        return done.stdout


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    made = Suite(tmp_path)
    made.write("pytest.ini", "[pytest]\naddopts = --strict-markers\nfilterwarnings = error\n")
    return made


def counts(output: str, *, played_again: bool = False) -> str:
    """The last line of a run without its time: "1 failed, 2 passed". `played_again`: with the number of plays in which
    the machine stood still, which may be any in real time."""
    found = re.findall(r"^(?:=+ )?(\d+ .*) in \d+\.\d+s.*$", output, re.MULTILINE)
    assert found, output
    return str(found[-1]) if played_again else re.sub(r", \d+ played again", "", found[-1])
