"""Runs every scenario for every lock and store mode, with and without its fault, in virtual time and some in real time,
and compares the verdict with expected.toml."""

from collections.abc import Generator, Iterator
from functools import cache
from typing import Any

import pytest

from lockstorm import Scenario, Trial
from lockstorm.locks.lock_names import lock_named
from lockstorm.scenario.expected import expected, pairs
from lockstorm.scenario.play import prepare_trial, trial_command, usual_time
from lockstorm.servers.services import missing_for
from lockstorm.testing.trial_runner import TrialRunner
from lockstorm.trial.settings import TrialSettings

# Virtual time tests the locks; real time adds the kernel's clock. The shortest scenario is played in real time with
# every lock, the others with a simple lock, one with tokens, one with a watchdog and one on a majority of nodes.
# `lockstorm matrix --time real` plays all.
REAL_EVERYWHERE = "gc-pause"
REAL_LOCKS = ("set-nx-px", "set-nx-px-fenced", "pubsub", "redlock")
REAL = pytest.mark.slow("in real time, where another lock that waits in the same way is played", seconds=3)
# A control shows that the scenario harms nobody without its fault. That depends on how a lock waits, hardly on which
# lock it is, and not on the store: without the fault no access is late, and a store that checks has nothing to refuse.
CONTROL = pytest.mark.slow("a control, which is played with another lock that waits in the same way", seconds=1)


every_pair = cache(pairs)


def is_played(scenario: Scenario, lock: str, time: str) -> bool:
    is_usual = scenario.times == ("real",) or time in ("virtual", usual_time(lock_named(lock)))
    return is_usual or scenario.name == REAL_EVERYWHERE or lock in REAL_LOCKS


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    scenario: Scenario | None = getattr(metafunc.function, "scenario", None)
    if scenario is None:
        return
    requests = [
        TrialSettings(lock, name, store=store, time=time, control=control)
        for name, lock, store in every_pair()
        if name == scenario.name
        for time in scenario.times_on(lock_named(lock))
        if is_played(scenario, lock, time)
        for control in (False, True)
    ]
    names = [f"{w.lock}-{w.store}-{w.time}-{'control' if w.control else 'fault'}" for w in requests]
    usual = one_per_mechanism(requests)
    params = [pytest.param(w, marks=marks_of(w, w in usual)) for w in requests]
    metafunc.parametrize("trial", params, ids=names, indirect=True)


def marks_of(request: TrialSettings, is_usual: bool) -> list[pytest.MarkDecorator]:
    if request.time != "real":
        return [CONTROL] if request.control and not is_usual else []
    return [pytest.mark.waits] if is_usual else [pytest.mark.waits, REAL]


def one_per_mechanism(requests: list[TrialSettings]) -> list[TrialSettings]:
    """Those of the first lock and store for each service, each way of waiting and each time."""
    chosen: dict[tuple[str, str, str], tuple[str, str | None]] = {}
    kept = []
    for request in requests:
        lock = lock_named(request.lock)
        pair = (request.lock, request.store)
        if chosen.setdefault((lock.service, lock.waits, request.time), pair) == pair:
            kept.append(request)
    return kept


@pytest.fixture
def trial(request: pytest.FixtureRequest, lockstorm_runner: TrialRunner) -> Iterator[Trial]:
    """A trial for the request of this test. The plug-in, whose users write `lockstorm_trial`, plays it again after a
    stall, and keeps the history of one that fails."""
    _, settings = prepare_trial(request.param)
    if reason := missing_for(lock_named(settings.lock), settings.store or "open", pooled=settings.pooled):
        pytest.skip(f"not installed: {reason}")
    with lockstorm_runner.open_prepared(settings) as running:
        yield running


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
    """After the scenario has been played, compares its verdict with the table."""
    result = yield
    running = pyfuncitem.funcargs.get("trial")
    if isinstance(running, Trial):
        compare_with_table(running, pyfuncitem.callspec.params["trial"])
    return result


def compare_with_table(running: Trial, request: object) -> None:
    assert isinstance(request, TrialSettings)
    verdict = running.judge()
    cell = expected().get((request.scenario, request.lock, request.store or "open"))
    assert cell, f"scenarios/expected.toml says nothing about {request.scenario} with {request.lock}/{request.store}"
    found = {name: verdict.properties[name].status for name in verdict.required}
    assert found == cell.expects(request.control), f"{verdict.sentence}; again: {trial_command(request)}; {cell.reason}"
