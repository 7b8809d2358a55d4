"""The last lines of a run with several workers: its ten slowest tests, and how many slow ones were left out. A test of
more than 5 s has a reason: in one of the markers `slow` and `lengthy`, or it has the marker `waits`. Where it has none,
these lines say so; nothing fails, since on a busy machine each test may be long."""

from collections import defaultdict
from collections.abc import Generator

import pytest

from tests.tiers.collected import Collected, collected

SHOWN = 10
LONG_S = 5.0
WAITS = "waits in real time"
NO_REASON = "NO REASON: mark it slow or lengthy, or make it faster (tests/tiers/README.md)"


def slowest(seconds: dict[str, float], reasons: dict[str, str]) -> list[str]:
    ranked = sorted(seconds, key=lambda test: seconds[test], reverse=True)
    lines = []
    for test in ranked[:SHOWN]:
        reason = reasons.get(test, NO_REASON if seconds[test] > LONG_S else "")
        lines.append(f"{seconds[test]:6.1f} s  {test}" + (f"  [{reason}]" if reason else ""))
    others = sum(seconds[test] > LONG_S and test not in reasons for test in ranked[SHOWN:])
    return [*lines, f"{others} others took more than {LONG_S:g} s without a reason"] if others else lines


def left_out(found: Collected) -> str:
    """Empty if all tests were run."""
    if not found.left_out:
        return ""
    added = f", {found.added} others were run because of what has changed" if found.added else ""
    return f"{found.left_out} slow tests were left out{added}; all: ./lockstorm test --all"


class ClosingLines:
    """In the controller."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.reasons: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration
        self.reasons.update((report.nodeid, str(value)) for name, value in report.user_properties if name == "reason")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        terminalreporter.section(f"{SHOWN} slowest tests")
        for line in slowest(self.seconds, self.reasons):
            terminalreporter.write_line(line, red="without a reason" in line or NO_REASON in line)
        if line := left_out(collected(config)):
            terminalreporter.write_line(line)


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("numprocesses", None):
        config.pluginmanager.register(ClosingLines())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Sends the reason of a long test to the controller."""
    report = yield
    markers = [marker for name in ("slow", "lengthy") if (marker := item.get_closest_marker(name)) and marker.args]
    if markers or item.get_closest_marker("waits"):
        report.user_properties.append(("reason", str(markers[-1].args[0]) if markers else WAITS))
    return report
