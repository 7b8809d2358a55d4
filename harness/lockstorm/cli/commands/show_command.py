"""`lockstorm show`."""

from pathlib import Path

import click
from rich.text import Text

from lockstorm.cli.options import around_option, json_option, rows_option
from lockstorm.cli.terminal import console, print_json
from lockstorm.report import history_table as show_
from lockstorm.report.history_model import diagram_of
from lockstorm.report.report_source import read_recorded


@click.command("show")
@click.argument("file", type=click.Path(path_type=Path))
@rows_option
@around_option
@json_option
def show_command(file: Path, rows: int, around: int | None, as_json: bool) -> int:
    """Print a recorded history as a table: one column for each participant, one row for each event, evidence in red.

    \b
    Example: lockstorm run gc-pause --lock set-nx-px -o gc.history; lockstorm show gc.history
    """
    recorded = read_recorded(file)
    diagram = diagram_of(recorded.events, recorded.verdict)
    if as_json:
        print_json(show_.shown_as_json(recorded, diagram))
    else:
        out = console()
        out.print(show_.events_table(diagram, rows, around), "")
        for line in show_.evidence_lines(diagram):
            out.print(line)
        out.print(Text(recorded.verdict.sentence, "bold"))
    return 0
