"""`lockstorm runs`."""

from pathlib import Path

import click
from rich.table import Table
from rich.text import Text

from lockstorm.cli.options import json_option, path_option, policy_option
from lockstorm.cli.terminal import console, print_json
from lockstorm.gate.gate_policy import read_policy
from lockstorm.gate.runs import list_runs, remove_old_runs


@click.command("runs")
@path_option("-d", "--directory", help="Directory of the runs. Default: that of the policy.")
@policy_option("Policy file.")
@click.option(
    "--keep",
    type=click.IntRange(0),
    help="Number of runs to keep: older runs are removed, except those that are still going on.",
)
@json_option
def runs_command(directory: Path | None, file: Path, keep: int | None, as_json: bool) -> int:
    """List the runs that the gate kept, newest first.

    \b
    Example: lockstorm runs --keep 20
    """
    where = directory or (read_policy(file).runs if file.exists() else file.parent / "runs")
    removed = remove_old_runs(where, keep) if keep is not None else []
    known = list_runs(where)
    if as_json:
        print_json({"runs": known, "removed": removed})
        return 0
    table = Table(box=None, padding=(0, 1), header_style="dim")
    for title in ("id", "state", "exit", "trials", "searches", ""):
        table.add_column(title, no_wrap=title == "id")
    for each in known:
        status = "" if each.exit is None else str(each.exit)
        table.add_row(
            Text(each.id, "bold"), each.state, status, str(each.trials), str(each.searches), Text(each.sentence)
        )
    console().print(table if known else Text(f"no runs in {where}", "dim"))
    if removed:
        console().print(Text(f"removed: {', '.join(removed)}", "dim"))
    return 0
