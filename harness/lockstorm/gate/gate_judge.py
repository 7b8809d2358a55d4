"""Judges the trials of a gate. Pure functions: nothing is played here."""

import datetime
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import structs

from lockstorm.gate.gate_advice import advise_instead
from lockstorm.gate.gate_plan import Case, GateJob, GatePlan
from lockstorm.gate.gate_policy import Acceptance, LockChoice, Policy
from lockstorm.gate.messages import short_message, sort_properties, what_happened, why_it_matters
from lockstorm.results.gate_verdict import (
    AcceptanceState,
    AcceptanceText,
    GateApplication,
    GateCell,
    GateLock,
    GateTrial,
    GateVerdict,
    JudgedAcceptance,
    Outcome,
    Prevention,
    UnjudgedProperty,
)
from lockstorm.results.kept_run import RunDocument
from lockstorm.results.properties import REQUIRED
from lockstorm.results.statistics import TOO_FEW, unseen_in_words
from lockstorm.results.verdict import TrialResult, effects_sentence
from lockstorm.scenario.baseline import CURES, OWN_MISTAKE, baseline_in_short
from lockstorm.scenario.cells import cell_result
from lockstorm.scenario.expected import expected
from lockstorm.scenario.scenario import scenarios

PASSED: Final = "passed"
ACCEPTED: Final = "accepted"
FAILED: Final = "failed"
INCONCLUSIVE: Final = "inconclusive"
NOT_JUDGED: Final = "not-judged"
OUT_OF_TIME = "the budget of time was used up"  # why trials are missing
INTERRUPTED = "the run was interrupted"
ENOUGH_STORMS = 6  # without a violation: under 40 %
WORST_STATUS = ("violated", "inconclusive", "holds")

Played = dict[str, TrialResult]  # the name of a job -> the result of its trial


def judge_gate(
    policy: Policy,
    plan: GatePlan,
    played: Played,
    today: datetime.date,
    run: RunDocument,
    why_missing: str,
    applications: Sequence[GateApplication] = (),
) -> GateVerdict:
    """The verdict of a run. `why_missing`: the reason why `played` lacks trials of the plan, if it does.
    `applications`: what their searches came to."""
    cells = [judge_case(policy, case, played, today, why_missing) for case in plan.cases]
    unjudged = [each for lock in policy.locks for each in find_unjudged(lock, cells)]
    outcomes = [*(cell.outcome for cell in cells), *(each.outcome for each in applications)]
    return GateVerdict(
        run=run.id,
        interrupted=why_missing == INTERRUPTED,
        policy=run.policy,
        exit=1 if FAILED in outcomes else 3 if INCONCLUSIVE in outcomes or unjudged else 0,
        sentence=gate_sentence(outcomes, unjudged),
        played_again=sum(result.played_again for result in played.values()),
        locks=[judge_lock(policy, lock, cells) for lock in policy.locks],
        cells=cells,
        applications=list(applications),
        unjudged=unjudged,
        inapplicable=list(plan.inapplicable),
        acceptances=[judge_acceptance(each, cells, today) for each in policy.accepted],
        versions=run.versions,
    )


def judge_lock(policy: Policy, lock: LockChoice, cells: list[GateCell]) -> GateLock:
    mine = [cell for cell in cells if (cell.lock, cell.store) == (lock.name, lock.store)]
    names = [cell.scenario for cell in mine if cell.outcome == FAILED]
    advice = advise_instead(policy, lock, names) if names else None
    left = [name for name in names if name in scenarios() and (advice is None or name in advice.broken)]
    prevention = [Prevention(name, scenarios()[name].control) for name in left]
    wrong = [cell.scenario for cell in mine if cell.outcome == FAILED and OWN_MISTAKE in cell.in_short]
    cures = [f"{name}: {CURES[name]}" for name in wrong if name in CURES]
    return GateLock(lock.name, lock.store, list(lock.require), lock.line, lock.used, advice, prevention, cures)


# --- a case ---


