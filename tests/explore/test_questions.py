"""Questions about what servers heard and what clients left behind: locks with one mistake each are told apart from
their right twins."""

from pathlib import Path
from typing import Any

import pytest

from lockstorm.explore.explore import search_schedules
from lockstorm.explore.search_plan import SearchRequest, plan_search
from tests.helpers.planted_renewals import MISTAKES, renewing_plugin

CALM_FAULTS = "pause,pause-before-send,crash,lose-reply,drop-request,hold-request,duplicate-request,error-reply,restart"


def search(lock: str, faults: str, require: str, **requests: Any) -> dict[str, Any]:
    """A search in one process whose clients work for a lease and a half, so that watchdogs renew."""
    usual = {"jobs": 1, "work_ms": 1500, "schedules": 1500}
    plan = plan_search(SearchRequest(lock, faults=faults, require=require, **{**usual, **requests}))
    result = search_schedules(plan, lambda _: None)
    assert "verdict" in result, result["sentence"]
    return result


def evidence_of(result: dict[str, Any], name: str) -> str:
    assert result["exit"] == 1, result["sentence"]
    return " ".join(str(each["text"]) for each in result["verdict"][name]["evidence"])


@pytest.mark.parametrize(
    "mistake,faults,require,said",
    [
        ("blind-pexpire", "pause", "ownership", "lengthened what client-"),
        ("unstopped", "none", "lease", "sent after the release"),
        ("blind-set", "hold-request", "lease", "made the lock's key again"),
        ("deaf", "pause", "lease", "no server that heard of it had a key of its own"),
    ],
)
def test_a_mistake_in_a_renewal_is_found(tmp_path: Path, mistake: str, faults: str, require: str, said: str) -> None:
    extends = mistake == "deaf"
    file = renewing_plugin(tmp_path, mistake)
    result = search(f"plugin:{file}", faults, require, extends=extends, fixed_lease=extends)
    assert said in evidence_of(result, require)
    twin = search(f"plugin:{renewing_plugin(tmp_path)}", faults, require, extends=extends, fixed_lease=extends)
    assert twin["exit"] == 0, twin["sentence"]
    assert twin["verdict"][require]["schedules"]["holds"] > 100


@pytest.mark.parametrize("require", ["ownership", "lease"])
def test_a_right_watchdog_stands_all_faults(tmp_path: Path, require: str) -> None:
    result = search(f"plugin:{renewing_plugin(tmp_path)}", CALM_FAULTS, require, schedules=1000)
    counts = result["verdict"][require]["schedules"]
    assert (result["exit"], counts["violated"]) == (0, 0), result["sentence"]


def test_every_mistake_is_played() -> None:
    assert {*MISTAKES} == {"blind-pexpire", "blind-set", "deaf", "unstopped"}
