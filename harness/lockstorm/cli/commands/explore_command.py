"""`lockstorm explore`."""

import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from msgspec import structs

from lockstorm.base.atomic_file import write_json, write_text
from lockstorm.base.errors import UsageError
from lockstorm.base.option_fields import options_of
from lockstorm.cli import options
from lockstorm.cli.search_table import progress_line, show_search
from lockstorm.cli.terminal import check_new_file, print_result, status_line_to_the_end
from lockstorm.results.event import Event
from lockstorm.search.campaign import Campaign, read_campaign
from lockstorm.search.explore import resumed, search_schedules
from lockstorm.search.explorer import SearchProgress
from lockstorm.search.search_plan import SearchPlan, SearchRequest, plan_search
from lockstorm.search.search_result import SearchResult, save_schedule

LIMITS = ("schedules", "seconds", "workers")


@click.command("explore")
@options.lock_option
@options.adapter_option
@options.plugin_option
@options.app_option
@options.field_options(SearchRequest)
@options.refused_option(
    "--config",
    "the explorer sets its servers back between schedules, and chooses itself whether a restart keeps the data "
    "(restart-empty in --faults); run, storm and matrix have it",
)
@options.path_option("-o", "output", help="Write the violating schedule to this file.")
@options.path_option("--result", "kept", help="Write the campaign to this JSON file every 20 s.")
@options.path_option(
    "--resume",
    help="Resume the campaign in this file, which sets all options but --schedules, --time-limit and --workers.",
)
@click.option("--save", is_flag=True, help="Save the violating schedule in scenarios/found, which the tests replay.")
@options.quiet_option
@options.json_option
@click.pass_context
def explore_command(
    context: click.Context,
    /,
    output: Path | None,
    kept: Path | None,
    resume: Path | None,
    save: bool,
    quiet: bool,
    as_json: bool,
    lock: str | None,
    adapter: str | None,
    plugin: str | None,
    app: str | None,
    **chosen: Any,
) -> int:
    """Search schedules - the order of all steps, and the faults between them - for one that violates a property of the
    lock, and shrink it.

    \b
    Example: lockstorm explore --lock set-nx-px --clients 3 --faults pause-client -o found.schedule
             lockstorm replay found.schedule
             lockstorm explore --lock redlock --faults clock-jump --save
             lockstorm explore --lock fair --time-limit 10min --shard 2/4 --result two.json
             lockstorm explore --adapter redisson -o found.schedule
             lockstorm explore --app lockstorm-app.toml -o found.schedule
    Exit status: 0 no violation, 1 a violation, 3 nothing could be judged
    What it tries and what a clean search is worth: `lockstorm docs explore`, of libraries `lockstorm docs
    explore-libraries`, of applications `lockstorm docs applications`.
    """
    _check_named(resume, {"lock": lock, "adapter": adapter, "plugin": plugin, "app": app}, save=save)
    check_new_file("-o", output)
    check_new_file("--result", kept if kept != resume else None)
    campaign = read_campaign(resume) if resume else None
    if campaign:
        plan = resumed(str(resume), campaign, **_limits(context, chosen))
    else:
        plan = plan_search(
            SearchRequest(
                options.chosen_lock(lock, adapter, plugin, app), **options.given_options(SearchRequest, chosen)
            )
        )
    events: list[Event] | None = None if as_json or quiet else []
    result = _search(plan, events, campaign, kept or resume)
    if output and result.schedule:
        write_text(output, result.schedule)
    if save and result.found:
        result = structs.replace(result, saved=str(save_schedule(result)))
    print_result(as_json, result, show_search, events, quiet=quiet)
    return result.exit


def _check_named(resume: Path | None, named: Mapping[str, str | None], *, save: bool) -> None:
    if save and named["lock"] is None and not resume:
        raise UsageError("--save keeps what the tests replay, which have only the table's locks: -o FILE saves it")
    given = [name for name, value in named.items() if value is not None]
    if resume and given:
        raise UsageError(f"--{given[0]} with --resume: the file {resume} names the {given[0]}")
    if not resume and not given:
        raise UsageError("--lock is missing: lockstorm locks lists them")


def _search(plan: SearchPlan, events: list[Event] | None, campaign: Campaign | None, kept: Path | None) -> SearchResult:
    before = campaign.tally.schedules if campaign else 0
    keep = partial(write_json, kept, indent=1) if kept else None
    with status_line_to_the_end(partial(_kept_hint, kept)) as show_status:
        began = time.monotonic()

        def show(progress: SearchProgress) -> None:
            show_status(progress_line(progress, plan, time.monotonic() - began, before))

        return search_schedules(plan, show, events, campaign, keep)


def _kept_hint(kept: Path | None) -> str:
    if kept and kept.exists():
        return f"--resume {kept} goes on from what it has, which is at most 20 s older"
    return f"{kept} is written every 20 s" if kept else "--result FILE would keep what was tried"


def _limits(context: click.Context, chosen: Mapping[str, Any]) -> dict[str, int | None]:
    """The options that may change when a campaign is resumed. UsageError for any other."""
    known = options_of(SearchRequest)
    for name in chosen:
        if name not in LIMITS and context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            flag = known[name].flag if name in known else f"--{name}"
            allowed = ", ".join(known[limit].flag for limit in LIMITS)
            raise UsageError(f"{flag} with --resume: the file sets it; only {allowed} may change")
    return {name: chosen[name] for name in LIMITS}
