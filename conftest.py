"""For all tests: in CI a skipped test counts as failed, because a test that does not run proves nothing."""

import os
import signal
from importlib.metadata import entry_points

import pytest

# A checkout is not installed, unless somebody has done so: then pytest has loaded the plug-in already.
PLUGIN = "lockstorm.testing.pytest_plugin"
INSTALLED = [each for each in entry_points(group="pytest11") if each.value == PLUGIN]
TIERS = ("collected", "selection", "lanes", "closing_lines", "played_again")
pytest_plugins = [f"tests.tiers.{name}" for name in TIERS]
pytest_plugins += [] if INSTALLED else [PLUGIN]


def pytest_configure() -> None:
    """A shell starts what is to run in the background with SIGINT ignored, and programs inherit that: what a test
    interrupts would go on."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if os.environ.get("CI") and terminalreporter.stats.get("skipped"):
        terminalreporter.write_line("skipped tests count as failed in CI", red=True)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") and reporter and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
