"""`lockstorm attach` on a PostgreSQL server that the test has started: what is played, touched, and left."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstorm.attach.run_names import POSTGRES_TABLES
from lockstorm.native.library import locks_on
from lockstorm.servers.services import missing
from tests.helpers.attaching import attach_refused, attach_to, children_of, traces_of_clients, wait_for_work
from tests.helpers.daily import daily
from tests.helpers.outside_postgres import OutsidePostgres, outside_postgres
from tests.helpers.outside_servers import plays
from tests.helpers.proxying import wait_until
from tests.helpers.support import ENVIRONMENT, lockstorm, start_lockstorm
from tests.helpers.tls_files import make_certificates

pytestmark = [
    pytest.mark.waits,
    pytest.mark.skipif(bool(missing("postgres")), reason=missing("postgres")),
]

SECRET = "correct-horse"
# Rises with every transaction that writes, in any database.
NEXT_TRANSACTION = "SELECT pg_snapshot_xmax(pg_current_snapshot())"
WITH_PASSWORD = {**ENVIRONMENT, "PGPASSWORD": SECRET}
ROLES = """CREATE ROLE app LOGIN PASSWORD '{secret}';
CREATE ROLE reader LOGIN PASSWORD '{secret}'"""


@pytest.fixture(scope="module")
def outside() -> Iterator[OutsidePostgres]:
    with outside_postgres() as started:
        started.ask(ROLES.format(secret=SECRET))
        started.ask("CREATE DATABASE staging OWNER app")
        yield started


def url_of(outside: OutsidePostgres, user: str = "app") -> str:
    return f"postgresql://{user}@{outside.place}/staging"


def test_a_paused_holder_is_found_and_nothing_is_left(outside: OutsidePostgres, tmp_path: Path) -> None:
    saved = tmp_path / "gc.history"
    words = ("--lock", "pg-lease", "--scenario", "gc-pause", "-o", str(saved))
    answer = attach_to(url_of(outside), *words, status=1, env=WITH_PASSWORD)
    (trial,) = answer["trials"]
    assert trial["sentence"].startswith("Mutual exclusion violated, integrity violated")
    assert trial["faults"] == [{"name": "pause-client", "target": "client-1", "proved": True}]
    assert trial["versions"] == {"postgres": answer["server"]["version"]}
    assert trial["replay"] == (f"lockstorm attach {url_of(outside)} --scenario gc-pause --lock pg-lease --seed 1")
    assert answer["removed"] >= 1 and answer["closed"] == {}
    assert (answer["server"]["service"], answer["server"]["database"]) == ("postgres", "staging")
    assert outside.left("staging") == []
    assert SECRET.encode() not in saved.read_bytes()


def test_an_adapter_is_played_there_too(outside: OutsidePostgres) -> None:
    words = ("--adapter", "pals", "--scenario", "gc-pause")
    (trial,) = attach_to(url_of(outside), *words, env=WITH_PASSWORD)["trials"]
    assert trial["sentence"].startswith("Mutual exclusion holds")  # the session of a paused client keeps its lock


@pytest.mark.lengthy("closes the connections of the holder of a lock, of each kind")
@pytest.mark.parametrize("lock", ["pg-advisory", "pg-for-update", "pg-advisory-xact"])
def test_a_lock_ends_with_its_connection(outside: OutsidePostgres, lock: str) -> None:
    words = ("--lock", lock, "--scenario", "connection-closed")
    (trial,) = attach_to(url_of(outside), *words, status=1, env=WITH_PASSWORD)["trials"]
    assert trial["verdict"]["mutual_exclusion"]["status"] == "violated"
    attach_to(url_of(outside), *words, "--control", env=WITH_PASSWORD)
    assert outside.left("staging") == []


@pytest.mark.slow("plays every scenario, in real time", seconds=30)
def test_every_scenario_is_played_on_postgresql(outside: OutsidePostgres) -> None:
    answer = attach_to(url_of(outside), "--lock", "pg-lease", status=1, env=WITH_PASSWORD)
    found = {trial["scenario"]: trial["exit"] for trial in answer["trials"]}
    assert {name: found[name] for name in ("gc-pause", "partition-holder")} == {"gc-pause": 1, "partition-holder": 1}
    harmless = ("contention", "connection-closed", "crash-holder")
    assert {name: found[name] for name in harmless} == dict.fromkeys(harmless, 0)
    assert set(found.values()) == {0, 1} and answer["closed"] == {}


@pytest.mark.lengthy("ends the clients' sessions while they work")
def test_a_fault_of_the_team_ends_sessions(outside: OutsidePostgres, tmp_path: Path) -> None:
    pid, file = outside.process.pid, tmp_path / "attach.toml"
    file.write_text(
        f"""[fault.end-sessions]
