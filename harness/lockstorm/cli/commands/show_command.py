"""`lockstorm show`: a history as a table, a column for each lane of its diagram, a row for each event."""

from pathlib import Path

import click
from rich.table import Table
from rich.text import Text

from lockstorm.cli.options import around_option, json_option, rows_option
from lockstorm.cli.terminal import console, print_json
from lockstorm.report.diagram import Diagram
from lockstorm.report.drawing import clock_text
from lockstorm.report.history_model import diagram_of
from lockstorm.report.report_source import Recorded, read_recorded
from lockstorm.report.window import Gap, lines_of, shown_rows

STYLES = {"dim": "dim", "good": "green", "warn": "yellow", "": ""}


def events_table(diagram: Diagram, limit: int, around: int | None) -> Table:
    """The table that a page has below its diagram. Evidence of a violation is red and has its number."""
    table = Table(box=None, padding=(0, 1), show_edge=False, header_style="bold")
    table.add_column("time", justify="right", style="dim", no_wrap=True)
    table.add_column("", no_wrap=True)
    for lane in diagram.lanes:
        table.add_column(Text(lane.name), overflow="fold")
    for line in lines_of(shown_rows(diagram, limit, around), len(diagram.rows)):
        words = [Text("")] * len(diagram.lanes)
        if isinstance(line, Gap):
            words[:1] = [Text(f"... {line.count:,} left out", "dim")]
            table.add_row("", "", *words)
            continue
        row = diagram.rows[line]
        numbers = ",".join(str(number) for number in row.evidence)
        words[max(row.lane, 0) : max(row.lane, 0) + 1] = [
            Text(row.text, "bold red" if row.evidence else STYLES[row.tone])
        ]
        table.add_row(clock_text(row.at_ns), Text(numbers, "bold red"), *words)
    return table


def shown_as_json(recorded: Recorded, diagram: Diagram) -> dict[str, object]:
    """The whole history, as `lockstorm show --json` prints it."""
    rows = [
        {
            "record": row.index if row.record else None,
            "at_ns": row.at_ns,
            "lane": diagram.lanes[row.lane].name if row.lane >= 0 else None,
            "kind": row.kind,
            "text": row.text,
            "evidence": row.evidence,
        }
        for row in diagram.rows
    ]
    lanes = [{"name": lane.name, "kind": lane.kind} for lane in diagram.lanes]
    evidence = [{"number": each.number, "property": each.property, "text": each.text} for each in diagram.evidence]
    return {"lanes": lanes, "rows": rows, "evidence": evidence, "sentence": recorded.verdict.sentence}


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
        print_json(shown_as_json(recorded, diagram))
    else:
        out = console()
        out.print(events_table(diagram, rows, around), "")
        for piece in diagram.evidence:
            out.print(Text(f"{piece.number}. {piece.property}: {piece.text}", "red"))
        out.print(Text(recorded.verdict.sentence, "bold"))
    return 0
