"""Renders pages and pictures from templates. jinja2 escapes all input, and the content security policy of the page
forbids it to load anything."""

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from lockstorm.base.xml_text import xml_text
from lockstorm.report.diagram import Diagram, Lane, NumberedEvidence, Row
from lockstorm.report.diagram_model import diagram_of
from lockstorm.report.drawing import Picture, clock_text, draw
from lockstorm.report.report_source import Recorded, parameters_of
from lockstorm.report.window import ROWS_USUAL, Gap, lines_of, shown_rows
from lockstorm.results.event import Event
from lockstorm.results.properties import is_asked
from lockstorm.results.verdict import PropertyVerdict, Verdict

HERE = Path(__file__).parent
EVIDENCE_SHOWN = 6  # pieces; the others are folded
ICONS = {"holds": "✓", "violated": "✕", "inconclusive": "?", "fenced": "◆", "stuck": "■"}
RECORD_FIELDS = ("kind", "outcome", "actor", "name", "object", "op", "grant", "token", "value", "extra", "flags")
LEFT_OUT = (None, 0, "unknown")  # the values of fields that a record leaves out
# Fields that may be the index of a name, and the field with that name.
NAMED = {"value": "value_name", "extra": "extra_name"}


@dataclass
class PageLine:
    """A line of the table: an event, or a gap."""

    text: str
    row: int = -1
    time: str = ""
    lane: int = -1
    tone: str = ""
    bad: bool = False
    gap: bool = False


@dataclass
class TrialView:
    """One trial, as the template of the page needs it."""

    name: str
    sentence: str
    exit: int
    properties: list[tuple[str, PropertyVerdict]]
    facts: list[tuple[str, str]]
    evidence: list[NumberedEvidence]
    lanes: list[Lane]
    picture: Picture
    table: list[PageLine]
    records: list[dict[str, Any]]
    left_out: str
    has_lease: bool
    clock_moved: bool
    lease_is_read: bool = False  # the bars of leases are what the server was asked for


def trial_page(trials: list[Recorded], version: str, limit: int = ROWS_USUAL, around: int | None = None) -> str:
    """One trial as a page, or several side by side."""
    views = [view_of(recorded, limit, around) for recorded in trials]
    title = " and ".join(dict.fromkeys(view.name for view in views))
    return render(
        "trial.html.j2",
        title=title,
        views=views,
        differences=verdict_differences(views),
        script="trial.js",
        version=version,
    )


def trial_picture(recorded: Recorded, limit: int = ROWS_USUAL, around: int | None = None) -> str:
    """The diagram as an SVG file, for an article: the light theme, without CSS variables."""
    diagram = diagram_of(recorded.events, recorded.verdict)
    picture = draw(diagram, shown_rows(diagram, limit, around))
    label = f"{trial_title(recorded)}: {recorded.verdict.sentence}"
    text = environment().get_template("diagram.svg.j2").module.diagram(picture, Markup(plain_style()), label)  # type: ignore[attr-defined]
    return f"{text}\n"


def view_of(recorded: Recorded, limit: int, around: int | None) -> TrialView:
    verdict = recorded.verdict
    diagram = diagram_of(recorded.events, verdict)
    shown = shown_rows(diagram, limit, around)
    left_out = len(diagram.rows) - len(shown)
    centre = "the chosen record" if around is not None else "the evidence" if diagram.evidence else "the faults, if any"
    note = f"{left_out:,} of {len(diagram.rows):,} events are left out: the page shows those around {centre}"
    return TrialView(
        name=trial_title(recorded),
        sentence=verdict.sentence,
        exit=verdict.exit,
        properties=properties_of(verdict),
        facts=facts_of(recorded),
        evidence=diagram.evidence,
        lanes=diagram.lanes,
        picture=draw(diagram, shown),
        table=table_of(diagram, shown),
        records=[record_of(diagram.rows[number], diagram) for number in shown],
        left_out=f"{note}. --rows N shows more, --around RECORD another place." if left_out else "",
        has_lease=diagram.has_lease,
        clock_moved=diagram.clock_moved,
    )


def trial_title(recorded: Recorded) -> str:
    parameters = parameters_of(recorded.events)
    if not {"scenario", "lock"} <= parameters.keys():
        return recorded.name
    control = " (control)" if parameters.get("control") else ""
    return f"{parameters['scenario']}{control} · {parameters['lock']} · {parameters.get('store', 'no')} store"


def properties_of(verdict: Verdict) -> list[tuple[str, PropertyVerdict]]:
    """The required properties, and the others that are asked and could be judged."""
    return [
        (name.replace("_", " "), found)
        for name, found in verdict.properties.items()
        if name in verdict.required or (found.status != "inconclusive" and is_asked(name, verdict.required))
    ]


