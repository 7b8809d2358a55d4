"""The policy of a gate as tests: one for each case."""

import re

import pytest

from lockstorm.servers.services import missing
from tests.application.described import CREDITS, described
from tests.testing.conftest import Suite, counts

pytestmark = pytest.mark.lengthy("runs pytest with trials of its own")

POLICY = """
[[lock]]
name = "set-nx-px-fenced"
store = "fence-writes"
require = ["integrity"]

[[lock]]
name = "set-nx-px"
require = ["mutual_exclusion"]

[[storm]]
name = "pauses"
faults = ["pause-client"]
trials = 1
duration = "1s"

[scenarios]
play = ["gc-pause", "crash-holder"]

[[accept]]
lock = "set-nx-px"
scenario = "crash-holder"
property = ["mutual_exclusion"]
why = "this is a test"
until = 2999-01-01
"""


def outcomes(output: str) -> dict[str, str]:
    return {name: word for name, word in re.findall(r"^lockstorm\.toml::(\S+) (\w+)", output, re.MULTILINE)}


def test_each_case_is_a_test(suite: Suite) -> None:
    suite.write("lockstorm.toml", POLICY)
    output = suite.run("-v", "--lockstorm-gate")
    found = outcomes(output)
    assert found.pop("set-nx-px/gc-pause/open") == "FAILED"
    storms = [name for name in found if name not in EXPECTED]
    assert len(storms) == 2 and {name: found[name] for name in EXPECTED} == EXPECTED
    assert suite.status == 1
    sentence = "two workers held the lock at once\nMutual exclusion violated"
    assert sentence in output
    assert re.search(r"^again: \S*lockstorm run gc-pause --lock set-nx-px --seed 1", output, re.MULTILINE)
    again = "pytest lockstorm.toml::set-nx-px/gc-pause/open --lockstorm-gate=lockstorm.toml"
    assert f"\nagain: {again}\n" in output
    assert re.search(r"^report: ", output, re.MULTILINE)
    assert counts(suite.run(*again.split()[1:])) == "1 failed"


EXPECTED = {
    "set-nx-px-fenced/gc-pause/fence-writes": "PASSED",
    "set-nx-px-fenced/crash-holder/fence-writes": "PASSED",
    "set-nx-px/crash-holder/open": "PASSED",
}


@pytest.mark.slow("one more suite of its own", seconds=3)
def test_beside_other_tests_and_with_xdist(suite: Suite) -> None:
    suite.write("ci/policy.toml", '[[lock]]\nname = "redlock"\n[scenarios]\nplay = "crash-holder"\n')
    suite.write("tests/test_other.py", "def test_other(): pass\n")
    assert counts(suite.run("--lockstorm-gate", "ci/policy.toml", "-n", "2")) == "2 passed"
    assert counts(suite.run()) == "1 passed"  # not asked for


def test_a_case_that_could_not_be_judged_is_inconclusive(suite: Suite) -> None:
    suite.write("lockstorm.toml", '[[lock]]\nname = "set-nx-px"\n[scenarios]\nplay = "crash-holder"\n')
    output = suite.run("--lockstorm-gate", LOCKSTORM_REDIS_SERVER="/bin/false")
    assert counts(output) == "1 inconclusive" and suite.status == 1
    assert "lockstorm.toml::set-nx-px/crash-holder/open: Inconclusive: " in output


def test_a_policy_with_a_mistake(suite: Suite) -> None:
    suite.write("lockstorm.toml", '[[lock]]\nname = "set-nx-xp"\n')
    output = suite.run("--lockstorm-gate")
    assert "lockstorm.toml:2: " in output and "set-nx-xp" in output and "Traceback" not in output
    assert suite.status == 2
    assert "there is no policy" in suite.run("--lockstorm-gate=none.toml") and suite.status == 4


def test_tests_behind_the_option_are_not_taken_for_a_policy(suite: Suite) -> None:
    suite.write("test_it.py", "def test_it(): pass\n")
    output = suite.run("--lockstorm-gate", "test_it.py")
    assert suite.status == 4
    assert "a policy is a .toml file" in output and "pytest test_it.py --lockstorm-gate" in output


@pytest.mark.skipif(bool(missing("postgres")), reason=f"not installed: {missing('postgres')}")
def test_an_application_of_the_policy_is_a_test(suite: Suite) -> None:
    described(suite.directory, CREDITS, "early")
    suite.write(
        "lockstorm.toml", '[[app]]\nfile = "lockstorm-app.toml"\nname = "shop"\nfaults = "none"\nschedules = 60\n'
    )
    output = suite.run("-v", "--lockstorm-gate")
    assert "lockstorm.toml::shop/search FAILED" in output and counts(output) == "1 failed"
    assert "the data were wrong at the end" in output and "releases redis user:1:lock" in output
    assert "lockstorm replay" in output
