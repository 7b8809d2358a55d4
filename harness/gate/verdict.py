"""The result of a gate as one object, from which everything is made that people and pipelines read: pure.

docs/verdict.schema.json describes it, docs/gate.md in words.
"""

import datetime
from collections.abc import Iterable
from typing import Any

from harness.driver.cells import result_of
from harness.driver.expected import expected
from harness.driver.play import REQUIRED
from harness.driver.scenario import scenarios
from harness.driver.statistics import percent, upper_bound
from harness.gate.advice import advise
from harness.gate.plan import Case, GatePlan, Job
from harness.gate.policy import Acceptance, LockChoice, Policy
from harness.gate.words import in_short, sort_properties, what_happened, why_it_matters

FORMAT = 1
PASSED, ACCEPTED, FAILED, INCONCLUSIVE, NOT_JUDGED = "passed", "accepted", "failed", "inconclusive", "not-judged"
WORST_STATUS = ("violated", "inconclusive", "holds")

Played = dict[str, dict[str, Any]]  # a job's name -> its trial's result


def judge_gate(
    policy: Policy, plan: GatePlan, played: Played, today: datetime.date, *, why_missing: str
) -> dict[str, Any]:
    """The verdict. `why_missing`: why trials of the plan are not among those that were played, if some are not."""
    cells = [judge_case(policy, case, played, today, why_missing) for case in plan.cases]
    unjudged = [each for lock in policy.locks for each in find_unjudged(lock, cells)]
    outcomes = {cell["outcome"] for cell in cells}
    exit_status = 1 if FAILED in outcomes else 3 if INCONCLUSIVE in outcomes or unjudged else 0
    failed = {lock.title: [cell["scenario"] for cell in failed_of(cells, lock)] for lock in policy.locks}
    advice = {lock.title: advise(policy, lock, failed[lock.title]) for lock in policy.locks if failed[lock.title]}
    return {
        "format": FORMAT,
        "exit": exit_status,
        "sentence": sentence_of(cells, unjudged),
        "locks": [lock_as_json(lock, advice.get(lock.title), cells) for lock in policy.locks],
        "cells": cells,
        "unjudged": unjudged,
        "unfit": list(plan.unfit),
        "acceptances": [judge_acceptance(each, cells, today) for each in policy.accepted],
    }


def lock_as_json(lock: LockChoice, advice: dict[str, Any] | None, cells: list[dict[str, Any]]) -> dict[str, Any]:
    failed = [cell["scenario"] for cell in failed_of(cells, lock)]
    left = [name for name in failed if name in scenarios() and (advice is None or name in advice["broken"])]
    return {
        "name": lock.name,
        "store": lock.store,
        "require": list(lock.require),
        "line": lock.line,
        "used": lock.used,
        "advice": advice,
        "prevention": [{"scenario": name, "text": scenarios()[name].control} for name in left],
    }


def failed_of(cells: list[dict[str, Any]], lock: LockChoice) -> list[dict[str, Any]]:
    mine = [cell for cell in cells if (cell["lock"], cell["store"]) == (lock.name, lock.store)]
    return [cell for cell in mine if cell["outcome"] == FAILED]


# --- a case ---


