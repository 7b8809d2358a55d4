"""What clients and a real PostgreSQL say to each other, through a socket that records it."""

import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg2
import pytest

from lockstorm.process.process import Sandbox
from lockstorm.servers.postgres_server import DATABASE, ROLE, SOCKET, PostgresServer
from tests.helpers.building import make
from tests.helpers.libpq import PostgresClient
from tests.helpers.recorded_traffic import RecordedTraffic
from tests.helpers.wire_text import recognised

INT8, TEXT, UUID = 20, 25, 2950
TABLES = """
    create table users (id int primary key, name text);
    create table jobs (id bigint primary key, state text);
    create table orders (key uuid primary key, user_id int);
    create table shedlock (name text primary key, lock_until timestamptz, locked_at timestamptz, locked_by text);
"""
ROWS = """
    truncate users, jobs, orders, shedlock;
    insert into users values (1, 'ann'), (2, 'bob'), (3, 'bob');
    insert into jobs values (7, 'new'), (8, 'new');
    insert into orders values ('00112233-4455-6677-8899-aabbccddeeff', 1);
"""


class Recording:
    """Clients of one PostgreSQL, each on a connection of its own."""

    def __init__(self, program: Path, directory: Path, server: PostgresServer) -> None:
        self._program = program
        self._directory = directory
        self._server = server
        self._traffic = RecordedTraffic(directory / SOCKET, server.socket)

    def client(self) -> PostgresClient:
        return PostgresClient(str(self._directory), ROLE, DATABASE)

    def psycopg(self) -> Any:
        return psycopg2.connect(host=str(self._directory), user=ROLE, dbname=DATABASE, sslmode="disable")

    def events(self) -> list[str]:
        """Without the number of the statement."""
        self._traffic.close()
        asked = "select c.oid, relname, attname from pg_class c join pg_index i on indrelid = c.oid and indisprimary "
        asked += "join pg_attribute a on attrelid = c.oid and attnum = any(indkey) where relnamespace = 2200"
        tables = [f"table {oid} {name} {key}" for oid, name, key in self._server.session.rows(asked)]
        lines = [f"settings {DATABASE} 0", *tables, *self._traffic.lines]
        return [
            " ".join((line.split(" ")[0], *line.split(" ")[2:]))
            for line in recognised(self._program, "postgres", lines)
        ]


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with closing(Sandbox()) as sandbox, closing(PostgresServer(sandbox, "postgres-1", clock=None)) as started:
        started.ready()
        started.session.rows(TABLES)
        yield started


@pytest.fixture
def recording(server: PostgresServer, tmp_path: Path) -> Recording:
    server.session.rows(ROWS)
    tmp_path.chmod(0o755)
    return Recording(make("build/tests/recognise") / "tests" / "recognise", tmp_path, server)


def test_psycopg_locks_a_row_in_a_transaction(recording: Recording) -> None:
    with closing(recording.psycopg()) as connection, connection.cursor() as cursor:
        cursor.execute("select * from users where name = %s for update", ("bob",))
        cursor.execute("update users set name = %s where id = %s", ("eve", 2))
        cursor.execute("insert into users values (9, 'new') returning id")
        connection.commit()
        cursor.execute("select name from users where id in %s", ((1, 9),))
        connection.rollback()
    assert recording.events() == [
        "1 transaction-begun in-transaction read-committed",
        '1 lock-asked "postgres users" row exclusive whole-table waits in-transaction',
        '1 lock-granted "postgres users id=2" row exclusive in-transaction',
        '1 lock-granted "postgres users id=3" row exclusive in-transaction',
        '1 access-read "postgres users id=2" in-transaction',
        '1 access-read "postgres users id=3" in-transaction',
        '1 access-write "postgres users id=2" in-transaction',
        '1 access-write "postgres users id=9" inserts in-transaction',
        "1 transaction-committed in-transaction",
        '1 lock-released "postgres users id=2" row exclusive in-transaction: the transaction ended',
        '1 lock-released "postgres users id=3" row exclusive in-transaction: the transaction ended',
        "1 transaction-begun in-transaction read-committed",
        '1 access-read "postgres users id=1" in-transaction',
        '1 access-read "postgres users id=9" in-transaction',
        "1 transaction-rolled-back in-transaction",
    ]


