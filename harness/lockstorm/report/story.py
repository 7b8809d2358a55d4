"""Stories in a terminal: a line for each event, with the time, the rest of the lease at the server, who did what. Below
them, the verdict."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lockstorm.report.command_rows import command_rows
from lockstorm.report.diagram import Row
from lockstorm.report.history_model import trace
from lockstorm.results.call_event import CallStoryLine
from lockstorm.results.event import Event
from lockstorm.results.properties import is_asked
from lockstorm.results.verdict import (
    DeploymentResult,
    HeardCommand,
    PolicyVerdict,
    PropertyVerdict,
    TrialResult,
    Verdict,
    effects_sentence,
    played_again_words,
)

EVIDENCE_SHOWN = 3
GAUGE = 8  # characters of a full lease
COLORS = ("cyan", "magenta", "yellow", "blue", "green")
STATUS_STYLE = {"holds": "green", "violated": "bold red", "inconclusive": "yellow"}
FATE_STYLES = {  # of a command
    "answered": "",
    "answer-lost": "yellow",
    "waits": "dim",
    "answered-late": "",
    "late": "bold yellow",
    "lost": "yellow",
    "refused": "yellow",
}


def story_rows(events: list[Event]) -> list[Row]:
    return [row for row in trace(events).rows if row.story]


def gauge(row: Row) -> str:
    """The rest of the lease at the server, as a bar and in seconds; empty without a lease."""
    if not row.holder:
        return ""
    filled = round(GAUGE * row.rest_ns / row.lease_ns)
    bar = "█" * filled + "░" * (GAUGE - filled)
    return f"{bar} {row.rest_ns / 1e9:5.1f} s" if row.rest_ns else f"{bar} over"


class StoryTable:
    """Rows of a story as a table, with a colour for each actor."""

    def __init__(self) -> None:
        self.table = Table(box=None, padding=(0, 1), show_edge=False, header_style="dim")
        self._colors: dict[str, str] = {}
        for title, justify in (("time", "right"), ("lease at the server", "left"), ("who", "left"), ("", "left")):
            self.table.add_column(title, justify=justify, no_wrap=title != "")  # type: ignore[arg-type]

    def add(self, row: Row) -> None:
        colors = self._colors
        if row.who not in colors:
            colors[row.who] = "bold" if row.who == "store" else COLORS[len(colors) % len(COLORS)]
        holder = Text(gauge(row), style=colors.get(row.holder, ""))
        time = f"{row.at_ns / 1e9:.3f} s"
        self.table.add_row(time, holder, Text(row.who, colors[row.who]), Text(row.story, row.style))

    def add_gap(self, text: str) -> None:
        self.table.add_row("", "", "", Text(text, "dim"))


def story_table(events: list[Event], limit: int = 60, is_shown: Callable[[Event], bool] | None = None) -> Table:
    """`is_shown` selects the records. Of a long story the table has the first `limit` lines, the notes, and a line with
    the number of the others."""
    rows = [row for row in story_rows(events) if not is_shown or not row.record or is_shown(row.record)]
    table = StoryTable()
    for row in rows[:limit]:
        table.add(row)
    if len(rows) > limit:
        notes = [row for row in rows[limit:] if row.kind == "note"]
        table.add_gap(f"... and {len(rows) - limit - len(notes)} more events (save the history with -o FILE)")
        for row in notes:
            table.add(row)
    return table.table


def excerpt_table(events: list[Event], records: list[int], around: int = 5) -> Table:
    """The lines around these records, `around` on each side, of a story that is too long to show."""
    rows = story_rows(events)
    recorded = [at for at, row in enumerate(rows) if row.record]
    table = StoryTable()
    places = {bisect_left(recorded, record, key=lambda at: rows[at].index) for record in records}
    centres = {recorded[place] if place < len(recorded) else len(rows) for place in places}
    shown = sorted({near for at in centres for near in range(at - around, at + around + 1) if 0 <= near < len(rows)})
    next_line = 0
    for near in shown:
        if near > next_line:
            table.add_gap(f"... {near - next_line} events")
        table.add(rows[near])
        next_line = near + 1
    return table.table


def call_story_table(story: Iterable[CallStoryLine]) -> Table:
    """The first column has the numbers that `schedule_lines` gives to calls and deviations."""
    table = Table(box=None, padding=(0, 1), show_header=False)
    table.add_column(justify="right")
    for line in story:
        number = Text(str(line.number or ""), "bold")
        if line.what or not line.broken:
            style = "bold red" if line.broken else ""
            table.add_row(number, Text(f"{line.at_s:.3f} s", "dim"), line.who, Text(line.what, style))
        if line.broken:
            table.add_row("", "", "", Text(f"✗ {line.broken}", "bold red"))
    return table


def verdict_table(verdict: Mapping[str, PropertyVerdict], required: list[str]) -> Table:
    """One line for each property, with its status, and its first pieces of evidence below."""
    table = Table(box=None, padding=(0, 1), show_header=False)
    for name, found in verdict.items():
        if name not in required and (found.status == "inconclusive" or not is_asked(name, required)):
            continue
        details = [piece.text for piece in found.evidence[:EVIDENCE_SHOWN]] or [found.reason or ""]
        if found.status == "holds" and found.fenced:
            details = [f"{found.fenced} stale access{'es' if found.fenced > 1 else ''} refused by the store"]
        if found.count > len(details):
            causes = len(found.evidence)
            details.append(f"... {found.count} violations in all" + (f", {causes} causes" if causes > 1 else ""))
        for line, detail in enumerate(details):
            status = Text(found.status, STATUS_STYLE[found.status]) if line == 0 else Text("")
            table.add_row(name.replace("_", " ") if line == 0 else "", status, detail)
    return table


def sentence_text(sentence: str, exit_status: int) -> Text:
    return Text(sentence, {0: "bold green", 1: "bold red"}.get(exit_status, "bold yellow"))


def policy_sentence(verdict: Verdict) -> str:
    """The policies that a verdict was judged under, and the number of operations that each applied to."""
    policy = verdict.policy
    releases, acquires = verdict.failed_releases, verdict.unknown_acquires
    return (
        f"read: a failed release as {policy.release} ({releases} in this history), an acquire of unknown outcome as "
        f"{policy.acquire_timeout} ({acquires})"
    )


def policy_table(policies: list[PolicyVerdict]) -> Table:
    """One line for each pair of policies, one column for each property that is not inconclusive under all of them."""
    judged = {name for each in policies for name, found in each.properties.items() if found.status != "inconclusive"}
    names = [name for name in policies[0].properties if name in judged]
    titles = ("failed release", "unknown acquire", *(name.replace("_", " ") for name in names), "exit")
    table = Table(*titles, box=None, padding=(0, 1), header_style="dim")
    for each in policies:
        statuses = [each.properties[name].status for name in names]
        table.add_row(
            each.policy.release,
            each.policy.acquire_timeout,
            *(Text(status, STATUS_STYLE[status]) for status in statuses),
            str(each.exit),
        )
    return table


def show_result(console: Console, result: Verdict | TrialResult, events: list[Event] | None) -> None:
    """Prints one trial: the story if there are events, the verdict of each property, and the sentence."""
    if events:
        console.print(story_table(events), "")
    if result.records:
        console.print(verdict_table(result.properties, result.required), "")
    again = played_again_words(result.played_again) if isinstance(result, TrialResult) else ""
    console.print(sentence_text(result.sentence + again, result.exit))
    if isinstance(result, TrialResult) and result.baseline:
        console.print(Text(result.baseline))


def commands_table(commands: Sequence[HeardCommand]) -> Table:
    table = Table(box=None, padding=(0, 1), header_style="dim")
    table.add_column("time", justify="right", no_wrap=True)
    for title in ("from", "to", "command", "answer"):
        table.add_column(title, overflow="fold")
    for each in command_rows(commands):
        style = FATE_STYLES[each.fate]
        table.add_row(each.time, each.client, each.server, Text(each.command, style), Text(each.answer, style))
    return table


def show_deployment(console: Console, deployment: DeploymentResult | None) -> None:
    """The settings that the servers took, what they changed, and each setting that the trial chose itself."""
    if not deployment:
        return
    count = deployment.replicas
    replicas = f", {count} replica{'s' if count > 1 else ''} of each" if count else ""
    console.print(Text(f"servers: {', '.join(deployment.settings) or 'their defaults'}{replicas}", "dim"))
    sentence = effects_sentence(deployment)
    if sentence:
        console.print(Text(sentence))
    by_reason: dict[str, list[str]] = {}
    for each in deployment.changed:
        by_reason.setdefault(each.why, []).append(each.setting)
    for why, settings in by_reason.items():
        console.print(Text(f"not taken: {', '.join(settings)}: {why}", "dim"))
