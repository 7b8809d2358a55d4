"""`lockstorm explore`."""

import time
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from lockstorm.base.atomic_file import write_text
from lockstorm.base.errors import UsageError
from lockstorm.base.option_fields import options_of
from lockstorm.cli.library_text import library_progress, show_library_search
from lockstorm.cli.options import (
    adapter_option,
    check_new_file,
    chosen_lock,
    field_options,
    given_options,
    json_option,
    lock_option,
    plugin_option,
    refused_option,
)
from lockstorm.cli.search_table import progress_line, show_search
from lockstorm.cli.terminal import console, print_json, status_line_to_the_end
from lockstorm.results.event import Event
from lockstorm.search.campaign import Campaign, read_campaign, write_result
from lockstorm.search.explore import resumed, search_schedules
from lockstorm.search.library_campaign import LibraryCampaign, resumed_library
from lockstorm.search.library_plan import LibraryPlan, plan_library_search
from lockstorm.search.library_search import search_library
from lockstorm.search.schedule_file import save_schedule
from lockstorm.search.search_plan import SearchPlan, SearchRequest, plan_search

LIMITS = ("schedules", "seconds", "workers")


@click.command("explore")
@lock_option
@adapter_option
@plugin_option
@field_options(SearchRequest)
@refused_option(
    "--config",
    "the explorer sets its servers back between schedules, and chooses itself whether a restart keeps the data "
    "(restart-empty in --faults); run, storm and matrix have it",
)
@click.option("-o", "output", type=click.Path(path_type=Path), help="Write the violating schedule to this file.")
@click.option(
    "--result", "kept", type=click.Path(path_type=Path), help="Write the campaign to this JSON file every 20 s."
)
@click.option(
    "--resume",
    type=click.Path(path_type=Path),
    help="Resume the campaign in this file, which sets all options but --schedules, --time-limit and --workers.",
)
@click.option("--save", is_flag=True, help="Save the violating schedule in scenarios/found, which the tests replay.")
@click.option("--quiet", "-q", is_flag=True, help="Print the verdict without the story.")
@json_option
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
    Exit status: 0 no violation, 1 a violation, 3 nothing could be judged
    `lockstorm docs explore` describes schedules, and what a clean search is worth. With --adapter the search also draws
    what clients ask the library for, and judges what each call promises: `lockstorm docs explore-libraries`.
    """
    if adapter is not None:
        _check_library(lock, plugin, resume, save)
    elif plugin is not None:
        _check_alone(lock, resume, save)
        lock = chosen_lock(None, None, plugin)
    check_new_file("-o", output)
    check_new_file("--result", kept if kept != resume else None)
    campaign = read_campaign(resume, (LibraryCampaign, Campaign)) if resume else None
    if adapter is not None or isinstance(campaign, LibraryCampaign):
        found = _search_library(_plan_library(context, adapter, chosen, campaign, resume), campaign, kept or resume)
        return _show_library(found, output, quiet=quiet, as_json=as_json)
    plan = _plan(context, {"lock": lock, **chosen}, campaign, resume)
    events: list[Event] | None = None if as_json or quiet else []
    result = _search(plan, events, campaign, kept or resume)
    if output and result.get("found"):
        write_text(output, result["found"]["file"])
    if save and result.get("found"):
        result["saved"] = str(save_schedule(result))
    if as_json:
        print_json(result)
    else:
        show_search(console(), result, events)
    return int(result["exit"])


def _check_library(lock: str | None, plugin: str | None, resume: Path | None, save: bool) -> None:
    """Refuses options that --adapter excludes."""
    if lock is not None or plugin is not None:
        raise UsageError("--adapter, --lock and --plugin each name a lock: one of them")
    if resume:
        raise UsageError("--adapter with --resume: the file names the adapter")
    if save:
        raise UsageError("--save keeps schedules of C locks; -o FILE saves one of a library")


def _plan_library(
    context: click.Context, adapter: str | None, chosen: dict[str, Any], campaign: Campaign | None, resume: Path | None
) -> LibraryPlan:
    if campaign:
        return resumed_library(str(resume), campaign, **_limits(context, chosen))
    given = {
        name: value
        for name, value in chosen.items()
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT
    }
    assert adapter is not None
    return plan_library_search(adapter, given)


def _search_library(plan: LibraryPlan, campaign: Campaign | None, kept: Path | None) -> dict[str, Any]:
    assert campaign is None or isinstance(campaign, LibraryCampaign)
    before = campaign.tally["schedules"] if campaign else 0
    keep = partial(write_result, kept) if kept else None
    with status_line_to_the_end(partial(_kept_hint, kept)) as show_status:
        began = time.monotonic()

        def show(done: dict[str, Any]) -> None:
            show_status(library_progress(done, plan, time.monotonic() - began, before))

        return search_library(plan, show, campaign, keep)


def _kept_hint(kept: Path | None) -> str:
    if kept and kept.exists():
        return f"--resume {kept} goes on from what it has, which is at most 20 s older"
    return f"{kept} is written every 20 s" if kept else "--result FILE would keep what was tried"


def _show_library(result: dict[str, Any], output: Path | None, *, quiet: bool, as_json: bool) -> int:
    if output and result.get("found"):
        write_text(output, result["found"]["file"])
    if as_json:
        print_json(result)
    else:
        show_library_search(console(), result, quiet=quiet)
    return int(result["exit"])


def _plan(context: click.Context, chosen: dict[str, Any], campaign: Campaign | None, resume: Path | None) -> SearchPlan:
    if campaign:
        return resumed(str(resume), campaign, **_limits(context, chosen))
    if chosen["lock"] is None:
        raise UsageError("--lock is missing: lockstorm locks lists them")
    return plan_search(SearchRequest(chosen["lock"], **given_options(SearchRequest, chosen)))


def _search(
    plan: SearchPlan, events: list[Event] | None, campaign: Campaign | None, kept: Path | None
) -> dict[str, Any]:
    before = campaign.tally["schedules"] if campaign else 0
    keep = partial(write_result, kept) if kept else None
    with status_line_to_the_end(partial(_kept_hint, kept)) as show_status:
        began = time.monotonic()

        def show(progress: dict[str, Any]) -> None:
            show_status(progress_line(progress, plan, time.monotonic() - began, before))

        return search_schedules(plan, show, events, campaign, keep)


def _check_alone(lock: str | None, resume: Path | None, save: bool) -> None:
    """Refuses options that --plugin excludes."""
    if lock is not None:
        raise UsageError("--plugin and --lock each name a lock: one of them")
    if resume:
        raise UsageError("--plugin with --resume: the file names the plug-in")
    if save:
        raise UsageError("--save keeps what the tests replay, and they do not have your plug-in: -o FILE saves it")


def _limits(context: click.Context, chosen: dict[str, Any]) -> dict[str, Any]:
    """The options that may change when a campaign is resumed. UsageError for any other."""
    known = options_of(SearchRequest)
    for name in chosen:
        if name not in LIMITS and context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            flag = known[name].flag if name in known else f"--{name}"
            allowed = ", ".join(known[limit].flag for limit in LIMITS)
            raise UsageError(f"{flag} with --resume: the file sets it; only {allowed} may change")
    return {name: chosen[name] for name in LIMITS}
