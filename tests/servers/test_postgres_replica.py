"""A replica of PostgreSQL: it follows, it is promoted, and writes that it has not received are lost."""

from pathlib import Path

import pytest

from lockstorm import Inconclusive, Outcome
from lockstorm.servers.services import missing
from lockstorm.trial.settings import TIMES
from tests.helpers.support import lockstorm, trial

pytestmark = pytest.mark.skipif(bool(missing("postgres")), reason=f"not installed: {missing('postgres')}")

LINK = "postgres-1-replica-1>postgres-1"


@pytest.mark.parametrize("time_", TIMES)
def test_what_was_replicated_is_there_after_a_failover(time_: str) -> None:
    with trial("pg-lease", time=time_, replicas=1, lease_ms=60_000) as running:  # far more than the failover takes
        (one,) = running.clients(1)
        first = one.acquire()
        running.postgres.catch_up()
        running.postgres.fail_over()
        (two,) = running.clients(1)
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED
        assert one.renew().outcome is Outcome.UNKNOWN, "its session has ended"
        assert one.renew().ok, "the next one is the new master's"
        assert one.release().ok
        assert two.acquire(wait_ms=0).token == first.token + 1


@pytest.mark.parametrize("time_", TIMES)
def test_a_token_that_was_not_replicated_is_given_out_again(time_: str) -> None:
    with trial("pg-lease", time=time_, replicas=1) as running:
        (one,) = running.clients(1)
        with running.fault("partition", LINK):
            lost = one.acquire()
            running.postgres.fail_over()
        (two,) = running.clients(1)
        assert two.acquire(wait_ms=0).token == lost.token


def test_a_replica_that_is_promoted_is_written_to() -> None:
    with trial("pg-lease", replicas=1) as running:
        replica = running.postgres.named("postgres-1-replica-1")
        assert replica.session.value("SELECT pg_is_in_recovery()") == "t"
        with pytest.raises(Inconclusive, match="read-only"):
            replica.session.rows("CREATE TABLE refused ()")
        running.postgres.fail_over()
        assert replica.session.value("SELECT pg_is_in_recovery()") == "f"
        assert running.database.process.poll() is not None
        assert running.versions()["postgres"].startswith("1")
        running.advance(1_000)  # the trial sets its clock and reads it back


def test_one_that_is_cut_off_does_not_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    with trial("pg-lease", replicas=1) as running, running.fault("partition", LINK):
        monkeypatch.setattr("lockstorm.servers.postgres_server.START_LIMIT_S", 0.5)
        with pytest.raises(Inconclusive, match="does not follow"):
            running.postgres.catch_up()


def test_the_same_seed_gives_the_same_history(tmp_path: Path) -> None:
    histories = []
    for each in ("one", "two"):
        path = tmp_path / each
        assert lockstorm("run", "database-failover", "--lock", "pg-lease", "-o", str(path), "-q").returncode == 1
        histories.append(path.read_bytes())
    assert histories[0] == histories[1]
