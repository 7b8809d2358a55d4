"""The plug-in for pytest: a team's own suite, with its own lock."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from lockstorm.base import paths
from tests.helpers.planting_served import BLIND_DELETE
from tests.helpers.support import ENVIRONMENT
from tests.testing.conftest import Suite, counts

pytestmark = pytest.mark.lengthy("runs pytest with trials of its own")

PAGE = (paths.ROOT / "docs" / "pytest.md").read_text()
STARTER = paths.ROOT / "adapters" / "starters" / "lock-adapter.py"
EXAMPLE = PAGE.partition("```python\n")[2].partition("```")[0]  # its first one
LATE_WRITE = """
import pytest

@pytest.mark.lockstorm(lock="set-nx-px")
def test_late_write(lockstorm_trial):
    one, two = lockstorm_trial.clients(2)
    one.start_increment()
    with lockstorm_trial.pause(one, at="before-write"):
        two.start_increment()
        lockstorm_trial.outlast_lease(two)
    lockstorm_trial.finish(one, two)
    lockstorm_trial.judge().assert_holds("mutual-exclusion", "integrity")
"""


def write_fenced_adapter(suite: Suite) -> None:
    """The starting point for an adapter, with a counter beside the lock that gives tokens."""
    text, last = STARTER.read_text(), "    is_held=lambda lock: lock.owned(),\n"
    assert text.count(last) == 1
    text = text.replace(last, last + '    token=lambda lock: lock.redis.incr(f"{lock.name}:token"),\n')
    suite.write("lock-adapter", text).chmod(0o755)


def test_the_example_of_the_documentation(suite: Suite) -> None:
    assert 'adapter="./lock-adapter"' in EXAMPLE and 'assert_holds("integrity")' in EXAMPLE
    suite.write("lock-adapter", STARTER.read_text()).chmod(0o755)
    suite.write("tests/test_stock.py", EXAMPLE)
    assert counts(suite.run()) == "1 passed"
    assert counts(suite.run("-n", "2")) == "1 passed"


def test_the_example_fails_without_a_lock(suite: Suite) -> None:
    """It passed once with lock="none": neither client had come to its write when the trial was judged."""
    suite.write("test_stock.py", EXAMPLE.replace('adapter="./lock-adapter"', 'lock="none"'))
    output = suite.run()
    assert counts(output) == "1 failed" and "integrity violated" in output


def test_a_lease_is_outlasted_by_who_asks_for_something(suite: Suite) -> None:
    suite.write("test_it.py", LATE_WRITE.replace("        two.start_increment()\n", ""))
    output = suite.run()
    assert counts(output) == "1 failed" and "outlast_lease: client-2 has no step under way" in output


def test_a_step_under_way_is_not_judged(suite: Suite) -> None:
    """Its write was not in the history, so nothing was lost. After a quiet phase, or of a dead client, it may be."""
    suite.write("lock-adapter", STARTER.read_text()).chmod(0o755)
    suite.write("test_it.py", EXAMPLE.replace("    lockstorm_trial.finish(one, two)\n", ""))
    suite.write("test_quiet.py", EXAMPLE.replace("finish(one, two)", "quiet(one, two)"))
    killed = EXAMPLE.replace("finish(one, two)", "kill(one); two.finish()")
    suite.write("test_dead.py", killed.replace('assert_holds("integrity")', "sentence"))
    output = suite.run()
    assert counts(output) == "1 failed, 2 passed"
    assert "judge: client-1, client-2 has a step under way: let it end, as finish() and quiet() do" in output


@pytest.mark.slow("one more suite of its own", seconds=4)
def test_the_example_with_a_lease_that_runs_out(suite: Suite) -> None:
    write_fenced_adapter(suite)
    outlasted = re.sub(r"lockstorm_trial.advance.*", "lockstorm_trial.outlast_lease(two)", EXAMPLE)
    suite.write("test_fenced.py", outlasted.replace('adapter")', 'adapter", store="fence-writes")'))
    suite.write("test_open.py", outlasted)
    output = suite.run("-v")
    assert counts(output) == "1 failed, 1 passed"
    assert re.search(r"^test_fenced.py::\w+ PASSED", output, re.MULTILINE)
    assert re.search(r"^E +integrity: the store accepted a stale write: client-1 ", output, re.MULTILINE)


def test_a_lock_without_tokens_cannot_use_a_store_that_asks_for_them(suite: Suite) -> None:
    suite.write("test_stock.py", EXAMPLE.replace("./lock-adapter", 'redis-py", store="fence-writes'))
    output = suite.run()
    assert counts(output) == "1 error"
    sentence = "test_stock.py::test_a_paused_holder_cannot_damage_the_stock: adapter:redis-py gives no fencing token"
    assert sentence in output and "Traceback" not in output


def test_a_failure_says_what_happened_and_keeps_it(suite: Suite) -> None:
    suite.write("test_it.py", LATE_WRITE)
    output = suite.run()
    assert counts(output) == "1 failed" and suite.status == 1
    evidence = [line[1:].strip() for line in output.splitlines() if line.startswith("E  ")]
    assert [line.partition(": client")[0] for line in evidence] == [
        "AssertionError: Mutual exclusion violated, integrity violated (1 stale write, 1 lost update)",
        "mutual exclusion",
        "integrity: the store accepted a stale write",
        "integrity: lost update",
    ]
    (history,) = re.findall(r"^history: (.*)$", output, re.MULTILINE)
    (report,) = re.findall(r"^report: (.*)$", output, re.MULTILINE)
    assert Path(history).parent.name == "test_late_write0" and "<svg" in Path(report).read_text()
    (show,) = re.findall(r"^show: (.*)$", output, re.MULTILINE)
    shown = subprocess.run(show, shell=True, capture_output=True, text=True, env=ENVIRONMENT, cwd=suite.directory)
    assert "Mutual exclusion violated" in shown.stdout
    (again,) = re.findall(r"^again: pytest (.*)$", output, re.MULTILINE)
    assert again == "test_it.py::test_late_write --lockstorm-seed 1"
    assert evidence == [line[1:].strip() for line in suite.run(*shlex.split(again)).splitlines() if line[:3] == "E  "]


def test_what_happened_before_a_failure_of_the_test_itself_is_kept_too(suite: Suite) -> None:
    suite.write("test_it.py", re.sub("lockstorm_trial.judge.*", "assert one.is_held().ok", LATE_WRITE))
    output = suite.run()
    assert counts(output) == "1 failed" and len(re.findall(r"^report: ", output, re.MULTILINE)) == 1


def test_a_test_that_passes_leaves_nothing(suite: Suite) -> None:
    suite.write("test_it.py", LATE_WRITE.replace("assert_holds", "assert_violated"))
    assert counts(suite.run()) == "1 passed"
    assert not [*suite.directory.rglob("*.history")]


def test_the_closest_marker_wins(suite: Suite) -> None:
    suite.write(
        "test_it.py",
        """
