"""Which tests a run has. `./lockstorm test` leaves out those with the marker `slow`, unless `--all` or a file is given.
`--changed`, which is the default in CI, adds those that the changed folders need, as far as time allows."""

import math
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.tiers.changes import changed_files, needed_tests
from tests.tiers.collected import ADDED, LEFT_OUT

# Seconds of slow tests that `--changed` adds; two cores share them.
BUDGET_S = 150.0
MARKERS = (
    "slow(reason, seconds): not in the default run; `seconds` is what it takes on a quiet machine",
    "lengthy(reason): in the default run although it may take more than 5 s",
    "waits: waits for most of its time, so it runs beside the tests that compute",
)


@dataclass(frozen=True)
class Slow:
    """The marker `slow` of a test."""

    reason: str
    seconds: float


def slow_marker(item: pytest.Item) -> Slow | None:
    """Raises UsageError if the marker gives no reason or no number of seconds."""
    marker = item.get_closest_marker("slow")
    if marker is None:
        return None
    try:
        found = Slow(*marker.args, **marker.kwargs)
    except TypeError as error:
        raise pytest.UsageError(f"{item.nodeid}: slow(reason, seconds): {error}") from error
    if not found.reason or not found.seconds > 0:
        raise pytest.UsageError(f"{item.nodeid}: slow(reason, seconds) needs a reason and more than 0 seconds")
    return found


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("lockstorm")
    group.addoption("--all", action="store_true", dest="all_tests", help="run slow tests, too")
    group.addoption(
        "--changed",
        action="store_true",
        default=bool(os.environ.get("CI")),
        dest="changed_tests",
        help="run slow tests that the changed folders need, too (default in CI)",
    )


def pytest_configure(config: pytest.Config) -> None:
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    if config.args_source is pytest.Config.ArgsSource.ARGS:  # what is named runs whole
        config.option.all_tests = True


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    slow = {item: marker for item in items if (marker := slow_marker(item))}
    if config.getoption("all_tests") or not slow:
        return
    root = Path(config.rootpath)
    needed = needed_tests(changed_files(root)) if config.getoption("changed_tests") else ()
    wanted = {item: mark for item, mark in slow.items() if item.nodeid.startswith(needed)}
    added = within_budget(wanted, BUDGET_S)
    config.stash[LEFT_OUT], config.stash[ADDED] = len(slow) - len(added), len(added)
    left_out = [item for item in slow if item not in added]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in slow or item in added]


def within_budget(slow: dict[pytest.Item, Slow], budget_s: float) -> set[pytest.Item]:
    """All, or every second, every third, ..., so that they take no longer than the budget."""
    whole_s = sum(marker.seconds for marker in slow.values())
    step = max(1, math.ceil(whole_s / budget_s))
    chosen: set[pytest.Item] = set()
    spent_s = 0.0
    for item in list(slow)[::step]:
        if spent_s + slow[item].seconds <= budget_s:
            chosen.add(item)
            spent_s += slow[item].seconds
    return chosen
