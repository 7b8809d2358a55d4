"""The `lockstorm` command."""

import contextlib
import gc
import os
import select
import signal
import sys
import traceback
from collections.abc import Iterator
from importlib import import_module
from typing import NoReturn, TextIO

import click

from lockstorm.base.errors import Inconclusive, LockstormError, UsageError
from lockstorm.base.version import VERSION
from lockstorm.cli.terminal import NearestName

INTERRUPTED = 130


# Each command NAME is NAME_command in commands/NAME_command.py.
GROUPS = {
    "Start here": ("demo", "doctor", "docs", "init"),
    "Test a lock": ("run", "storm", "attach", "matrix", "advise", "compare", "locks", "faults", "scenarios"),
    "Search": ("explore", "replay", "merge", "campaign", "zoo"),
    "Libraries": ("adapter", "plugin", "libraries"),
    "Applications": ("app",),
    "Judge": ("gate", "runs", "check", "history"),
    "Report": ("report", "show"),
    "Develop": ("test",),
}
COMMANDS = tuple(name for names in GROUPS.values() for name in names)

# What replaces an option of before. Nothing accepts the old one.
RENAMED_OPTIONS = {
    "--jobs": "--workers",
    "--lease-ms": "--lease, with a unit: --lease 500ms",
    "--seconds": "--time-limit, with a unit: --time-limit 60s",
    "--wait-ms": "--wait, with a unit: --wait 500ms, or forever",
    "--work-ms": "--work, with a unit: --work 20ms",
}


class Commands(NearestName):
    """The commands, each imported when it is called: a trial does without what the report or the gate needs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def grouped_commands(self, ctx: click.Context) -> dict[str, list[str]]:
        return {title: list(names) for title, names in GROUPS.items()}

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"lockstorm.cli.commands.{cmd_name}_command")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        gc.freeze()
        gc.enable()
        return command


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(VERSION, prog_name="lockstorm")
def cli() -> None:
    """Find out whether a distributed lock is safe: run real lock code against real servers, inject faults, and judge
    the history.

    \b
    Start with:  lockstorm demo
    Exit status: 0 every property as required, 1 one violated, 2 bad usage or input, 3 inconclusive
    """


def interrupt(signal_number: int, frame: object) -> NoReturn:
    """Handles SIGTERM and SIGHUP: ends a trial as Ctrl-C does, with all its clean-up."""
    raise SystemExit(128 + signal_number)


def has_lost_its_reader(stream: TextIO) -> bool:
    """Whether nobody can read any more what is written to this pipe or socket."""
    poll = select.poll()
    poll.register(stream.fileno(), 0)
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))


def end_without_reader() -> None:
    """Ends the command as SIGPIPE does, if the reader of its output has gone. If it has not, a pipe to a process or a
    connection to a server broke."""
    lost = [stream for stream in (sys.stdout, sys.stderr) if has_lost_its_reader(stream)]
    for stream in lost:  # what is left in its buffer must not fail again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    if lost:
        sys.exit(128 + signal.SIGPIPE)


@contextlib.contextmanager
def tidy_end() -> Iterator[None]:
    """Turns an error into an exit status, and an expected one into one message without a traceback. An unexpected one
    says nothing about the lock: its exit status must not be that of a violation."""
    try:
        yield
    except LockstormError as error:
        click.echo(f"lockstorm: {error}", err=True)
        sys.exit(error.exit_status)
    except (click.exceptions.Abort, KeyboardInterrupt):
        click.echo("lockstorm: interrupted", err=True)
        # An interrupt within exec or eval of a text, as when a dataclass is made, stays noted until the next one: at
        # its end `python -m` would kill itself by SIGINT, whatever the exit status is (CPython, Py_RunMain).
        exec("")
        sys.exit(INTERRUPTED)
    except Exception as error:
        if isinstance(error, BrokenPipeError):
            end_without_reader()
        traceback.print_exc()
        sys.exit(Inconclusive.exit_status)


def command_status() -> int:
    """Runs the command of this process. click's own `main` would end with 1, a violation, when any pipe breaks."""
    try:
        with cli.make_context("lockstorm", sys.argv[1:]) as context:
            return int(cli.invoke(context) or 0)
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.exceptions.NoSuchOption as error:
        if error.option_name not in RENAMED_OPTIONS:
            raise
        raise UsageError(f"{error.option_name} is now {RENAMED_OPTIONS[error.option_name]}") from None


def main() -> NoReturn:
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    with tidy_end():
        try:
            status = command_status()
        except click.exceptions.ClickException as error:
            error.show()
            sys.exit(error.exit_code)
        sys.stdout.flush()
        sys.exit(status)
