"""Renders templates. jinja2 escapes all input, and the content security policy of a page lets it load nothing."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from lockstorm.base.version import VERSION
from lockstorm.base.xml_text import xml_text
from lockstorm.report.drawing import Picture

HERE = Path(__file__).parent
EVIDENCE_SHOWN = 6  # pieces; the others are folded
ICONS = {"holds": "✓", "violated": "✕", "inconclusive": "?", "fenced": "◆", "stuck": "■"}


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
    made.filters["ticked"] = ticked
    return made


def render(template: str, *, title: str, script: str, **values: object) -> str:
    return (
        environment()
        .get_template(template)
        .render(
            title=title,
            version=VERSION,
            style=Markup((HERE / "page.css").read_text()),
            script=Markup((HERE / script).read_text()),
            diagram_style=Markup((HERE / "diagram.css").read_text()),
            icons=ICONS,
            evidence_shown=EVIDENCE_SHOWN,
            **values,
        )
    )


def svg_text(picture: Picture, label: str) -> str:
    """A picture as an SVG file, for an article: the light theme, without CSS variables."""
    module: Any = environment().get_template("diagram.svg.j2").module  # its macros are attributes
    return f"{module.diagram(picture, Markup(plain_style()), label)}\n"


def printable(value: object) -> object:
    """Replaces the characters that XML does not allow, in texts and in markup."""
    if not isinstance(value, str):
        return value
    cleaned = xml_text(value)
    return Markup(cleaned) if isinstance(value, Markup) else cleaned


def script_json(value: object) -> Markup:
    """JSON without `<` and `&`: no value can end the script element that contains it."""
    text = json.dumps(msgspec.to_builtins(value), separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace("&", "\\u0026"))


def ticked(text: str) -> Markup:
    """A text whose parts between backticks are code."""
    parts = enumerate(xml_text(text).split("`"))
    return Markup("").join(Markup("<code>{}</code>").format(part) if at % 2 else part for at, part in parts)


def plain_style() -> str:
    """The diagram's style for programs without CSS variables or themes: the light theme, with its values inserted."""
    style = (HERE / "diagram.css").read_text()
    light = dict(re.findall(r"(--[a-z-]+): ([^;]+);", style.partition("@media")[0]))
    style = re.sub(r"@media[^{]*\{\s*\.lockstorm \{[^}]*\}\s*\}", "", style)
    return re.sub(r"var\((--[a-z-]+)\)", lambda found: light[found[1]], style)
