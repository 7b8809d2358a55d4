"""The advice follows from the cells, and names what they do not cover."""

import json
import os
import pty
import re
from pathlib import Path

import pytest

from lockstorm.base.errors import UsageError
from lockstorm.matrix.advice import advise_locks, decisions, remarks_on
from lockstorm.matrix.advice_result import Candidate, Choice, Needs
from lockstorm.matrix.candidates import (
    PREVENTION,
    SERVERS,
    advised_outcome,
    can_happen,
    options_for,
    read_cells,
    unpreventable,
)
from lockstorm.matrix.matrix import expected_matrix
from lockstorm.results.matrix_result import MatrixCell
from lockstorm.scenario.expected import pairs
from lockstorm.scenario.scenario import scenarios
from tests.helpers.support import lockstorm, start_lockstorm

FENCE = "fence-reads-and-writes"
REST = '"store": "open", "result": "holds", "control": "holds"}]}'


@pytest.fixture(scope="module")
def cells() -> list[MatrixCell]:
    return expected_matrix().cells


def found(needs: Needs, cells: list[MatrixCell], lock: str, store: str = "open") -> Candidate:
    return next(each for each in options_for(needs, cells) if (each.lock, each.store) == (lock, store))


def test_every_preventable_scenario_exists() -> None:
    assert set(PREVENTION) <= set(scenarios())


def test_every_scenario_of_an_option_has_one_outcome(cells: list[MatrixCell]) -> None:
    for option in options_for(Needs("correctness", "checks-tokens"), cells):
        names = [*option.survives, *option.damaged, *option.stuck, *option.unknown]
        unrestricted = {name for name, scenario in scenarios().items() if not scenario.locks}
        pair = [option.lock, option.store]
        played = [name for name, *each in pairs() if each == pair and name in unrestricted]
        assert played and sorted(names) == sorted(played)


def test_articles_are_right_about_correctness(cells: list[MatrixCell]) -> None:
    """Kleppmann 2016: a lease protects nothing from a pause, Redlock neither; a resource that checks tokens does."""
    fenced = found(Needs("correctness", "checks-tokens", "single"), cells, "set-nx-px-fenced", FENCE)
    assert not unpreventable(fenced.damaged) and "gc-pause" in fenced.survives
    plain = advise_locks(Needs("correctness", "plain", "five"), cells, "the table")
    assert "gc-pause" in plain.unpreventable
    assert plain.sentence.startswith("No lock alone is enough here. The closest is redlock. Why: it survives ")
    best = advise_locks(Needs("correctness", "checks-tokens", "single"), cells, "the table")
    assert Choice("set-nx-px-fenced", FENCE) in best.recommended
    assert Choice("set-nx-px", "open") not in best.recommended


def test_the_answer_comes_first_in_two_lines(cells: list[MatrixCell]) -> None:
    fenced = advise_locks(Needs("correctness", "checks-tokens", "single"), cells, "the table")
    lock, why = fenced.answer
    assert lock.startswith(f"Use set-nx-px-fenced with {FENCE} (as good: ")
    assert why.startswith("Why: it survives ") and "the others can be prevented: " in why
    (count, of_all) = map(int, re.findall(r"\d+", why))
    option = found(Needs("correctness", "checks-tokens", "single"), cells, "set-nx-px-fenced", FENCE)
    assert (count, of_all) == (len(option.survives), len(option.known))
    assert fenced.sentence.startswith(f"{lock} {why}")
    lock, why = advise_locks(Needs("efficiency"), cells, "the table").answer
    assert lock.startswith("Use set-nx-px (as good: blpop, ") and "lets the next client in, in " in why
    done = lockstorm("advise", "--for", "efficiency")
    assert done.stdout.splitlines()[:2] == [lock, why]


@pytest.mark.parametrize("servers", [None, "single", "replicas"])
def test_a_lock_that_never_lets_go_is_not_recommended(cells: list[MatrixCell], servers: str | None) -> None:
    """setnx damages least of all on Redis."""
    advice = advise_locks(Needs("correctness", "plain", servers), cells, "the table")
    assert not [choice for choice in advice.recommended if choice.lock in ("setnx", "blpop-default", "pubsub-naive")]
    assert "setnx" not in advice.sentence and "setnx" in [option.lock for option in advice.options[1:]]


def test_for_efficiency_one_server_is_enough(cells: list[MatrixCell]) -> None:
    best = advise_locks(Needs("efficiency"), cells, "the table")
    assert Choice("set-nx-px", "open") in best.recommended
    assert not any(option.lock.startswith("redlock") for option in best.recommended)
    assert not any(option.lock == "setnx" for option in best.recommended), "stuck when its holder dies"


def test_a_resource_that_takes_every_write_has_no_fence(cells: list[MatrixCell]) -> None:
    assert {option.store for option in options_for(Needs("correctness", "plain"), cells)} == {"open"}
    stores = {option.store for option in options_for(Needs("correctness", "checks-tokens"), cells)}
    assert stores == {"open", "fence-writes", FENCE}


def test_servers_decide_which_locks_and_scenarios_there_are(cells: list[MatrixCell]) -> None:
    names = {
        each: {option.lock for option in options_for(Needs("efficiency", servers=each), cells)} for each in SERVERS
    }
    assert "redlock" in names["five"] and "set-nx-px" not in names["five"]
    assert "replica-wait" in names["replicas"] and "replica-wait" not in names["single"]
    assert names["etcd"] == {"etcd", "etcd-queue", "etcd-queue-unchecked"}
    assert not names["etcd"] & {option.lock for option in options_for(Needs("efficiency"), cells)}
    assert can_happen("failover-unreplicated", "replicas") and not can_happen("failover-unreplicated", "single")
    assert all("none" not in each for each in names.values())


