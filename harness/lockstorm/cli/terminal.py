"""Output of commands: colour and progress on a terminal, JSON, and the checks of a conformance run."""

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import click
import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from lockstorm.base.atomic_file import new_file
from lockstorm.base.errors import UsageError
from lockstorm.base.waiting_note import heard_by
from lockstorm.conformance.check_result import Checks, DoneCheck

Printed = TypeVar("Printed")
More = ParamSpec("More")

SENTENCE_MOST = 300  # characters
LINE_EVERY_S = 10.0  # of progress, where there is no terminal
SAID_AFTER_S = 30.0  # there, of what is waited for: some waits are as long as a lease


class NearestName(click.Group):
    """A group that suggests the nearest command for an unknown name."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            near = get_close_matches(name, self.list_commands(ctx), n=1, cutoff=0.4)
            hint = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(self.list_commands(ctx))}."
            ctx.fail(f"There is no command {name!r}. {hint}")
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)  # in the order of the README, not of the alphabet

    def grouped_commands(self, ctx: click.Context) -> dict[str, list[str]]:
        """The names of the commands below the titles under which the help lists them."""
        return {"Commands": self.list_commands(ctx)}

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the commands, each with the whole first sentence of its help: click would cut it off."""
        for title, names in self.grouped_commands(ctx).items():
            commands = [self.get_command(ctx, name) for name in names]
            rows = [(each.name or "", each.get_short_help_str(SENTENCE_MOST)) for each in commands if each]
            with formatter.section(title):
                formatter.write_dl(rows)


class Terminal(Console):
    """A console that raises BrokenPipeError when its reader has gone: rich would exit with 1, a violation."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console() -> Console:
    """Standard output: with the colours and width of a terminal, or plain and unwrapped."""
    return Terminal(highlight=False) if sys.stdout.isatty() else Terminal(highlight=False, width=160, soft_wrap=True)


@contextlib.contextmanager
def waiting(what: str) -> Iterator[None]:
    """Shows `what` on standard error while the work lasts, if that is a terminal, and what it waits for. Elsewhere,
    after half a minute, there is a line about that every ten seconds."""
    if not sys.stderr.isatty():
        with heard_by(_SeldomLines()):
            yield
        return
    with Terminal(stderr=True).status(what) as status, heard_by(lambda text: status.update(f"{what} {text}")):
        yield


class _SeldomLines:
    def __init__(self) -> None:
        self._next_s = time.monotonic() + SAID_AFTER_S

    def __call__(self, text: str) -> None:
        now_s = time.monotonic()
        if now_s >= self._next_s:
            self._next_s = now_s + LINE_EVERY_S
            click.echo(f"lockstorm: {text}", err=True)


@contextlib.contextmanager
def status_line() -> Iterator[Callable[[str], object]]:
    """A line on standard error, if that is a terminal. Yields the function that replaces its text."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    with Terminal(stderr=True).status("...") as status:
        yield status.update


@contextlib.contextmanager
def status_line_to_the_end(hint: Callable[[], str]) -> Iterator[Callable[[str], object]]:
    """The same, and the last text is said to whom interrupts the work, also where there is no terminal, with a hint."""
    last = ""

    def note(text: str) -> None:
        nonlocal last
        last = text
        show(text)

    try:
        with status_line() as show:
            yield note
    except KeyboardInterrupt:
        if last:
            click.echo(f"until now: {last}; {hint()}", err=True)
        raise


@contextlib.contextmanager
def progress(total: int) -> Iterator[Callable[[str], object]]:
    """A bar on standard error, if that is a terminal. Yields a function to be called before each of `total` pieces of
    work, with its name."""
    with progress_bar() as bar:
        task = bar.add_task("", total=total)
        begun = iter([0] + [1] * total)  # the start of a piece is the end of the one before
        yield lambda what: bar.update(task, advance=next(begun), description=what)


@contextlib.contextmanager
def progress_of_done(total: int) -> Iterator[Callable[[str], object]]:
    """The same for parallel work: the function is to be called after each piece. Without a terminal, as in a pipeline,
    a line every ten seconds says how far it is."""
    if not sys.stderr.isatty():
        yield _lines_of_done(total)
        return
    with progress_bar() as bar:
        task = bar.add_task("", total=total)
        yield lambda what: bar.update(task, advance=1, description=what)


def _lines_of_done(total: int) -> Callable[[str], object]:
    done, said_s = 0, time.monotonic()

    def report(what: str) -> None:
        nonlocal done, said_s
        done += 1
        if time.monotonic() - said_s >= LINE_EVERY_S:
            said_s = time.monotonic()
            click.echo(f"{done} of {total} done: {what}", err=True)

    return report


def progress_bar() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Terminal(stderr=True), transient=True, disable=not sys.stderr.isatty())


def print_json(value: object) -> None:
    click.echo(json.dumps(msgspec.to_builtins(value), indent=2))


def print_result(
    as_json: bool,
    result: Printed,
    show: Callable[Concatenate[Console, Printed, More], object],
    *more: More.args,
    **named: More.kwargs,
) -> None:
    """Prints a result as JSON, or as `show` shows it."""
    if as_json:
        print_json(result)
    else:
        show(console(), result, *more, **named)


def print_checks(
    title: str, check: Callable[[Callable[[DoneCheck], object], Callable[[str], object]], Checks], as_json: bool
) -> int:
    """Does a conformance run, prints each check when it is done, and returns the exit status: 1 if a check failed.
    `check` calls its arguments with the result of each check, and before with its name."""
    if as_json:
        result = check(lambda _done: None, lambda _name: None)
        print_json(result)
        return 0 if result.ok else 1
    out = console()
    out.print(Text(title, "bold"))

    def print_check(done: DoneCheck) -> None:
        out.print(Text.assemble(("  ok     ", "green") if done.ok else ("  WRONG  ", "red"), done.name))
        if not done.ok:
            out.print(Text(f"         {done.wrong}"))

    with status_line() as show:
        result = check(print_check, show)
    wrong = sum(not each.ok for each in result.checks)
    out.print(Text(f"{len(result.checks)} checks, {wrong} wrong", "bold"))
    return 0 if result.ok else 1


def check_new_file(flag: str, path: Path | None) -> None:
    """Raises UsageError, before the work begins, if a file to write exists already, or cannot be made."""
    if not path:
        return
    if path.exists():
        raise UsageError(f"{flag} {path}: exists already")
    if not path.parent.is_dir():
        raise UsageError(f"{flag} {path}: its directory does not exist")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise UsageError(f"{flag} {path}: you may not write to its directory")


def write_starter_program(output: Path, starter: Path) -> str:
    """Copies a starter program to a new file, and returns the path as a shell needs it."""
    check_new_file("-o", output)
    with new_file(output) as temporary:
        temporary.write_text(starter.read_text())
    return str(output) if output.is_absolute() else f"./{output}"