def judge_case(policy: Policy, case: Case, played: Played, today: datetime.date, why_missing: str) -> GateCell:
    done = [(job, played[job.name]) for job in case.jobs if job.name in played]
    statuses = worst_statuses(case.lock.require, [result for _, result in done])
    violated = sort_properties(name for name, status in statuses.items() if status == "violated")
    matching = [each for each in policy.accepted if each.covers(case.lock.name, case.lock.store, case.scenario)]
    valid = [each for each in matching if each.until >= today]
    uncovered = [name for name in violated if not any(name in each.properties for each in valid)]
    unclear = len(done) < len(case.jobs) or bool(case.unplayed) or "inconclusive" in statuses.values()
    unclear |= any(result.elsewhere for _, result in done)
    outcome = gate_outcome(statuses, violated, uncovered, unclear)
    shown_job, shown = worst_status(case.lock.require, done) if done else (None, None)
    faults = [shown_statuses(case.lock.require, result) for job, result in done if not job.request.control]
    controls = [shown_statuses(case.lock.require, result) for job, result in done if job.request.control]
    deployed = next((result.deployment for _, result in done if result.deployment and result.deployment.effects), None)
    in_short = cell_in_short(outcome, violated, shown, done, case, why_missing)
    happened = ""
    if shown_job and shown and violated:
        happened = what_happened(case.scenario, shown_job.request.control, shown, violated)
    return GateCell(
        lock=case.lock.name,
        store=case.lock.store,
        scenario=case.scenario,
        time=case.time,
        outcome=outcome,
        ok=outcome in (PASSED, ACCEPTED, NOT_JUDGED),
        statuses=statuses,
        violated=violated,
        result=status_word(faults),
        expected=None,
        control=status_word(controls),
        control_expected=None,
        sentence=shown.sentence if shown else case.unplayed or why_missing,
        in_short="; ".join(filter(None, (in_short, effects_sentence(deployed, always=False)))),
        deployment=deployed,
        happened=happened,
        baseline=(shown.baseline if shown else None) or "",
        matters=why_it_matters(violated),
        reason=known_reason(case),
        accepted=[acceptance_text(each) for each in matching if set(each.properties) & set(violated)],
        replay=cell_replay_command(case, done, control=False),
        control_replay=cell_replay_command(case, done, control=True),
        shown=shown_job.name if shown_job else None,
        trials=[trial_of(job, result, case.lock.require) for job, result in done],
        planned=len(case.jobs),
        took_s=round(sum(result.took_s or 0.0 for _, result in done), 3),
    )


def property_status(name: str, result: TrialResult) -> str | None:
    """The status of a property in a trial; None: the trial does not judge it."""
    status = str(result.properties[name].status)
    if name in result.required or status != "inconclusive":
        return status
    nothing_judged = any(result.properties[each].status == "inconclusive" for each in result.required)
    return status if nothing_judged and name not in REQUIRED else None


def statuses_of(require: Iterable[str], result: TrialResult) -> dict[str, str]:
    statuses = {name: property_status(name, result) for name in require}
    return {name: status for name, status in statuses.items() if status is not None}


def shown_statuses(require: Iterable[str], result: TrialResult) -> dict[str, str]:
    """Also of a violation of mutual exclusion that the policy does not ask about: what a fence has held is *fenced*."""
    overlaps = property_status("mutual_exclusion", result) == "violated"
    return statuses_of(require, result) | ({"mutual_exclusion": "violated"} if overlaps else {})


def worst_statuses(require: Iterable[str], results: list[TrialResult]) -> dict[str, str]:
    """The worst status of each required property over all trials; without the properties that no trial judges."""
    trials = [statuses_of(require, result) for result in results]
    return {
        name: min((statuses[name] for statuses in trials if name in statuses), key=WORST_STATUS.index)
        for name in require
        if any(name in statuses for statuses in trials)
    }


def worst_status(require: tuple[str, ...], done: list[tuple[GateJob, TrialResult]]) -> tuple[GateJob, TrialResult]:
    """The trial to show: the most violated properties, then the most inconclusive ones, then with a fault rather than
    a control."""

    def badness(each: tuple[GateJob, TrialResult]) -> tuple[int, int, bool]:
        statuses = list(statuses_of(require, each[1]).values())
        return -statuses.count("violated"), -statuses.count("inconclusive"), each[0].request.control

    return min(done, key=badness)


def gate_outcome(statuses: dict[str, str], violated: list[str], uncovered: list[str], unclear: bool) -> Outcome:
    if uncovered:
        return FAILED
    if unclear:
        return INCONCLUSIVE
    if violated:
        return ACCEPTED
    return PASSED if statuses else NOT_JUDGED


def status_word(trials: list[dict[str, str]]) -> str:
    """The trials of a cell as one word of the matrix; "inconclusive" without trials, or if none judges a property."""
    words = [cell_result(statuses) if statuses else "inconclusive" for statuses in trials]
    order = ("violated", "stuck", "fenced", "inconclusive", "holds")
    return min(words, key=order.index) if words else "inconclusive"


