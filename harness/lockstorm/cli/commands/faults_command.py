"""`lockstorm faults`."""

from collections.abc import Sequence

import click

from lockstorm.base.option_fields import choose
from lockstorm.cli.listing import explain, show_list
from lockstorm.cli.options import json_option
from lockstorm.native.fault_names import name_now
from lockstorm.native.library import faults as fault_table
from lockstorm.results.fault_entry import FaultEntry


def markdown_table(faults: Sequence[FaultEntry]) -> str:
    heads = ("fault", "what happens", "in a trial", "in a search of a C lock", "in a search of a library", "proof")
    rows = [
        (f"`{each.name}`", each.summary, each.in_a_trial, each.in_the_simulation, each.in_a_library, each.proof)
        for each in faults
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, ("---",) * len(heads), *rows))


@click.command("faults")
@click.argument("name", required=False)
@click.option("--markdown", "as_markdown", is_flag=True, help="Print the table of docs/faults.md.")
@json_option
def faults_command(name: str | None, as_markdown: bool, as_json: bool) -> int:
    """List the faults; with NAME, explain one: what it is in a trial, in a search of a C lock (simulation) and in a
    search of a library, or why it is not there.

    \b
    Example: lockstorm faults pause-client
    """
    known = {fault.name: fault for fault in fault_table()}
    if as_markdown:
        click.echo(markdown_table(list(known.values())))
        return 0
    if name:
        fault = known[choose("fault", name_now(name), list(known))]
        keys = ("target", "options", "proof", "proved", "times") if fault.trial else ("proof",)
        old = ("old_name",) if fault.old_name else ()
        return explain(fault, as_json, (*keys, "in_a_trial", "in_the_simulation", "in_a_library", *old))
    marks = [(world, world) for world in ("trial", "simulation", "library")]
    return show_list("faults", list(known.values()), as_json, marks, ("proof", "proof"))