inject = '''
for child in $(cat /proc/{pid}/task/{pid}/children); do
    if grep -aq 'postgres: app staging' /proc/$child/cmdline; then kill -TERM $child && touch {tmp_path}/ended; fi
done'''
prove = "rm {tmp_path}/ended"
lasts = "100ms"
"""
    )
    words = ("--lock", "pg-lease", "--fault", "end-sessions", "--faults", str(file))
    (trial,) = attach_to(url_of(outside), *words, env=WITH_PASSWORD)["trials"]
    assert trial["faults"] == [{"name": "end-sessions", "target": outside.place, "proved": True}]
    assert trial["sentence"] == "Mutual exclusion holds, integrity holds, fencing holds, liveness holds"
    assert outside.left("staging") == []


# --- what is touched ---


def test_a_dry_run_names_the_schema_the_tables_and_the_advisory_locks(outside: OutsidePostgres) -> None:
    words = ("--scenario", "gc-pause", "--dry-run")
    before = outside.ask(NEXT_TRANSACTION)
    done = lockstorm("attach", url_of(outside), "--lock", "pg-lease", *words, env=WITH_PASSWORD)
    version = outside.ask("SHOW server_version")[0].split()[0]
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:4] == [
        f"server     server at {outside.place}, version {version}: database staging has 0 tables",
        "schema     lockstorm_attach_RUN, with the table lease, dropped at the end",
        "sessions   those of clients, with the application_name lockstorm:attach:RUN:, ended at the end",
        "lock       pg-lease",
    ]
    assert done.stdout.splitlines()[-1] == "nothing was touched: this was a dry run"
    done = lockstorm("attach", url_of(outside), "--lock", "pg-advisory", *words, env=WITH_PASSWORD)
    assert done.stdout.splitlines()[1:3] == [
        "schema     lockstorm_attach_RUN, which stays empty, dropped at the end",
        "advisory   one lock, whose number is the hash of the lock's name, hashtextextended(name, 0); it ends with its "
        "session",
    ]
    assert outside.ask(NEXT_TRANSACTION) == before


def test_the_tables_of_every_lock_are_known() -> None:
    assert set(POSTGRES_TABLES) == {lock.name for lock in locks_on("postgres") if not lock.fixed}


@pytest.fixture
def noted(outside: OutsidePostgres) -> Iterator[OutsidePostgres]:
    """A server that notes the tables and schemas that are made in its database `staging`."""
    outside.ask(
        """CREATE TABLE noted (name text);
        CREATE FUNCTION note() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER AS
        'BEGIN INSERT INTO public.noted SELECT object_identity FROM pg_event_trigger_ddl_commands() '
        'WHERE object_type IN (''table'', ''schema''); END';
        CREATE EVENT TRIGGER noting ON ddl_command_end EXECUTE FUNCTION note()""",
        "staging",
    )
    yield outside
    outside.ask("DROP EVENT TRIGGER noting; DROP FUNCTION note; DROP TABLE noted", "staging")


@pytest.mark.parametrize(("lock", "tables"), POSTGRES_TABLES.items())
def test_a_lock_makes_the_tables_that_the_dry_run_names(
    noted: OutsidePostgres, lock: str, tables: tuple[str, ...]
) -> None:
    scenario = "double-processing" if lock == "pg-skip-locked" else "gc-pause"
    words = ("--lock", lock, "--scenario", scenario, "--control", "--yes")
    answer = attach_to(url_of(noted), *words, env=WITH_PASSWORD)
    schema = answer["prefix"].strip(":").replace(":", "_")
    assert sorted(noted.ask("SELECT DISTINCT name FROM noted", "staging")) == sorted(
        [schema, *(f"{schema}.{table}" for table in tables)]
    )
    assert answer["removed"] == plays(answer) * len(tables)
    assert noted.left("staging") == []


def test_a_database_with_tables_is_left_alone_without_yes(outside: OutsidePostgres) -> None:
    outside.ask("CREATE TABLE lease (name text); INSERT INTO lease VALUES ('theirs')", "staging")
    words = ("--lock", "pg-lease", "--scenario", "gc-pause", "--control")
    try:
        assert attach_refused(url_of(outside), *words, env=WITH_PASSWORD) == (
            f"database staging of {outside.place} is not empty: it has 1 table. attach makes only the schema "
            "lockstorm_attach_RUN and drops it at the end: add --yes to go on, or name an empty database"
        )
        attach_to(url_of(outside), *words, "--yes", env=WITH_PASSWORD)
        assert outside.ask("SELECT name FROM lease", "staging") == ["theirs"]
    finally:
        outside.ask("DROP TABLE lease", "staging")
    assert outside.left("staging") == []


ENDED = [
    (lock, number, status)
    for lock in ("pg-for-update", "pg-advisory")
    for number, status in ((signal.SIGKILL, -9), (signal.SIGINT, 130))
]


@pytest.mark.lengthy("each command is ended while its clients work, and the gateway cleans up")
@pytest.mark.parametrize(("lock", "number", "status"), daily(ENDED, ENDED[:1], "another lock, or another end", 2))
def test_nothing_is_left_on_postgresql_when_the_command_is_ended(
    outside: OutsidePostgres, lock: str, number: int, status: int
) -> None:
    words = ("--lock", lock, "--scenario", "contention", "--duration", "60s")
    command = start_lockstorm("attach", url_of(outside), *words, env=WITH_PASSWORD)
    wait_for_work(
        command,
        lambda: children_of(command.pid) and any("session" in each for each in outside.traces("staging")),
    )
    command.send_signal(number)
    _, errors = command.communicate(timeout=60)
    assert command.returncode == status, errors
    assert outside.left("staging") == []


def test_the_password_reaches_no_process_of_a_client(outside: OutsidePostgres) -> None:
    words = ("--lock", "pg-advisory", "--scenario", "contention", "--duration", "2s")
    command = start_lockstorm("attach", url_of(outside), *words, env=WITH_PASSWORD)
    wait_until(lambda: len([each for each in outside.traces("staging") if "session" in each]) >= 4)
    seen = traces_of_clients(command.pid)
    output, errors = command.communicate(timeout=60)
    assert command.returncode == 0, errors
    assert len(seen) >= 8 and not any(SECRET.encode() in trace for trace in seen)
    assert SECRET not in output + errors


# --- what is refused ---


def test_logins_databases_and_rights_are_checked(outside: OutsidePostgres) -> None:
    words = ("--lock", "pg-lease")
    place = outside.place
    assert attach_refused(url_of(outside), *words) == (
        f"{place} asks for a password: put it into the variable LOCKSTORM_PASSWORD"
    )
    assert attach_refused(url_of(outside), *words, env={**ENVIRONMENT, "PGPASSWORD": "wrong"}) == (
        f"{place} refuses the user app or the password of the variable PGPASSWORD: check both"
    )
    assert attach_refused(f"postgresql://app@{place}/production", *words, env=WITH_PASSWORD) == (
        f"{place} has no database called production: check the URL"
    )
    assert attach_refused(url_of(outside, "reader"), *words, env=WITH_PASSWORD) == (
        f"the user reader may not create a schema in the database staging of {place}: "
        'GRANT CREATE ON DATABASE "staging" TO "reader", or name another user'
    )


# --- TLS and other logins ---


@pytest.mark.slow("certificates for one more service", seconds=5)
def test_postgresql_by_tls(tmp_path: Path) -> None:
    place = make_certificates(tmp_path)
    ca = str(place / "ca.pem")
    rules = "hostssl staging app 127.0.0.1/32 scram-sha-256\nhostssl staging old 127.0.0.1/32 md5\n"
    rules += "hostnossl staging all 127.0.0.1/32 reject\n"
    with outside_postgres({"ssl": "on"}, rules, certificates=place) as outside:
        outside.ask(ROLES.format(secret=SECRET))
        outside.ask(f"SET password_encryption = 'md5'; CREATE ROLE old LOGIN PASSWORD '{SECRET}'")
        outside.ask("CREATE DATABASE staging OWNER app")
        outside.ask("GRANT CREATE ON DATABASE staging TO old")
        words = ("--lock", "pg-advisory", "--scenario", "contention", "--duration", "1s")
        where = f"localhost:{outside.port}/staging"
        for url, more in (
            (f"postgresql://app@{where}?sslmode=verify-full", ("--ca", ca)),
            (f"postgresql://old@{where}?sslmode=require", ()),
        ):
            answer = attach_to(url, *words, *more, env=WITH_PASSWORD)
            assert answer["server"]["tls"] is True and answer["closed"] == {}
            assert answer["trials"][0]["grants"] >= 2
        said = attach_refused(f"postgresql://app@{where}?sslmode=verify-full", *words, env=WITH_PASSWORD)
        assert said.startswith(f"localhost:{outside.port} has a certificate that is not trusted (")
        assert attach_refused(f"postgresql://app@{where}", *words, env=WITH_PASSWORD) == (
            f"localhost:{outside.port} does not let app in without TLS: add ?sslmode=verify-full to the URL"
        )


def test_a_server_without_tls(outside: OutsidePostgres) -> None:
    said = attach_refused(f"{url_of(outside)}?sslmode=require", "--lock", "pg-lease", env=WITH_PASSWORD)
    assert said == f"{outside.place} does not speak TLS: use sslmode=disable if it expects none"