def cell_in_short(
    outcome: str,
    violated: list[str],
    shown: TrialResult | None,
    done: list[tuple[GateJob, TrialResult]],
    case: Case,
    why_missing: str,
) -> str:
    """A cell in one line: what was violated, or why nothing is known, or that all held."""
    if violated:
        compared = baseline_in_short(shown.baseline if shown else None)
        return short_message(violated) + occurrence_text(case.lock.require, set(violated), done) + compared
    if case.unplayed:
        return f"the policy names it, and it was not played: {case.unplayed}"
    if missing := len(case.jobs) - len(done):
        return f"{missing} of {len(case.jobs)} trials were not played: {why_missing}"
    if outcome == INCONCLUSIVE and any(result.elsewhere for _, result in done):
        return "the lock does not use the servers of `open`: nothing of it reached them"
    if outcome == INCONCLUSIVE and shown:
        return str(shown.sentence)
    if outcome == NOT_JUDGED:
        return "none of the required properties can be judged here"
    if case.jobs[0].faults is not None:
        count = len(done)
        worth = unseen_in_words(count)
        hint = f"; ask for trials = {ENOUGH_STORMS} or more" if worth == TOO_FEW else ""
        return f"0 violations in {count} storm{'s' if count > 1 else ''}: {worth}{hint}"
    return "every required property held"


def occurrence_text(require: Iterable[str], violated: set[str], done: list[tuple[GateJob, TrialResult]]) -> str:
    """How many of several trials with a fault violate the properties, and whether a control without a fault does."""
    faulted = [result for job, result in done if not job.request.control]
    count = sum(bool(violated & violated_in(require, result)) for result in faulted)
    share = f" (in {count} of {len(faulted)} trials)" if len(faulted) > 1 else ""
    in_control = any(job.request.control and violated & violated_in(require, result) for job, result in done)
    return share + (", even without a fault" if in_control else "")


def violated_in(require: Iterable[str], result: TrialResult) -> set[str]:
    return {name for name, status in statuses_of(require, result).items() if status == "violated"}


def known_reason(case: Case) -> str:
    """The reason for the violation in the table of expected verdicts; empty if it has none."""
    cell = expected().get((case.scenario, case.lock.name, case.lock.store))
    return cell.reason if cell else ""


def cell_replay_command(case: Case, done: list[tuple[GateJob, TrialResult]], *, control: bool) -> str:
    mine = [each for each in done if each[0].request.control is control]
    if mine:
        return worst_status(case.lock.require, mine)[0].replay
    return next((job.replay for job in case.jobs if job.request.control is control), "")


def trial_of(job: GateJob, result: TrialResult, require: tuple[str, ...]) -> GateTrial:
    statuses = statuses_of(require, result)
    return GateTrial(job.name, job.request.control, job.request.seed, statuses, result.sentence, job.replay)


# --- acceptances, and what was never judged ---


def acceptance_text(each: Acceptance) -> AcceptanceText:
    until = each.until.isoformat()
    return AcceptanceText(each.lock, each.store, each.scenario, list(each.properties), each.why, until, each.line)


def judge_acceptance(each: Acceptance, cells: list[GateCell], today: datetime.date) -> JudgedAcceptance:
    mine = [cell for cell in cells if each.covers(cell.lock, cell.store, cell.scenario)]
    state: AcceptanceState
    if any(set(each.properties) & set(cell.violated) for cell in mine):
        state = "used" if each.until >= today else "expired"
    else:
        state = "unknown" if any(cell.outcome == INCONCLUSIVE for cell in mine) else "gone"
    return JudgedAcceptance(**structs.asdict(acceptance_text(each)), state=state)


def find_unjudged(lock: LockChoice, cells: list[GateCell]) -> list[UnjudgedProperty]:
    """The required properties of a lock that no trial of the policy judges."""
    mine = [cell for cell in cells if (cell.lock, cell.store) == (lock.name, lock.store)]
    return [
        UnjudgedProperty(lock.name, lock.store, name)
        for name in lock.require
        if not any(name in cell.statuses for cell in mine) and all(cell.trials for cell in mine)
    ]


def gate_sentence(outcomes: Sequence[str], unjudged: list[UnjudgedProperty]) -> str:
    counts = {outcome: outcomes.count(outcome) for outcome in (PASSED, ACCEPTED, FAILED, INCONCLUSIVE)}
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
    return f"{head}: of {len(outcomes)} cases {', '.join(phrases) or 'none was judged'}"
