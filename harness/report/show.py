"""The diagram's table in a terminal: a column for everybody, a row for every event."""

from rich.table import Table
from rich.text import Text

from harness.report.diagram import Diagram
from harness.report.drawing import clock_text
from harness.report.source import Recorded
from harness.report.window import ROWS_USUAL, Gap, lines_of, shown_rows

STYLES = {"dim": "dim", "good": "green", "warn": "yellow", "": ""}


def events_table(diagram: Diagram, limit: int = ROWS_USUAL, around: int | None = None) -> Table:
    """What a page shows below its diagram. The evidence of a violation is red and carries its number."""
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
        numbers = ",".join(str(number) for number in row.blamed)
        words[max(row.lane, 0) : max(row.lane, 0) + 1] = [
            Text(row.text, "bold red" if row.blamed else STYLES[row.tone])
        ]
        table.add_row(clock_text(row.at_ns), Text(numbers, "bold red"), *words)
    return table


def evidence_lines(diagram: Diagram) -> list[Text]:
    return [Text(f"{blame.number}. {blame.property}: {blame.text}", "red") for blame in diagram.blames]


def shown_as_json(recorded: Recorded, diagram: Diagram) -> dict[str, object]:
    """The same for programs, of the whole history."""
    rows = [
        {
            "record": row.index if row.record else None,
            "at_ns": row.at_ns,
            "lane": diagram.lanes[row.lane].name if row.lane >= 0 else None,
            "kind": row.kind,
            "text": row.text,
            "evidence": row.blamed,
        }
        for row in diagram.rows
    ]
    lanes = [{"name": lane.name, "kind": lane.kind} for lane in diagram.lanes]
    blames = [{"number": blame.number, "property": blame.property, "text": blame.text} for blame in diagram.blames]
    return {"lanes": lanes, "rows": rows, "evidence": blames, "sentence": recorded.verdict["sentence"]}
