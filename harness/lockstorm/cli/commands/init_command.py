"""`lockstorm init`."""

import shlex
import sys
from pathlib import Path

import click
from rich.table import Table
from rich.text import Text

from lockstorm.base.errors import UsageError
from lockstorm.base.option_fields import choose
from lockstorm.base.paths import USUAL_POLICY, runnable
from lockstorm.cli.options import policy_option
from lockstorm.cli.terminal import console
from lockstorm.gate.starter_policy import PURPOSES, RESOURCES, USUAL_ANSWERS, ask_questions, write_starter_policy
from lockstorm.locks.adapter import PREFIX
from lockstorm.locks.lock_names import lock_named
from lockstorm.native.library import locks


@click.command("init")
@click.option("--lock", help="Lock that the project uses; `lockstorm locks` lists them.")
@click.option(
    "--adapter",
    metavar="PROGRAM",
    help="Lock library that the project uses, through this adapter: ./mine, or a shipped one. Asks nothing.",
)
@click.option("--for", "purpose", help=f"Purpose of the lock: {' or '.join(PURPOSES)}.")
@click.option("--resource", help=f"Resource that it protects: {', '.join(RESOURCES)}.")
@policy_option("Policy file to write.")
def init_command(lock: str | None, adapter: str | None, purpose: str | None, resource: str | None, file: Path) -> int:
    """Write a first, commented lockstorm.toml. Asks for missing answers; never overwrites a file.

    \b
    Example: lockstorm init --lock set-nx-px --for correctness --resource plain
             lockstorm init --adapter ./mine
    """
    if file.exists():
        raise UsageError(f"{file} exists already: nothing was written; -f names another file")
    given = {"lock": lock, "for": purpose, "resource": resource}
    if adapter is not None:
        if lock is not None:
            raise UsageError("--lock or --adapter, not both: add another [[lock]] to the file by hand")
        named = {name: value for name, value in given.items() if value is not None}
        given = {**USUAL_ANSWERS, **named, "lock": lock_named(PREFIX + adapter).name}
    missing = [f"--{name}" for name, value in given.items() if value is None]
    if missing and not sys.stdin.isatty():
        raise UsageError(f"there is no terminal to ask on: give {', '.join(missing)}")
    summaries = {known.name: known.summary for known in locks() if known.name != "none"}
    answers = ask_questions(given, ask_on_terminal, summaries)
    write_starter_policy(file, answers)
    chosen = "" if file == Path(USUAL_POLICY) else f" -f {shlex.quote(str(file))}"
    console().print(f"written: {file}; now: {runnable(f'lockstorm gate{chosen}')}")
    return 0


def ask_on_terminal(question: str, answers: dict[str, str], usual: str) -> str:
    """Asks until the answer is one of `answers` (name -> meaning). `usual`: the answer to an empty line."""
    table = Table(box=None, padding=(0, 1), show_header=False)
    for name, meaning in answers.items():
        table.add_row(Text(name, "bold"), Text(meaning))
    console().print(Text(question, "bold"))
    console().print(table)
    while True:
        answer = str(click.prompt("  ", default=usual, prompt_suffix="> ")).strip()
        try:
            return choose("answer", answer, list(answers))
        except UsageError as error:
            click.echo(f"  {error}")
