"""`lockstorm demo`."""

import contextlib

import click

from lockstorm.cli import demo as demo_
from lockstorm.cli.options import json_option
from lockstorm.cli.terminal import console, print_json, waiting


@click.command("demo")
@json_option
def demo_command(as_json: bool) -> int:
    """Play famous failures of distributed locks on real servers, and what prevents the damage of each.

    \b
    Example: lockstorm demo
    """
    with waiting("ten trials ...") if as_json else contextlib.nullcontext():
        done = demo_.perform(None if as_json else console())
    if as_json:
        print_json(done)
    return int(done.exit)
