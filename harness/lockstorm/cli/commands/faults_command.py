"""`lockstorm faults`."""

from collections.abc import Sequence

import click

from lockstorm.base.option_fields import choose
from lockstorm.cli.listing import explain, show_list
from lockstorm.cli.options import json_option
from lockstorm.native.fault_names import name_now
from lockstorm.native.library import faults as fault_table
from lockstorm.results.fault_entry import FaultEntry, FaultOptionEntry


def markdown_table(faults: Sequence[FaultEntry]) -> str:
    heads = ("fault", "what happens", "in a trial", "in a search of a C lock", "in a search of a library", "proof")
    rows = [
        (f"`{each.name}`", each.summary, each.in_a_trial, each.in_the_simulation, each.in_a_library, each.proof)
        for each in faults
    ]
    return _table(heads, rows)


def target_table(faults: Sequence[FaultEntry]) -> str:
    """What a test may pass to trial.fault()."""
    rows = [
        (
            f"`{each.name}`",
            each.target,
            "; ".join(f"`{option.name}`{_default(option)}: {option.meaning}" for option in each.options) or "-",
        )
        for each in faults
        if each.trial
    ]
    return _table(("fault", "target", "options"), rows)


def _default(option: FaultOptionEntry) -> str:
    return "" if option.usual is None else f" (`{option.usual}`)" if option.usual else " (none)"


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, ("---",) * len(heads), *rows))


@click.command("faults")
@click.argument("name", required=False)
@click.option("--markdown", "as_markdown", is_flag=True, help="Print the tables of docs/faults.md and docs/pytest.md.")
@json_option
def faults_command(name: str | None, as_markdown: bool, as_json: bool) -> int:
    """List the faults; with NAME, explain one: what it is in a trial, in a search of a C lock (simulation) and in a
    search of a library, or why it is not there.

    \b
    Example: lockstorm faults pause-client
    """
    known = {fault.name: fault for fault in fault_table()}
    if as_markdown:
        click.echo(f"{markdown_table(list(known.values()))}\n\n{target_table(list(known.values()))}")
        return 0
    if name:
        fault = known[choose("fault", name_now(name), list(known))]
        keys = ("target", "options", "proof", "proved", "times") if fault.trial else ("proof",)
        old = ("old_name",) if fault.old_name else ()
        return explain(fault, as_json, (*keys, "in_a_trial", "in_the_simulation", "in_a_library", *old))
    marks = [(world, world) for world in ("trial", "simulation", "library")]
    return show_list("faults", list(known.values()), as_json, marks, ("proof", "proof"))
