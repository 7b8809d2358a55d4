"""`lockstorm doctor`."""

import click
from rich.table import Table
from rich.text import Text

from lockstorm.cli import doctor as doctor_
from lockstorm.cli.options import json_option
from lockstorm.cli.terminal import console, print_json


@click.command("doctor")
@json_option
def doctor_command(as_json: bool) -> int:
    """Show what this machine can run, and what is missing for the rest.

    \b
    Example: lockstorm doctor
    """
    findings = doctor_.examine()
    well = all(finding["ok"] for finding in findings)
    if as_json:
        print_json({"findings": findings, "ok": well})
        return 0 if well else 3
    table = Table(box=None, show_header=False, padding=(0, 1))
    for finding in findings:
        mark = Text("ok", "green") if finding["ok"] else Text("no", "bold red")
        table.add_row(mark, finding["name"], finding["found"] + (f" - {finding['help']}" if finding["help"] else ""))
    console().print(table)
    return 0 if well else 3
