"""`lockstorm storm`."""

from pathlib import Path
from typing import Any

import click

from lockstorm.base.errors import UsageError
from lockstorm.base.option_fields import options_of
from lockstorm.cli import storm_table
from lockstorm.cli.options import (
    adapter_option,
    check_new_file,
    chosen_lock,
    field_options,
    given_options,
    json_option,
    lock_option,
    plugin_option,
    trial_options,
)
from lockstorm.cli.terminal import console, print_json, progress, waiting
from lockstorm.locks.lock_names import lock_named
from lockstorm.results.event import Event
from lockstorm.scenario.play import usual_time
from lockstorm.storm.storm import run_storm, run_storms
from lockstorm.storm.storm_plan import StormRequest, plan_storm
from lockstorm.trial.settings import TrialSettings

TRIAL_OPTIONS = (
    *("duration_ms", "clients", "seed", "time", "store", "lease_ms", "fixed_lease", "checks_validity"),
    *("permits", "require", "server", "config"),
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
@lock_option
@adapter_option
@plugin_option
@field_options(StormRequest)
@trial_options(*TRIAL_OPTIONS, **HELPS)
@click.option(
    "-o", "output", type=click.Path(path_type=Path), help="Save the history; of several storms, the first violated one."
)
@click.option(
    "--save-schedule", type=click.Path(path_type=Path), help="Save the schedule of the storm that -o would save."
)
@click.option("--quiet", "-q", is_flag=True, help="Print the verdict without the story.")
@json_option
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
    lock = chosen_lock(lock, adapter, plugin)
    given = {"time": usual_time(lock_named(lock)), **given_options(TrialSettings, chosen)}
    request = TrialSettings(lock, "storm", **given)
    storm = StormRequest(request, **given_options(StormRequest, chosen))
    if storm.trials > 1:
        return play_many(storm, output, save_schedule, as_json)
    return play_one(storm, output, save_schedule, quiet, as_json)


def check_drawn(chosen: dict[str, Any]) -> None:  # by click, of any type
    """Raises UsageError for an option that the file of --schedule already sets."""
    known = options_of(TrialSettings) | options_of(StormRequest)
    for name in OF_THE_SCHEDULE:
        if chosen["schedule"] and chosen[name] is not None:
            raise UsageError(f"{known[name].flag} is for a storm that is drawn: {chosen['schedule']} sets it already")


def play_many(storm: StormRequest, output: Path | None, save_schedule: Path | None, as_json: bool) -> int:
    plan_storm(storm)  # reports its errors before any progress is shown
    with progress(storm.trials) as show_progress:
        result = run_storms(storm, show_progress, save=output, save_schedule=save_schedule)
    if as_json:
        print_json(result)
    else:
        storm_table.show_storms(console(), result)
    return result.exit


def play_one(storm: StormRequest, output: Path | None, save_schedule: Path | None, quiet: bool, as_json: bool) -> int:
    plan = plan_storm(storm)
    if save_schedule:
        plan.schedule.save(save_schedule)
    events: list[Event] | None = None if as_json or quiet else []
    with waiting(f"a storm over {storm.request.lock} in {storm.request.time} time ..."):
        result = run_storm(plan, save=output, story_to=events)
    if as_json:
        print_json(result)
    else:
        storm_table.show_storm(console(), result, events)
    return int(result.exit)
