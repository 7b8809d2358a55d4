"""The verdict as Markdown, for the summary of a step of a pipeline."""

import re
from pathlib import Path

from lockstorm.base.text_template import text_template
from lockstorm.gate.gate_judge import ACCEPTED, FAILED, INCONCLUSIVE, NOT_JUDGED, PASSED
from lockstorm.results.gate_verdict import GateVerdict, what_to_do

TEMPLATE = Path(__file__).with_name("summary.md.j2")
MARKS = {PASSED: "✅", ACCEPTED: "☑️", FAILED: "❌", INCONCLUSIVE: "❔", NOT_JUDGED: "▫️"}
MARKUP = re.compile(r"([\\`*_{}\[\]<>|#~&])")


def as_markdown(verdict: GateVerdict) -> str:
    return text_template(TEMPLATE, plain=escape).render(verdict=verdict, marks=MARKS, what_to_do=what_to_do)


def escape(text: str) -> str:
    """Plain text for Markdown, also for a cell of a table."""
    return MARKUP.sub(r"\\\1", " ".join(str(text).split()))