import pytest
pytestmark = pytest.mark.lockstorm(adapter="redis-py", seed=3, lease="5s", replicas=1)

@pytest.mark.lockstorm(lock="set-nx-px", seed=4)
class TestIt:
    @pytest.mark.lockstorm(seed=5, time="real")
    def test_it(self, lockstorm_trial):
        chosen = lockstorm_trial.settings
        assert (chosen.lock, chosen.seed, chosen.lease_ms, chosen.time) == ("set-nx-px", 5, 5000, "real")
        assert chosen.replicas == len(lockstorm_trial.replicas) == 1

    def test_other(self, lockstorm_open):
        with lockstorm_open(lease_ms=7000) as trial:
            assert (trial.settings.seed, trial.settings.lease_ms, trial.settings.time) == (4, 7000, "virtual")
""",
    )
    assert counts(suite.run("--lockstorm-seed", "9")) == "2 passed"


def test_bad_markers_are_named_with_their_test(suite: Suite) -> None:
    bad = {
        'lok="fair"': "@pytest.mark.lockstorm: there is no setting called 'lok': there are lock, adapter, plugin, app",
        'lock="fiar"': "there is no lock called 'fiar': did you mean fair?",
        'lock="fair", plugin="./a.so"': "@pytest.mark.lockstorm: lock and plugin each name a lock: one of them",
        'lock="fair", seed="1"': "@pytest.mark.lockstorm: seed='1': expected int",
        'lock="fair", lease_ms=True': "@pytest.mark.lockstorm: lease_ms=True: expected int",
        'lock="fair", lease=500': "@pytest.mark.lockstorm: lease 500: say the unit, as in 500ms",
        'lock="fair", permits=2': "--permits is for locks that have several",
        'lock="fair", lease_ms=-1': "--lease forever: from 1ms to",
        '"fair"': "@pytest.mark.lockstorm: 'fair' has no name",
        'adapter="./none"': f"{suite.directory}/none: there is no such program",
        'lock="etcd", time="virtual"': "etcd can only be played in real time",
        "seed=1": "no marker names a lock",
    }
    tests = (
        f"@pytest.mark.lockstorm({words})\ndef test_{number}(lockstorm_trial): pass\n"
        for number, words in enumerate(bad)
    )
    suite.write("test_bad.py", "\n".join(["import pytest", *tests]))
    output = suite.run("--tb=short")
    assert counts(output) == f"{len(bad)} errors"
    for number, sentence in enumerate(bad.values()):
        assert f"\ntest_bad.py::test_{number}: {sentence}" in output
    assert "Traceback" not in output and "def test_" not in output


@pytest.mark.slow("one more suite of its own", seconds=5)
def test_seeds_and_reports_of_all_trials(suite: Suite) -> None:
    write_seeds = "print('seed', lockstorm_trial.settings.seed); lockstorm_trial.clients(1)[0].increment()"
    suite.write(
        "tests/test_it.py",
        f"""
