"""`lockstorm storm`."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from lockstorm.base.errors import UsageError
from lockstorm.base.option_fields import options_of
from lockstorm.base.paths import runnable
from lockstorm.cli import options
from lockstorm.cli.terminal import check_new_file, print_result, progress, waiting
from lockstorm.locks.lock_names import lock_named
from lockstorm.report.story import EVIDENCE_SHOWN, excerpt_table, sentence_text, show_result, verdict_table
from lockstorm.results.event import Event
from lockstorm.results.storm_result import FaultCount, StormCourse
from lockstorm.results.verdict import TrialResult, played_again_words
from lockstorm.scenario.play import usual_time
from lockstorm.storm.storm import run_storm, run_storms
from lockstorm.storm.storm_plan import StormRequest, plan_storm
from lockstorm.trial.settings import TrialSettings

TRIAL_OPTIONS = (
    *("duration_ms", "clients", "seed", "time", "store", "lease_ms", "fixed_lease", "checks_validity"),
    *("permits", "require", "server", "without", "config"),
)
HELPS = {
    "duration_ms": "Length of a storm by the trial's clock. Default: 10s.",
    "clients": "Number of clients that want the lock. Default: 4.",
    "seed": "Seed of the schedule and of the trial. Default: 1.",
    "lease_ms": "Lease of the lock. Default: 1s.",
}
# The file of --schedule sets them; --trials needs storms of several seeds.
OF_THE_SCHEDULE = ("duration_ms", "clients", "seed", "lease_ms", "faults", "trials", "longest_ms")


@click.command("storm")
@options.lock_option
@options.adapter_option
@options.plugin_option
@options.field_options(StormRequest)
@options.field_options(TrialSettings, *TRIAL_OPTIONS, **HELPS)
@options.path_option("-o", "output", help="Save the history; of several storms, the first violated one.")
@options.path_option("--save-schedule", help="Save the schedule of the storm that -o would save.")
@options.quiet_option
@options.json_option
def storm_command(
    lock: str | None,
    adapter: str | None,
    plugin: str | None,
    output: Path | None,
    save_schedule: Path | None,
    quiet: bool,
    as_json: bool,
    **chosen: Any,
) -> int:
    """Inject random faults under load, then heal them and check that every client is served. The seed determines
    the faults.

    \b
    Example: lockstorm storm --lock set-nx-px --faults pause-client,partition --trials 20
    `lockstorm docs storms` describes storms, and what a storm without a violation is worth.
    """
    check_drawn(chosen)
    for flag, path in {"-o": output, "--save-schedule": save_schedule}.items():
        check_new_file(flag, path)
    lock = options.chosen_lock(lock, adapter, plugin)
    given = {"time": usual_time(lock_named(lock)), **options.given_options(TrialSettings, chosen)}
    storm = StormRequest(TrialSettings(lock, "storm", **given), **options.given_options(StormRequest, chosen))
    plan = plan_storm(storm)  # reports its errors before any progress is shown
    if storm.trials > 1:
        with progress(storm.trials) as show_progress:
            result = run_storms(storm, show_progress, save=output, save_schedule=save_schedule)
        print_result(as_json, result, show_storms)
        return result.exit
    if save_schedule:
        plan.schedule.save(save_schedule)
    events: list[Event] | None = None if as_json or quiet else []
    with waiting(f"a storm over {lock} in {storm.request.time} time ..."):
        result = run_storm(plan, save=output, story_to=events)
    print_result(as_json, result, show_storm, events)
    return result.exit


def check_drawn(chosen: dict[str, Any]) -> None:  # by click, of any type
    """Raises UsageError for an option that the file of --schedule already sets."""
    known = options_of(TrialSettings) | options_of(StormRequest)
    for name in OF_THE_SCHEDULE:
        if chosen["schedule"] and chosen[name] is not None:
            raise UsageError(f"{known[name].flag} is for a storm that is drawn: {chosen['schedule']} sets it already")


FAULTS_SHOWN = 24
STATE_STYLE = {"proved": "green", "not proved": "yellow", "skipped": "dim"}


def show_storm(console: Console, result: TrialResult, events: list[Event] | None) -> None:
    """Prints one storm. `events`: its history, for the events around a violation; None: print the verdict only."""
    storm = result.of_storm
    if events is not None:
        console.print(_headline(result))
        console.print(faults_table(storm.faults), "")
        console.print(course_table(storm.course), "")
        evidence = [piece for found in result.properties.values() for piece in found.evidence]
        records = [record for piece in evidence[:EVIDENCE_SHOWN] for record in piece.records]
        if events and records:
            console.print(excerpt_table(events, records), "")
    show_result(console, result, None)
    console.print(Text(f"again: {runnable(result.replay)}", "dim"))


def show_storms(console: Console, result: TrialResult) -> None:
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
    console.print(sentence_text(result.sentence + played_again_words(result.played_again), result.exit))
    if result.baseline:
        console.print(Text(f"seed {storm.shown_seed}: {result.baseline}"))
    if result.exit:
        console.print(Text(f"again: {runnable(result.replay)}", "dim"))


def faults_table(faults: list[FaultCount]) -> Table:
    """For each fault: how often the schedule has it, and how often it was injected, proved and skipped."""
    keys = ("meant", "injected", "proved", "skipped")
    return _counts_table("fault", keys, [(fault.name, [getattr(fault, key) for key in keys]) for fault in faults])


def properties_table(properties: dict[str, dict[str, int]]) -> Table:
    keys = ("holds", "violated", "inconclusive")
    rows = [(name.replace("_", " "), [counts[key] for key in keys]) for name, counts in properties.items()]
    return _counts_table("property", keys, rows)


def _counts_table(what: str, keys: Sequence[str], rows: Iterable[tuple[str, list[int]]]) -> Table:
    table = Table(what, *(Column(key, justify="right") for key in keys), box=None, padding=(0, 1), header_style="dim")
    for name, counts in rows:
        table.add_row(name, *map(str, counts))
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
