"""The matrix: results of cells, the comparison with the expected table, the workers, the command."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from typing import Any

import msgspec
import pytest
from msgspec import structs
from rich.console import Console

from lockstorm.base import paths
from lockstorm.base.hang_limit import HangLimit
from lockstorm.matrix.matrix import CellTrials, cell_of, inapplicable_pairs, play_matrix, time_of
from lockstorm.matrix.matrix_table import closing, show_matrix, table_groups
from lockstorm.results.matrix_result import InapplicablePair, MatrixCell, MatrixResult, TrialSummary
from lockstorm.scenario import library_expected
from lockstorm.scenario.cells import CellKey, cell_result
from lockstorm.scenario.expected import ExpectedCell, expected
from lockstorm.scenario.scenario import scenarios
from lockstorm.scenario.worker_pool import Worker, WorkerPool
from lockstorm.trial.settings import TrialSettings
from tests.helpers.support import ENVIRONMENT, lockstorm, processes_below, short_directory, start_lockstorm

BROKEN = ("gc-pause", "set-nx-px", "open")
FENCED = ("gc-pause", "set-nx-px-fenced", "fence-reads-and-writes")
SAFE = ("lost-credits", "set-nx-px", "open")


@pytest.mark.parametrize(
    ("statuses", "result"),
    [
        ({"mutual_exclusion": "holds", "integrity": "holds"}, "holds"),
        ({"mutual_exclusion": "violated", "integrity": "violated"}, "violated"),
        ({"mutual_exclusion": "holds", "integrity": "violated"}, "violated"),
        ({"mutual_exclusion": "violated", "integrity": "holds", "fencing": "holds"}, "fenced"),
        ({"mutual_exclusion": "violated"}, "violated"),
        ({"mutual_exclusion": "holds", "integrity": "holds", "liveness": "violated"}, "stuck"),
        ({"mutual_exclusion": "holds", "integrity": "violated", "liveness": "violated"}, "violated"),
        ({"mutual_exclusion": "holds", "fencing": "violated", "liveness": "violated"}, "violated"),
        ({"mutual_exclusion": "violated", "integrity": "inconclusive"}, "inconclusive"),
        ({"mutual_exclusion": "holds", "integrity": "inconclusive", "liveness": "violated"}, "stuck"),
    ],
)
def test_the_result_of_a_trial(statuses: dict[str, str], result: str) -> None:
    assert cell_result(statuses) == result


def played(*trials: dict[str, str]) -> CellTrials:
    """Trials with these statuses."""
    made = CellTrials()
    for number, statuses in enumerate(trials):
        made.add(TrialSummary(statuses, f"trial {number}", f"lockstorm again {number}"))
    return made


HOLDS = {"mutual_exclusion": "holds", "integrity": "holds"}
VIOLATED = {"mutual_exclusion": "violated", "integrity": "violated"}


# --- results of trials, compared with the expected ones ---


def test_a_cell_is_its_worst_trial() -> None:
    cell = cell_of(BROKEN, "virtual", played(HOLDS, VIOLATED, HOLDS), played(HOLDS))
    assert (cell.result, cell.sentence, cell.replay) == ("violated", "trial 1", "lockstorm again 1")
    assert cell.results == {"holds": 2, "violated": 1}


def test_a_flake_is_called_one() -> None:
    cell = cell_of(BROKEN, "virtual", played(VIOLATED, HOLDS, VIOLATED), played(HOLDS, HOLDS, HOLDS))
    assert not cell.ok
    difference = "fault: integrity holds instead of violated, mutual exclusion holds instead of violated"
    assert cell.difference == f"{difference} in 1 of 3 trials: a flake"


def test_a_control_that_does_not_hold_is_a_difference() -> None:
    cell = cell_of(BROKEN, "virtual", played(VIOLATED), played({**HOLDS, "integrity": "violated"}))
    assert not cell.ok and cell.result == cell.expected
    assert cell.difference == "control: integrity violated instead of holds"


def test_the_same_result_from_other_properties_is_a_difference() -> None:
    cell = cell_of(BROKEN, "virtual", played({**VIOLATED, "mutual_exclusion": "holds"}), played(HOLDS))
    assert cell.result == cell.expected == "violated"
    assert cell.difference == "fault: mutual exclusion holds instead of violated"


def test_a_cell_that_the_table_does_not_know_is_not_as_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library_expected, "expected", dict)
    cell = cell_of(SAFE, "virtual", played(HOLDS), played(HOLDS))
    assert not cell.ok and cell.expected is None
    assert "says nothing" in cell.difference


def test_a_pair_that_does_not_go_together_has_its_reason() -> None:
    pairs = inapplicable_pairs({"clock-jump-node", "gc-pause"}, {"set-nx-px", "redlock"})
    assert pairs == [InapplicablePair("clock-jump-node", "set-nx-px", "set-nx-px does not live on five nodes")]


def test_time_is_virtual_where_it_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    assert time_of("gc-pause", "set-nx-px", None) == "virtual"
    assert time_of("gc-pause", "set-nx-px", "real") == "real"
    assert time_of("clock-jump-node", "redlock", "real") is None
    object.__setattr__(scenario := scenarios()["flush"], "times", ("real",))
    try:
        assert time_of("flush", "set-nx-px", None) == "real"
        assert time_of("flush", "set-nx-px", "virtual") is None
    finally:
        object.__setattr__(scenario, "times", ("virtual",))


# --- trials played by workers ---


@pytest.fixture
def wrong_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that expects the unfenced lock to hold."""
    table = {**expected(), BROKEN: ExpectedCell(*BROKEN, HOLDS, HOLDS, "a mistake")}
    monkeypatch.setattr(library_expected, "expected", lambda: table)


