"""Which tests a run has, which worker runs them, its closing lines, and `make nightly`."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lockstorm.base import paths
from lockstorm.testing.trial_outcome import STALLED, STALLED_PLAYS
from tests.helpers.daily import daily
from tests.helpers.mutants_short import planted_mistakes
from tests.tiers import changes, closing_lines, played_again
from tests.tiers.collected import Collected
from tests.tiers.lanes import COMPUTING, Lane, LaneScheduling
from tests.tiers.nightly import STEPS, Step, night

TESTS = """
import os, pathlib, time, pytest

def note(name):
    with open(os.environ["NOTES"], "a") as file:
        file.write(f"{name} {os.environ.get('PYTEST_XDIST_WORKER', 'main')} {os.nice(0)}\\n")

@pytest.mark.parametrize("number", range(8))
def test_computes(number): note("computes")

@pytest.mark.waits
@pytest.mark.parametrize("number", range(8))
def test_waits(number): note("waits")

@pytest.mark.slow("takes a while", seconds=100)
@pytest.mark.parametrize("number", range(2))
def test_slow(number): note("slow")

@pytest.mark.slow("takes a while", seconds=1)
def test_slow_too(): note("slow too")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with the same plug-ins, and git history: `computed` has changed since the first commit."""
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\ntestpaths = ["tests"]\n')
    (tmp_path / "conftest.py").write_text((paths.ROOT / "conftest.py").read_text())
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_some.py").write_text(TESTS)
    return tmp_path


def played(project: Path, *words: str, status: int = 0, **variables: Any) -> tuple[str, list[str]]:
    """What pytest says, and what was run: name, worker and priority."""
    notes = project / "notes"
    notes.write_text("")
    kept = {key: value for key, value in os.environ.items() if key != "CI" and not key.startswith("PYTEST")}
    places = {"PYTHONPATH": f"{paths.ROOT / 'harness'}:{paths.ROOT}", "NOTES": str(notes)}
    places["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # what else is installed takes as long to load as all else
    plugins = ["-p", "xdist.plugin", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *plugins, "--import-mode=importlib", "--strict-markers"]
    done = subprocess.run(
        [*command, *words],
        cwd=project,
        env={**kept, **places, **variables},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout, notes.read_text().splitlines()


def names(notes: list[str]) -> dict[str, int]:
    found = [note.rsplit(" ", 2)[0] for note in notes]
    return {name: found.count(name) for name in found}


USUAL = {"computes": 8, "waits": 8}
ALL = {**USUAL, "slow": 2, "slow too": 1}


@pytest.mark.lengthy("runs pytest, once with workers")
def test_slow_tests_are_left_out_and_counted(project: Path) -> None:
    said, notes = played(project, "-n", "2")
    assert names(notes) == USUAL
    assert "3 slow tests were left out; all: ./lockstorm test --all" in said
    said, notes = played(project, "-n", "0")
    assert names(notes) == USUAL and "3 deselected" in said


@pytest.mark.parametrize(
    "words", daily([["--all"], ["tests/test_some.py"], ["tests"]], [["tests"]], "another way to ask for all", 3)
)
@pytest.mark.lengthy("runs pytest with workers")
def test_all_of_them_run_when_they_are_asked_for(project: Path, words: list[str]) -> None:
    said, notes = played(project, "-n", "2", *words)
    assert names(notes) == ALL
    assert "left out" not in said


def commit(project: Path) -> None:
    git = ["git", "-C", str(project), "-c", "user.name=test", "-c", "user.email=test@localhost"]
    if not (project / ".git").exists():
        subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "more"], check=True)


@pytest.mark.parametrize(
    "asked", daily([{"words": ("--changed",)}, {"CI": "true"}], [{"CI": "true"}], "the same, asked for by an option", 8)
)
@pytest.mark.lengthy("runs pytest with workers three times")
def test_what_has_changed_adds_slow_tests_as_far_as_time_allows(project: Path, asked: dict[str, object]) -> None:
    words: tuple[str, ...] = asked.get("words", ())  # type: ignore[assignment]
    variables: dict[str, Any] = {key: str(value) for key, value in asked.items() if key != "words"}
    commit(project)
    assert names(played(project, "-n", "2", *words, **variables)[1]) == USUAL, "no history"
    commit(project)
    assert names(played(project, "-n", "2", *words, **variables)[1]) == USUAL, "nothing has changed"
    (project / "tests" / "test_some.py").write_text(TESTS + "# changed\n")
    commit(project)
    said, notes = played(project, "-n", "2", *words, **variables)
    assert names(notes) == {**USUAL, "slow": 1, "slow too": 1}, "every second one: 201 s are more than 150 s"
    assert "1 slow tests were left out, 2 others were run because of what has changed" in said


def test_every_concern_is_of_folders_and_tests_that_exist() -> None:
    for concern, tests in changes.CONCERNS.items():
        for place in (concern, *tests):
            assert (paths.ROOT / place).exists(), place


def test_a_change_needs_its_own_tests() -> None:
    assert changes.needed_tests([]) == ()
    assert changes.needed_tests(["docs/trust.md"]) == ()
    assert changes.needed_tests(["tests/cli/test_cli.py"]) == ("tests/cli/test_cli.py",)
    assert "tests/project/test_fuzz.py" in changes.needed_tests(["faults/proxy/resp.c"])


def test_planted_mistakes_are_found_by_tests_of_the_default_run() -> None:
    wanted = {test for _, test in planted_mistakes()}
    files = sorted({test.partition("::")[0] for test in wanted})
    command = [sys.executable, "-m", "pytest", "-n", "0", "--collect-only", "-q", "-m", "not slow", *files]
    done = subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True, timeout=600)
    collected = done.stdout.splitlines()
    assert [test for test in wanted if not any(each.startswith(test) for each in collected)] == []


def test_a_marker_without_a_reason_is_refused(project: Path) -> None:
    (project / "tests" / "test_other.py").write_text("import pytest\n@pytest.mark.slow('')\ndef test_it(): pass\n")
    with pytest.raises(AssertionError, match=r"slow\(reason, seconds\)"):
        played(project, "-n", "0")


# --- workers ---


@pytest.mark.lengthy("runs pytest with workers")
def test_tests_that_wait_run_beside_those_that_compute(project: Path) -> None:
    _, notes = played(project, "-n", str(COMPUTING + 2), "--dist", "worksteal")
    assert names(notes) == USUAL
    usual, helping = os.nice(0), set()
    for name, worker, priority in (note.split() for note in notes):
        computing = int(worker.removeprefix("gw")) < COMPUTING
        if not computing and name == "computes":
            helping.add(worker)
        assert (int(priority) > usual) == ((computing or worker in helping) and usual < 19), notes


INTERRUPTED = """
import signal, subprocess
def test_it():
    sleeping = subprocess.Popen(["sleep", "30"])
    sleeping.send_signal(signal.SIGINT)
    assert sleeping.wait(10) == -signal.SIGINT
