"""`lockstorm test`: the project's own tests."""

import os
import subprocess
import sys

import click

from lockstorm.base import paths
from lockstorm.base.errors import UsageError

MORE_WORKERS = 4


@click.command("test", context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def test_command(arguments: tuple[str, ...]) -> int:
    """Run lockstorm's own tests, except slow ones: about ten minutes on two cores. `--all` runs slow ones, too,
    and so does the name of a file or folder. `--changed`, the default where the variable CI is set, adds slow tests of
    what has changed, as far as time allows. Other ARGUMENTS go to pytest.

    \b
    Example: lockstorm test -k gc_pause
    """
    if paths.IS_INSTALLED:
        raise UsageError("the project's tests are not installed: run ./lockstorm test in a checkout")
    workers = (os.cpu_count() or 1) + MORE_WORKERS
    words = [sys.executable, "-m", "pytest", "-n", str(workers), "--dist", "worksteal", *arguments]
    return subprocess.run(words, cwd=paths.ROOT).returncode
