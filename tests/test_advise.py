"""Advice says what the cells say, and what they do not say."""

import json
import os
import pty
from pathlib import Path
from typing import Any

import pytest

from harness.driver.advise import (
    PREVENTION,
    SERVERS,
    Needs,
    Option,
    advise,
    can_happen,
    decisions,
    hard,
    options_for,
    read_cells,
    remarks_on,
    word_of,
)
from harness.driver.errors import UsageError
from harness.driver.expected import pairs
from harness.driver.matrix import told_matrix
from harness.driver.scenario import scenarios
from tests.support import lockstorm, start_lockstorm

FENCE = "fence-reads-and-writes"


@pytest.fixture(scope="module")
def cells() -> list[dict[str, Any]]:
    return list(told_matrix()["cells"])


def found(needs: Needs, cells: list[dict[str, Any]], lock: str, store: str = "open") -> Option:
    return next(each for each in options_for(needs, cells) if (each.lock, each.store) == (lock, store))


def test_what_prevention_is_said_of_exists() -> None:
    assert set(PREVENTION) <= set(scenarios())


def test_every_story_of_an_option_has_one_word(cells: list[dict[str, Any]]) -> None:
    for option in options_for(Needs("correctness", "checks-tokens"), cells):
        stories = [*option.survives, *option.damaged, *option.stuck, *option.unknown]
        everybody = {name for name, told in scenarios().items() if not told.locks}
        pair = [option.lock, option.store]
        played = [name for name, *each in pairs() if each == pair and name in everybody]
        assert played and sorted(stories) == sorted(played)


def test_articles_are_right_about_correctness(cells: list[dict[str, Any]]) -> None:
    """Kleppmann 2016: a lease protects nothing from a pause, Redlock neither; a resource that checks tokens does."""
    fenced = found(Needs("correctness", "checks-tokens", "single"), cells, "set-nx-px-fenced", FENCE)
    assert not hard(fenced.damaged) and "gc-pause" in fenced.survives
    plain = advise(Needs("correctness", "plain", "five"), cells, "the table")
    assert "gc-pause" in plain["hopeless"]
    assert plain["sentence"].startswith("Nothing survived in every story.")
    best = advise(Needs("correctness", "checks-tokens", "single"), cells, "the table")
    assert {"lock": "set-nx-px-fenced", "store": FENCE} in best["recommended"]
    assert {"lock": "set-nx-px", "store": "open"} not in best["recommended"]


def test_for_efficiency_one_server_is_enough(cells: list[dict[str, Any]]) -> None:
    best = advise(Needs("efficiency"), cells, "the table")
    assert {"lock": "set-nx-px", "store": "open"} in best["recommended"]
    assert not any(option["lock"].startswith("redlock") for option in best["recommended"])
    assert not any(option["lock"] == "setnx" for option in best["recommended"]), "stuck when its holder dies"


def test_a_resource_that_takes_every_write_has_no_fence(cells: list[dict[str, Any]]) -> None:
    assert {option.store for option in options_for(Needs("correctness", "plain"), cells)} == {"open"}
    stores = {option.store for option in options_for(Needs("correctness", "checks-tokens"), cells)}
    assert stores == {"open", "fence-writes", FENCE}


def test_servers_decide_which_locks_and_stories_there_are(cells: list[dict[str, Any]]) -> None:
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
    ("cell", "word"),
    [
        (None, "unknown"),
        ({"result": "holds", "control": "holds"}, "survives"),
        ({"result": "fenced", "control": "holds"}, "survives"),
        ({"result": "violated", "control": "holds"}, "damaged"),
        ({"result": "violated", "control": "violated"}, "unknown"),
        ({"result": "inconclusive", "control": "holds"}, "unknown"),
        ({"result": "stuck", "control": "holds"}, "stuck"),
    ],
)
def test_a_cell_speaks_only_when_its_control_holds(cell: dict[str, Any] | None, word: str) -> None:
    assert word_of(cell) == word


def test_what_was_not_played_is_unknown(cells: list[dict[str, Any]]) -> None:
    one = [cell for cell in cells if (cell["scenario"], cell["lock"]) == ("gc-pause", "setnx")]
    option = found(Needs("correctness"), one, "setnx")
    assert option.survives == ("gc-pause",) and len(option.unknown) > 1
    other = found(Needs("correctness"), one, "set-nx-px")
    assert not other.survives + other.damaged + other.stuck


