"""`lockstorm doctor`."""

import os

import click
from rich.table import Table
from rich.text import Text

from lockstorm.base import paths
from lockstorm.cli import doctor as doctor_
from lockstorm.cli.options import json_option
from lockstorm.cli.terminal import console, print_json
from lockstorm.trial.settings import SERVER_HELP


@click.command("doctor")
@click.option("--server", metavar="PROGRAM", help=SERVER_HELP)
@json_option
def doctor_command(server: str | None, as_json: bool) -> int:
    """Show what this machine can run, and what is missing for the rest.

    \b
    Example: lockstorm doctor --server valkey-server
    """
    if server:
        os.environ["LOCKSTORM_REDIS_SERVER"] = paths.redis_server(server)
    findings = doctor_.examine()
    well = all(finding.ok for finding in findings)
    if as_json:
        print_json({"findings": findings, "ok": well})
        return 0 if well else 3
    table = Table(box=None, show_header=False, padding=(0, 1))
    for finding in findings:
        mark = Text("ok", "green") if finding.ok else Text("no", "bold red")
        table.add_row(mark, finding.name, finding.found + (f" - {finding.help}" if finding.help else ""))
    console().print(table)
    return 0 if well else 3
