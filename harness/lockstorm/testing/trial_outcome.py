"""The outcome of a test that plays trials: an outcome of its own where nothing can be known, the plays in which the
machine stood still, and what is kept of a test that has failed.

An inconclusive test is a failed one for pytest, so that the exit status is not 0 and -x, --lf and JUnit treat it as
such. What makes it inconclusive are attributes of its report, which xdist passes on. Decision 0102.
"""

import time
from collections.abc import Generator
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol  # as all plug-ins that run a test again

from lockstorm.base.errors import Inconclusive, LockstormError, Stalled, UsageError
from lockstorm.testing.item_state import PLAY, PLAYING, command_again

PACKAGE = Path(__file__).resolve().parents[1]  # paths.py is not imported before a test asks for a fixture

# Attributes of a report.
REASON = "lockstorm_reason"  # why it is inconclusive
AGAIN = "lockstorm_again"  # the command that repeats the test
KEPT = "lockstorm_kept"  # lines that name the files of its trials
STALLED = "lockstorm_stalled"  # the machine stood still
STALLED_PLAYS = "lockstorm_stalled_plays"  # of trials that the test has let be played


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Runs a test again in which the machine stood still, a few times at most; other tests are left to others."""
    if not any(name.startswith("lockstorm_") for name in getattr(item, "fixturenames", ())):
        return None
    began_s = time.monotonic()
    play = 1
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    while True:
        item.stash[PLAY] = play
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        stalled = next((report for report in reports if STALLED in vars(report)), None)
        if not stalled or not _is_played_again(play, time.monotonic() - began_s):
            break
        stalled.outcome = "rerun"  # type: ignore[assignment] # known to other plug-ins, and no failure
        item.ihook.pytest_runtest_logreport(report=stalled)
        play += 1
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _is_played_again(play: int, took_s: float) -> bool:
    from lockstorm.trial.stall_sentinel import PLAYED_AGAIN_WITHIN_S, PLAYS_MOST

    return play < PLAYS_MOST and took_s < PLAYED_AGAIN_WITHIN_S


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
    """In real time, a failure after the machine stood still is no failure of the lock."""
    try:
        result = yield
    except BaseException as error:
        if playing := pyfuncitem.stash.get(PLAYING, None):
            playing.explain_by_stall(error)
        if isinstance(error, UsageError):  # about the line of the test, not about ours
            error.__traceback__ = _up_to_package(error.__traceback__, pyfuncitem.path)
        raise
    if playing := pyfuncitem.stash.get(PLAYING, None):
        playing.explain_by_stall(None)
    return result


def _up_to_package(trace: TracebackType | None, test: Path, seen: bool = False) -> TracebackType | None:
    """The frames before those of this package, which the test's own file has called."""
    if not trace:
        return None
    place = Path(trace.tb_frame.f_code.co_filename)
    if seen and PACKAGE in place.parents:
        return None
    rest = _up_to_package(trace.tb_next, test, seen or place == test)
    return TracebackType(rest, trace.tb_frame, trace.tb_lasti, trace.tb_lineno)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    error = call.excinfo.value if call.excinfo else None
    playing = item.stash.get(PLAYING, None)
    if report.failed and isinstance(error, Inconclusive):
        play = item.stash.get(PLAY, 1)
        plays = f" (in each of {play} plays)" if isinstance(error, Stalled) and play > 1 else ""
        vars(report).update({REASON: f"{error}{plays}", AGAIN: command_again(item)})
        if isinstance(error, Stalled):
            vars(report)[STALLED] = True
    elif report.failed and report.when == "setup" and isinstance(error, LockstormError):
        report.longrepr = str(error)  # a sentence about the test's settings
    if playing and report.when == "call":
        if playing.played_again:
            vars(report)[STALLED_PLAYS] = playing.played_again
        if report.failed and STALLED not in vars(report):
            kept = playing.kept_lines()
            vars(report)[KEPT] = kept
            report.sections.append(("lockstorm", "\n".join([*kept, f"again: {command_again(item)}"])))
        playing.end_call()
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
    yellow = {"yellow": True}
    if STALLED in vars(report) and not report.failed:
        return "played again", "p", ("PLAYED AGAIN", yellow)
    if REASON in vars(report):
        return "inconclusive", "I", ("INCONCLUSIVE", yellow)
    return None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Of each inconclusive test: why, what it has left, and what repeats it."""
    reports = terminalreporter.stats.get("inconclusive", [])
    if reports:
        terminalreporter.section("inconclusive")
    for report in reports:
        known = vars(report)
        terminalreporter.write_line(f"{report.nodeid}: {known[REASON]}", yellow=True)
        for line in (*known.get(KEPT, ()), f"again: {known[AGAIN]}"):
            terminalreporter.write_line(f"    {line}")
    every = [each for stats in terminalreporter.stats.values() for each in stats]
    plays = sum(vars(each).get(STALLED_PLAYS, 0) for each in every if isinstance(each, pytest.TestReport))
    if plays:
        terminalreporter.write_line(f"lockstorm: trials were played again {plays} times, as the machine stood still")
