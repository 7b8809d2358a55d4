"""`lockstorm history`."""

import subprocess
from pathlib import Path
from typing import IO

import click

from lockstorm.base import paths
from lockstorm.base.errors import UsageError
from lockstorm.native.linearizability import FORMS, MODELS, operations_words


@click.command("history")
@click.argument("form", type=click.Choice(["to-json", "from-json", "follow", *FORMS]))
@click.argument("file", type=click.Path())
@click.option(
    "-o", "output", type=click.Path(path_type=Path), help="File to write; from-json needs it. Default: standard output."
)
@click.option(
    "--model",
    type=click.Choice(MODELS),
    default="owner-mutex",
    show_default=True,
    help="Model whose operations to-edn and to-porcupine write.",
)
def history_command(form: str, file: str, output: Path | None, model: str) -> int:
    """Convert a history into JSON Lines (to-json) or back (from-json), or print its records as they are written
    (follow). to-edn and to-porcupine write its operations for other checkers (docs/linearizable.md).

    \b
    Example: lockstorm history to-json gc.history | head
    """
    if form == "from-json":
        if not output:
            raise UsageError("from-json needs -o FILE")
        return run_program([paths.program("history"), form, file, str(output)])
    if form == "follow" and output:
        raise UsageError("follow writes to standard output")
    words = operations_words(file, form, model) if form in FORMS else [paths.program("history"), form, file]
    return write_new(output, words) if output else run_program(words)


def run_program(words: list[str], stdout: IO[bytes] | None = None) -> int:
    """Runs a program that writes to `stdout` (None: ours). Raises UsageError with its message if it fails."""
    done = subprocess.run(words, stdout=stdout, stderr=subprocess.PIPE)
    if done.returncode > 0:
        raise UsageError(done.stderr.decode(errors="replace").strip() or f"it ended with status {done.returncode}")
    return done.returncode if done.returncode >= 0 else 128 - done.returncode


def write_new(path: Path, words: list[str]) -> int:
    """Runs a program that writes a new file; removes the file if the program fails. Raises UsageError if it exists."""
    try:
        with path.open("xb") as file:
            return run_program(words, file)
    except OSError as reason:
        raise UsageError(f"{path}: {reason.strerror}: choose another name") from None
    except BaseException:
        path.unlink(missing_ok=True)
        raise
