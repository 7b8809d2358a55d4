"""Runs every scenario for every lock and store mode, with and without its fault, in virtual time and some in real time,
and holds the verdict against expected.toml."""

from collections.abc import Generator, Iterator
from typing import Any

import pytest

from harness.driver import Scenario, Trial
from harness.driver.expected import expected, pairs
from harness.driver.play import Wish, lock_named, replay_command, settings_for, usual_time
from harness.driver.services import missing_for

# Real time adds the kernel's clock to what virtual time has shown: to every lock in the shortest scenario, in others
# to a simple one, one with tokens, one with a watchdog and one of a majority. `lockstorm matrix --time real` has all.
REAL_EVERYWHERE = "gc-pause"
REAL_LOCKS = ("set-nx-px", "set-nx-px-fenced", "pubsub", "redlock")


def is_played(scenario: Scenario, lock: str, time: str) -> bool:
    is_usual = scenario.times == ("real",) or time in ("virtual", usual_time(lock_named(lock)))
    return is_usual or scenario.name == REAL_EVERYWHERE or lock in REAL_LOCKS


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    told: Scenario | None = getattr(metafunc.function, "scenario", None)
    if told is None:
        return
    wishes = [
        Wish(scenario, lock, store, time, control=control)
        for scenario, lock, store in pairs()
        if scenario == told.name
        for time in told.times_on(lock_named(lock))
        if is_played(told, lock, time)
        for control in (False, True)
    ]
    names = [f"{w.lock}-{w.store}-{w.time}-{'control' if w.control else 'fault'}" for w in wishes]
    metafunc.parametrize("trial", wishes, ids=names, indirect=True)


@pytest.fixture
def trial(request: pytest.FixtureRequest) -> Iterator[Trial]:
    """A trial of the wish that this test stands for."""
    _, settings = settings_for(request.param)
    if reason := missing_for(lock_named(settings.lock), settings.store, pooled=settings.pooled):
        pytest.skip(f"not installed: {reason}")
    with Trial(settings) as running:
        yield running


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
    """After the story: what does the history say, and is it what the table says?"""
    result = yield
    running = pyfuncitem.funcargs.get("trial")
    if isinstance(running, Trial):
        hold_against_table(running, pyfuncitem.callspec.params["trial"])
    return result


def hold_against_table(running: Trial, wish: object) -> None:
    assert isinstance(wish, Wish)
    verdict = running.judge()
    cell = expected().get((wish.scenario, wish.lock, wish.store or "open"))
    assert cell, f"scenarios/expected.toml says nothing about {wish.scenario} with {wish.lock}/{wish.store}"
    found = {name: verdict["verdict"][name]["status"] for name in verdict["required"]}
    assert found == cell.expects(wish.control), f"{verdict['sentence']}; again: {replay_command(wish)}; {cell.reason}"
