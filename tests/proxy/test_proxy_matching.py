"""The proxy: which messages a rule concerns - requests, replies, pushes - and which connections it cannot read."""

import socket
import time

import pytest

from lockstorm.servers.redis_server import RedisServer
from tests.helpers.proxying import (
    DUMMY,
    LAST,
    LINK,
    VIRTUAL,
    Proxy,
    Wire,
    another,
    encode,
    proxy,
    redis_behind,
    wait_until,
)

# --- matching ---

MATCHING = [
    ("COMMAND GET", ["GET a"], ["SET a 1", "PING"]),
    ("COMMAND client|getname", ["CLIENT GETNAME"], ["CLIENT ID", "GET getname"]),
    ("KEY a", ["GET a", "SET a b", "DEL a b"], ["GET b", "SET b a", "PING", "GET aa"]),
    ("KEY a", ["EVAL s 1 a b", "EVALSHA s 2 a b", "FCALL f 1 a"], ["EVAL a 1 b", "EVAL s 0 a", "EVAL s 1 b a"]),
    ("ARG tok", ["SET a tok", "EVAL s 1 k tok", "GET tok"], ["SET a token", "TOK", "GET to"]),
    ("COMMAND SET KEY a ARG b", ["SET a b"], ["SET a c", "SET b a", "APPEND a b"]),
    ("COMMAND SET NTH 3", ["SET a 3", "SET a 4"], []),
    ("", ["PING", "GET a"], []),
]


@pytest.mark.parametrize("inline", [False, True])
@pytest.mark.parametrize(("options", "matching", "others"), MATCHING)
@pytest.mark.parametrize("direction", ["to-server", "to-client"])
def test_match_options(
    running: Proxy,
    server: RedisServer,
    wire: Wire,
    options: str,
    matching: list[str],
    others: list[str],
    direction: str,
    inline: bool,
) -> None:
    words = [word.replace("|", " ") for word in options.split()]
    running.rule(f"x * {direction} drop", *words)

    def send(line: str) -> None:
        wire.raw(line.encode() + b"\r\n") if inline else wire.send(tuple(line.split()))

    if "NTH" in options:
        for line in ("SET a 1", "SET a 2"):
            send(line)
            wire.expect(b"+OK\r\n")
    for number, line in enumerate(matching, 1):
        send(line)
        running.fired("x", number)
    for line in others:
        send(line)
        assert wire.socket.recv(4096)

    assert running.stat("x")["fired"] == len(matching)


def test_arguments_may_be_any_bytes(running: Proxy, server: RedisServer, wire: Wire) -> None:
    running.rule("x * to-server drop KEY", b"\x00\r\n\xff")
    wire.send(("SET", b"\x00\r\n\xff", "1"), ("SET", b"\x00\r\n\xfe", "1"), ("SET", "", "1"))
    wire.expect(b"+OK\r\n+OK\r\n")
    running.rule("empty * to-server drop KEY", b"")
    wire.send(("SET", "", "1"), ("SET", " ", "1"))
    wire.expect(b"+OK\r\n")
    assert (running.stat("x")["fired"], running.stat("empty")["fired"]) == (1, 1)


def test_arguments_beyond_the_head_cannot_match(running: Proxy, server: RedisServer, wire: Wire) -> None:
    running.rule("x * to-server drop ARG needle")
    near, far = b"x" * 60_000, b"x" * 70_000
    wire.send(("MSET", "a", far, "b", "needle"), ("SET", "c", near, "needle"), ("PING",))
    wire.expect(b"+OK\r\n+PONG\r\n")
    assert running.stat("x")["fired"] == 1


@pytest.mark.parametrize("beyond", [0, 1])
def test_an_argument_may_end_with_the_head(running: Proxy, server: RedisServer, wire: Wire, beyond: int) -> None:
    head = 64 << 10
    short = len(encode("MSET", "a", b"x" * 60_000, "b", "needle"))
    request = encode("MSET", "a", b"x" * (60_000 + head - short + beyond), "b", "needle")
    assert len(request) == head + beyond
    running.rule("x * to-server drop ARG needle")
    wire.raw(request + encode("PING"))
    wire.expect(b"+OK\r\n+PONG\r\n" if beyond else b"+PONG\r\n")
    assert running.stat("x")["fired"] == 1 - beyond


