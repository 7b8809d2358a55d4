"""Searching schedules of one lock, resuming a search, and replaying a schedule."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs

from lockstorm.base.errors import Inconclusive, UsageError
from lockstorm.locks.lock_names import lock_named
from lockstorm.native.judgement import judge_history, read_history, save_history
from lockstorm.results.event import Event
from lockstorm.results.properties import property_of
from lockstorm.results.struck_command import StruckCommand
from lockstorm.results.verdict import HeardCommand, Verdict
from lockstorm.search.campaign import Campaign
from lockstorm.search.explorer import (
    NONE_VIOLATED,
    Explorer,
    OnProgress,
    SearchOutcome,
    bad_line,
    count_states,
    states_joined,
    sum_up,
)
from lockstorm.search.schedule_file import ScheduleContext, ScheduleFile
from lockstorm.search.search_plan import (
    EXHAUSTIVE,
    FAIRNESS,
    LIVENESS,
    SearchPlan,
    context_arguments,
    replayed_properties,
    search_arguments,
)
from lockstorm.search.search_result import context_json, plan_again, plan_json, search_result, smallest_schedule

STRIKES_COMMAND = (
    "drop-message",
    "drop-request",
    "duplicate-request",
    "error-reply",
    "hold-request",
    "lose-reply",
)  # in histories
SLICE_S = 20  # the time between two writes of a campaign to its file

Keep = Callable[[dict[str, Any]], object]


def explorer_for(context: ScheduleContext, jobs: int, server: str | None = None) -> Explorer:
    return Explorer(lock_named(context.lock).nodes or 1, jobs, replicas=context.replicas, server=server)


# --- many schedules ---


def search_schedules(
    plan: SearchPlan,
    on_progress: OnProgress,
    story_to: list[Event] | None = None,
    campaign: Campaign | None = None,
    keep: Keep | None = None,
) -> dict[str, Any]:
    """Searches, and returns the result as `explore --json` prints it. `story_to` receives the history of the smallest
    schedule that violates something. `campaign`: what was tried before. `keep` gets the result with the campaign in it,
    every SLICE_S and at the end. A search that could not be run is inconclusive, with the reason."""
    campaign = campaign or Campaign(plan.key, plan.shard.of)
    try:
        with explorer_for(plan.context, plan.workers, plan.request.server) as explorer:
            for outcome in _slices(plan, explorer, campaign, on_progress, in_slices=keep is not None):
                campaign.add(plan.shard.number, outcome)
                if campaign.found and not campaign.shown:
                    campaign.shown = _shown(explorer, plan, campaign.found, story_to)
                if keep:
                    keep({**search_result(plan, campaign), "campaign": campaign.json})
    except Inconclusive as reason:
        return {**plan_json(plan), "sentence": f"Inconclusive: {reason}", "exit": Inconclusive.exit_status}
    return search_result(plan, campaign)


def search_piece(plan: SearchPlan, first: int, until: int) -> tuple[SearchOutcome, dict[str, Any] | None]:
    """Searches the schedules from `first` to before `until` in one process, for a search that is cut into pieces. The
    second result is what the smallest schedule that violates something shows."""
    with explorer_for(plan.context, 1, plan.request.server) as explorer:
        outcome = explorer.search(search_arguments(plan), until, lambda _: None, first=first)
        return outcome, _shown(explorer, plan, outcome.found, None) if outcome.found else None


def _shown(explorer: Explorer, plan: SearchPlan, found: dict[str, Any], story_to: list[Event] | None) -> dict[str, Any]:
    """What the smallest schedule shows when it is replayed."""
    shown = _replay(explorer, smallest_schedule(plan.context, found), plan.required_names, story_to)
    said = msgspec.to_builtins(shown.verdict)
    struck = {each.line: each.text for each in shown.strikes}
    return {**{name: said[name] for name in ("steps", "sentence", "verdict")}, "struck": struck}


def _slices(
    plan: SearchPlan, explorer: Explorer, campaign: Campaign, on_progress: OnProgress, *, in_slices: bool
) -> Iterator[SearchOutcome]:
    """Searches on from where the campaign is, in one go or in slices of SLICE_S."""
    words, shard, left_s = search_arguments(plan), plan.shard, plan.seconds
    while not campaign.is_over:
        first = shard.first + campaign.done(shard.number) * shard.of
        if first >= plan.schedules:
            return
        seconds = min(left_s or SLICE_S, SLICE_S) if in_slices else left_s
        yield explorer.search(
            words,
            plan.schedules,
            lambda progress: on_progress(_campaign_progress(campaign, progress)),
            first=first,
            stride=shard.of,
            seconds=seconds,
            known=campaign.found["number"] if campaign.found else NONE_VIOLATED,
        )
        left_s = max(0, left_s - seconds)
        if not in_slices or (plan.seconds and not left_s):
            return


def _campaign_progress(campaign: Campaign, progress: dict[str, Any]) -> dict[str, Any]:
    """The tally of the campaign so far, and the number of states."""
    states = states_joined(campaign.states, progress.pop("states"))
    return {**sum_up([campaign.tally, progress]), "states": count_states(states)}


def resumed(name: str, campaign: Campaign, **limits: Any) -> SearchPlan:
    """The plan of what is left of a campaign that was read from a file."""
    if len(campaign.digests) != 1:
        raise UsageError(f"{name}: it has {len(campaign.digests)} shards in it; resume each by itself, and merge then")
    if campaign.key["strategy"] == EXHAUSTIVE:
        raise UsageError(f"{name}: --strategy exhaustive goes from one schedule to the next, and begins anew")
    (shard,) = campaign.digests
    whole = campaign.shards > 1
    plan = plan_again(name, campaign, shard=f"{shard}/{campaign.shards}" if whole else None, **limits)
    first = shard - 1 + campaign.done(shard) * campaign.shards
    if campaign.is_over or first >= plan.schedules:
        raise UsageError(f"{name}: nothing is left to try: {search_result(plan, campaign)['sentence']}")
    return plan


# --- one schedule ---


@dataclass(frozen=True)
class Replayed:
    """A schedule that was run again."""

    verdict: Verdict
    strikes: list[StruckCommand]  # in the order of time


def replay_schedule(
    schedule: ScheduleFile,
    name: str,
    story_to: list[Event] | None = None,
    save: Path | None = None,
    *,
    with_commands: bool = False,
) -> Verdict:
    """Runs a schedule again and judges its history: what `check` says, the schedule's context and, `with_commands`,
    each command. `story_to` receives the history's records; `save`: where to write the history."""
    usual = replayed_properties(lock_named(schedule.lock), schedule.permits)
    required = (*usual, *([LIVENESS] if schedule.bound_ms else []), *([FAIRNESS] if schedule.in_order else []))
    with explorer_for(schedule, 1) as explorer:
        verdict = _replay(explorer, schedule, required, story_to, name).verdict
        if save:
            save_history(explorer.history, save)
    commands = verdict.commands if with_commands else None
    return structs.replace(verdict, file=name, parameters=None, commands=commands, **context_json(schedule))


