"""`lockstorm faults`."""

import click

from lockstorm.base.option_fields import choose
from lockstorm.cli.listing import explain, show_list
from lockstorm.cli.options import json_option
from lockstorm.native.fault_names import name_now
from lockstorm.native.library import faults as fault_table


@click.command("faults")
@click.argument("name", required=False)
@json_option
def faults_command(name: str | None, as_json: bool) -> int:
    """List the faults; with NAME, explain one: what it is in a trial, in a search of a C lock (simulation) and in a
    search of a library, or why it is not there.

    \b
    Example: lockstorm faults pause-client
    """
    known = {fault.name: fault for fault in fault_table()}
    if name:
        fault = known[choose("fault", name_now(name), list(known))]
        keys = ("target", "options", "proof", "proved", "times") if fault.trial else ("proof",)
        old = ("old_name",) if fault.old_name else ()
        return explain(fault, as_json, (*keys, "in_a_trial", "in_the_simulation", "in_a_library", *old))
    marks = [(world, world) for world in ("trial", "simulation", "library")]
    return show_list("faults", list(known.values()), as_json, marks, ("proof", "proof"))