def test_rules_concern_the_links_they_name(running: Proxy, server: RedisServer) -> None:
    first = running.wire(running.add("client-1>redis-1", server.socket))
    second = running.wire(running.add("client-2>redis-1", server.socket))
    running.rule("x client-[2-9]>redis-* to-server drop COMMAND SET")
    first.send(("SET", "a", "1"))
    first.expect(b"+OK\r\n")
    second.send(("SET", "a", "2"), ("GET", "a"))
    second.expect(b"$1\r\n1\r\n")
    later = running.wire(running.add("client-3>redis-1", server.socket))
    later.send(("SET", "a", "3"), ("GET", "a"))
    later.expect(b"$1\r\n1\r\n")
    running.fired("x", 2)
    by_link = [record.extra for record in running.records("rule")]
    assert len(set(by_link)) == 2


def test_of_several_rules_the_first_wins_and_delays_add_up(running: Proxy, server: RedisServer, wire: Wire) -> None:
    running.rule("slow-1 * to-client delay 20 COMMAND GET")
    running.rule("first * to-server drop KEY a COUNT 1")
    running.rule("second * to-server drop KEY a")
    running.rule("slow-2 * to-client delay 30 KEY b")
    began = time.monotonic()
    wire.send(("SET", "a", 1), ("SET", "a", 2), ("GET", "b"))
    wire.expect(b"$-1\r\n")
    assert 0.049 < time.monotonic() - began < 60
    assert [running.stat(name)["fired"] for name in ("slow-1", "first", "second", "slow-2")] == [1, 1, 1, 1]
    assert running.stat("second")["matched"] == 2


def test_a_rule_in_the_middle_of_a_pipeline_and_of_a_message(running: Proxy, server: RedisServer, wire: Wire) -> None:
    first, second, third = encode("SET", "a", "1"), encode("SET", "a", "2"), encode("SET", "a", "3")
    wire.raw(first + second[:12])
    wire.expect(b"+OK\r\n")
    running.settle()
    running.rule("x * to-server drop COMMAND SET")
    wire.raw(second[12:] + third)
    wire.send(("GET", "a"))
    wire.expect(b"+OK\r\n$1\r\n2\r\n")
    running.fired("x", 1)
    wire.raw(first[:12])
    running.settle()
    running.command("RULE", "REMOVE", "x")
    wire.raw(first[12:])
    wire.expect(b"+OK\r\n")


# --- pushes and subscribers ---


@pytest.mark.parametrize("protocol", [2, 3])
def test_one_published_message_of_three_is_lost(running: Proxy, server: RedisServer, wire: Wire, protocol: int) -> None:
    wire.send(("HELLO", protocol), ("SUBSCRIBE", "c", "d"), ("PSUBSCRIBE", "e*"), ("PING",))
    wait_until(lambda: running.link(LINK)["replies"] == 5)
    while not wire.silent():
        wire.socket.recv(65536)
    running.rule("lost * to-client drop PUSH KEY c NTH 2 COUNT 1")
    running.rule("elsewhere * to-client drop PUSH KEY e2 ARG x")
    for channel, text in (("c", 1), ("d", 2), ("c", 3), ("e1", 4), ("c", 5), ("e2", "x"), ("e2", "y")):
        server.link.publish(channel, text)

    def message(*words: str) -> bytes:
        return encode(*words).replace(b"*", b">" if protocol == 3 else b"*", 1)

    wire.expect(message("message", "c", "1") + message("message", "d", "2"))
    wire.expect(message("pmessage", "e*", "e1", "4") + message("message", "c", "5"))
    wire.expect(message("pmessage", "e*", "e2", "y"))
    running.fired("lost", 1)
    running.fired("elsewhere", 1)
    assert running.stat("lost")["matched"] == 3
    seen = running.link(LINK)
    assert (seen["requests"], seen["replies"], seen["pushes"]) == (4, 5, 7)


