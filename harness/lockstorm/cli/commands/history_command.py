"""`lockstorm history`."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import IO

import click

from lockstorm.base import paths
from lockstorm.base.atomic_file import new_file
from lockstorm.base.errors import UsageError
from lockstorm.cli.options import path_option
from lockstorm.cli.terminal import check_new_file
from lockstorm.native.linearizability import FORMS, MODELS, operations_words


@click.command("history")
@click.argument("form", type=click.Choice(["to-json", "from-json", "follow", *FORMS]))
@click.argument("file", type=click.Path())
@path_option("-o", "output", help="File to write; from-json needs it. Default: standard output.")
@click.option(
    "--model",
    type=click.Choice(MODELS),
    default="owner-mutex",
    show_default=True,
    help="Model whose operations to-edn and to-porcupine write.",
)
def history_command(form: str, file: str, output: Path | None, model: str) -> int:
    """Convert a history into JSON Lines (to-json) or back (from-json), or print its records as they are written
    (follow). to-edn and to-porcupine write its operations for other checkers (`lockstorm docs linearizable`).

    \b
    Example: lockstorm history to-json gc.history | head
    """
    if form == "from-json":
        if not output:
            raise UsageError("from-json needs -o FILE")
        return write_new(output, lambda temporary: run_program([paths.program("history"), form, file, str(temporary)]))
    if form == "follow" and output:
        raise UsageError("follow writes to standard output")
    words = operations_words(file, form, model) if form in FORMS else [paths.program("history"), form, file]
    return write_new(output, lambda temporary: run_into(temporary, words)) if output else run_program(words)


def run_program(words: list[str], stdout: IO[bytes] | None = None) -> int:
    """Runs a program that writes to `stdout` (None: ours). Raises UsageError with its message if it fails."""
    done = subprocess.run(words, stdout=stdout, stderr=subprocess.PIPE)
    if done.returncode > 0:
        raise UsageError(done.stderr.decode(errors="replace").strip() or f"it ended with status {done.returncode}")
    return done.returncode if done.returncode >= 0 else 128 - done.returncode


def run_into(temporary: Path, words: list[str]) -> int:
    with temporary.open("xb") as file:
        return run_program(words, file)


def write_new(path: Path, write: Callable[[Path], int]) -> int:
    """Calls `write`, which writes a file and returns an exit status. If that is 0, the file gets its name: a program
    that failed or was ended by a signal leaves none. Raises UsageError if there is a file of that name."""
    try:
        check_new_file("-o", path)
        with new_file(path) as temporary:
            status = write(temporary)
            if status:
                click.echo(
                    f"lockstorm: {path} was not written: the program was ended by signal {status - 128}", err=True
                )
                raise SystemExit(status)
    except OSError as reason:
        raise UsageError(f"{path}: {reason.strerror}: choose another name") from None
    return 0