def judge_case(policy: Policy, case: Case, played: Played, today: datetime.date, why_missing: str) -> dict[str, Any]:
    done = [(job, played[job.name]) for job in case.jobs if job.name in played]
    missing = len(case.jobs) - len(done)
    statuses = worst_statuses(case.lock.require, [result for _, result in done])
    violated = sort_properties(name for name, status in statuses.items() if status == "violated")
    matching = [each for each in policy.accepted if each.covers(case.lock.name, case.lock.store, case.scenario)]
    valid = [each for each in matching if each.until >= today]
    uncovered = [name for name in violated if not any(name in each.properties for each in valid)]
    unclear = bool(missing) or "inconclusive" in statuses.values()
    outcome = outcome_of(statuses, violated, uncovered, unclear)
    shown_job, shown = worst_of(case.lock.require, done) if done else (None, None)
    faults = [statuses_of(case.lock.require, result) for job, result in done if not job.wish.control]
    controls = [statuses_of(case.lock.require, result) for job, result in done if job.wish.control]
    return {
        "lock": case.lock.name,
        "store": case.lock.store,
        "scenario": case.scenario,
        "time": case.time,
        "outcome": outcome,
        "ok": outcome in (PASSED, ACCEPTED, NOT_JUDGED),
        "statuses": statuses,
        "violated": violated,
        "result": word_of(faults),
        "expected": None,
        "control": word_of(controls),
        "control_expected": None,
        "sentence": shown["sentence"] if shown else why_missing,
        "in_short": short_of(outcome, violated, shown, done, case, missing, why_missing),
        "happened": what_happened(case.scenario, shown_job.wish.control, shown, violated)
        if shown_job and shown and violated
        else "",
        "matters": why_it_matters(violated),
        "reason": reason_of(case),
        "accepted": [acceptance_as_json(each) for each in matching if set(each.properties) & set(violated)],
        "replay": replay_of(case, done, control=False),
        "control_replay": replay_of(case, done, control=True),
        "shown": shown_job.name if shown_job else None,
        "trials": [trial_as_json(job, result, case.lock.require) for job, result in done],
        "planned": len(case.jobs),
        "took_s": round(sum(result.get("took_s", 0.0) for _, result in done), 3),
    }


def judged(name: str, result: dict[str, Any]) -> str | None:
    """The status of a property in a trial; None: this trial does not ask for it, whatever it came to."""
    status = str(result["verdict"][name]["status"])
    if name in result["required"] or status != "inconclusive":
        return status
    unfit = any(result["verdict"][each]["status"] == "inconclusive" for each in result["required"])
    return status if unfit and name not in REQUIRED else None


def statuses_of(require: Iterable[str], result: dict[str, Any]) -> dict[str, str]:
    said = {name: judged(name, result) for name in require}
    return {name: status for name, status in said.items() if status is not None}


def worst_statuses(require: Iterable[str], results: list[dict[str, Any]]) -> dict[str, str]:
    """Of each required property that some trial asks for, the worst of all trials."""
    each = [statuses_of(require, result) for result in results]
    return {
        name: min((said[name] for said in each if name in said), key=WORST_STATUS.index)
        for name in require
        if any(name in said for said in each)
    }


def worst_of(require: tuple[str, ...], done: list[tuple[Job, dict[str, Any]]]) -> tuple[Job, dict[str, Any]]:
    """The trial to show: the one with the most that is violated, or else with what is not clear; with a fault rather
    than without."""

    def badness(each: tuple[Job, dict[str, Any]]) -> tuple[int, int, bool]:
        statuses = list(statuses_of(require, each[1]).values())
        return -statuses.count("violated"), -statuses.count("inconclusive"), each[0].wish.control

    return min(done, key=badness)


def outcome_of(statuses: dict[str, str], violated: list[str], uncovered: list[str], unclear: bool) -> str:
    if uncovered:
        return FAILED
    if unclear:
        return INCONCLUSIVE
    if violated:
        return ACCEPTED
    return PASSED if statuses else NOT_JUDGED


def word_of(trials: list[dict[str, str]]) -> str:
    """The trials of a cell in a word of the matrix. Without any, and where nothing was asked: nothing was learned."""
    words = [result_of(statuses) if statuses else "inconclusive" for statuses in trials]
    order = ("violated", "stuck", "fenced", "inconclusive", "holds")
    return min(words, key=order.index) if words else "inconclusive"


def short_of(
    outcome: str,
    violated: list[str],
    shown: dict[str, Any] | None,
    done: list[tuple[Job, dict[str, Any]]],
    case: Case,
    missing: int,
    why_missing: str,
) -> str:
    """A cell in a line."""
    if violated:
        return in_short(violated) + how_often(case.lock.require, set(violated), done)
    if missing:
        return f"{missing} of {len(case.jobs)} trials were not played: {why_missing}"
    if outcome == INCONCLUSIVE and shown:
        return str(shown["sentence"])
    if outcome == NOT_JUDGED:
        return "nothing of what is required can be judged here"
    if case.jobs[0].faults is not None:
        count = len(done)
        return f"0 violations in {count} storms: under {percent(upper_bound(count))} at 95 %"
    return "all that is required held"