@pytest.mark.parametrize("protocol", [2, 3])
def test_subscribing_keeps_replies_and_requests_in_step(
    running: Proxy, server: RedisServer, wire: Wire, protocol: int
) -> None:
    """After all kinds of confirmations, a rule for one reply still finds it."""
    requests = [
        ("HELLO", protocol),
        ("SUBSCRIBE", "a", "b", "a"),
        ("PSUBSCRIBE", "p*"),
        ("SSUBSCRIBE", "s"),
        ("UNSUBSCRIBE",),
        ("SUBSCRIBE",),
        ("PUNSUBSCRIBE", "p*", "nothing"),
        ("UNSUBSCRIBE",),
        ("SUNSUBSCRIBE",),
        ("RPUSH", "l", "message", "c", "text"),
        ("LRANGE", "l", 0, -1),
        ("LRANGE", "l", 0, -1),
        ("SUBSCRIBE", "a"),
        ("RESET",),
        ("LRANGE", "l", 0, -1),
        ("ECHO", LAST),
    ]
    running.rule("lost * to-client drop COMMAND LRANGE NTH 2 COUNT 1")
    wire.send(*requests)
    got = b""
    while not got.endswith(b"%s\r\n" % LAST.encode()):
        got += wire.socket.recv(65536)
    assert got.count(encode("message", "c", "text")) == 2
    running.fired("lost", 1)
    seen = running.link(LINK)
    confirmations = 3 + 1 + 1 + 2 + 2 + 1 + 1 + 1
    others = 1 + 1 + 1 + 3 + 1 + 1
    assert (seen["requests"], seen["replies"], seen["pushes"]) == (len(requests), confirmations + others, 0)


def test_invalidations_are_pushes(running: Proxy, server: RedisServer, wire: Wire) -> None:
    wire.send(("HELLO", 3), ("CLIENT", "TRACKING", "ON"), ("GET", "k"))
    wait_until(lambda: running.link(LINK)["replies"] == 3)
    while not wire.silent():
        wire.socket.recv(65536)
    running.rule("lost * to-client drop PUSH COMMAND invalidate")
    server.link.set("k", "1")
    running.fired("lost")
    wire.send(("GET", "k"))
    wire.expect(b"$1\r\n1\r\n")


# --- opaque connections ---


def test_monitor_makes_a_connection_opaque(running: Proxy, server: RedisServer, wire: Wire) -> None:
    running.rule("held * to-client hold COMMAND ECHO")
    wire.send(("ECHO", "x"), ("MONITOR",))
    running.fired("held")
    server.link.ping()
    assert running.stats()["opaque"] == 1
    running.command("RULE", "REMOVE", "held")
    wire.expect(b"$1\r\nx\r\n+OK\r\n")
    server.link.set("k", "1")
    wait_until(lambda: b'"SET" "k" "1"' in wire.socket.recv(4096))
    (note,) = running.records("note")
    assert LINK in str(note.name)
    running.rule("hole * to-client black-hole")
    server.link.set("k", "2")
    running.fired("hole")
    assert wire.silent()


def test_on_an_opaque_connection_what_comes_at_one_moment_is_one_message() -> None:
    """A sender may write it in two pieces, and the proxy may read the first alone (ZooKeeper's clients do that)."""
    with proxy(VIRTUAL) as running, redis_behind(running) as server:
        wire = running.wire(running.add(LINK, server.socket))
        wire.send(("MONITOR",))
        wire.expect(b"+OK\r\n")
        running.rule("held * to-server hold")
        running.rule("late * to-server delay 10")
        for _ in range(2):
            for piece in (b"1234", b"12345678"):
                wire.raw(piece)
                running.settle()
            running.advance(1)
        fired = [(record.name, record.value, record.op) for record in running.records("rule")]
        assert [op for name, _, op in fired if str(name).startswith("held")] == [1, 2]
        assert [op for name, _, op in fired if str(name).startswith("late")] == [1, 2]
        assert {value for _, value, _ in fired} == {0}
        running.command("RULE", "REMOVE", "late")
        running.command("RULE", "REMOVE", "held")
        assert [(record.value, record.op) for record in running.records("released")] == [(0, 1), (0, 2)]
        running.advance(10)


