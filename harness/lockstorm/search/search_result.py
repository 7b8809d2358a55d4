"""What a search came to: one object, as `explore --json` prints it, and what finding nothing is worth."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lockstorm.base.errors import UsageError
from lockstorm.base.option_fields import option_words
from lockstorm.locks.lock_names import lock_words
from lockstorm.native.fault_names import fault_names
from lockstorm.results.properties import with_capacity
from lockstorm.results.statistics import Rate
from lockstorm.search.campaign import Campaign, joined
from lockstorm.search.explorer import count_states
from lockstorm.search.schedule_file import ScheduleContext, ScheduleFile
from lockstorm.search.search_plan import (
    DEVIATIONS_USUAL,
    JUDGED,
    USUALLY,
    SearchPlan,
    SearchRequest,
    plan_search,
)

DEPTH = 3  # STRATEGY_DEPTH


def plan_again(name: str, campaign: Campaign, **limits: Any) -> SearchPlan:
    """The plan of a campaign that was read from a file; `deviations` was called `bound` once."""
    key = {"deviations" if part == "bound" else part: value for part, value in campaign.key.items()}
    try:
        return plan_search(SearchRequest(**key, **limits))
    except TypeError as error:
        raise UsageError(f"{name}: its key is not one: {error}") from None


def merged(named: Sequence[tuple[str, Campaign]]) -> dict[str, Any]:
    """The result of several parts of a campaign together, with the campaign in it."""
    campaign = joined(named)
    try:
        return {**search_result(plan_again(named[0][0], campaign), campaign), "campaign": campaign.json}
    except (KeyError, TypeError) as error:
        raise UsageError(f"{named[0][0]}: it was changed by hand: {error}") from None


def context_json(context: ScheduleContext) -> dict[str, Any]:
    keys = ("lock", "store", "clients", "replicas", "turns", "lease_ms", "work_ms", "seed")
    return {key: getattr(context, key) for key in keys}


def plan_json(plan: SearchPlan) -> dict[str, Any]:
    return {
        **context_json(plan.context),
        "scenario": "explore",
        "time": "virtual",
        "faults": plan.budget,
        "strategy": plan.request.strategy,
        "required": [*plan.required_names],
        "required_sorts": _required_sorts(plan),
        "required_steadily": [*plan.steadily],
    }


def smallest_schedule(
    context: ScheduleContext, found: dict[str, Any], shown: dict[str, Any] | None = None
) -> ScheduleFile:
    """The schedule that the explorer has found and shrunk. `shown`: what its replay has shown."""
    return ScheduleFile(
        **{**vars(context), "clients": found["clients"]},
        number=found["origin"],
        violates=tuple(found["violated"]),
        lines=tuple(found["schedule"]),
        struck=(shown or {}).get("struck", {}),  # not in a result of an earlier version
    )


def search_result(plan: SearchPlan, campaign: Campaign) -> dict[str, Any]:
    """What was tried, and the verdict on it."""
    shown = campaign.shown
    found = smallest_schedule(plan.context, campaign.found, shown) if campaign.found else None
    tally = campaign.tally
    usually = with_capacity(USUALLY, plan.context.permits)
    judged = (*usually, *(name for name in JUDGED if name in plan.required_names and name not in usually))
    verdict = {name: _verdict_on(plan, tally["verdicts"][name], shown, name) for name in judged}
    statuses = {verdict[name]["status"] for name in plan.required_names}
    # A lock without tokens is not required to fence: of such a property nothing can be known.
    exit_status = 1 if found else 3 if "inconclusive" in statuses else 0
    tasks, steps = plan.context.clients, max(1, campaign.horizon)
    return {
        **plan_json(plan),
        "schedules": campaign.schedules,
        "tried": tally["schedules"],
        "schedules_per_s": round(tally["schedules"] / campaign.elapsed_s) if campaign.elapsed_s else 0,
        "steps": tally["steps"],
        "commands": tally["commands"],
        "distinct": campaign.distinct,
        "states": count_states(campaign.states),
        "checkpoints": tally["checkpoints"],
        "exhausted": campaign.exhausted,
        "cut_short": tally["cut_short"],
        "inapplicable": tally["inapplicable"],
        "injected": {name: tally["faults"][name] for name in fault_names("simulation")},
        "history_sha256": campaign.history_sha256,
        "pct": {"depth": DEPTH, "tasks": tasks, "steps": steps, "bound": _pct_bound(plan, steps)},
        "verdict": verdict,
        "groups": campaign.groups,
        "sentence": _sentence(plan, campaign, found, exit_status),
        "found": found and _found_json(found, campaign, shown),
        "replay": search_command(plan, campaign),
        "elapsed_ms": round(campaign.elapsed_s * 1000),
        "exit": exit_status,
    }


def _pct_bound(plan: SearchPlan, steps: int) -> float:
    """The least probability that a schedule finds an error of that depth; PCT draws every other one of a portfolio."""
    share = {"pct": 1.0, "portfolio": 0.5}.get(plan.request.strategy, 0.0)
    return share / float(plan.context.clients * steps ** (DEPTH - 1))


def _required_sorts(plan: SearchPlan) -> dict[str, list[str]]:
    """The sorts of violations that count, by property, of properties that are not required as a whole."""
    parts: dict[str, list[str]] = {}
    for name, slash, sort in (word.partition("/") for word in plan.required):
        if slash and name not in plan.required:
            parts.setdefault(name, []).append(sort)
    return parts


def _verdict_on(plan: SearchPlan, counts: dict[str, int], shown: dict[str, Any] | None, name: str) -> dict[str, Any]:
    """The verdict on a property in all schedules that were tried. The evidence is that of the smallest schedule. Of a
    property that is required, only the required sorts of violations count."""
    violated = counts.get("broken", counts["violated"]) if name in plan.required_names else counts["violated"]
    status = "violated" if violated else "holds" if counts["holds"] + counts["violated"] else "inconclusive"
    evidence = shown["verdict"][name]["evidence"] if shown and status == "violated" else []
    said = {} if name in plan.required_names or not violated else {"reason": _unblamed(plan, violated)}
    return {"status": status, "count": violated, "evidence": evidence, "schedules": counts, **said}


def _unblamed(plan: SearchPlan, schedules: int) -> str:
    """What a violation of a property that is not required means."""
    why = ", as of any lock with a lease under these faults" if plan.is_usual and plan.lock.lease else ""
    return f"in {schedules:,} schedules{why}: not required"


def _found_json(found: ScheduleFile, campaign: Campaign, shown: dict[str, Any] | None) -> dict[str, Any]:
    assert campaign.found and shown
    return {
        "number": campaign.found["number"],
        "violates": [*found.violates],
        "clients": found.clients,
        "choices": found.annotated,
        "choices_before_shrinking": len(campaign.found["found"]),
        "steps": shown["steps"],
        "sentence": shown["sentence"],
        "file": found.text,
    }


def _sentence(plan: SearchPlan, campaign: Campaign, found: ScheduleFile | None, exit_status: int) -> str:
    if campaign.found and plan.request.keep_going:
        return _sentence_of_all(plan, campaign, campaign.found["number"])
    if campaign.found and found:
        broken = " and ".join(name.replace("_", " ") for name in campaign.found.get("broken", found.violates))
        return f"Schedule {campaign.found['number']:,} of seed {plan.context.seed} violates {broken}: {_cause(found)}"
    tried = campaign.schedules
    if exit_status:
        reason = campaign.tally["inapplicable_reason"] or "no schedule could be judged"
        return f"Inconclusive after {tried:,} schedules: {reason}"
    if campaign.exhausted:
        most = plan.request.deviations or DEVIATIONS_USUAL
        return f"0 violations in all {tried:,} schedules that differ from the usual course at most {most} times"
    return f"0 violations in {tried:,} schedules, {_worth(plan, campaign)}"


def _sentence_of_all(plan: SearchPlan, campaign: Campaign, number: int) -> str:
    """Of a search that went on after a violation."""
    tried = campaign.tally["schedules"]
    hits = sum(group["schedules"] for group in campaign.groups if {*group["violates"]} & {*plan.required_names})
    first = f"; schedule {number:,} is the first"
    if campaign.exhausted:  # no sample: these are all
        return f"{hits:,} of all {tried:,} schedules within the bound violate it{first}"
    return f"{Rate(hits, tried)}{first}"


def _cause(found: ScheduleFile) -> str:
    count = len(found.lines)
    if not count:
        return "the usual course reproduces it"
    return f"{count} deviation{'s reproduce' if count > 1 else ' reproduces'} it"


def _worth(plan: SearchPlan, campaign: Campaign) -> str:
    """What it is worth to have found nothing."""
    found_by_pct = _pct_bound(plan, max(1, campaign.horizon))
    worth = [f"{campaign.distinct:,} of them distinct: {Rate(0, campaign.schedules).in_words}"]
    if found_by_pct:
        worth.append(f"one in {1 / found_by_pct:,.0f} finds an error of depth {DEPTH} at least (PCT)")
    untried = [name for name in fault_names("simulation") if not campaign.tally["faults"][name]]
    if untried:
        worth.append(f"not tried: {', '.join(untried)}")
    return "; ".join(worth)


def search_command(plan: SearchPlan, campaign: Campaign) -> str:
    """The command that repeats the search up to here."""
    schedules = None if campaign.exhausted else campaign.until
    request = replace(plan.request, schedules=schedules, seconds=None, workers=None)
    return shlex.join(["lockstorm", "explore", *lock_words(request.lock), *option_words(request)])
