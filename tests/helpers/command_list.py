"""Every command of the command line, as click knows it."""

from collections.abc import Iterator

import click

from lockstorm.cli.main import cli


def command_paths(group: click.Group = cli, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words of each command, also of those in a group: ("adapter",), ("adapter", "init"), ..."""
    context = click.Context(group)
    for name in group.list_commands(context):
        yield (*before, name)
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from command_paths(command, (*before, name))


COMMANDS = tuple(command_paths())