def test_a_replica_follows_through_the_proxy(running: Proxy, server: RedisServer) -> None:
    server.listen()
    with redis_behind(running, "redis-2") as replica:
        address = running.add("redis-2>redis-1", f"127.0.0.1:{server.port}", tcp=True)
        host, port = address.split(":")
        replica.link.replicaof(host, port)
        wait_until(lambda: replica.link.info("replication")["master_link_status"] == "up", 20)
        server.link.set("k", "1")
        wait_until(lambda: replica.link.get("k") == b"1")
        running.rule("hole redis-2>redis-1 to-client black-hole")
        server.link.set("k", "2")
        running.fired("hole")
        assert replica.link.get("k") == b"1"
        assert running.stats()["opaque"] == 1
        replica.link.replicaof("NO", "ONE")


GARBAGE = [
    b"*1\r\n:1\r\n",
    b"*1\r\n$-5\r\n",
    b"*99999999999999999999\r\n",
    b"*?\r\n",
    b"*1x\n$4\r\nPING\r\n",
    b"*1\r\n$4x\nPING\r\n",
]


@pytest.mark.parametrize("garbage", GARBAGE)
def test_garbage_makes_a_connection_opaque_and_nothing_else(
    running: Proxy, server: RedisServer, wire: Wire, garbage: bytes
) -> None:
    running.rule(DUMMY)
    other = another(running)
    wire.raw(encode("PING") + garbage + b"what comes after")
    got = b""
    while more := wire.socket.recv(4096):
        got += more
    assert got.startswith(b"+PONG\r\n-ERR Protocol error")
    assert len(running.records("note")) == 1
    other.send(("PING",))
    other.expect(b"+PONG\r\n")


def test_streamed_aggregates_pass_untouched(running: Proxy) -> None:
    running.rule(DUMMY)
    target = running.directory / "fake.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(target))
        listening.listen()
        client = running.wire(running.add(LINK, target))
        fake, _ = listening.accept()
        with fake:
            answer = b"+first\r\n$?\r\n;4\r\nabcd\r\n;0\r\n*?\r\n:1\r\n.\r\n" + bytes(range(256))
            client.send(("X",))
            assert fake.recv(100) == encode("X")
            fake.sendall(answer)
            client.expect(answer)
            assert running.stats()["opaque"] == 1
            client.raw(b"\x00\x01\x02")
            assert fake.recv(100) == b"\x00\x01\x02"


def test_replies_that_are_switched_off_are_noted(running: Proxy, server: RedisServer, wire: Wire) -> None:
    wire.send(("CLIENT", "REPLY", "OFF"), ("SET", "k", 1), ("CLIENT", "REPLY", "ON"), ("PING",))
    wire.expect(b"+OK\r\n+PONG\r\n")
    assert running.stats()["opaque"] == 1


def test_a_plain_link_carries_anything(running: Proxy) -> None:
    target = running.directory / "fake.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(target))
        listening.listen()
        running.rule("never * both drop COMMAND GET")
        client = running.wire(running.add(LINK, target, "PLAIN"))
        fake, _ = listening.accept()
        with fake:
            client.raw(b"*1\r\n$3\r\nGET")
            assert fake.recv(100) == b"*1\r\n$3\r\nGET"
            running.rule("hole * to-server black-hole")
            client.raw(b"lost")
            running.fired("hole")
            assert running.stats()["opaque"] == 0 and not running.records("note")
            running.command("RULE", "REMOVE", "hole")
            assert fake.recv(100) == b"" and client.ended()
