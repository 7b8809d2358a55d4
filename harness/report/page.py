"""Pages and pictures, from templates. Everything that comes from outside is escaped by jinja2, and the page's content
security policy lets it load nothing."""

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from harness.report.diagram import Blame, Diagram, Lane, Row
from harness.report.drawing import Picture, clock_text, draw
from harness.report.model import diagram_of
from harness.report.source import Recorded, parameters_of
from harness.report.window import ROWS_USUAL, Gap, lines_of, shown_rows
from harness.report.words import Event

HERE = Path(__file__).parent
FORBIDDEN_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
EVIDENCE_SHOWN = 6  # pieces, before one asks for more
ICONS = {"holds": "✓", "violated": "✕", "inconclusive": "?", "fenced": "◆", "stuck": "■"}
RECORD_FIELDS = ("kind", "outcome", "actor", "name", "object", "op", "grant", "token", "value", "extra", "flags")
NAMED = {"value": "value_name", "extra": "extra_name"}  # where a number is the index of a name


@dataclass
class Line:
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
    """All that the page shows of one trial."""

    name: str
    sentence: str
    exit: int
    properties: list[tuple[str, dict[str, Any]]]
    facts: list[tuple[str, str]]
    blames: list[Blame]
    lanes: list[Lane]
    picture: Picture
    table: list[Line]
    records: list[dict[str, Any]]
    left_out: str
    has_lease: bool
    clock_moved: bool


def trial_page(trials: list[Recorded], version: str, limit: int = ROWS_USUAL, around: int | None = None) -> str:
    """One trial as a page, or several side by side."""
    views = [view_of(recorded, limit, around) for recorded in trials]
    title = " and ".join(dict.fromkeys(view.name for view in views))
    return render(
        "trial.html.j2", title=title, views=views, differences=differences_of(views), script="trial.js", version=version
    )


def trial_picture(recorded: Recorded, limit: int = ROWS_USUAL, around: int | None = None) -> str:
    """The diagram alone, as an SVG file for an article: light, with its colours written out."""
    diagram = diagram_of(recorded.events, recorded.verdict)
    picture = draw(diagram, shown_rows(diagram, limit, around))
    label = f"{name_of(recorded)}: {recorded.verdict['sentence']}"
    text = environment().get_template("diagram.svg.j2").module.diagram(picture, Markup(plain_style()), label)  # type: ignore[attr-defined]
    return f"{text}\n"


def view_of(recorded: Recorded, limit: int, around: int | None) -> TrialView:
    verdict = recorded.verdict
    diagram = diagram_of(recorded.events, verdict)
    shown = shown_rows(diagram, limit, around)
    left_out = len(diagram.rows) - len(shown)
    said = f"{left_out:,} of {len(diagram.rows):,} events are left out: shown is what surrounds "
    said += (
        "the record that was asked for" if around is not None else "the evidence" if diagram.blames else "what happened"
    )
    return TrialView(
        name=name_of(recorded),
        sentence=verdict["sentence"],
        exit=verdict["exit"],
        properties=properties_of(verdict),
        facts=facts_of(recorded),
        blames=diagram.blames,
        lanes=diagram.lanes,
        picture=draw(diagram, shown),
        table=table_of(diagram, shown),
        records=[record_of(diagram.rows[number], diagram) for number in shown],
        left_out=f"{said}. --rows N shows more, --around RECORD another place." if left_out else "",
        has_lease=diagram.has_lease,
        clock_moved=diagram.clock_moved,
    )


def name_of(recorded: Recorded) -> str:
    said = parameters_of(recorded.events)
    if not {"scenario", "lock"} <= said.keys():
        return recorded.name
    control = " (control)" if said.get("control") else ""
    return f"{said['scenario']}{control} · {said['lock']} · {said.get('store', 'no')} store"


