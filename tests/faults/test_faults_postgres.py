"""Faults of a PostgreSQL server: stopped, crashed, its clock set, cut off. Each fault proves itself and is gone when
it is healed."""

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from lockstorm import Inconclusive, Outcome, UsageError
from lockstorm.base import paths
from lockstorm.base.hang_limit import HangLimit
from lockstorm.servers.postgres_server import PostgresSession
from lockstorm.servers.services import missing
from lockstorm.trial.trial import Trial
from tests.helpers.support import ENVIRONMENT, trial

pytestmark = pytest.mark.skipif(bool(missing("postgres")), reason=f"not installed: {missing('postgres')}")

TIMES = ("virtual", "real")
DAY_MS = 86_400_000


def family_of(running: Trial) -> list[int]:
    pid = running.database.process.pid
    return [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


# --- its timers ---


def test_its_limits_of_time_go_by_the_clock_of_the_trial() -> None:
    """A session waits for a lock for at most 50 ms. While no time passes the wait does not end, however long that is;
    a millisecond too early it has not ended, either (issue #55, 20)."""
    with trial("pg-lease") as running:
        holder, waiter = (PostgresSession(running.database.socket) for _ in range(2))
        holder.rows("SELECT pg_advisory_lock(1)")
        waiter.rows("SET lock_timeout = '50ms'")
        refusals: list[str] = []

        def wait() -> None:
            try:
                waiter.rows("SELECT pg_advisory_lock(1)")
            except Inconclusive as refusal:
                refusals.append(str(refusal))

        thread = threading.Thread(target=wait)
        thread.start()
        for passed_ms in (0, 49):
            running.advance(passed_ms)
            thread.join(0.2)
            assert thread.is_alive()
        running.advance(1)
        thread.join(60)
        assert not thread.is_alive()
        assert len(refusals) == 1 and "lock timeout" in refusals[0]
        holder.close()
        waiter.close()


# --- stopped ---


@pytest.mark.parametrize("time_", TIMES)
def test_a_paused_server_stands_still_with_all_its_sessions(time_: str) -> None:
    with trial("pg-lease", time=time_, lease_ms=30_000) as running:
        (one,) = running.clients(1)
        with running.fault("pause-server", running.database) as pause:
            assert {state_of(pid) for pid in family_of(running)} == {"T"}
            assert "processes in state T, no answer within 50 ms" in pause.proof
            assert one.acquire(wait_ms=0).outcome is Outcome.UNKNOWN
        assert "T" not in {state_of(pid) for pid in family_of(running)}
        assert one.acquire(wait_ms=0).ok


def test_two_pauses_end_with_the_second() -> None:
    with trial("pg-lease") as running:
        first = running.inject("pause-server", running.database)
        second = running.inject("pause-server", running.database)
        first.heal()
        assert {state_of(pid) for pid in family_of(running)} == {"T"}
        second.heal()
        (one,) = running.clients(1)
        assert one.acquire().ok


def test_an_acquire_without_an_answer_was_carried_out_and_is_found_by_its_owner() -> None:
    """The server has received the statement when it is stopped; its client gives up twice before the server goes on."""
    with trial("pg-lease", lease_ms=60_000) as running:
        one, two = running.clients(2)
        with running.fault("pause-server", running.database):
            assert one.acquire(wait_ms=0).outcome is Outcome.UNKNOWN
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED, "it is client 1's, who does not know"
        again = one.acquire(wait_ms=0)
        assert again.ok and again.token >= 2, "the same owner: a grant of its own, with a token of its own"
        assert one.release().ok
        assert two.acquire(wait_ms=0).token > again.token
        verdict = running.judge().properties
        assert verdict["mutual_exclusion"].status == verdict["fencing"].status == "holds"


def test_an_acquire_without_an_answer_can_be_given_back() -> None:
    with trial("pg-lease", lease_ms=60_000) as running:
        one, two = running.clients(2)
        with running.fault("pause-server", running.database):
            assert one.acquire(wait_ms=0).outcome is Outcome.UNKNOWN
        assert one.release().ok
        assert two.acquire(wait_ms=0).ok


def test_an_answer_that_a_closed_connection_has_taken_along_is_asked_for_again() -> None:
    """The acquire was committed, but its answer is lost with the connection: the same call finds its own lease."""
    with trial("pg-lease", lease_ms=60_000) as running:
        one, two = running.clients(2)
        with running.rule("slow", f"{one.name}>{running.database.name}", "to-client", "delay", 500):
            one.start_acquire(wait_ms=0)
            running.advance(100)
            running.inject("close-links", one, servers="postgres-*").heal()
        one.finish()
        assert one.result().ok and one.result().token == 2, "the first is the one that was lost"
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED


# --- crashed ---


@pytest.mark.parametrize("time_", TIMES)
def test_a_crashed_server_comes_back_with_what_was_committed(time_: str) -> None:
    with trial("pg-lease", time=time_, lease_ms=30_000) as running:
        one, two = running.clients(2)
        one.acquire()
        before = family_of(running)
        crash = running.inject("crash-server", running.database, data="kept")
        assert not [pid for pid in before if Path(f"/proc/{pid}").exists() and state_of(pid) != "Z"]
        assert two.acquire(wait_ms=0).outcome is Outcome.UNKNOWN
        crash.heal()
        assert "what was committed last is there" in crash.proof
        assert running.database.process.pid not in before
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED


def test_what_it_has_committed_it_does_not_lose() -> None:
    with trial("pg-lease") as running, pytest.raises(Inconclusive, match="keeps what was committed: data=kept"):
        running.inject("crash-server", running.database, data="none")


# --- clocks ---


@pytest.mark.parametrize("offset_ms", [DAY_MS, -DAY_MS, 1])
def test_its_clock_is_stepped_and_stepped_back(offset_ms: int) -> None:
    with trial("pg-lease") as running:
        before_us = running.database.time_us()
        with running.fault("clock-jump", running.database, offset_ms=offset_ms) as jump:
            assert running.database.time_us() - before_us == offset_ms * 1000
            assert f"its clock reads {offset_ms / 1000:+.6f} s" in jump.proof
        assert running.database.time_us() == before_us


def test_its_clock_runs_too_fast() -> None:
    with trial("pg-lease", lease_ms=30_000) as running:
        one, two = running.clients(2)
        one.acquire()
        with running.fault("clock-drift", running.database, ppm=1_000_000):
            running.advance(14_999)
            assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED
            running.advance(1)
            assert two.acquire(wait_ms=0).ok, "30 s of its own"


def test_a_lease_of_before_a_step_back_lasts_as_much_longer() -> None:
    with trial("pg-lease", lease_ms=30_000) as running:
        one, two = running.clients(2)
        one.acquire()
        running.inject("clock-jump", running.database, offset_ms=-60_000)
        running.advance(89_999)
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED
        running.advance(1)
        assert two.acquire(wait_ms=0).ok


@pytest.mark.waits
def test_in_real_time_its_clock_is_the_machines() -> None:
    with trial("pg-lease", time="real") as running, pytest.raises(Inconclusive, match="runs by the machine's clock"):
        running.inject("clock-jump", running.database, offset_ms=1000)


# --- cut off, and what does not happen to it ---


def test_cut_off_from_everybody_nobody_has_an_answer() -> None:
    with trial("pg-lease") as running:
        one, two = running.clients(2)
        one.acquire()
        with running.fault("partition", running.database):
            assert one.is_held().outcome is Outcome.UNKNOWN
            assert two.acquire(wait_ms=0).outcome is Outcome.UNKNOWN
        assert one.is_held().ok


@pytest.mark.parametrize("name", ["flush", "evict", "slow-server", "failover"])
def test_what_happens_to_redis_servers_only_is_refused_by_name(name: str) -> None:
    with trial("pg-lease") as running, pytest.raises(UsageError, match=f"{name} applies to redis-servers"):
        running.inject(name, running.database)


def lives(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists() and state_of(pid) != "Z"


def test_a_driver_that_fails_during_a_pause_leaves_nobody_stopped() -> None:
    with pytest.raises(ZeroDivisionError), trial("pg-lease") as running:
        family = family_of(running)
        running.inject("pause-server", running.database)
        raise ZeroDivisionError
    assert not [pid for pid in family if lives(pid)]


PAUSES = """
import os, signal, sys
from tests.helpers.support import trial
with trial("pg-lease") as running:
    running.inject("pause-server", running.database)
    pid = running.database.process.pid
    print(pid, *open(f"/proc/{pid}/task/{pid}/children").read().split(), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_driver_that_is_killed_during_a_pause_leaves_nobody_stopped() -> None:
    words = [sys.executable, "-c", PAUSES]
    done = subprocess.run(words, capture_output=True, text=True, env=ENVIRONMENT, cwd=paths.ROOT)
    assert done.returncode == -signal.SIGKILL, done.stderr
    family = [int(pid) for pid in done.stdout.split()]
    assert len(family) > 3
    limit = HangLimit(30)
    while left := [pid for pid in family if lives(pid)]:
        assert not limit.is_over(), f"{left} of {family} live"
        time.sleep(0.01)