def test_psycopg_says_the_isolation(recording: Recording) -> None:
    with closing(recording.psycopg()) as connection, connection.cursor() as cursor:
        connection.set_session(isolation_level="REPEATABLE READ")
        cursor.execute("select pg_advisory_xact_lock(%s)", (5,))
        connection.commit()
        connection.set_session(autocommit=True)
        cursor.execute("select pg_try_advisory_lock(6), pg_try_advisory_lock(7)")
        cursor.execute("select pg_advisory_unlock(6), pg_advisory_unlock(5)")
    advisory = "advisory exclusive"
    assert recording.events() == [
        "1 transaction-begun in-transaction repeatable-read",
        '1 lock-asked "postgres advisory 5" advisory-transaction exclusive waits in-transaction',
        '1 lock-granted "postgres advisory 5" advisory-transaction exclusive in-transaction',
        "1 transaction-committed in-transaction",
        '1 lock-released "postgres advisory 5" advisory-transaction exclusive in-transaction: the transaction ended',
        f'1 lock-asked "postgres advisory 6" {advisory}',
        f'1 lock-asked "postgres advisory 7" {advisory}',
        f'1 lock-granted "postgres advisory 6" {advisory}',
        f'1 lock-granted "postgres advisory 7" {advisory}',
        f'1 lock-released "postgres advisory 6" {advisory}',
        f'1 lock-release-refused "postgres advisory 5" {advisory} refused=not-held',
        f'1 lock-released "postgres advisory 7" {advisory}: the connection ended',
    ]


def test_statements_that_are_prepared_with_binary_values(recording: Recording) -> None:
    with closing(recording.client()) as client:
        client.prepare(
            "next", "select id from jobs where state = $1 order by id limit 1 for update skip locked", [TEXT]
        )
        client.prepare("take", "update jobs set state = 'taken' where id = $1", [INT8])
        client.prepare("order", "select user_id from orders where key = $1", [UUID])
        client.execute("next", [b"new"], binary=True)
        client.execute("take", [struct.pack("!q", 7)], binary=True)
        client.execute("take", [b"8"])
        client.execute("order", [bytes.fromhex("00112233445566778899aabbccddeeff")], binary=True)
    assert recording.events() == [
        '1 lock-asked "postgres jobs" row exclusive whole-table',
        '1 lock-granted "postgres jobs id=7" row exclusive',
        '1 access-read "postgres jobs id=7"',
        '1 lock-released "postgres jobs id=7" row exclusive: the transaction ended',
        '1 access-write "postgres jobs id=7"',
        '1 access-write "postgres jobs id=8"',
        '1 access-read "postgres orders key=00112233-4455-6677-8899-aabbccddeeff"',
    ]


def test_a_lock_that_another_session_holds(recording: Recording) -> None:
    with closing(recording.client()) as one, closing(recording.client()) as two:
        one.run("begin; select pg_advisory_lock(1); select id from users where id = 1 for update")
        two.run("set lock_timeout = 10; select pg_advisory_lock(1)")
        two.run("select id from users where id = 1 for update nowait")
        two.run("select id from users where id in (1, 2) for update skip locked")
        one.run("commit")
        two.run("select pg_try_advisory_lock(1)")
    assert [event for event in recording.events() if event.startswith("2")] == [
        '2 lock-asked "postgres advisory 1" advisory exclusive waits',
        '2 lock-refused "postgres advisory 1" advisory exclusive refused=timeout: 55P03',
        '2 lock-asked "postgres users id=1" row exclusive',
        '2 lock-refused "postgres users id=1" row exclusive refused=held: 55P03',
        '2 lock-asked "postgres users id=1" row exclusive',
        '2 lock-asked "postgres users id=2" row exclusive',
        '2 lock-granted "postgres users id=2" row exclusive',
        '2 access-read "postgres users id=1"',
        '2 access-read "postgres users id=2"',
        '2 lock-released "postgres users id=2" row exclusive: the transaction ended',
        '2 lock-asked "postgres advisory 1" advisory exclusive',
        '2 lock-refused "postgres advisory 1" advisory exclusive refused=held',
    ]


def test_a_lease_row_of_shedlock(recording: Recording) -> None:
    take = (
        "insert into shedlock (name, lock_until, locked_at, locked_by) "
        "values ($1, timezone('utc', current_timestamp) + $2::interval, timezone('utc', current_timestamp), $3) "
        "on conflict (name) do update set lock_until = excluded.lock_until, locked_by = excluded.locked_by "
        "where shedlock.lock_until <= timezone('utc', current_timestamp)"
    )
    give = "update shedlock set lock_until = timezone('utc', current_timestamp) where name = $1 and locked_by = $2"
    with closing(recording.client()) as one, closing(recording.client()) as two:
        for client, owner in ((one, b"one"), (two, b"two")):
            client.prepare("take", take)
            client.execute("take", [b"job", b"30 s", owner])
        one.prepare("give", give)
        one.execute("give", [b"job", b"one"])
        one.execute("give", [b"job", b"two"])
    row = '"postgres shedlock name=job" lease-row exclusive'
    assert [event for event in recording.events() if "lock-" in event] == [
        f"1 lock-asked {row} owner=one lease=30000",
        f"1 lock-granted {row} owner=one lease=30000",
        f"2 lock-asked {row} owner=two lease=30000",
        f"2 lock-refused {row} owner=two refused=held",
        f"1 lock-released {row} owner=one",
        f"1 lock-release-refused {row} owner=two refused=not-held",
    ]