def test_cells_are_played_and_compared() -> None:
    reported: list[str] = []
    found = play_matrix([BROKEN, FENCED, SAFE], None, 2, 1, reported.append)
    assert found.ok, [cell.difference for cell in found.cells]
    assert [cell.result for cell in found.cells] == ["violated", "fenced", "holds"]
    assert {cell.control for cell in found.cells} == {"holds"}
    assert len(reported) == 3 * 2 * 2


@pytest.mark.usefixtures("wrong_table")
def test_what_is_not_as_expected_is_seen() -> None:
    found = play_matrix([BROKEN, SAFE], None, 1, 1, lambda _: None)
    assert not found.ok
    assert [cell.ok for cell in found.cells] == [False, True]


def test_a_worker_plays_the_same_trial_as_the_command() -> None:
    request = TrialSettings(BROKEN[1], BROKEN[0], store=BROKEN[2])
    with WorkerPool(1) as pool:
        ((_, first), (_, second)) = pool.play_all([request, request])
    ran = json.loads(lockstorm("run", "gc-pause", "--lock", "set-nx-px", "--store", "open", "--json").stdout)
    statuses = {name: ran["verdict"][name]["status"] for name in ran["required"]}
    same = TrialSummary(statuses, ran["sentence"], ran["replay"])
    assert first == second == same


def test_a_worker_that_dies_makes_its_trial_inconclusive_and_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = Worker.begin
    victims = [True]

    def begin_and_kill(worker: Worker, number: int, request: TrialSettings) -> None:
        begin(worker, number, request)
        if victims:
            victims.pop()
            worker.process.kill()

    monkeypatch.setattr(Worker, "begin", begin_and_kill)
    safe = TrialSettings(SAFE[1], SAFE[0], store=SAFE[2])
    with WorkerPool(1) as pool:
        answers = dict(pool.play_all([safe, safe]))
    assert set(answers[0].statuses.values()) == {"inconclusive"}
    assert "ended (status -9)" in answers[0].sentence
    assert set(answers[1].statuses.values()) == {"holds"}


