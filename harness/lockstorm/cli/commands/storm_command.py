"""`lockstorm storm`."""

from pathlib import Path
from typing import Any

import click

from lockstorm.base.errors import UsageError
from lockstorm.base.option_fields import options_of
from lockstorm.cli import options
from lockstorm.cli.storm_table import show_storm, show_storms
from lockstorm.cli.terminal import check_new_file, print_result, progress, waiting
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
@options.lock_option
@options.adapter_option
@options.plugin_option
@options.field_options(StormRequest)
@options.trial_options(*TRIAL_OPTIONS, **HELPS)
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
