"""Prints the result of storms: the faults, the verdict, and the events around a violation, never the whole story."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lockstorm.base.paths import runnable
from lockstorm.report.story import EVIDENCE_SHOWN, excerpt_table, verdict_table
from lockstorm.results.event import Event
from lockstorm.results.storm_result import FaultCount, StormCourse
from lockstorm.results.verdict import Evidence, TrialResult, played_again_words

FAULTS_SHOWN = 24
STATE_STYLE = {"proved": "green", "not proved": "yellow", "skipped": "dim"}


def show_storm(console: Console, result: TrialResult, events: list[Event] | None) -> None:
    """Prints one storm. `events`: its history, for the events around a violation; None: print the verdict only."""
    storm = result.of_storm
    if events is not None:
        console.print(_headline(result))
        console.print(faults_table(storm.faults), "")
        console.print(course_table(storm.course), "")
        records = [record for piece in _evidence(result)[:EVIDENCE_SHOWN] for record in piece.records]
        if events and records:
            console.print(excerpt_table(events, records), "")
    _show_verdict(console, result)
    console.print(Text(f"again: {runnable(result.replay)}", "dim"))


def show_storms(console: Console, result: TrialResult) -> None:
    """Prints the summary of several storms."""
    storm = result.of_storm
    console.print(faults_table(storm.faults), "")
    console.print(properties_table(storm.properties), "")
    first = storm.first_violation
    if first:
        console.print(Text(f"seed {first.seed}: {first.sentence}"))
    elif result.exit:
        console.print(Text(f"seed {storm.shown_seed}:"))
    if result.exit:
        console.print(verdict_table(result.properties, result.required), "")
    _show_sentence(console, result)
    if result.exit:
        console.print(Text(f"again: {runnable(result.replay)}", "dim"))


def faults_table(faults: list[FaultCount]) -> Table:
    """For each fault: how often the schedule has it, and how often it was injected, proved and skipped."""
    table = Table(box=None, padding=(0, 1), header_style="dim")
    keys = ("meant", "injected", "proved", "skipped")
    for title in ("fault", *keys):
        table.add_column(title, justify="left" if title == "fault" else "right")
    for fault in faults:
        table.add_row(fault.name, *(str(getattr(fault, key)) for key in keys))
    return table


def properties_table(properties: dict[str, dict[str, int]]) -> Table:
    """For each property: the number of storms with each status."""
    table = Table(box=None, padding=(0, 1), header_style="dim")
    for title in ("property", "holds", "violated", "inconclusive"):
        table.add_column(title, justify="left" if title == "property" else "right")
    for name, counts in properties.items():
        table.add_row(name.replace("_", " "), *(str(counts[key]) for key in ("holds", "violated", "inconclusive")))
    return table


def course_table(course: list[StormCourse]) -> Table:
    """The faults that struck, in order of time; only the longest FAULTS_SHOWN if there are more."""
    struck = sorted((each for each in course if each.injected_ms is not None), key=lambda each: each.injected_ms or 0)
    longest = sorted(struck, key=lambda each: each.length_ms, reverse=True)[:FAULTS_SHOWN]
    table = Table(box=None, padding=(0, 1), header_style="dim")
    for title, justify in (("time", "right"), ("fault", "left"), ("on", "left"), ("for", "right"), ("", "left")):
        table.add_column(title, justify=justify)  # type: ignore[arg-type]
    for each in (each for each in struck if each in longest):
        state = Text(each.state, STATE_STYLE.get(each.state, ""))
        at, length = f"{(each.injected_ms or 0) / 1000:.3f} s", f"{each.length_ms / 1000:.3f} s"
        table.add_row(at, each.fault, each.target, length, state)
    if len(struck) > len(longest):
        table.add_row("", "", "", "", Text(f"... and {len(struck) - len(longest)} shorter ones", "dim"))
    return table


def _headline(result: TrialResult) -> Text:
    storm = result.of_storm
    settings = f"{storm.clients} clients, {storm.duration_ms / 1000:g} s of {result.time} time, "
    return Text(f"{result.lock}: {settings}a lease of {(result.lease_ms or 0) / 1000:g} s, seed {result.seed}", "bold")


def _evidence(result: TrialResult) -> list[Evidence]:
    return [piece for found in result.properties.values() for piece in found.evidence]


def _show_verdict(console: Console, result: TrialResult) -> None:
    if result.records:
        console.print(verdict_table(result.properties, result.required), "")
    _show_sentence(console, result)


def _show_sentence(console: Console, result: TrialResult) -> None:
    style = {0: "bold green", 1: "bold red"}.get(result.exit, "bold yellow")
    console.print(Text(result.sentence + played_again_words(result.played_again), style))
