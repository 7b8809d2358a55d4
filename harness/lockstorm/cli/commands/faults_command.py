"""`lockstorm faults`."""

import click

from lockstorm.base.option_fields import choose
from lockstorm.cli.listing import explain, show_list
from lockstorm.cli.options import json_option
from lockstorm.native.library import faults as fault_table


@click.command("faults")
@click.argument("name", required=False)
@json_option
def faults_command(name: str | None, as_json: bool) -> int:
    """List the faults; with NAME, explain one.

    \b
    Example: lockstorm faults pause-client
    """
    known = {fault.name: fault for fault in fault_table()}
    if name:
        return explain(
            known[choose("fault", name, list(known))],
            as_json,
            ("target", "options", "proof", "proved", "times"),
        )
    return show_list("faults", list(known.values()), as_json, [], ("proof", "proof"))