import pytest

@pytest.mark.parametrize("name", ["a/b"])
@pytest.mark.lockstorm(lock="set-nx-px")
def test_usual(lockstorm_trial, name): {write_seeds}

@pytest.mark.lockstorm(lock="set-nx-px", seed=3)
def test_own(lockstorm_trial): {write_seeds}

@pytest.mark.lockstorm(lock="set-nx-px")
def test_played(lockstorm_play):
    assert lockstorm_play("gc-pause").assert_violated().seed == 5
    lockstorm_play("gc-pause", control=True, seed=6).assert_holds()
""",
    )
    for words in ((), ("-n", "2"), ()):  # the last one finds the files there
        output = suite.run("-s", "--lockstorm-seed", "5", "--lockstorm-report", "reports", *words)
        assert counts(output) == "3 passed", output
        assert words or re.findall(r"seed (\d)", output) == ["5", "3"]
        names = sorted(path.name for path in (suite.directory / "reports").iterdir())
        stems = ["own", "played-2", "played", "usual[a-b]"]
        expected = [f"tests-test_it.py-test_{stem}.{kind}" for stem in stems for kind in ("history", "html")]
        assert names == sorted(expected)


@pytest.mark.slow("one more suite of its own", seconds=3)
def test_named_things_start_from_the_marker(suite: Suite) -> None:
    suite.write(
        "test_it.py",
        """
import pytest
from lockstorm import UsageError
pytestmark = pytest.mark.lockstorm(lock="set-nx-px", store="open")

def test_scenario(lockstorm_play):
    held = lockstorm_play("gc-pause", lock="set-nx-px-fenced", store="fence-writes").assert_holds("integrity")
    assert (held.lock, held.store) == ("set-nx-px-fenced", "fence-writes")
    with pytest.raises(UsageError, match="test_it.py::test_scenario: there is no scenario called 'gc-puase'"):
        lockstorm_play("gc-puase")
    with pytest.raises(UsageError, match="counter is for trials that a test drives itself; gc-pause sets it"):
        lockstorm_play("gc-pause", counter=1)

