"""`lockstorm run`."""

from pathlib import Path
from typing import Any

import click
from rich.text import Text

from lockstorm.base.paths import runnable
from lockstorm.cli.options import (
    adapter_option,
    chosen_lock,
    given_options,
    json_option,
    lock_option,
    plugin_option,
    trial_options,
)
from lockstorm.cli.terminal import console, print_json, waiting
from lockstorm.locks.lock_names import lock_named
from lockstorm.report.story import show_deployment, show_result
from lockstorm.results.event import Event
from lockstorm.scenario.deployment_effects import play_deployed
from lockstorm.scenario.play import play, usual_time
from lockstorm.trial.settings import TrialSettings


@click.command("run")
@click.argument("scenario")
@lock_option
@adapter_option
@plugin_option
@trial_options()
@click.option("-o", "output", type=click.Path(path_type=Path), help="Save the history in this file.")
@click.option("--quiet", "-q", is_flag=True, help="Print the verdict without the story.")
@json_option
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
    lock = chosen_lock(lock, adapter, plugin)
    given = given_options(TrialSettings, chosen)
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
