"""A budget for tests and trials that are played again because the machine stood still. Each has a bound of its own;
without one for the run, a fault that only looks like a stall would be played away, a few times in each run."""

from collections.abc import Generator

import pytest

from lockstorm.testing.trial_outcome import STALLED, STALLED_PLAYS
from tests.helpers.stalls import plays_of_this_test

LEAST = 20  # plays that any run may have
SHARE = 0.01  # of its tests
PROPERTY = "played_again"


def budget_of(tests: int) -> int:
    return max(LEAST, int(tests * SHARE))


class PlayedAgain:
    """In the controller, or in a run without workers."""

    def __init__(self) -> None:
        self.tests: set[str] = set()
        self.plays = 0

    @property
    def is_over(self) -> bool:
        return self.plays > budget_of(len(self.tests))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.tests.add(report.nodeid)
        self.plays += STALLED in vars(report) and not report.failed  # the whole test was played again
        self.plays += vars(report).get(STALLED_PLAYS, 0)
        self.plays += sum(int(str(value)) for name, value in report.user_properties if name == PROPERTY)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.is_over:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.is_over:
            budget = f"{len(self.tests)} tests may have {budget_of(len(self.tests))}"
            terminalreporter.write_line(
                f"{self.plays} plays were repeated because the machine stood still, and {budget}: the run has failed. "
                "Run it on a quieter machine, or look for what only seems to be a stall",
                red=True,
            )


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(PlayedAgain())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Sends the number of plays of a test that repeats itself (helpers/stalls.py) to the controller."""
    report = yield
    if call.when == "call" and (plays := plays_of_this_test()):
        report.user_properties.append((PROPERTY, str(plays)))
    return report