def test_a_worker_gives_up_its_trial_and_leaves_nothing() -> None:
    request = TrialSettings("set-nx-px", "contention", time="real", duration_ms=60_000)
    with short_directory() as directory:
        environment = {**ENVIRONMENT, "TMPDIR": str(directory)}
        arguments = [sys.executable, "-m", "lockstorm.scenario.worker_pool", "0"]
        worker = subprocess.Popen(arguments, stdin=subprocess.PIPE, env=environment, cwd=paths.ROOT)
        assert worker.stdin
        worker.stdin.write(msgspec.json.encode(request) + b"\n")
        worker.stdin.flush()
        wait_for_trial(directory)
        worker.terminate()
        assert worker.wait(20) == 128 + signal.SIGTERM
        worker.stdin.close()
        assert not processes_below(directory) and not list(directory.iterdir())


def wait_for_trial(directory: Any) -> None:
    limit = HangLimit(20)
    while not any(directory.glob("lockstorm-*/client-1.log")):
        assert not limit.is_over(), "no trial has begun"
        time.sleep(0.01)


# --- the command ---


def test_the_command() -> None:
    done = lockstorm("matrix", "--scenario", "gc-pause", "--lock", "set-nx-px,fenced", "--json")
    result = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert result["ok"] and not result["interrupted"] and not result["unplayed"]
    assert {(cell["lock"], cell["store"]) for cell in result["cells"]} >= {
        ("set-nx-px", "open"),
        ("fenced", "open"),
        ("fenced", "fence-writes"),
        ("fenced", "fence-reads-and-writes"),
        ("set-nx-px", "compare-and-set"),
        ("fenced", "compare-and-set"),
    }


def test_names_may_be_given_with_commas_or_one_by_one() -> None:
    arguments = ("matrix", "--scenario", "gc-pause", "--store", "open", "--lock", "setnx,set-nx-px", "--lock", "fenced")
    done = lockstorm(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    assert {cell["lock"] for cell in json.loads(done.stdout)["cells"]} == {"setnx", "set-nx-px", "fenced"}


def test_ctrl_c_prints_what_is_known_and_leaves_nothing() -> None:
    """The progress bar on the terminal shows when some cells are complete."""
    with short_directory() as directory:
        controller, terminal = pty.openpty()
        arguments = ("matrix", "--scenario", "gc-pause,contention", "--repeat", "2")
        environment = {**ENVIRONMENT, "TMPDIR": str(directory), "TERM": "xterm"}  # a dumb one has no bar
        driver = start_lockstorm(*arguments, env=environment, stderr=terminal)
        os.close(terminal)
        bar = b""
        while not re.search(rb"([4-9]|[0-9]{2})[0-9]/", bar):
            try:
                bar += os.read(controller, 4096)
            except OSError:  # the terminal is closed
                pytest.fail(f"it ended: {driver.communicate()[0]}\n{bar[-2000:].decode(errors='replace')}")
        driver.send_signal(signal.SIGINT)
        out = driver.communicate(timeout=600)[0]
        os.close(controller)
        assert driver.returncode == 130
        assert "interrupted: " in out and " not known" in out and "✓" in out
        assert not processes_below(directory) and not list(directory.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--lock", "set-nx-pxx"), "did you mean set-nx-px?"),
        (("--scenario", "gc-paus"), "did you mean gc-pause?"),
        (("--store", "fenced"), "no store mode"),
        (("--time", "soon"), "no time"),
        (("--repeat", "0"), "--repeat"),
        (("--seed", "-1"), "--seed"),
        (("--lock", "setnx", "--store", "fence-writes"), "needs a lock with tokens"),
        (("--lock", "setnx", "--scenario", "clock-jump-node"), "setnx does not live on five nodes"),
        (("--scenario", "clock-jump-node", "--time", "real"), "can be played in real time"),
        (("--json", "--markdown"), "--json or --markdown"),
    ],
)
def test_what_the_command_refuses(arguments: tuple[str, ...], message: str) -> None:
    done = lockstorm("matrix", *arguments)
    assert done.returncode == 2 and done.stdout == ""
    assert message in done.stderr


