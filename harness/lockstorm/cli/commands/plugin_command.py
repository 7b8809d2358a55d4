"""`lockstorm plugin`: writes a first plug-in, and checks one against the contract of a lock."""

from functools import partial
from pathlib import Path

import click

from lockstorm.base import paths
from lockstorm.base.errors import UsageError
from lockstorm.cli.options import json_option, path_option
from lockstorm.cli.terminal import NearestName, print_checks, write_starter_program
from lockstorm.conformance.plugin_check import check_plugin
from lockstorm.locks import plugin


@click.group("plugin", cls=NearestName)
def plugin_command() -> None:
    """Locks of your own in C, as shared objects (`lockstorm docs test-your-own-lock`).

    \b
    Example: lockstorm plugin init; lockstorm plugin check ./lock-plugin.so
    """


@plugin_command.command("check")
@click.argument("file")
@json_option
def plugin_check_command(file: str, as_json: bool) -> int:
    """Check whether FILE does what a lock must do, and what it declares. Explains each failure.

    \b
    Example: lockstorm plugin check ./mylock.so
    Exit status: 0 it does, 1 a check failed, 2 it cannot be loaded
    """
    entry = plugin.plugin_entry(file)
    title = f"{entry.shared_object.name}: {entry.summary}"
    return print_checks(title, partial(check_plugin, entry), as_json)


@plugin_command.command("init")
@path_option("-o", "output", default="lock-plugin.c", show_default=True)
def plugin_init_command(output: Path) -> int:
    """Write a first lock in C for you to change.

    \b
    Example: lockstorm plugin init
    """
    if output.suffix != ".c":
        raise UsageError(f"-o {output}: the name of a C file ends in .c")
    path = write_starter_program(output, plugin.STARTER)
    shared = path.removesuffix(".c") + ".so"
    # One command a line, without wrapping: users copy them.
    click.echo(f"{path} is written. Next:")
    click.echo(f"cc -std=c11 -O2 -fPIC -shared -I {paths.build() / 'include'} -o {shared} {path}")
    click.echo(f"lockstorm plugin check {shared}")
    return 0
