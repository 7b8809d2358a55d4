"""Judges the searches of applications of a gate. Pure functions: nothing is searched here."""

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

from lockstorm.gate.gate_judge import FAILED, INCONCLUSIVE, OUT_OF_TIME, PASSED
from lockstorm.gate.messages import application_in_short, cures_of, why_it_matters_to_an_application
from lockstorm.results.gate_verdict import GateApplication, Outcome
from lockstorm.results.kept_run import PlannedSearch
from lockstorm.search.search_result import SearchResult

SEARCHES = "searches"  # the directory in a kept run
Searched = Mapping[str, SearchResult]  # the name of a search -> its result


def judge_searches(
    planned: Iterable[PlannedSearch], searched: Searched, directory: Path, why_missing: str
) -> list[GateApplication]:
    """`directory`: of the kept run. `why_missing`: the reason why `searched` lacks one of them, if it does."""
    return [
        _judge_search(each, searched[each.name], directory) if each.name in searched else _unplayed(each, why_missing)
        for each in planned
    ]


def _judge_search(search: PlannedSearch, result: SearchResult, directory: Path) -> GateApplication:
    found = result.found
    outcome = search_outcome(search, result)
    failed = found if outcome == FAILED else None
    violated = list(failed.violates) if failed else []
    schedule = schedule_file(search.name) if found else None
    return GateApplication(
        name=search.title,
        file=search.file,
        line=search.line,
        outcome=outcome,
        ok=outcome == PASSED,
        require=search.required,
        violated=violated,
        schedules=result.schedules,
        planned=search.schedules,
        sentence=result.sentence,
        in_short=_in_short(search, result, outcome),
        happened=failed.sentence if failed else "",
        story=found.story_lines if found else [],
        matters=why_it_matters_to_an_application(violated),
        to_do=cures_of(each.promise for each in failed.evidence) if failed else [],
        warnings=result.warnings,
        schedule=schedule,
        replay=shlex.join(["lockstorm", "replay", str(directory / schedule)]) if schedule else result.replay,
        search=result.replay,
        took_s=result.elapsed_ms / 1000,
    )


def schedule_file(name: str) -> str:
    """Of the smallest schedule of a search, in the directory of the run."""
    return f"{SEARCHES}/{name}.schedule"


def search_outcome(search: PlannedSearch, result: SearchResult) -> Outcome:
    if result.exit == 1:
        return FAILED
    return INCONCLUSIVE if result.exit or search.cut else PASSED


def _in_short(search: PlannedSearch, result: SearchResult, outcome: str) -> str:
    if outcome == FAILED and result.found:
        return f"{application_in_short(result.found.violates)} (schedule {result.found.number:,})"
    if search.cut and not result.exit:
        of_all = f"{result.schedules:,} of {search.schedules:,}" if search.schedules else f"only {result.schedules:,}"
        return f"{of_all} schedules were played: {OUT_OF_TIME}"
    return result.sentence


def _unplayed(search: PlannedSearch, why: str) -> GateApplication:
    return GateApplication(
        name=search.title,
        file=search.file,
        line=search.line,
        outcome=INCONCLUSIVE,
        ok=False,
        require=search.required,
        violated=[],
        schedules=0,
        planned=search.schedules,
        sentence=why,
        in_short=f"no schedule was played: {why}",
        replay=search.replay,
        search=search.replay,
        took_s=0.0,
    )
