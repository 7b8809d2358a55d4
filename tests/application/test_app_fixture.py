"""An application in a team's own suite of pytest."""

import re
from pathlib import Path

import pytest

from lockstorm.servers.services import missing
from tests.application.described import CREDITS, described
from tests.testing.conftest import Suite, counts


@pytest.mark.skipif(bool(missing("postgres")), reason=f"not installed: {missing('postgres')}")
@pytest.mark.lengthy("searches some schedules of a service, in pytest")
def test_a_failure_shows_the_story_and_what_repeats_it(tmp_path: Path) -> None:
    suite = Suite(tmp_path)
    suite.write("pytest.ini", "[pytest]\naddopts = --strict-markers\n")
    described(tmp_path, CREDITS, "early")
    suite.write(
        "test_it.py",
        """
def test_no_credit_is_lost(lockstorm_app):
    lockstorm_app("lockstorm-app.toml", schedules=60, faults="none").assert_holds()
def test_it_is_known(lockstorm_app):
    found = lockstorm_app("lockstorm-app.toml", schedules=60, faults="none").assert_violated("check")
    assert found.warnings[0].rule == "unlock-before-commit"
def test_wrong(lockstorm_app):
    lockstorm_app("nothing.toml")
""",
    )
    output = suite.run()
    assert counts(output) == "2 failed, 1 passed", output
    assert re.search(r"^E +AssertionError: Schedule \d+ violates a check of ", output, re.MULTILINE)
    assert re.search(r"^E +\d* +0\.000 s  instance-\d +releases redis user:1:lock$", output, re.MULTILINE)
    assert re.search(
        r"^E +again: .*lockstorm explore --app .*lockstorm-app.toml .*--schedules \d+", output, re.MULTILINE
    )
    assert "nothing.toml" in output and "lockstorm app init" in output
