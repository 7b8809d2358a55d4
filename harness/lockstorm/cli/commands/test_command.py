"""`lockstorm test`: the project's own tests."""

import subprocess
import sys

import click

from lockstorm.base import paths


@click.command("test", context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def test_command(arguments: tuple[str, ...]) -> int:
    """Run lockstorm's own tests; ARGUMENTS go to pytest.

    \b
    Example: lockstorm test -k gc_pause
    """
    words = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "worksteal", *arguments]
    return subprocess.run(words, cwd=paths.ROOT).returncode