def _replay(
    explorer: Explorer,
    schedule: ScheduleFile,
    required: Sequence[str],
    story_to: list[Event] | None,
    name: str = "the schedule",
) -> Replayed:
    done = explorer.replay(context_arguments(schedule, required), schedule.lines, schedule.number)
    wrong = bad_line(done, schedule.line_numbers or range(1, len(schedule.lines) + 1), name)
    if wrong:
        raise wrong
    strikes = msgspec.convert(done["strikes"], list[StruckCommand])
    if story_to is not None:
        story_to += with_strikes(read_history(explorer.history), strikes)
    verdict = judge_history(explorer.history, ",".join(dict.fromkeys(map(property_of, required))))
    commands = msgspec.convert(done["commands"], list[HeardCommand])
    return Replayed(structs.replace(verdict, steps=done["steps"], commands=commands), strikes)


def with_strikes(events: Iterable[Event], strikes: Sequence[StruckCommand]) -> Iterator[Event]:
    """The events, with the command in each beginning of a fault that strikes one. Both are in the order of time."""
    left = iter(strikes)
    for event in events:
        strikes_one = event.kind == "fault-inject" and event.name in STRIKES_COMMAND
        struck = next(left) if strikes_one else None
        yield structs.replace(event, struck=f"{struck.fault} strikes {struck.text}") if struck else event