"""


def test_what_is_interrupted_ends_although_sigint_was_ignored_when_the_run_began(project: Path) -> None:
    """A shell that starts it in the background does that."""
    (project / "tests" / "test_some.py").write_text(INTERRUPTED)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        played(project)
        played(project, "-n", "2")
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.slow("one more run of pytest in a run", seconds=5)
def test_a_worker_that_crashes_is_replaced(project: Path) -> None:
    (project / "tests" / "test_other.py").write_text("import os\ndef test_it(): os._exit(1)\n")
    with pytest.raises(AssertionError, match="1 failed, 16 passed"):
        played(project, "-n", str(COMPUTING + 2), "--dist", "worksteal")


class OneWorker:
    """A worker of xdist, as its scheduler sees it."""

    def __init__(self, name: str) -> None:
        self.gateway = SimpleNamespace(id=name)
        self.shutting_down = False
        self.tests: list[int] = []

    def send_runtest_some(self, tests: list[int]) -> None:
        self.tests += tests

    def shutdown(self) -> None:
        self.shutting_down = True


def test_a_worker_that_replaces_another_gets_tests_when_the_others_have_finished() -> None:
    config = SimpleNamespace(getvalue=lambda name: ["2*popen"], stash={})
    scheduling = LaneScheduling(config)  # type: ignore[arg-type]
    first, second, third = (OneWorker(f"gw{number}") for number in range(3))
    names = ["one.py::test_1", "two.py::test_2", "two.py::test_3"]
    for worker in (first, second):
        scheduling.add_node(worker)
        scheduling.add_node_collection(worker, names)
    scheduling.schedule()
    finished, crashed = (first, second) if len(first.tests) < len(second.tests) else (second, first)
    for test in list(finished.tests):
        scheduling.mark_test_complete(finished, test)
    assert scheduling.remove_node(finished) is None, "it has done all its tests"
    crash = scheduling.remove_node(crashed)
    assert crash == names[crashed.tests[0]]
    scheduling.add_node(third)
    scheduling.add_node_collection(third, names)
    assert scheduling.collection_is_completed, "xdist would not ask for a schedule, and the worker would wait for ever"
    scheduling.schedule()
    assert third.tests == crashed.tests[1:] and third.shutting_down


def test_those_that_wait_compute_when_nothing_is_left_that_waits() -> None:
    names = [f"one.py::test_{number}" for number in range(20)]
    config = SimpleNamespace(getvalue=lambda name: [f"{COMPUTING + 2}*popen"], stash={})
    scheduling = LaneScheduling(config)  # type: ignore[arg-type]
    workers = [OneWorker(f"gw{number}") for number in range(COMPUTING + 2)]
    for worker in workers:
        scheduling.add_node(worker)
        scheduling.add_node_collection(worker, names)
    scheduling.waiting_lane.add("two.py", len(names))
    scheduling.schedule()
    one, two = workers[COMPUTING:]
    assert sorted(test for worker in workers for test in worker.tests) == [*range(2 * len(workers) - 1), len(names)]
    assert len(names) in one.tests and len(two.tests) == 2


def test_a_worker_stays_with_its_file() -> None:
    lane, one, two = Lane(), object(), object()
    for test, file in enumerate("aaaabb"):
        lane.add(file, test)
    taken = [lane.take(worker) for worker in (one, two, one, two, two, one, one)]
    assert taken == [0, 4, 1, 5, 2, 3, None], "the second helps the first when its own file is done"


# --- closing lines ---


def test_a_long_test_without_a_reason_is_named() -> None:
    seconds = {f"usual {number}": 0.1 for number in range(20)} | {"with": 7.0, "without": 6.0}
    lines = closing_lines.slowest(seconds, {"with": "starts a server"})
    assert len(lines) == 10
    assert lines[0] == "   7.0 s  with  [starts a server]"
    assert lines[1] == f"   6.0 s  without  [{closing_lines.NO_REASON}]"
    assert not any(closing_lines.NO_REASON in line for line in lines[2:])


def test_long_tests_beyond_the_ten_slowest_are_counted() -> None:
    seconds = {f"long {number}": 6.0 + number for number in range(13)}
    assert closing_lines.slowest(seconds, {"long 0": "a reason"})[10:] == [
        "2 others took more than 5 s without a reason"
    ]


def test_a_run_without_slow_tests_says_nothing_of_them() -> None:
    assert closing_lines.left_out(Collected()) == ""


# --- nights ---


def test_a_night_goes_on_after_a_step_that_fails_and_fails(capfd: pytest.CaptureFixture[str]) -> None:
    steps = [Step("wrong", 1, ("false",)), Step("endless", 0.005, ("sleep", "60")), Step("right", 1, ("true",))]
    assert night(steps) == 1
    said = capfd.readouterr().out
    assert re.findall(r"min  (.*)", said) == [
        "wrong: ended with 1",
        "endless: took more than 0.005 minutes",
        "right: passed",
    ]
    assert night(steps[2:]) == 0


def test_every_step_of_a_night_is_a_target_or_the_launcher() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (paths.ROOT / "Makefile").read_text(), re.MULTILINE))
    for step in STEPS:
        assert step.command[:2] == ("./lockstorm", "test") or step.command[2] in targets, step


# --- the budget for what is played again ---

PLAYED_AGAIN = """
from tests.helpers import stalls

