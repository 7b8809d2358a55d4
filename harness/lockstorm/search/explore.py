"""Searching schedules of one lock or library, in one go, in pieces or in parts, and resuming a search."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import structs

from lockstorm.base.errors import Inconclusive, UsageError
from lockstorm.results.call_event import BrokenPromise
from lockstorm.results.event import Event
from lockstorm.results.verdict import Evidence, ScheduleLines
from lockstorm.search.campaign import Campaign, ShownSchedule, joined
from lockstorm.search.explorer import Explorer, OnProgress, SearchOutcome, SearchProgress, explorer_for, states_joined
from lockstorm.search.library_plan import RARE_FAULTS
from lockstorm.search.replay import (
    context_words,
    first_cause,
    hosted_story,
    replay_if_possible,
    replay_lock_on,
    with_cause,
)
from lockstorm.search.schedule_file import HostedContext, HostedSchedule, Schedule
from lockstorm.search.search_lines import FoundSchedule, PropertyCount, SearchTally, tallies_joined
from lockstorm.search.search_plan import DEVIATIONS_USUAL, EXHAUSTIVE, SearchPlan, SearchRequest, plan_search
from lockstorm.search.search_result import SearchResult, search_command, search_result, smallest_schedule
from lockstorm.search.sessions import whole_sessions

SLICE_S = 20  # the time between two writes of a campaign to its file
SHRINK_RUNS, LIBRARY_SHRINK_RUNS = 5000, 300

Keep = Callable[[SearchResult], object]


def search_schedules(
    plan: SearchPlan,
    on_progress: OnProgress,
    story_to: list[Event] | None = None,
    campaign: Campaign | None = None,
    keep: Keep | None = None,
) -> SearchResult:
    """Searches, and returns the result. `story_to` receives the history of the smallest schedule of a C lock that
    violates something. `campaign`: what was tried before. `keep` gets the result with the campaign in it, every SLICE_S
    and at the end. A search that could not be run is inconclusive, with the reason."""
    campaign = campaign or Campaign(key=plan.key, shards=plan.shard.of)
    try:
        with explorer_for(plan.context, plan.workers, plan.request.server) as explorer:
            for outcome in _slices(plan, explorer, campaign, on_progress, in_slices=keep is not None):
                campaign.add(plan.shard.number, outcome)
                if campaign.found and not campaign.shown:
                    campaign.shown = _shown(explorer, plan, campaign.found, story_to)
                if keep:
                    keep(structs.replace(search_result(plan, campaign), campaign=campaign))
    except Inconclusive as reason:
        return search_result(plan, Campaign(key=plan.key, shards=1), failed=str(reason))
    return search_result(plan, campaign)


def known_again(plan: SearchPlan, schedule: Schedule) -> SearchResult | None:
    """The result of a search that begins with the smallest schedule of an earlier one with the same key. None: it shows
    nothing any more."""
    if isinstance(schedule, HostedSchedule):
        lines = ScheduleLines(0, list(schedule.workload), list(schedule.deviations))
    else:
        lines = ScheduleLines(schedule.clients, schedule=list(schedule.lines))
    broken = list(schedule.violates)
    found = FoundSchedule(schedule.number, schedule.number, broken, broken, as_found=lines, smallest=lines)
    one = SearchTally(schedules=1, verdicts={name: PropertyCount(violated=1, broken=1) for name in broken})
    with explorer_for(plan.context, 1, plan.request.server) as explorer:
        shown = _shown(explorer, plan, found, None)
    if not shown.evidence or not shown.with_new_programs:
        return None
    result = search_result(plan, Campaign(key=plan.key, shards=plan.shard.of, tally=one, found=found, shown=shown))
    return structs.replace(result, replay=search_command(plan, schedule.number))


def search_piece(plan: SearchPlan, first: int, until: int) -> tuple[SearchOutcome, ShownSchedule | None]:
    """Searches schedules in one process, for a search that is cut into pieces: from the place `first` on, of a library
    from the session `first`, to before the place `until`. The second result is what the smallest schedule that violates
    something shows."""
    with explorer_for(plan.context, 1, plan.request.server) as explorer:
        of_library = isinstance(plan.context, HostedContext)
        outcome = explorer.search(
            search_words(plan), until, lambda _: None, first=first, in_sessions=of_library, whole_sessions=of_library
        )
        return outcome, _shown(explorer, plan, outcome.found, None) if outcome.found else None


def search_words(plan: SearchPlan) -> list[str]:
    """What the program needs to search."""
    of_library = isinstance(plan.context, HostedContext)
    words = context_words(plan.context, plan.required)
    words += ["--shrink", str(LIBRARY_SHRINK_RUNS if of_library else SHRINK_RUNS)]
    words += ["--keep-going"] if plan.request.keep_going else []
    for name, most in plan.budget.items():
        rare = of_library and plan.is_usual and name in RARE_FAULTS
        words += ["--rare-fault" if rare else "--fault", name if of_library else f"{name}={most}"]
    words += ["--faults-total", str(plan.faults_total)] if plan.faults_total else []
    words += ["--strategy", plan.request.strategy]
    if plan.request.strategy == EXHAUSTIVE:
        words += ["--deviations", str(plan.request.deviations or DEVIATIONS_USUAL)]
    if of_library:
        return [*words, *(word for form in plan.forms for word in ("--form", form))]
    words += ["--require-steady", ",".join(plan.steadily)] if plan.steadily else []
    return [*words, "--spare-store"] if plan.is_usual else words


def _slices(
    plan: SearchPlan, explorer: Explorer, campaign: Campaign, on_progress: OnProgress, *, in_slices: bool
) -> Iterator[SearchOutcome]:
    """Searches on from where the campaign is: in one go, or in slices of SLICE_S. Those of a library are a little
    longer, as they end with a session."""
    words, shard, left_s, of_library = search_words(plan), plan.shard, plan.seconds, campaign.in_sessions
    until = whole_sessions(plan.schedules) if of_library and in_slices else plan.schedules
    while not campaign.is_over and campaign.next_place(shard.number) < until:
        seconds = min(left_s or SLICE_S, SLICE_S) if in_slices else left_s
        yield explorer.search(
            words,
            until,
            lambda progress: on_progress(_campaign_progress(campaign, progress)),
            first=(campaign.next_session if of_library else campaign.next_place)(shard.number),
            stride=shard.of,
            seconds=seconds,
            known=campaign.found.number if campaign.found else None,
            in_sessions=of_library,
            whole_sessions=of_library and in_slices,
        )
        left_s = max(0, left_s - seconds)
        if not in_slices or (plan.seconds and not left_s):
            return


def _campaign_progress(campaign: Campaign, progress: SearchProgress) -> SearchProgress:
    tally = tallies_joined([campaign.tally, progress.tally])
    return SearchProgress(tally, states_joined(campaign.states, progress.states))


def _shown(explorer: Explorer, plan: SearchPlan, found: FoundSchedule, story_to: list[Event] | None) -> ShownSchedule:
    """What the smallest schedule shows when another process replays it."""
    schedule = smallest_schedule(plan, found)
    if isinstance(schedule, HostedSchedule):
        return _library_shown(explorer, schedule, found)
    verdict, words = replay_lock_on(explorer, schedule, plan.required_names, story_to)
    return ShownSchedule(
        sentence=verdict.sentence,
        steps=verdict.steps or 0,
        evidence={name: each.evidence for name, each in verdict.properties.items()},
        struck=words,
    )


def _library_shown(explorer: Explorer, schedule: HostedSchedule, found: FoundSchedule) -> ShownSchedule:
    """What was shown before is kept for a schedule that needs its session, or that does not break the promise again."""
    shown = replay_if_possible(explorer, schedule) if found.anew else None
    if shown and set(shown.violates) & set(found.broken):
        evidence = _by_promise(shown.required_evidence)
        return ShownSchedule(
            shown.sentence,
            shown.steps,
            evidence,
            broken=shown.evidence,
            story=shown.story,
            control=shown.control,
        )
    broken = [each for each in found.evidence if each.promise in found.broken]
    return ShownSchedule(
        sentence=with_cause(broken, found.evidence) if broken else "",
        evidence=_by_promise(broken),
        with_new_programs=False,
        broken=found.evidence,
        story=hosted_story(found, [*broken, *first_cause(broken, found.evidence)], len(found.smallest.workload)),
    )


def _by_promise(broken: Sequence[BrokenPromise]) -> dict[str, list[Evidence]]:
    evidence: dict[str, list[Evidence]] = {}
    for each in broken:
        evidence.setdefault(each.promise, []).append(Evidence(each.sentence, 1, [each.event, each.other]))
    return evidence


# --- campaigns ---


def plan_again(name: str, campaign: Campaign, **limits: Any) -> SearchPlan:  # fields of SearchRequest
    """The plan of a campaign that was read from a file."""
    try:
        return plan_search(msgspec.convert({**campaign.key, **limits}, SearchRequest))
    except msgspec.ValidationError as error:
        raise UsageError(f"{name}: its key is not one: {error}") from None
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from None


def resumed(name: str, campaign: Campaign, **limits: Any) -> SearchPlan:  # fields of SearchRequest
    """The plan of what is left of a campaign that was read from a file."""
    if len(campaign.digests) != 1:
        raise UsageError(f"{name}: it has {len(campaign.digests)} shards in it; resume each by itself, and merge then")
    if campaign.key.get("strategy") == EXHAUSTIVE:
        raise UsageError(f"{name}: --strategy exhaustive goes from one schedule to the next, and begins anew")
    (shard,) = campaign.digests
    whole = campaign.shards > 1
    plan = plan_again(name, campaign, shard=f"{shard}/{campaign.shards}" if whole else None, **limits)
    until = whole_sessions(plan.schedules) if campaign.in_sessions else plan.schedules
    if campaign.is_over or campaign.next_place(shard) >= until:
        raise UsageError(f"{name}: nothing is left to try: {search_result(plan, campaign).sentence}")
    return plan


def merged(named: Sequence[tuple[str, Campaign]]) -> SearchResult:
    """The result of several parts of a campaign together, with the campaign in it."""
    campaign = joined(named)
    return structs.replace(search_result(plan_again(named[0][0], campaign), campaign), campaign=campaign)