def test_storm(lockstorm_storm):
    storm = lockstorm_storm(faults="pause-client", duration="4s", trials=2)
    assert storm.lock == "set-nx-px" and storm.storm.trials == 2

def test_search(lockstorm_explore):
    found = lockstorm_explore(schedules=300, faults="pause-client", require="mutual_exclusion").assert_violated()
    assert "pause" in found.schedule
    with pytest.raises(UsageError, match="control is no setting of a search"):
        lockstorm_explore(schedules=1, control=True)

def test_search_fails(lockstorm_explore):
    lockstorm_explore(schedules=300, faults="pause-client").assert_holds()
""",
    )
    output = suite.run()
    assert counts(output) == "1 failed, 3 passed", output
    (schedule,) = re.findall(r"^schedule: (.*)$", output, re.MULTILINE)
    (replay,) = re.findall(r"^replay: (.*)$", output, re.MULTILINE)
    assert re.search(r"^E +AssertionError: Schedule \d+ of seed 1 violates", output, re.MULTILINE)
    assert re.search(r"^E +mutual exclusion: ", output, re.MULTILINE) and schedule in replay
    done = subprocess.run(replay, shell=True, capture_output=True, text=True, env=ENVIRONMENT, cwd=suite.directory)
    assert done.returncode == 1 and "violated" in done.stdout


def test_a_search_of_a_library_shows_its_calls_and_comes_back_at_once(suite: Suite) -> None:
    suite.write("lock-adapter", STARTER.read_text()).chmod(0o755)
    suite.write("bad-adapter", BLIND_DELETE).chmod(0o755)
    suite.write(
        "test_it.py",
        """
from datetime import timedelta
def test_right(lockstorm_explore):
    kept = "mutual_exclusion,ownership,liveness"  # redis-py breaks release (#3847)
    found = lockstorm_explore(adapter="./lock-adapter", schedules=20, require=kept).assert_holds()
    found.assert_holds("ownership")
    assert "token" not in found.required and found.properties["token"].status == "inconclusive"
def test_blind(lockstorm_explore):
    found = lockstorm_explore(adapter="./bad-adapter", lease=timedelta(seconds=2), faults="none")
    assert 1 == found.tried or 1 < found.found.number <= found.tried
    found.assert_holds()
def test_wrong(lockstorm_explore):
    lockstorm_explore(adapter="./lock-adapter", schedulez=20)
""",
    )
    for again in (False, True):
        output = suite.run("--lockstorm-budget", "20s")
        assert counts(output) == "2 failed, 1 passed", output
        assert re.search(r"^E +AssertionError: Schedule \d+ breaks a promise of my lock", output, re.MULTILINE)
        assert re.search(r"^E +\d+ client-\d thread-1: release lock-1 resource-1 exclusive$", output, re.MULTILINE)
        assert re.search(r"^E +again: .*explore --adapter .*bad-adapter.* --schedules \d+", output, re.MULTILINE)
        assert re.search(r"^E +control: without \d+, client-\d .*, it holds$", output, re.MULTILINE), again
        message = output.partition("def test_wrong")[2].partition("UsageError: ")
        assert message[2].startswith("test_it.py::test_wrong: schedulez is no setting of a search: lock, adapter, ")
        assert "trial_runner.py" not in message[0] and "def _planned" not in output
    found = list((suite.directory / ".pytest_cache").rglob("*.schedule"))
    assert len(found) == 1
    found[0].write_text(found[0].read_text().replace("thread-1: release", "thread-1: relaese"))
    assert counts(suite.run("--lockstorm-budget", "20s")) == "2 failed, 1 passed"  # it is not one: a search
    assert "--lockstorm-budget 20: say the unit" in suite.run("--lockstorm-budget", "20")


def test_a_bad_seed(suite: Suite) -> None:
    assert "--lockstorm-seed -1: from 0 to" in suite.run("--lockstorm-seed", "-1")
    assert suite.status == 4
