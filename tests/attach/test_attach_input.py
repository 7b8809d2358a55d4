"""Bad servers, URLs and files: one sentence, exit status 2, within 10 s."""

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstorm.attach.server_address import ServerAddress, parse_address
from lockstorm.base.errors import UsageError
from lockstorm.process.held_port import HeldPort
from tests.helpers.outside_servers import outside_server
from tests.helpers.support import lockstorm

LIMIT_S = 60.0  # far more than the command waits for a server that does not answer
FORMS = (
    "give redis://HOST:PORT/DATABASE, rediss:// for TLS, redis+sentinel://HOST:PORT/MASTER/DATABASE with the address "
    "of a sentinel, or redis+cluster://HOST:PORT"
)
EVERY_FORM = "give redis://, postgresql://, etcd:// or zookeeper://, such as redis://HOST:PORT/DATABASE"
POSTGRES_FORM = "give postgresql://USER@HOST:PORT/DATABASE, with ?sslmode=verify-full for TLS"
HIDDEN = (
    "which other users of this machine could see: leave it out, and put the password into the variable "
    "LOCKSTORM_PASSWORD"
)


def refused(url: str, *words: str) -> str:
    begun_s = time.monotonic()
    done = lockstorm("attach", url, *(words or ("--lock", "set-nx-px")))
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.count("\n") == 1 and time.monotonic() - begun_s < LIMIT_S
    return done.stderr.removeprefix("lockstorm: ").rstrip()


