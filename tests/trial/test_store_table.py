"""The store on a table of PostgreSQL: the same answers as from memory, with the check inside the statement that writes,
and sessions that race in parallel."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis

from lockstorm import Outcome
from lockstorm.results.event import Event
from lockstorm.servers.services import missing
from lockstorm.trial.settings import STORES
from lockstorm.trial.trial import Trial
from tests.helpers.support import ENVIRONMENT, lockstorm, trial
from tests.trial.test_store import ask

pytestmark = pytest.mark.skipif(bool(missing("postgres")), reason=f"not installed: {missing('postgres')}")

MODES = [mode for mode in STORES if not mode.startswith("table-")]
RACERS, ROUNDS = 6, 40


@contextmanager
def store(mode: str, **more: Any) -> Iterator[tuple[redis.Redis, Trial]]:
    with trial("set-nx-px-fenced", store=mode, **more) as running, link_to(running) as link:
        yield link, running


@contextmanager
def link_to(running: Trial) -> Iterator[redis.Redis]:
    link = redis.Redis(unix_socket_path=str(running.store.socket), driver_info=None, protocol=2)
    link.response_callbacks.clear()
    yield link
    link.close()


REQUESTS = [
    words.split()
    for words in (
        "GET counter",
        "GET counter TOKEN 9 GRANT 9",
        "SET counter 1 TOKEN 3 GRANT 9 VERSION 0",
        "SET counter 2 TOKEN 9 GRANT 9 VERSION 0",
        "GET counter TOKEN 5 GRANT 5",
        "SET counter 3 TOKEN 4 GRANT 9 VERSION 1",
        "SET counter 4 TOKEN 10 GRANT 5 VERSION 1",
        "SET counter 5 TOKEN 10 GRANT 5 VERSION 2",
        "SET counter 6",
        "ADD counter -7 TOKEN 10 GRANT 5",
        "ADD counter 7 TOKEN 9 GRANT 9",
        "GET counter TOKEN 11 GRANT 11",
        "GET set TOKEN 11 GRANT 11",
        "ADD set 3 TOKEN 11 GRANT 11",
        "ADD set 3 TOKEN 12 GRANT 11",
        "ADD set -4 TOKEN 12 GRANT 11",
        "ADD set 8 TOKEN 10 GRANT 3",
        "GET set TOKEN 13 GRANT 13",
        "SET counter x",
        "SET set 1",
        "PING",
        "MODE",
    )
]


@pytest.mark.parametrize("mode", MODES)
def test_it_answers_as_memory_does_and_the_history_says_the_same(mode: str) -> None:
    """A table keeps tokens and owners per row, memory per store: the two objects are used one after the other."""
    answers, records = [], []
    keys = ("kind", "object", "outcome", "value", "token", "flags", "extra")
    for place in (mode, f"table-{mode}"):
        with store(place) as (link, running):
            said = [ask(link, *words) for words in REQUESTS]
            answers.append([each.split()[0] if isinstance(each, str) else each for each in said])
            records.append(
                [
                    {key: getattr(event, key) for key in keys}
                    for event in running.story()
                    if event.kind.startswith("store-")
                ]
            )
    assert answers[1] == answers[0]
    accepted = [[record for record in each if record["outcome"] == "ok"] for each in records]
    assert accepted[1] == accepted[0]
    assert len(records[1]) == len(records[0])


def test_it_is_a_table_that_anybody_can_ask() -> None:
    with store("table-fence-writes", counter=40) as (link, running):
        assert ask(link, "SET", "counter", 42, "TOKEN", 7) == [42, 1]
        assert ask(link, "ADD", "set", 5, "TOKEN", 7) == [1, 1]
        assert ask(link, "MEMBERS") == "they are in the table: SELECT value FROM member"
        assert running.store.table
        row = "SELECT concat_ws(' ', value, version, token) FROM resource WHERE name = 'counter'"
        assert running.store.table.session.value(row) == "42 1 7"
        assert running.store.table.session.value("SELECT value FROM member") == "5"
        running.store.table.session.value("UPDATE resource SET token = 100 WHERE name = 'counter' RETURNING 1")
        assert ask(link, "SET", "counter", 43, "TOKEN", 99).startswith("FENCED")


def test_a_row_has_its_own_token() -> None:
    with store("table-fence-writes") as (link, _):
        assert ask(link, "SET", "counter", 1, "TOKEN", 5) == [1, 1]
        assert ask(link, "SET", "register", 1, "TOKEN", 4) == [1, 1]
        assert ask(link, "SET", "counter", 1, "TOKEN", 4).startswith("FENCED")


def test_what_the_server_cannot_carry_out_changes_nothing() -> None:
    with store("table-open") as (link, running):
        assert ask(link, "ADD", "counter", 2**63 - 1) == [2**63 - 1, 1]
        assert ask(link, "ADD", "counter", 1) == "bigint out of range"
        assert ask(link, "GET", "counter") == [2**63 - 1, 1]
        assert len([event for event in running.story() if event.kind == "store-write"]) == 1


@contextmanager
def racing(mode: str, race: Any) -> Iterator[Trial]:
    """Runs `race` on RACERS connections at once, each in a thread of its own."""
    with trial("none" if mode == "table-open" else "set-nx-px-fenced", store=mode, time="real") as running:
        together = threading.Barrier(RACERS)

        def run(racer: int) -> None:
            with link_to(running) as link:
                for each in range(ROUNDS):
                    together.wait()
                    race(link, racer, each)

        threads = [threading.Thread(target=run, args=(racer,)) for racer in range(RACERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        yield running


def accepted_writes(running: Trial) -> list[Event]:
    return [event for event in running.story() if event.kind == "store-write" and event.outcome == "ok"]


def test_of_those_who_compare_and_set_at_once_one_wins_each_version() -> None:
    wins: list[int] = []

    def race(link: redis.Redis, racer: int, each: int) -> None:
        said = ask(link, "SET", "counter", racer, "VERSION", each)
        if isinstance(said, list):
            wins.append(said[1])

    with racing("table-compare-and-set", race) as running:
        assert sorted(wins) == list(range(1, ROUNDS + 1))
        assert [event.extra for event in accepted_writes(running)] == list(range(ROUNDS))


def test_what_the_database_adds_at_once_is_told_in_its_own_order() -> None:
    def race(link: redis.Redis, racer: int, each: int) -> None:
        ask(link, "ADD", "counter", 1)
        ask(link, "GET", "counter")

    with racing("table-open", race) as running:
        with link_to(running) as link:
            assert ask(link, "GET", "counter") == [RACERS * ROUNDS] * 2
        assert [event.extra for event in accepted_writes(running)] == list(range(RACERS * ROUNDS))
        newest = 0
        for event in running.story():
            if event.kind == "store-write":
                newest += 1
            elif event.kind == "store-read":
                assert event.value == event.extra <= newest, "no client reads what is not written yet"


def test_of_those_who_write_at_once_none_with_an_older_token_comes_after_a_newer_one() -> None:
    def race(link: redis.Redis, racer: int, each: int) -> None:
        ask(link, "SET", "counter", racer, "TOKEN", 1 + each * RACERS + racer)

    with racing("table-fence-writes", race) as running:
        tokens = [event.token for event in accepted_writes(running)]
        assert len(tokens) >= ROUNDS and tokens == sorted(tokens)


@pytest.mark.parametrize("time", ["virtual", "real"])
def test_a_lost_answer_leaves_the_write_in_the_table(time: str) -> None:
    with trial("pg-lease", store="table-compare-and-set", time=time, lease_ms=30_000) as running:
        (one,) = running.clients(1)
        one.acquire()
        one.read()
        with running.fault("lose-reply", one, servers="store", command="SET"):
            assert one.write(7).outcome is Outcome.UNKNOWN
        assert running.store.table
        assert running.store.table.session.value("SELECT version FROM resource WHERE name = 'counter'") == "1"
        assert one.write(7).outcome is Outcome.REFUSED, "computed from a version that it has overwritten itself"
        assert one.read().value == 7
        assert running.judge().properties["integrity"].status == "holds"


def test_a_write_whose_connection_is_closed_meanwhile_is_carried_out_all_the_same() -> None:
    with trial("pg-lease", store="table-open") as running:
        one, two = running.clients(2)
        one.acquire()
        one.read()
        with running.fault("delay-write", one):
            one.start_write(1)
            running.advance(running.reply_limit_ms + 1)
            assert one.result().outcome is Outcome.UNKNOWN, "it has given up, and closed its connection"
        running.settle()
        assert two.read().value == 1


def test_without_a_server_such_a_cell_is_not_installed() -> None:
    words = ("matrix", "--scenario", "gc-pause", "--lock", "set-nx-px-fenced", "--store", "open,table-open")
    environment = {**ENVIRONMENT, "LOCKSTORM_POSTGRES": "/nowhere"}
    environment.pop("CI", None)
    done = lockstorm(*words, env=environment)
    assert done.returncode == 0, done.stdout
    assert "1 not installed (PostgreSQL is not installed: /nowhere has none)" in " ".join(done.stdout.split())


def test_nothing_of_it_stays_behind() -> None:
    with store("table-open") as (link, running):
        ask(link, "SET", "counter", 1)
        assert running.store.table
        pid, place = running.store.table.process.pid, running.store.table.directory.resolve()
        private = running.recorder.path.parent
    assert not place.exists() and not private.exists() and not Path(f"/proc/{pid}").exists()
    assert not [name for name in os.listdir("/dev/shm") if name.startswith(private.name)]
