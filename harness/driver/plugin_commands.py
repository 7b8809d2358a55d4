"""The commands about plug-ins: a first one of one's own, and whether it does what a lock has to do."""

from pathlib import Path
from typing import Any

import click
from rich.text import Text

from harness.driver import paths, plugin
from harness.driver.errors import UsageError
from harness.driver.plugin_check import check_plugin
from harness.driver.terminal import NearestName, console, json_option, print_json


@click.group("plugin", cls=NearestName)
def plugin_group() -> None:
    """Locks of your own in C, as shared objects (docs/test-your-own-lock.md).

    \b
    Example: lockstorm plugin init; lockstorm plugin check ./lock-plugin.so
    """


@plugin_group.command()
@click.argument("file")
@json_option
def check(file: str, as_json: bool) -> int:
    """Does FILE do what a lock has to do, and what it says of itself? Says in words what is wrong.

    \b
    Example: lockstorm plugin check ./mylock.so
    Exit status: 0 it does, 1 something is wrong, 2 it cannot be loaded
    """
    entry, out = plugin.entry_of(file), console()
    if not as_json:
        out.print(Text(f"{entry['plugin']['name']}: {entry['summary']}", "bold"))

    def tell(done: dict[str, Any]) -> None:
        if not as_json:
            mark = ("  ok     ", "green") if done["ok"] else ("  WRONG  ", "red")
            out.print(Text.assemble(mark, done["name"]))
            if not done["ok"]:
                out.print(Text(f"         {done['wrong']}"))

    result = check_plugin(entry, tell)
    if as_json:
        print_json(result)
    else:
        wrong = sum(not each["ok"] for each in result["checks"])
        out.print(Text(f"{len(result['checks'])} checks, {wrong} wrong", "bold"))
    return 0 if result["ok"] else 1


@plugin_group.command()
@click.option("-o", "output", type=click.Path(path_type=Path), default="lock-plugin.c", show_default=True)
def init(output: Path) -> int:
    """Write a first lock in C to change.

    \b
    Example: lockstorm plugin init
    """
    if output.suffix != ".c":
        raise UsageError(f"-o {output}: the name of a C file ends in .c")
    if output.exists() or not output.parent.is_dir():
        why = "exists already" if output.exists() else "its directory does not exist"
        raise UsageError(f"-o {output}: {why}")
    output.write_text(plugin.STARTER.read_text())
    path = str(output) if output.is_absolute() else f"./{output}"
    shared = path.removesuffix(".c") + ".so"
    # One command a line, to be copied as it is.
    click.echo(f"{path} is written. Next:")
    click.echo(f"cc -std=c11 -O2 -fPIC -shared -I {paths.build() / 'include'} -o {shared} {path}")
    click.echo(f"lockstorm plugin check {shared}")
    return 0