def properties_of(verdict: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """What decides, and what else could be judged."""
    told = verdict["verdict"].items()
    return [
        (name.replace("_", " "), said)
        for name, said in told
        if name in verdict["required"] or said["status"] != "inconclusive"
    ]


def facts_of(recorded: Recorded) -> list[tuple[str, str]]:
    said, verdict = parameters_of(recorded.events), recorded.verdict
    facts = [("time", said.get("time")), ("seed", said.get("seed"))]
    if said.get("lease_ms"):
        facts.append(("lease", f"{said['lease_ms']:,} ms"))
    facts += [("grants", verdict.get("grants")), ("records", f"{verdict.get('records', 0):,}")]
    faults = [
        f"{fault['name']} on {fault['target']}{'' if fault['proved'] else ' (not proved)'}"
        for fault in verdict["faults"]
    ]
    facts.append(
        ("faults", ", ".join(list(dict.fromkeys(faults))[:8]) + (" …" if len(set(faults)) > 8 else "") or "none")
    )
    facts.append(("a failed release is read as", verdict["policy"]["release"]))
    facts.append(("file", recorded.name))
    return [(name, str(fact)) for name, fact in facts if fact is not None]


def differences_of(views: list[TrialView]) -> list[tuple[str, list[str]]]:
    """Properties and conditions in which trials differ; "not judged" where one of them says nothing."""
    told = [{name: said["status"] for name, said in view.properties} | dict(view.facts) for view in views]
    names = dict.fromkeys(name for each in told for name in each if name != "file")
    rows = [(name, [each.get(name, "not judged") for each in told]) for name in names]
    return [(name, said) for name, said in rows if len(set(said)) > 1]


def table_of(diagram: Diagram, shown: list[int]) -> list[Line]:
    lines = []
    for line in lines_of(shown, len(diagram.rows)):
        if isinstance(line, Gap):
            lines.append(Line(f"{line.count:,} event{'s' if line.count > 1 else ''} left out", gap=True))
        else:
            row = diagram.rows[line]
            time = clock_text(row.at_ns)
            lines.append(Line(row.text, line, time, row.lane, row.tone, bool(row.blamed)))
    return lines


def record_of(row: Row, diagram: Diagram) -> dict[str, Any]:
    """What the page shows when one points at an event."""
    return {
        "who": diagram.lanes[row.lane].name if row.lane >= 0 else "everybody",
        "text": row.text,
        "time": f"at {clock_text(row.at_ns)} of the trial",
        "blames": [f"{blame.property}: {blame.text}" for blame in diagram.blames if blame.number in row.blamed],
        "fields": fields_of(row.record) if row.record else [["record", "none: computed from those before"]],
    }


def fields_of(event: Event) -> list[list[str]]:
    fields = [["record", str(event.get("index", ""))]]
    for key in RECORD_FIELDS:
        if key in event:
            name = event.get(NAMED.get(key, ""))
            fields.append([key, f"{event[key]} ({name})" if name else str(event[key])])
    fields.append(["stamp", f"{event.get('mono_ns', 0) / 1e6:.6f} ms"])
    if event.get("wall_ns"):
        whole, nanoseconds = divmod(event["wall_ns"], 1_000_000_000)
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
    """What XML cannot carry is shown as a replacement character, wherever it stands."""
    if not isinstance(value, str):
        return value
    cleaned = FORBIDDEN_IN_XML.sub("\ufffd", value)
    return Markup(cleaned) if isinstance(value, Markup) else cleaned


def script_json(value: Any) -> Markup:
    """JSON that no end of a script element and no comment can hide in."""
    return Markup(json.dumps(value, separators=(",", ":")).replace("<", "\\u003c").replace("&", "\\u0026"))


def plain_style() -> str:
    """The diagram's style for programs that know neither variables nor themes: the light one, written out."""
    style = (HERE / "diagram.css").read_text()
    light = dict(re.findall(r"(--[a-z-]+): ([^;]+);", style.partition("@media")[0]))
    style = re.sub(r"@media[^{]*\{\s*\.lockstorm \{[^}]*\}\s*\}", "", style)
    return re.sub(r"var\((--[a-z-]+)\)", lambda found: light[found[1]], style)