def facts_of(recorded: Recorded) -> list[tuple[str, str]]:
    parameters, verdict = parameters_of(recorded.events), recorded.verdict
    facts = [("time", parameters.get("time")), ("seed", parameters.get("seed"))]
    if parameters.get("lease_ms"):
        facts.append(("lease", f"{parameters['lease_ms']:,} ms"))
    facts += [("grants", verdict.grants), ("records", f"{verdict.records:,}")]
    faults = [f"{fault.name} on {fault.target}{'' if fault.proved else ' (not proved)'}" for fault in verdict.faults]
    facts.append(
        ("faults", ", ".join(list(dict.fromkeys(faults))[:8]) + (" …" if len(set(faults)) > 8 else "") or "none")
    )
    facts.append(("a failed release is read as", verdict.policy.release))
    facts.append(("file", recorded.name))
    return [(name, str(fact)) for name, fact in facts if fact is not None]


def verdict_differences(views: list[TrialView]) -> list[tuple[str, list[str]]]:
    """Properties and facts in which trials differ; "not judged" for a trial that lacks one."""
    trials = [{name: found.status for name, found in view.properties} | dict(view.facts) for view in views]
    names = dict.fromkeys(name for each in trials for name in each if name != "file")
    rows = [(name, [each.get(name, "not judged") for each in trials]) for name in names]
    return [(name, values) for name, values in rows if len(set(values)) > 1]


def table_of(diagram: Diagram, shown: list[int]) -> list[PageLine]:
    lines = []
    for line in lines_of(shown, len(diagram.rows)):
        if isinstance(line, Gap):
            lines.append(PageLine(f"{line.count:,} event{'s' if line.count > 1 else ''} left out", gap=True))
        else:
            row = diagram.rows[line]
            time = clock_text(row.at_ns)
            lines.append(PageLine(row.text, line, time, row.lane, row.tone, bool(row.evidence)))
    return lines


def record_of(row: Row, diagram: Diagram) -> dict[str, Any]:
    """What the page shows about an event under the pointer."""
    return {
        "who": diagram.lanes[row.lane].name if row.lane >= 0 else "all",
        "text": row.text,
        "time": f"at {clock_text(row.at_ns)} of the trial",
        "evidence": [f"{each.property}: {each.text}" for each in diagram.evidence if each.number in row.evidence],
        "fields": fields_of(row.record) if row.record else [["record", "none: computed from earlier records"]],
    }


def fields_of(event: Event) -> list[list[str]]:
    fields = [["record", str(event.index or "")]]
    for key in RECORD_FIELDS:
        value, name = getattr(event, key), getattr(event, NAMED[key]) if key in NAMED else None
        if value not in LEFT_OUT:
            fields.append([key, f"{value} ({name})" if name else str(value)])
    fields.append(["stamp", f"{event.mono_ns / 1e6:.6f} ms"])
    if event.wall_ns:
        whole, nanoseconds = divmod(event.wall_ns, 1_000_000_000)
        try:
            wall = datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%d %H:%M:%S")
        except (OverflowError, ValueError, OSError):
            wall = str(whole)
        fields.append(["its own clock", f"{wall}.{nanoseconds // 1000:06d}"])
    return fields


# --- templates ---


def environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["script_json"] = script_json
    return made


def render(template: str, *, title: str, script: str, version: str, **values: Any) -> str:
    diagram_style = Markup((HERE / "diagram.css").read_text())
    return (
        environment()
        .get_template(template)
        .render(
            title=title,
            version=version,
            style=Markup((HERE / "page.css").read_text()),
            script=Markup((HERE / script).read_text()),
            diagram_style=diagram_style,
            icons=ICONS,
            evidence_shown=EVIDENCE_SHOWN,
            **values,
        )
    )


def printable(value: Any) -> Any:
    """Replaces the characters that XML does not allow, in texts and in markup."""
    if not isinstance(value, str):
        return value
    cleaned = xml_text(value)
    return Markup(cleaned) if isinstance(value, Markup) else cleaned


def script_json(value: Any) -> Markup:
    """JSON without `<` and `&`: no value can end the script element that contains it."""
    return Markup(json.dumps(value, separators=(",", ":")).replace("<", "\\u003c").replace("&", "\\u0026"))


def plain_style() -> str:
    """The diagram's style for programs without CSS variables or themes: the light theme, with its values inserted."""
    style = (HERE / "diagram.css").read_text()
    light = dict(re.findall(r"(--[a-z-]+): ([^;]+);", style.partition("@media")[0]))
    style = re.sub(r"@media[^{]*\{\s*\.lockstorm \{[^}]*\}\s*\}", "", style)
    return re.sub(r"var\((--[a-z-]+)\)", lambda found: light[found[1]], style)
