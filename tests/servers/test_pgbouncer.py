"""PgBouncer before the database: which client uses the session in which a lock was taken."""

import json
import socket
import struct

import pytest

from lockstorm import Outcome
from lockstorm.servers.pgbouncer import PgBouncer
from lockstorm.servers.postgres_server import DATABASE, ROLE, PostgresSession
from lockstorm.servers.services import missing, missing_pooler
from lockstorm.trial.trial import Trial
from tests.helpers.support import ENVIRONMENT, lockstorm, trial

REASON = missing("postgres") or missing_pooler()
pytestmark = pytest.mark.skipif(bool(REASON), reason=f"not installed: {REASON}")

PROTOCOL_3 = 3 << 16
HELD = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"


def pooler_of(running: Trial) -> PgBouncer:
    return running.postgres.poolers[running.database.name]


def test_in_transaction_mode_two_clients_share_a_session_and_its_lock() -> None:
    """Virtual time only: in real time two clients that begin at once may get a connection each, at random."""
    with trial("pg-advisory", pooled=True) as running:
        one, two = running.clients(2)
        assert one.acquire(wait_ms=0).ok
        assert two.acquire(wait_ms=0).ok, "the same session takes the same lock again"
        assert (running.database.session.value(HELD), running.database.session.value(SESSIONS)) == ("1", "1")


@pytest.mark.parametrize("time", ["virtual", "real"])
def test_in_session_mode_each_has_its_own(time: str) -> None:
    with trial("pg-advisory", pooled=True, control=True, time=time) as running:
        one, two = running.clients(2)
        assert one.acquire(wait_ms=0).ok
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED
        assert running.database.session.value(SESSIONS) == "2"


def test_a_driver_that_sends_the_digits_of_its_numbers_is_let_in() -> None:
    """As lib/pq of Go and the driver of Java do; `options` is refused, so the answer is not the same to everything."""
    with trial("pg-advisory", pooled=True) as running:
        answers = {}
        for parameter in ("extra_float_digits", "options"):
            texts = ("user", ROLE, "database", DATABASE, parameter, "2", "")
            words = b"".join(text.encode() + b"\0" for text in texts)
            with socket.socket(socket.AF_UNIX) as link:
                link.connect(str(pooler_of(running).socket))
                link.sendall(struct.pack(">ii", len(words) + 8, PROTOCOL_3) + words)
                answers[parameter] = link.recv(1)
        assert answers == {"extra_float_digits": b"R", "options": b"E"}, "R: it asks who it is; E: an error"


def test_a_lock_is_released_on_another_connection_and_stays() -> None:
    """The session that took the lock runs another client's transaction when the lock's client releases."""
    with trial("pg-advisory", pooled=True) as running:
        one, two = running.clients(2)
        assert one.acquire(wait_ms=0).ok
        other = PostgresSession(pooler_of(running).socket)
        other.rows("BEGIN")
        assert one.release().outcome is Outcome.REFUSED, "another session, which never had it"
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED, "no client has it, and none can get it"
        other.rows("COMMIT")
        other.close()
        running.kill(one)
        assert running.database.session.value(HELD) == "1", "its client is dead, and its session lives on"


def test_a_transaction_keeps_its_connection() -> None:
    with trial("pg-advisory-xact", pooled=True) as running:
        one, two = running.clients(2)
        assert one.acquire(wait_ms=0).ok
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED
        assert one.release().ok
        assert two.acquire(wait_ms=0).ok


def test_the_same_seed_gives_the_same_history() -> None:
    def played() -> list[object]:
        with trial("pg-advisory", scenario="pooled-sessions", seed=5) as running:
            clients = running.clients(3)
            for client in clients:
                client.start_workload(300, work_ms=20, think_ms=20)
            running.finish(*clients)
            return [*running.story()]

    assert played() == played()


def test_without_it_its_cells_are_not_installed_and_in_ci_that_fails() -> None:
    words = ("matrix", "--scenario", "pooled-sessions,connection-closed", "--lock", "pg-advisory")
    here = {key: value for key, value in ENVIRONMENT.items() if key != "CI"}
    for more, status in (({}, 0), ({"CI": "true"}, 3)):
        done = lockstorm(*words, env={**here, **more, "LOCKSTORM_PGBOUNCER": "/nowhere"})
        assert done.returncode == status, done.stdout
        assert "1 not installed (PgBouncer is not installed: /nowhere does not exist)" in " ".join(done.stdout.split())


def test_without_it_doctor_says_so_and_is_well() -> None:
    done = lockstorm("doctor", "--json", env={**ENVIRONMENT, "LOCKSTORM_PGBOUNCER": "/nowhere"})
    (found,) = (each for each in json.loads(done.stdout)["findings"] if each["name"] == "PgBouncer")
    assert done.returncode == 0 and found["ok"]
    assert "not installed" in found["found"]
