"""Options that several commands share, the options of dataclasses, and their types."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from lockstorm.base.errors import UsageError
from lockstorm.base.option_fields import Kind, Option, options_of
from lockstorm.base.paths import USUAL_POLICY
from lockstorm.locks import adapter as adapters
from lockstorm.locks import plugin as plugins
from lockstorm.locks.lock_names import APP_PREFIX
from lockstorm.report.window import ROWS_USUAL

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class Duration(click.ParamType[int]):
    """The value of an option that is a duration, such as 500ms, 10s, 2min or 1h."""

    name = "duration"

    def __init__(self, option: Option) -> None:
        self.option = option

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            value = self.option.read_duration(str(value))
            self.option.check(value)
        except UsageError as error:
            raise click.UsageError(str(error), ctx) from None
        return int(value)


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


def duration_option(
    flag: str, name: str, help_: str, low_ms: int, high_ms: int, default: str | None = None
) -> Callable[[Decorated], Decorated]:
    """An option that is a duration. The command receives it in ms."""
    each = Option(flag, help_, "duration", within=(low_ms, high_ms))
    return option_from(name, each, default=default, show_default=default is not None)


def path_option(*names: str, **attributes: Any) -> Callable[[Decorated], Decorated]:
    """An option that is the path of a file or of a directory."""
    return click.option(*names, type=click.Path(path_type=Path), **attributes)


def policy_option(help_: str) -> Callable[[Decorated], Decorated]:
    return path_option("-f", "--file", default=USUAL_POLICY, show_default=True, help=help_)


def refused_option(flag: str, why: str) -> Callable[[Decorated], Decorated]:
    """An option that other commands have, and that this one refuses with a reason."""

    def refuse(_context: click.Context, _option: click.Parameter, given: str | None) -> None:
        if given is not None:
            raise UsageError(f"{flag}: {why}")

    return click.option(flag, hidden=True, expose_value=False, callback=refuse)


def names_option(flag: str, what: str, help_: str, parameter: str | None = None) -> Callable[[Decorated], Decorated]:
    """An option of comma-separated names. It may be given several times; the command receives all names."""
    return click.option(
        flag,
        *([parameter] if parameter else []),
        metavar=f"{what},…",
        multiple=True,
        callback=lambda _context, _option, given: ",".join(given) if given else None,
        help=help_,
    )


def option_from(name: str, each: Option, **changed: Any) -> Callable[[Decorated], Decorated]:
    """The click option of a dataclass field (base/option_fields.py). `changed`: another help, or no default."""
    help_ = changed.pop("help", each.help)
    if each.kind == "names":
        return names_option(each.flag, each.metavar or "NAME", help_, name)
    kinds: dict[Kind, dict[str, Any]] = {  # arguments of click.option
        "number": {"type": int},
        "duration": {"type": Duration(each)},
        "path": {"type": click.Path(path_type=Path)},
        "flag": {"is_flag": True},
    }
    attributes = {"metavar": each.metavar, **kinds.get(each.kind, {}), **changed}
    return click.option(each.flag, name, help=help_, **attributes)


def field_options(owner: type, *names: str, **helps: str) -> Callable[[Decorated], Decorated]:
    """The options of a dataclass: those of the fields named, or all. A command receives each under the name of its
    field, None where it was not given. `helps`: another help for a field."""

    def decorate(command: Decorated) -> Decorated:
        known = options_of(owner)
        for name in reversed(names or tuple(known)):
            changed = {"help": helps[name]} if name in helps else {}
            command = option_from(name, known[name], **changed)(command)
        return command

    return decorate


def given_options(owner: type, chosen: Mapping[str, Any]) -> dict[str, Any]:  # fields of `owner`
    """The options of a dataclass that were given; the others keep the default of their field."""
    known = options_of(owner)
    return {name: value for name, value in chosen.items() if name in known and value is not None}


def chosen_lock(lock: str | None, adapter: str | None, plugin: str | None, app: str | None = None) -> str:
    """The name of the chosen lock. Raises UsageError unless exactly one option names one."""
    chosen = [] if lock is None else [lock]
    chosen += [] if adapter is None else [adapters.PREFIX + adapter]
    chosen += [] if plugin is None else [plugins.PREFIX + plugin]
    chosen += [] if app is None else [APP_PREFIX + app]
    if len(chosen) != 1:
        raise UsageError(
            "name one lock: --lock (`lockstorm locks` lists them), or --adapter for a library of your own, or --plugin "
            "for a lock of your own in C"
        )
    return chosen[0]


lock_option = click.option("--lock", help="Lock to try; `lockstorm locks` lists them.")
adapter_option = click.option(
    "--adapter",
    metavar="PROGRAM",
    help="Lock library to try, through this adapter: ./mine, or a shipped one such as python-redis-lock.",
)
app_option = click.option(
    "--app",
    metavar="FILE",
    help="Application to try, as this file describes it: lockstorm-app.toml.",
)
plugin_option = click.option(
    "--plugin", metavar="FILE", help="Lock to try, as a shared object built from your own C code: ./mine.so."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
quiet_option = click.option("--quiet", "-q", is_flag=True, help="Print the verdict without the story.")
failed_only_option = click.option(
    "--quiet", "-q", is_flag=True, help="Print only the cases that did not pass, and how many did."
)
rows_option = click.option(
    "--rows",
    type=click.IntRange(20, 20_000),
    default=ROWS_USUAL,
    show_default=True,
    help="Most rows to show of a history.",
)
around_option = click.option(
    "--around",
    type=click.IntRange(0),
    metavar="RECORD",
    help="Show the rows around this record. Default: around the evidence.",
)