@contextlib.contextmanager
def fake_server(answer: bytes | None) -> Iterator[str]:
    """Answers each connection's first bytes with these and closes it; None: never answers. Yields HOST:PORT."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        kept = []

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    kept.append(connection)
                    if answer is not None:
                        connection.recv(1000)
                        connection.sendall(answer)
                        connection.close()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            for connection in kept:
                connection.close()


# --- URLs ---


def test_what_a_url_says() -> None:
    assert parse_address("redis://staging") == ServerAddress(
        "redis://staging", "single", False, (("staging", 6379),), "", 0, "", "LOCKSTORM_PASSWORD"
    )
    address = parse_address("rediss+sentinel://app@a:1,[::1]:2/the%20master/7?password-env=SECRET")
    assert (address.kind, address.tls, address.seeds) == ("sentinel", True, (("a", 1), ("::1", 2)))
    assert (address.user, address.master, address.database) == ("app", "the master", 7)
    assert (address.password_variable, address.shown) == ("SECRET", "a:1,[::1]:2")
    assert parse_address("redis+sentinel://a/m").seeds == (("a", 26379),)
    other = parse_address("postgresql://app%40x@db/staging?sslmode=require")
    assert (other.service, other.user, other.name, other.tls, other.is_checked) == (
        *("postgres", "app@x", "staging"),
        *(True, False),
    )
    assert (other.seeds, other.password_variables) == ((("db", 5432),), ("LOCKSTORM_PASSWORD", "PGPASSWORD"))
    assert parse_address("zookeeper://a,b:7/locks/x").name == "/locks/x"
    assert parse_address("redis+cluster://a,b:7/0").seeds == (("a", 6379), ("b", 7))


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("staging:6379", f"'staging:6379' is no URL of servers that attach knows: {EVERY_FORM}"),
        ("", f"'' is no URL of servers that attach knows: {EVERY_FORM}"),
        ("ftp://a:secret@b", f"'ftp://b' is no URL of servers that attach knows: {EVERY_FORM}"),
        ("postgresql://db/x", f"postgresql://db/x names no user: {POSTGRES_FORM}"),
        ("postgresql://app@db", f"postgresql://app@db names no database: {POSTGRES_FORM}"),
        ("postgresql://app@a,b/x", "postgresql://app@a,b/x names 2 servers, and attach takes one: the primary"),
        (
            "postgresql://app@a/x?sslmode=prefer",
            "postgresql://app@a/x?sslmode=prefer: sslmode=prefer is not known: there are disable, require, verify-full",
        ),
        (
            "postgresql://app@a/x?timeout=3",
            "postgresql://app@a/x?timeout=3: timeout is not known: the parameters are password-env=VARIABLE and "
            "sslmode=MODE",
        ),
        ("etcd://a/x", "etcd://a/x names 'x', and etcd has no databases: give etcd://HOST:PORT, or etcds:// for TLS"),
        ("zookeeper://me@a", "zookeeper://me@a names a user, and attach does not log in to ZooKeeper: leave it out"),
        ("redis://a:se/cret@b", f"the URL contains a password, {HIDDEN}"),
        ("redis://:sec@ret@b", f"the URL contains a password, {HIDDEN}"),
        ("redis://", f"redis://: '' is no HOST:PORT with a port from 1 to 65535: {FORMS}"),
        ("redis://a:0", f"redis://a:0: 'a:0' is no HOST:PORT with a port from 1 to 65535: {FORMS}"),
        ("redis://a:70000", f"redis://a:70000: 'a:70000' is no HOST:PORT with a port from 1 to 65535: {FORMS}"),
        ("redis://a/x", f"redis://a/x: 'x' is no number of a database: {FORMS}"),
        ("redis://a,b", "redis://a,b names 2 servers: redis+sentinel:// and redis+cluster:// take several"),
        (
            "redis+sentinel://a",
            "redis+sentinel://a names no master: redis+sentinel://HOST:PORT/MASTER, as the sentinels call it",
        ),
        (
            "redis+cluster://a/3",
            "redis+cluster://a/3 names a database: a cluster has only database 0, so leave it out",
        ),
        ("redis://a?db=3", "redis://a?db=3: db is not known: the only parameter is password-env=VARIABLE"),
        ("redis://a?password-env=1x", "redis://a?password-env=1x: password-env=1x is no name of a variable"),
    ],
)
def test_a_url_with_a_mistake(url: str, said: str) -> None:
    with pytest.raises(UsageError) as refusal:
        parse_address(url)
    assert str(refusal.value) == said


# --- servers ---


def test_nobody_listens() -> None:
    with HeldPort() as port:
        place = f"127.0.0.1:{port.number}"
        assert refused(f"redis://{place}") == f"no server answers at {place}: connection refused"


def test_a_host_without_an_address() -> None:
    assert refused("redis://no-such-host.invalid").startswith("no server answers at no-such-host.invalid:6379: ")


def test_a_server_that_is_no_redis() -> None:
    with fake_server(b"HTTP/1.1 400 Bad Request\r\n\r\n") as place:
        said = f"{place} answers, but not as a Redis server does: check the host and the port"
        assert refused(f"redis://{place}") == said
        assert refused(f"rediss://{place}").startswith(f"{place} does not speak TLS (")


@pytest.mark.parametrize("query", ["", "?sslmode=require"])
def test_a_server_that_is_no_postgresql(query: str) -> None:
    with fake_server(b"HTTP/1.1 400 Bad Request\r\n\r\n") as place:
        said = f"{place} answers, but not as a PostgreSQL server does: check the host and the port"
        assert refused(f"postgresql://app@{place}/x{query}", "--lock", "pg-lease") == said


def test_a_server_that_is_neither_etcd_nor_zookeeper() -> None:
    with fake_server(b"-ERR unknown command\r\n") as place:
        said = f"{place} answers, but not as etcd does: check the host and the port"
        assert refused(f"etcd://{place}", "--lock", "etcd") == said
        assert refused(f"etcds://{place}", "--lock", "etcd").startswith(f"{place} does not speak TLS (")
        said = f"{place} answers, but not as a ZooKeeper server does: check the host and the port"
        assert refused(f"zookeeper://{place}", "--lock", "zookeeper") == said
    with HeldPort() as port:
        place = f"127.0.0.1:{port.number}"
        for url, lock in ((f"etcd://{place}", "etcd"), (f"zookeeper://{place}", "zookeeper")):
            assert refused(url, "--lock", lock) == f"no server answers at {place}: connection refused"


def test_a_server_that_closes() -> None:
    with fake_server(b"") as place:
        said = f"{place} closes the connection (the connection was closed): use rediss:// if it expects TLS"
        assert refused(f"redis://{place}") == said


@pytest.mark.waits
def test_a_server_that_says_nothing() -> None:
    with fake_server(None) as place:
        assert refused(f"redis://{place}") == f"{place} accepts connections but does not answer within 3 s"


def test_a_database_that_does_not_exist_and_a_replica(tmp_path: Path) -> None:
    with outside_server(tmp_path) as master:
        said = refused(f"redis://{master.place}/99")
        assert said == f"{master.place} refuses to work with lockstorm: ERR DB index is out of range"
        with outside_server(tmp_path, "--replicaof", "127.0.0.1", str(master.port)) as replica:
            said = refused(f"redis://{replica.place}")
            assert said == f"{replica.place} is a replica of {master.place}, and a lock needs the master: name that one"
        said = refused(f"redis+cluster://{master.place}")
        assert said == (
            f"{master.place} refuses to work with lockstorm: ERR This instance has cluster support disabled"
        )


def test_a_user_that_may_not_look(tmp_path: Path) -> None:
    with outside_server(tmp_path, "--user", "app", "on", "nopass", "~*", "+@all", "-info") as server:
        server.ask("ACL", "SETUSER", "default", "-info")
        said = refused(f"redis://{server.place}")
        assert said.startswith("the server refuses INFO server: NOPERM ")


# --- what is asked for ---


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--lock", "redlock"), "redlock needs 5 servers, and attach has one: try it by lockstorm run"),
        (
            ("--lock", "etcd"),
            "etcd lives on etcd, and redis://127.0.0.1:1 is Redis: `lockstorm locks` lists the locks of each service",
        ),
        (("--lock", "set-nx-px", "--scenario", "gc-puase"), "there is no scenario called 'gc-puase': did you mean"),
        (("--lock", "set-nx-px", "--scenario", "failover-cluster"), "failover-cluster breaks a server or needs one"),
        (("--lock", "setnx", "--scenario", "pause-after-write-check"), "pause-after-write-check does not apply to "),
        (("--lock", "setnx", "-o", "x"), "-o is for one trial, and there are "),
        (("--lock", "setnx", "--scenario", "gc-pause", "--clients", "3"), "--clients is for "),
        (("--lock", "setnx", "--fault", "x"), "attach.toml: no such file or directory: --faults names the file with"),
        (("--lock", "setnx", "--ca", "/no-file"), "--ca /no-file is for rediss:// and the like: "),
    ],
)
def test_a_request_with_a_mistake(words: tuple[str, ...], said: str) -> None:
    assert refused("redis://127.0.0.1:1", *words).startswith(said)


def test_an_adapter_speaks_to_the_service_that_its_hello_names() -> None:
    assert refused("postgresql://app@127.0.0.1:1/x", "--adapter", "redis-py").startswith(
        "adapter:redis-py lives on Redis, and postgresql://app@127.0.0.1:1/x is PostgreSQL: "
    )


def test_an_adapter_would_write_outside_the_run_s_node_of_zookeeper() -> None:
    assert refused("zookeeper://127.0.0.1:1/x", "--adapter", "kazoo").startswith(
        "an adapter does not know the node below which a run keeps all that it writes to your ZooKeeper"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[fault.a]\ninject = 'true'\n", "[fault.a] has no prove: a command whose exit status is 0 when it has"),
        ("[fault.a]\ninject = ''\n", "[fault.a]: inject has to be a text in quotes that is not empty"),
        ("[fault.a]\nbreak = 'x'\n", "[fault.a]: break is not known: there are inject, prove, heal, limit, lasts"),
        ("faults = 1\n", "faults is not known: write tables such as [fault.failover] with inject, prove and heal"),
        ("fault = 1\n", "fault is no table: write tables such as [fault.failover] with inject, prove and heal"),
        ("[fault.a]\ninject = 'x'\nprove = 'x'\nlimit = '1h'\n", "[fault.a]: limit 1h: from 1ms to 10min"),
        ("[fault", "Expected ']' at the end of a table declaration"),
    ],
)
def test_a_file_of_faults_with_a_mistake(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "attach.toml"
    file.write_text(text)
    found = refused("redis://127.0.0.1:1", "--lock", "setnx", "--fault", "a", "--faults", str(file))
    assert found.startswith(f"{file}: {said}"), json.dumps(found)
