"""The verdict as Markdown, for the summary of a step of a pipeline."""

import re

from lockstorm.gate.gate_judge import ACCEPTED, FAILED, INCONCLUSIVE, NOT_JUDGED, PASSED
from lockstorm.gate.messages import what_to_do
from lockstorm.results.gate_verdict import GateCell, GateLock, GateVerdict, JudgedAcceptance

MARK = {PASSED: "✅", ACCEPTED: "☑️", FAILED: "❌", INCONCLUSIVE: "❔", NOT_JUDGED: "▫️"}
MARKUP = re.compile(r"([\\`*_{}\[\]<>|#~&])")


def as_markdown(verdict: GateVerdict) -> str:
    blocks = [f"## {'❌' if verdict.exit == 1 else '❔' if verdict.exit else '✅'} {escape(verdict.sentence)}"]
    for lock in verdict.locks:
        cells = verdict.cells_of(lock)
        blocks.append(lock_block(lock, cells))
    blocks += [
        f"`{each.lock}`: no scenario of this policy judges {escape(each.property.replace('_', ' '))}."
        for each in verdict.unjudged
    ]
    blocks += [acceptance_block(each) for each in verdict.acceptances if each.state in ("gone", "expired")]
    kept = f"Kept as `{verdict.run}`; played by lockstorm {escape(verdict.versions['lockstorm'])}"
    blocks.append(f"<sub>{kept} on redis-server {escape(verdict.versions['redis-server'])}.</sub>")
    return "\n\n".join(blocks) + "\n"


def lock_block(lock: GateLock, cells: list[GateCell]) -> str:
    lines = [f"### `{lock.name}`, store `{lock.store}`", ""]
    failed = [cell for cell in cells if cell.outcome == FAILED]
    for matters in dict.fromkeys(cell.matters for cell in failed):
        mine = [cell for cell in failed if cell.matters == matters]
        lines += [f"**{escape(mine[0].in_short[:1].upper() + mine[0].in_short[1:])}.** {escape(matters)}", ""]
        lines += [f"- `{cell.scenario}`: {escape(cell.happened)}" for cell in mine]
        lines.append("")
    if failed:
        lines += [line for paragraph in what_to_do(lock) for line in (f"**What to do.** {escape(paragraph)}", "")]
    if lock.advice:
        lines += ["```toml", lock.advice.change + "```", ""]
    lines += ["| | scenario | |", "|---|---|---|"]
    for cell in cells:
        accepted = "".join(f" Accepted until {each.until}: {escape(each.why)}." for each in cell.accepted)
        lines.append(f"| {MARK[cell.outcome]} | `{cell.scenario}` | {escape(cell.in_short)}{accepted} |")
    return "\n".join(lines)


def acceptance_block(each: JudgedAcceptance) -> str:
    what = f"The acceptance in line {each.line} (`{each.lock}`, `{each.scenario}`)"
    if each.state == "gone":
        return f"{what} accepts what no longer happens: remove it."
    return f"{what} was valid until {each.until}: it has expired."


def escape(text: str) -> str:
    """Plain text for Markdown, also for a cell of a table."""
    return MARKUP.sub(r"\\\1", " ".join(str(text).split()))