# --- what it looks like ---


def shown(cells: list[MatrixCell], width: int) -> str:
    console = Console(width=width, highlight=False, color_system=None)
    with console.capture() as capture:
        show_matrix(console, MatrixResult(cells=cells))
    return capture.get()


def cell_as_expected(scenario: str, lock: str, store: str = "open") -> MatrixCell:
    """A cell with the expected results."""
    cell = expected()[scenario, lock, store]
    return cell_of((scenario, lock, store), "virtual", played(cell.fault), played(cell.control))


LOCKS = ("set-nx-px", "setnx", "pubsub", "redlock", "none")


def test_every_column_of_the_grid_has_its_mark_below_its_name() -> None:
    lines = shown(
        [cell_as_expected(each, lock) for each in ("gc-pause", "contention") for lock in LOCKS], 100
    ).splitlines()
    rows = {line.split()[0]: line for line in lines if line.split() and line.split()[0] in ("gc-pause", "contention")}
    for lock, mark in {"setnx": "✓", "redlock": "✗", "pubsub": "✗"}.items():
        head = next(line for line in lines if line.endswith(f" {lock}"))
        assert rows["gc-pause"][head.index(lock)] == mark
        assert rows["contention"][head.index(lock)] == "✓"


def test_no_line_of_the_grid_is_wider_than_the_terminal() -> None:
    cells = [cell_as_expected(each, lock) for each in ("gc-pause", "contention") for lock in LOCKS]
    for width in (40, 80):
        grid = shown(cells, width).split("holds:")[0]
        assert max(len(line) for line in grid.splitlines()) <= width
    assert table_groups(["a" * 20, "b" * 20, "c" * 20], 10, 33) == [["a" * 20, "b" * 20], ["c" * 20]]


def test_one_lock_is_shown_in_sentences() -> None:
    text = shown([cell_as_expected(each, "setnx") for each in ("gc-pause", "contention")], 120)
    assert "the lock never expires" in text and "│" not in text


def test_a_difference_is_shown_with_its_command() -> None:
    cell_key: CellKey = ("gc-pause", "setnx", "open")
    text = shown(
        [cell_of(cell_key, "virtual", played(VIOLATED), played(HOLDS)), cell_as_expected("contention", "setnx")], 120
    )
    assert "gc-pause with setnx/open: fault: integrity violated instead of holds" in text
    assert "again: ./lockstorm again 0" in text
    assert "2 cells: 1 not as expected" in text


def test_trials_that_were_played_again_are_counted() -> None:
    cell_trials = CellTrials()
    for count in (0, 2, 1):
        cell_trials.add(TrialSummary(HOLDS, "", "", count))
    assert cell_trials.played_again == 3
    assert str(closing(MatrixResult(cells=[], played_again=3))).endswith(
        "(played again 3 times: the machine stood still)"
    )
    assert "again" not in str(closing(MatrixResult(cells=[])))


def test_cells_that_the_table_lacks_are_named_once_per_scenario(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library_expected, "expected", dict)
    cells = [cell_of(("gc-pause", lock, "open"), "virtual", played(HOLDS), played(HOLDS)) for lock in LOCKS]
    text = shown([*cells, *(structs.replace(cell, scenario="flush") for cell in cells)], 120)
    assert "gc-pause: scenarios/expected.toml says nothing yet about 5 of these cells" in text
    assert text.count("says nothing yet") == 2


def test_two_adapters_are_a_grid() -> None:
    locks, scenarios = ("adapter:redis-py", "adapter:redlock-py"), ("contention", "refused-acquire")
    done = lockstorm("matrix", "--lock", ",".join(locks), "--scenario", ",".join(scenarios))
    assert done.returncode == 0, done.stderr
    rows = done.stdout.splitlines()
    assert "adapter:redis-py" in done.stdout and "adapter:redlock-py" in done.stdout
    assert [line.split()[0] for line in rows if line.startswith(scenarios)] == list(scenarios)