def how_often(require: Iterable[str], violated: set[str], done: list[tuple[Job, dict[str, Any]]]) -> str:
    """In how many trials, where there are several; and whether a fault was needed at all."""
    struck = [result for job, result in done if not job.wish.control]
    often = sum(bool(violated & violated_in(require, result)) for result in struck)
    told = f" (in {often} of {len(struck)} trials)" if len(struck) > 1 else ""
    bare = any(job.wish.control and violated & violated_in(require, result) for job, result in done)
    return told + (", even without a fault" if bare else "")


def violated_in(require: Iterable[str], result: dict[str, Any]) -> set[str]:
    return {name for name, status in statuses_of(require, result).items() if status == "violated"}


def reason_of(case: Case) -> str:
    told = expected().get((case.scenario, case.lock.name, case.lock.store))
    return told.reason if told else ""


def replay_of(case: Case, done: list[tuple[Job, dict[str, Any]]], *, control: bool) -> str:
    mine = [each for each in done if each[0].wish.control is control]
    if mine:
        return worst_of(case.lock.require, mine)[0].replay
    return next((job.replay for job in case.jobs if job.wish.control is control), "")


def trial_as_json(job: Job, result: dict[str, Any], require: tuple[str, ...]) -> dict[str, Any]:
    return {
        "name": job.name,
        "control": job.wish.control,
        "seed": job.wish.seed,
        "statuses": statuses_of(require, result),
        "sentence": result["sentence"],
        "replay": job.replay,
    }


# --- acceptances, and what was never judged ---


def acceptance_as_json(each: Acceptance) -> dict[str, Any]:
    return {
        "lock": each.lock,
        "store": each.store,
        "scenario": each.scenario,
        "properties": list(each.properties),
        "why": each.why,
        "until": each.until.isoformat(),
        "line": each.line,
    }


def judge_acceptance(each: Acceptance, cells: list[dict[str, Any]], today: datetime.date) -> dict[str, Any]:
    """used: what it accepts was seen; expired: it was seen, and no longer accepted; gone: it was not seen; unknown:
    nobody can say, because a trial is missing or inconclusive."""
    mine = [cell for cell in cells if each.covers(cell["lock"], cell["store"], cell["scenario"])]
    seen = any(set(each.properties) & set(cell["violated"]) for cell in mine)
    if seen:
        state = "used" if each.until >= today else "expired"
    else:
        state = "unknown" if any(cell["outcome"] == INCONCLUSIVE for cell in mine) else "gone"
    return {**acceptance_as_json(each), "state": state}


def find_unjudged(lock: LockChoice, cells: list[dict[str, Any]]) -> list[dict[str, str]]:
    """What is required of a lock, but no scenario of the policy asks for: nobody knows whether it holds."""
    mine = [cell for cell in cells if (cell["lock"], cell["store"]) == (lock.name, lock.store)]
    return [
        {"lock": lock.name, "store": lock.store, "property": name}
        for name in lock.require
        if not any(name in cell["statuses"] for cell in mine) and all(cell["trials"] for cell in mine)
    ]


def sentence_of(cells: list[dict[str, Any]], unjudged: list[dict[str, str]]) -> str:
    counts = {
        outcome: sum(cell["outcome"] == outcome for cell in cells)
        for outcome in (PASSED, ACCEPTED, FAILED, INCONCLUSIVE)
    }
    phrases = [f"{counts[FAILED]} failed"] if counts[FAILED] else []
    phrases += [f"{counts[INCONCLUSIVE]} could not be judged"] if counts[INCONCLUSIVE] else []
    phrases += [f"{counts[ACCEPTED]} known and accepted"] if counts[ACCEPTED] else []
    phrases += [f"{counts[PASSED]} passed"] if counts[PASSED] else []
    head = (
        "Not safe"
        if counts[FAILED]
        else "Not known"
        if counts[INCONCLUSIVE] or unjudged
        else "Safe, as far as this policy asks"
    )
    return f"{head}: of {len(cells)} cases {', '.join(phrases) or 'none was judged'}"
