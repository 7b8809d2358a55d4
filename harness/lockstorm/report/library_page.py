"""A schedule of a library as a page or a picture."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from lockstorm.report.diagram import Diagram
from lockstorm.report.drawing import clock_text, draw
from lockstorm.report.library_diagram import library_diagram
from lockstorm.report.trial_page import TrialView, environment, plain_style, render, table_of
from lockstorm.report.window import ROWS_USUAL, shown_rows
from lockstorm.results.verdict import Evidence, PropertyVerdict


@dataclass(frozen=True)
class PlayedSchedule:
    """What a page of a schedule is made of. `result`: of its replay. `lines`: of its workload and its deviations."""

    file: str
    result: dict[str, Any]
    facts: Sequence[tuple[str, str]]
    lines: Sequence[str]


def library_page(played: PlayedSchedule, version: str, limit: int = ROWS_USUAL) -> str:
    view = _view(played, limit)
    return render("trial.html.j2", title=view.name, views=[view], differences=[], script="trial.js", version=version)


def library_picture(played: PlayedSchedule, limit: int = ROWS_USUAL) -> str:
    """The diagram as an SVG file, as trial_picture."""
    diagram = _diagram(played)
    picture = draw(diagram, shown_rows(diagram, limit))
    label = f"{_name(played)}: {played.result['sentence']}"
    text = environment().get_template("diagram.svg.j2").module.diagram(picture, Markup(plain_style()), label)  # type: ignore[attr-defined]
    return f"{text}\n"


def _diagram(played: PlayedSchedule) -> Diagram:
    result = played.result
    return library_diagram(result["events"], [each for each in result["broken"] if each["promise"] in result["breaks"]])


def _name(played: PlayedSchedule) -> str:
    library = played.result["library"]
    return f"{library['name']} {library['version']}".strip()


def _view(played: PlayedSchedule, limit: int) -> TrialView:
    diagram, result = _diagram(played), played.result
    shown = shown_rows(diagram, limit)
    left_out = len(diagram.rows) - len(shown)
    nothing = list[Evidence]()
    return TrialView(
        name=_name(played),
        sentence=result["sentence"][:1].upper() + result["sentence"][1:],
        exit=result["exit"],
        properties=[(name, PropertyVerdict(status="violated", count=1, evidence=nothing)) for name in result["breaks"]],
        facts=[*played.facts, ("file", played.file), ("again", result["replay"])],
        evidence=diagram.evidence,
        lanes=diagram.lanes,
        picture=draw(diagram, shown),
        table=table_of(diagram, shown),
        records=[_record(diagram, number, played.lines) for number in shown],
        left_out=f"{left_out:,} of {len(diagram.rows):,} events are left out. --rows N shows more." if left_out else "",
        has_lease=False,
        clock_moved=False,
        lease_is_read=diagram.has_lease,
    )


def _record(diagram: Diagram, number: int, lines: Sequence[str]) -> dict[str, Any]:
    """What the page shows about an event under the pointer: the event, and the whole schedule."""
    row = diagram.rows[number]
    return {
        "who": diagram.lanes[row.lane].name if row.lane >= 0 else "all",
        "text": row.text,
        "time": f"at {clock_text(row.at_ns)} of the schedule",
        "evidence": [f"{each.property}: {each.text}" for each in diagram.evidence if each.number in row.evidence],
        "fields": [["schedule" if not place else "", line] for place, line in enumerate(lines)],
    }