def test_remarks_follow_from_needs(cells: list[dict[str, Any]]) -> None:
    needs = Needs("efficiency", hold_ms=60_000, contention="high")
    told = remarks_on(found(needs, cells, "set-nx-px"), needs)
    assert any("longer than 60 s" in remark for remark in told) and any("polls" in remark for remark in told)
    calm = Needs("efficiency", hold_ms=1000, contention="low")
    assert remarks_on(found(calm, cells, "set-nx-px"), calm) == []
    assert any("watchdog" in remark for remark in remarks_on(found(needs, cells, "pubsub"), needs))


def test_decisions_cover_every_need(cells: list[dict[str, Any]]) -> None:
    rows = decisions(cells)
    assert len({(row["for"], row["resource"], row["servers"]) for row in rows}) == len(rows) == 12
    assert all(row["best"] for row in rows)


# --- the command ---


def test_json_says_where_it_is_from() -> None:
    done = lockstorm("advise", "--for", "correctness", "--resource", "checks-tokens", "--servers", "single", "--json")
    said = json.loads(done.stdout)
    assert done.returncode == 0
    assert "expected.toml" in said["source"]
    assert said["needs"]["resource"] == "checks-tokens"
    assert said["not_measured"] and said["options"] and said["decisions"]


def test_a_matrix_that_was_played_is_read(tmp_path: Path) -> None:
    path = tmp_path / "matrix.json"
    words = ("matrix", "--scenario", "gc-pause", "--lock", "setnx,set-nx-px", "--store", "open", "--json")
    path.write_text(lockstorm(*words).stdout)
    said = json.loads(lockstorm("advise", "--for", "correctness", "--from", str(path), "--json").stdout)
    assert said["source"] == f"{path}, 2 cells that were played"
    assert said["options"][0]["lock"] != "set-nx-px"
    option = next(option for option in said["options"] if option["lock"] == "set-nx-px")
    assert option["damaged"] == ["gc-pause"] and option["unknown"]
    done = lockstorm("advise", "--for", "correctness", "--servers", "etcd", "--from", str(path))
    assert done.returncode == 3
    assert "Nothing is known about what could be used here" in done.stdout


def test_of_queues_on_etcd_the_one_that_looks_again_is_better(cells: list[dict[str, Any]]) -> None:
    options = [option.lock for option in options_for(Needs("correctness", servers="etcd"), cells)]
    assert options == ["etcd", "etcd-queue", "etcd-queue-unchecked"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "--for efficiency or --for correctness"),
        (("--servers", "five"), "--for efficiency or --for correctness"),
        (("--for", "speed"), "no purpose called 'speed'"),
        (("--for", "correctness", "--resource", "plane"), "did you mean plain?"),
        (("--for", "correctness", "--servers", "six"), "no kind of servers"),
        (("--for", "correctness", "--hold", "long"), "not a duration"),
        (("--for", "correctness", "--hold", "0ms"), "--hold 0"),
        (("--for", "correctness", "--contention", "some"), "no contention"),
        (("--for", "correctness", "--from", "/no/such/file"), "No such file"),
    ],
)
def test_what_the_command_refuses(words: tuple[str, ...], message: str) -> None:
    done = lockstorm("advise", *words, stdin=-3)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing", "is not JSON"),
        ("[]", "has no cells"),
        ('{"cells": []}', "has no cells"),
        ('{"cells": [1]}', "cell 0 says nothing about its scenario"),
        ('{"cells": [{"scenario": "gc-paus", "lock": "setnx"}]}', "did you mean gc-pause?"),
        ('{"cells": [{"scenario": "gc-pause", "lock": 7}]}', "cell 0 says nothing about its lock"),
    ],
)
def test_a_file_that_is_no_matrix_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "matrix.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=message.replace("?", r"\?")):
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
    except OSError:  # the other end of a terminal that is closed says so
        pass
    os.close(controller)
    assert running.wait(30) == 0
    assert b"What does a lock that fails cost?" in seen and b"set-nx-px-fenced" in seen