def test_it(): stalls.PLAYS[0] = {plays}
def test_another(): pass
"""


@pytest.mark.parametrize("words", [(), ("-n", "1")], ids=str)
@pytest.mark.parametrize("plays", [20, 21])
def test_a_run_that_plays_too_much_again_fails(project: Path, plays: int, words: tuple[str, ...]) -> None:
    (project / "tests" / "test_some.py").write_text(PLAYED_AGAIN.format(plays=plays))
    output, _ = played(project, *words, status=int(plays == 21))
    assert "2 passed" in output
    is_over = "21 plays were repeated because the machine stood still, and 2 tests may have 20: the run has failed"
    assert (is_over in output) == (plays == 21)


PACES = """
from lockstorm.base.errors import Stalled
from tests.helpers.support import trial

PACES = []

def test_it():
    with trial("set-nx-px", time="real") as running:
        PACES.append((running.settings.pace, running.settings.lease_ms))
    if len(PACES) < 4:
        raise Stalled("as if the machine had stood still")
    assert [pace for pace, _ in PACES] == [1, 2, 4, 4]
    assert PACES[1][1] >= 2 * PACES[0][1] and PACES[2][1] >= 4 * PACES[0][1]
"""


@pytest.mark.lengthy("plays four trials in real time")
def test_a_test_that_pytest_plays_again_has_a_slower_pace(project: Path) -> None:
    (project / "tests" / "conftest.py").write_text((paths.ROOT / "tests" / "conftest.py").read_text())
    (project / "tests" / "test_some.py").write_text(PACES)
    said, _ = played(project, "-p", "pytest_rerunfailures", "--reruns", "4", "--only-rerun", "^Stalled:")
    assert "1 passed, 3 played again" in said


def test_the_budget_grows_with_the_run() -> None:
    assert [played_again.budget_of(tests) for tests in (1, 2_000, 2_100, 9_900)] == [20, 20, 21, 99]


def test_plays_of_trials_and_of_whole_tests_count() -> None:
    counted = played_again.PlayedAgain()
    usual: dict[str, Any] = {"nodeid": "a", "failed": False, "user_properties": []}
    counted.pytest_runtest_logreport(SimpleNamespace(**usual, **{STALLED: True}))  # type: ignore[arg-type]
    counted.pytest_runtest_logreport(SimpleNamespace(**usual, **{STALLED_PLAYS: 19}))  # type: ignore[arg-type]
    assert counted.plays == 20 and not counted.is_over
    counted.pytest_runtest_logreport(SimpleNamespace(**usual, **{STALLED: True}))  # type: ignore[arg-type]
    assert counted.is_over
