"""A test in which nothing can be known has an outcome of its own, and a trial that stalled is played again."""

import re

import pytest

from tests.testing.conftest import Suite, counts

pytestmark = pytest.mark.lengthy("runs pytest with trials of its own")

NOTHING_KNOWN = """
import pytest
from lockstorm.base.errors import NotInstalled

pytestmark = pytest.mark.lockstorm(lock="set-nx-px")

def test_nobody_was_granted_the_lock(lockstorm_trial):
    lockstorm_trial.clients(1)
    lockstorm_trial.judge().assert_holds("integrity")

def test_something_is_missing():
    raise NotInstalled("no etcd here")

@pytest.fixture
def missing():
    raise NotInstalled("no Java here")

def test_fixture(missing): pass

def test_passes(lockstorm_trial): pass
"""
STALLS = """
import os
from lockstorm.base.errors import Stalled
from lockstorm.trial.stall_sentinel import StallSentinel

left = int(os.environ["STALLS"])

def find_stall(self):
    global left
    left -= 1
    return Stalled("the machine stood still for 13.40 s") if left >= 0 else None

StallSentinel.find_stall = find_stall
"""
REAL = """
import pytest

@pytest.mark.lockstorm(lock="set-nx-px", time="real")
def test_it(lockstorm_trial):
    lockstorm_trial.clients(1)[0].increment()
    lockstorm_trial.judge().assert_holds("integrity")
    assert lockstorm_trial.settings.pace == 4
    assert lockstorm_trial.settings.lease_ms == 1600
"""


@pytest.mark.parametrize("words", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_inconclusive_is_neither_passed_nor_failed(suite: Suite, words: tuple[str, ...]) -> None:
    suite.write("test_it.py", NOTHING_KNOWN)
    output = suite.run("-v", "--junitxml", "results.xml", *words)
    assert counts(output) == "1 passed, 3 inconclusive" and suite.status == 1
    assert len(re.findall(r"\bINCONCLUSIVE\b", output)) == 3
    section = output.partition("= inconclusive =")[2]
    reason = "integrity could not be judged: nobody was granted the lock"
    assert f"test_it.py::test_nobody_was_granted_the_lock: {reason}\n" in section
    assert re.search(r"^    history: .*\n    show: .*\n    report: .*\n", section, re.MULTILINE)
    assert "    again: pytest test_it.py::test_nobody_was_granted_the_lock --lockstorm-seed 1\n" in section
    assert "test_it.py::test_something_is_missing: no etcd here\n" in section
    assert "test_it.py::test_fixture: no Java here\n    again: pytest test_it.py::test_fixture\n" in section
    assert 'failures="2"' in (suite.directory / "results.xml").read_text()  # the other one is an error


def test_its_letter(suite: Suite) -> None:
    suite.write("test_it.py", NOTHING_KNOWN)
    assert "test_it.py III. " in suite.run()


@pytest.mark.waits
@pytest.mark.parametrize("words", [(), ("-n", "1"), ("--reruns", "4", "--only-rerun", "^Stalled:")], ids=str)
def test_a_test_that_stalled_is_played_again_at_a_slower_pace(suite: Suite, words: tuple[str, ...]) -> None:
    """Also beside pytest-rerunfailures, which would not change the pace."""
    suite.write("conftest.py", STALLS)
    suite.write("test_it.py", REAL)
    assert counts(suite.run(*words, STALLS="2"), played_again=True) == "1 passed, 2 played again"
    assert suite.status == 0


@pytest.mark.waits
def test_a_test_that_stalls_each_time_is_inconclusive(suite: Suite) -> None:
    suite.write("conftest.py", STALLS)
    suite.write("test_it.py", REAL)
    output = suite.run("--reruns", "4", "--only-rerun", "^Stalled:", STALLS="1000")
    assert counts(output) == "4 played again, 1 inconclusive" and suite.status == 1
    assert "test_it.py::test_it: the machine stood still for 13.40 s (in each of 5 plays)\n" in output


@pytest.mark.waits
def test_a_failure_after_a_stall_is_no_failure(suite: Suite) -> None:
    suite.write("conftest.py", STALLS)
    suite.write("test_it.py", REAL.replace("    lockstorm_trial.clients", "    assert 0\n    lockstorm_trial.clients"))
    assert (
        counts(suite.run(STALLS="1"), played_again=True) == "1 failed, 1 played again"
    )  # the second time nothing stands still


@pytest.mark.waits
def test_a_test_that_never_asks_for_a_verdict_is_played_again_too(suite: Suite) -> None:
    suite.write("conftest.py", STALLS)
    suite.write("test_it.py", re.sub(r".*judge.*\n", "", REAL))
    assert counts(suite.run(STALLS="2"), played_again=True) == "1 passed, 2 played again"


@pytest.mark.waits
def test_named_things_are_played_again_by_themselves(suite: Suite) -> None:
    suite.write("conftest.py", STALLS)
    text = REAL.partition("def")[0] + (
        "def test_it(lockstorm_play):\n    lockstorm_play('gc-pause', control=True).assert_holds()\n"
    )
    suite.write("test_it.py", text)
    output = suite.run(STALLS="2")
    assert counts(output) == "1 passed"
    assert "lockstorm: trials were played again 2 times, as the machine stood still" in output
    assert counts(suite.run(STALLS="1000")) == "1 inconclusive"