@pytest.mark.parametrize(
    ("cell", "outcome"),
    [
        (None, "unknown"),
        (("holds", "holds"), "survives"),
        (("fenced", "holds"), "survives"),
        (("violated", "holds"), "damaged"),
        (("violated", "violated"), "unknown"),
        (("inconclusive", "holds"), "unknown"),
        (("stuck", "holds"), "stuck"),
    ],
)
def test_a_cell_speaks_only_when_its_control_holds(cell: tuple[str, str] | None, outcome: str) -> None:
    made = MatrixCell("gc-pause", "setnx", "open", result=cell[0], control=cell[1]) if cell else None
    assert advised_outcome(made) == outcome


def test_what_was_not_played_is_unknown(cells: list[MatrixCell]) -> None:
    one = [cell for cell in cells if (cell.scenario, cell.lock) == ("gc-pause", "setnx")]
    option = found(Needs("correctness"), one, "setnx")
    assert option.survives == ("gc-pause",) and len(option.unknown) > 1
    other = found(Needs("correctness"), one, "set-nx-px")
    assert not other.survives + other.damaged + other.stuck


def test_remarks_follow_from_needs(cells: list[MatrixCell]) -> None:
    needs = Needs("efficiency", hold_ms=60_000, contention="high")
    remarks = remarks_on(found(needs, cells, "set-nx-px"), needs)
    assert any("longer than 60 s" in remark for remark in remarks) and any(
        "waiters poll" in remark for remark in remarks
    )
    modest = Needs("efficiency", hold_ms=1000, contention="low")
    assert remarks_on(found(modest, cells, "set-nx-px"), modest) == ()
    assert any("watchdog" in remark for remark in remarks_on(found(needs, cells, "pubsub"), needs))


def test_decisions_cover_every_need(cells: list[MatrixCell]) -> None:
    rows = decisions(cells)
    assert len({(row.purpose, row.resource, row.servers) for row in rows}) == len(rows) == 18
    assert all(row.best for row in rows)


# --- the command ---


def test_json_says_where_it_is_from() -> None:
    done = lockstorm("advise", "--for", "correctness", "--resource", "checks-tokens", "--servers", "single", "--json")
    advice = json.loads(done.stdout)
    assert done.returncode == 0
    assert "expected.toml" in advice["source"]
    assert advice["needs"]["resource"] == "checks-tokens"
    assert advice["not_measured"] and advice["options"] and advice["decisions"]


def test_a_matrix_that_was_played_is_read(tmp_path: Path) -> None:
    path = tmp_path / "matrix.json"
    arguments = ("matrix", "--scenario", "gc-pause", "--lock", "setnx,set-nx-px", "--store", "open", "--json")
    path.write_text(lockstorm(*arguments).stdout)
    advice = json.loads(lockstorm("advise", "--for", "correctness", "--from", str(path), "--json").stdout)
    assert advice["source"] == f"{path}, 2 cells that were played"
    assert advice["options"][0]["lock"] != "set-nx-px"
    option = next(option for option in advice["options"] if option["lock"] == "set-nx-px")
    assert option["damaged"] == ["gc-pause"] and option["unknown"]
    done = lockstorm("advise", "--for", "correctness", "--servers", "etcd", "--from", str(path))
    assert done.returncode == 3
    assert "Nothing is known about what could be used here" in done.stdout


def test_of_queues_on_etcd_the_one_that_looks_again_is_better(cells: list[MatrixCell]) -> None:
    options = [option.lock for option in options_for(Needs("correctness", servers="etcd"), cells)]
    assert options == ["etcd", "etcd-queue", "etcd-queue-unchecked"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--for efficiency or --for correctness"),
        (("--servers", "five"), "--for efficiency or --for correctness"),
        (("--for", "speed"), "no purpose called 'speed'"),
        (("--for", "correctness", "--resource", "plane"), "did you mean plain?"),
        (("--for", "correctness", "--servers", "six"), "no kind of servers"),
        (("--for", "correctness", "--hold", "long"), "a duration is a number and its unit"),
        (("--for", "correctness", "--hold", "0ms"), "--hold 0ms"),
        (("--for", "correctness", "--contention", "some"), "no contention"),
        (("--for", "correctness", "--from", "/no/such/file"), "No such file"),
    ],
)
def test_what_the_command_refuses(arguments: tuple[str, ...], message: str) -> None:
    done = lockstorm("advise", *arguments, stdin=-3)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing", "is not JSON"),
        ("[]", "Expected `object`, got `array`"),
        ('{"cells": []}', "has no cells"),
        ('{"cells": [1]}', "got `int` - at `$.cells[0]`: lockstorm matrix --json prints such a file"),
        ('{"cells": [{"scenario": "gc-paus", "lock": "setnx", ' + REST, "did you mean gc-pause?"),
        ('{"cells": [{"scenario": "gc-pause", "lock": 7, ' + REST, "Expected `str`, got `int`"),
        ('{"cells": [{"scenario": "gc-pause", "lock": "setnx"}]}', "missing required field"),
    ],
)
def test_a_file_that_is_no_matrix_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "matrix.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=re.escape(message)):
        read_cells(path)


def test_on_a_terminal_it_asks() -> None:
    controller, terminal = pty.openpty()
    running = start_lockstorm("advise", stdin=terminal, stdout=terminal, stderr=terminal)
    os.close(terminal)
    os.write(controller, b"correctness\nchecks-tokens\nsingle\n1s\nlow\n")
    seen = b""
    try:
        while block := os.read(controller, 4096):
            seen += block
    except OSError:  # read() fails with EIO when the other end of a terminal is closed
        pass
    os.close(controller)
    assert running.wait(30) == 0
    assert b"What does a lock that fails cost?" in seen and b"set-nx-px-fenced" in seen
