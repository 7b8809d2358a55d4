"""Diagrams as a page or a picture, whatever they show: a trial, or a schedule of a library."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lockstorm.report.command_rows import CommandRow
from lockstorm.report.diagram import Diagram, Row
from lockstorm.report.drawing import Picture, clock_text, draw
from lockstorm.report.templates import render, svg_text
from lockstorm.report.window import ROWS_USUAL, Gap, lines_of, shown_rows

Fields = list[tuple[str, str]]
OF_ONE = ("file", "again")  # facts that always differ


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What is shown, and its verdict. `fields_of`: what the page lists about the event under the pointer."""

    name: str
    what: str  # "trial", "schedule"
    sentence: str
    exit: int
    statuses: dict[str, str]  # by property or promise
    facts: Fields
    diagram: Diagram
    fields_of: Callable[[Row], Fields]
    baseline: str = ""  # what a right lock of the same kind does
    lease_is_read: bool = False  # the bars of leases are what the server was asked for
    commands: Sequence[CommandRow] = ()  # that servers heard


@dataclass(frozen=True)
class PageLine:
    """A line of the table: an event, or a gap."""

    text: str
    row: int = -1
    time: str = ""
    lane: int = -1
    tone: str = ""
    bad: bool = False
    gap: bool = False


@dataclass(frozen=True)
class PageEvent:
    """An event as trial.js shows it."""

    who: str
    text: str
    time: str
    evidence: list[str]
    fields: Fields


@dataclass(frozen=True)
class View:
    """A subject as the template needs it: with the part of its diagram that is shown."""

    subject: Subject
    picture: Picture
    table: list[PageLine]
    events: list[PageEvent]
    left_out: str


def diagram_page(subjects: Sequence[Subject], limit: int = ROWS_USUAL, around: int | None = None) -> str:
    """A page with one subject, or several side by side."""
    title = " and ".join(dict.fromkeys(each.name for each in subjects))
    views = [_view(each, limit, around) for each in subjects]
    differences = _differences(subjects)
    return render("trial.html.j2", title=title, views=views, differences=differences, script="trial.js")


def diagram_picture(subject: Subject, limit: int = ROWS_USUAL, around: int | None = None) -> str:
    picture = draw(subject.diagram, shown_rows(subject.diagram, limit, around))
    return svg_text(picture, f"{subject.name}: {subject.sentence}")


def _view(subject: Subject, limit: int, around: int | None) -> View:
    diagram = subject.diagram
    shown = shown_rows(diagram, limit, around)
    events = [_event(subject, diagram.rows[number]) for number in shown]
    return View(subject, draw(diagram, shown), _table(diagram, shown), events, _left_out(diagram, shown, around))


def _left_out(diagram: Diagram, shown: list[int], around: int | None) -> str:
    count = len(diagram.rows) - len(shown)
    if not count:
        return ""
    centre = "the chosen record" if around is not None else "the evidence" if diagram.evidence else "the faults, if any"
    elsewhere = ", --around RECORD another place" if any(row.record for row in diagram.rows) else ""
    return (
        f"{count:,} of {len(diagram.rows):,} events are left out: the page shows those around {centre}. "
        f"--rows N shows more{elsewhere}."
    )


def _table(diagram: Diagram, shown: list[int]) -> list[PageLine]:
    lines = []
    for line in lines_of(shown, len(diagram.rows)):
        if isinstance(line, Gap):
            lines.append(PageLine(line.text, gap=True))
        else:
            row = diagram.rows[line]
            lines.append(PageLine(row.text, line, clock_text(row.at_ns), row.lane, row.tone, bool(row.evidence)))
    return lines


def _event(subject: Subject, row: Row) -> PageEvent:
    diagram = subject.diagram
    return PageEvent(
        diagram.lanes[row.lane].name if row.lane >= 0 else "all",
        row.text,
        f"at {clock_text(row.at_ns)} of the {subject.what}{f', line {row.number}' if row.number else ''}",
        [f"{each.property}: {each.text}" for each in diagram.evidence if each.number in row.evidence],
        subject.fields_of(row),
    )


def _differences(subjects: Sequence[Subject]) -> list[tuple[str, list[str]]]:
    """Properties and facts in which subjects differ; "not judged" for one that lacks it."""
    known = [each.statuses | dict(each.facts) for each in subjects]
    names = dict.fromkeys(name for each in known for name in each if name not in OF_ONE)
    rows = [(name, [each.get(name, "not judged") for each in known]) for name in names]
    return [(name, values) for name, values in rows if len(set(values)) > 1]
