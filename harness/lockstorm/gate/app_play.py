"""Searches an application of a policy, as long as the policy's budget of time lasts, and keeps the result."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from lockstorm.gate.app_policy import AppChoice
from lockstorm.gate.runs import Run
from lockstorm.search.explore import search_schedules
from lockstorm.search.search_plan import SearchPlan
from lockstorm.search.search_result import SearchResult

Searcher = Callable[[SearchPlan], SearchResult]


def searcher(workers: int | None) -> Searcher:
    """Searches on this machine."""
    return partial(_search, workers)


def _search(workers: int | None, plan: SearchPlan) -> SearchResult:
    return search_schedules(replace(plan, workers=workers or plan.workers), lambda _: None)


def search_application(app: AppChoice, run: Run, search: Searcher, left_s: float | None) -> SearchResult:
    """`left_s`: of the budget of time."""
    plan = app.plan
    is_limited = left_s is not None and (plan.seconds == 0 or left_s < plan.seconds)
    result = search(replace(plan, seconds=max(1, int(left_s))) if is_limited and left_s is not None else plan)
    run.keep_search(app.name, result, cut=is_limited and result.schedules < plan.schedules)
    return result
