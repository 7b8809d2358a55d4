"""`lockstorm run`."""

from pathlib import Path
from typing import Any

import click
from rich.text import Text

from lockstorm.base.paths import runnable
from lockstorm.cli import options
from lockstorm.cli.terminal import check_new_file, console, print_json, waiting
from lockstorm.locks.lock_names import lock_named
from lockstorm.report.story import show_deployment, show_result
from lockstorm.results.event import Event
from lockstorm.scenario.deployment_effects import play_deployed
from lockstorm.scenario.play import play, usual_time
from lockstorm.trial.settings import TrialSettings


@click.command("run")
@click.argument("scenario")
@options.lock_option
@options.adapter_option
@options.plugin_option
@options.field_options(TrialSettings)
@options.path_option("-o", "output", help="Save the history in this file.")
@options.quiet_option
@options.json_option
def run_command(
    scenario: str,
    lock: str | None,
    adapter: str | None,
    plugin: str | None,
    output: Path | None,
    quiet: bool,
    as_json: bool,
    **chosen: Any,
) -> int:
    """Run one trial of a SCENARIO.

    \b
    Example: lockstorm run gc-pause --lock set-nx-px-fenced --store fence-reads-and-writes
    """
    check_new_file("-o", output)
    lock = options.chosen_lock(lock, adapter, plugin)
    given = options.given_options(TrialSettings, chosen)
    clients = 0 if given.get("control") else given.get("clients") or 0
    given = {"time": usual_time(lock_named(lock), clients), **given}
    settings = TrialSettings(lock, scenario, **given)
    events: list[Event] | None = None if as_json or quiet else []
    with waiting(f"{scenario} with {lock} in {settings.time} time ..."):
        result = play_deployed(settings, play(settings, save=output, story_to=events))
    if as_json:
        print_json(result)
    else:
        show_result(console(), result, events)
        show_deployment(console(), result.deployment)
        console().print(Text(f"again: {runnable(result.replay)}", "dim"))
    return int(result.exit)
