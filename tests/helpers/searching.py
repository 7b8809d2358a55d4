"""Searches of tests."""

from typing import Any

import msgspec

from lockstorm.search.explore import search_schedules
from lockstorm.search.search_plan import SearchPlan, SearchRequest, plan_search


def search_json(plan: SearchPlan) -> dict[str, Any]:
    """The result as `explore --json` prints it."""
    result: dict[str, Any] = msgspec.to_builtins(search_schedules(plan, lambda _: None))
    return result


def library_plan(adapter: str, **chosen: Any) -> SearchPlan:
    return plan_search(SearchRequest(f"adapter:{adapter}", **chosen))


def searched(adapter: str, **chosen: Any) -> dict[str, Any]:
    """What `explore --adapter` prints for these options, as JSON."""
    return search_json(library_plan(adapter, **chosen))
