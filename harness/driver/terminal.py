"""What every command does alike on a terminal: options, colour, progress, one JSON object."""

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from harness.driver import adapter as adapters
from harness.driver import plugin as plugins
from harness.driver.errors import UsageError
from harness.driver.play import PROPERTIES, REQUIRED

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class NearestName(click.Group):
    """A group that names the nearest command when there is none of the name."""

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


class Duration(click.ParamType[int]):
    """A duration in ms: "500ms", "2s", "1.5m"."""

    name = "duration"
    UNITS = (("ms", 1.0), ("s", 1000.0), ("m", 60_000.0), ("h", 3_600_000.0))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        for unit, factor in self.UNITS:
            if str(value).endswith(unit):
                with contextlib.suppress(ValueError, OverflowError):
                    return int(float(str(value).removesuffix(unit)) * factor)
                break
        return self.fail(f"{value!r} is not a duration such as 500ms, 2s or 1.5m", param, ctx)


class Numbers(click.ParamType[tuple[int, ...]]):
    """Numbers from 1 to a limit, such as "1,8,64"; or "none"."""

    name = "numbers"

    def __init__(self, most: int) -> None:
        self.most = most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        if value == "none":
            return ()
        words = str(value).split(",")
        if not all(word.isdecimal() and 1 <= int(word) <= self.most for word in words):
            self.fail(f"{value!r}: numbers from 1 to {self.most:,}, such as 1,8, or none", param, ctx)
        return tuple(dict.fromkeys(int(word) for word in words))


class Terminal(Console):
    """A console on which a reader that has gone is no verdict: rich would end with status 1, which says "violated"."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console() -> Console:
    """Colour and width of a terminal where there is one; plain and unwrapped where there is none."""
    return Terminal(highlight=False) if sys.stdout.isatty() else Terminal(highlight=False, width=160, soft_wrap=True)


def waiting(what: str) -> contextlib.AbstractContextManager[object]:
    """Says on a terminal what is going on; nothing elsewhere. It is gone when the work is done."""
    return Console(stderr=True).status(what) if sys.stderr.isatty() else contextlib.nullcontext()


@contextlib.contextmanager
def saying() -> Iterator[Callable[[str], object]]:
    """A line on a terminal's standard error; call what it gives with what it is to say now."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    with Console(stderr=True).status("...") as status:
        yield status.update


@contextlib.contextmanager
def progress(total: int) -> Iterator[Callable[[str], object]]:
    """A bar on a terminal's standard error; call what it gives before each of `total` pieces of work."""
    with progress_bar() as bar:
        task = bar.add_task("", total=total)
        begun = iter([0] + [1] * total)  # what is begun ends the one before
        yield lambda what: bar.update(task, advance=next(begun), description=what)


@contextlib.contextmanager
def progress_of_done(total: int) -> Iterator[Callable[[str], object]]:
    """The same for work that goes on side by side: call what it gives after each piece."""
    with progress_bar() as bar:
        task = bar.add_task("", total=total)
        yield lambda what: bar.update(task, advance=1, description=what)


def progress_bar() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty())


def print_json(value: dict[str, Any]) -> None:
    click.echo(json.dumps(value, indent=2))


def names_option(option: str, what: str, help_: str) -> Callable[[Decorated], Decorated]:
    """An option of names with commas between them, which may be given several times: nothing that was said is lost."""
    return click.option(
        option,
        metavar=f"{what},…",
        multiple=True,
        callback=lambda _context, _option, given: ",".join(given) if given else None,
        help=help_,
    )


def chosen_lock(lock: str | None, adapter: str | None, plugin: str | None) -> str:
    """Which lock is meant. Raises UsageError unless exactly one is."""
    meant = [] if lock is None else [lock]
    meant += [] if adapter is None else [adapters.PREFIX + adapter]
    meant += [] if plugin is None else [plugins.PREFIX + plugin]
    if len(meant) != 1:
        raise UsageError(
            "name one lock: --lock (`lockstorm locks` lists them), or --adapter for a library of your own, or --plugin "
            "for a lock of your own in C"
        )
    return meant[0]


lock_option = click.option("--lock", help="The lock to try; `lockstorm locks` lists them.")
adapter_option = click.option(
    "--adapter", metavar="PROGRAM", help="Or a lock library, through an adapter: ./mine, or one that is shipped."
)
plugin_option = click.option(
    "--plugin", metavar="FILE", help="Or a lock of your own in C, as a shared object: ./mine.so."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
require_option = names_option(
    "--require",
    "PROPERTY",
    f"Only these decide the exit status, of {', '.join(PROPERTIES)}. Default: {', '.join(REQUIRED)}, as far as "
    "they apply.",
)
