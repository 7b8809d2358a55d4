"""The proxy: what it does to messages, with a real redis-server behind it."""

import os
import resource
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from harness.driver.redis_server import RedisServer
from tests.proxying import VIRTUAL, Proxy, Wire, encode, pairs, proxy, redis_behind, wait_until
from tests.support import short_directory

LINK = "client-1>redis-1"
MIB = 1 << 20

# What the program may have in memory: 16 MiB, while its own buffers are 2 MiB at most. A sanitizer keeps what is freed.
SANITIZED = "LOCKSTORM_PROGRAMS" in os.environ
RESIDENT_MOST_KIB = 16 << (20 if SANITIZED else 10)
GROWTH_MOST_KIB = 400 << (10 if SANITIZED else 0)


@pytest.fixture
def running() -> Iterator[Proxy]:
    with proxy() as started:
        yield started


@pytest.fixture
def server(running: Proxy) -> Iterator[RedisServer]:
    with redis_behind(running) as started:
        yield started


@pytest.fixture
def wire(running: Proxy, server: RedisServer) -> Wire:
    return running.wire(running.add(LINK, server.socket))


def another(running: Proxy) -> Wire:
    return running.wire(running.link(LINK)["listen"])


def resident_kib(running: Proxy, what: str = "VmRSS") -> int:
    """Its memory by the kernel's books."""
    return int(Path(f"/proc/{running.process.pid}/status").read_text().split(f"{what}:")[1].split()[0])


# --- passing ---

STREAM = [
    ("SET", "a", "1"),
    ("GET", "a"),
    ("GET", "nothing"),
    ("RPUSH", "l", "x", "", "y\r\nz"),
    ("LRANGE", "l", "0", "-1"),
    ("HSET", "h", "f", "v"),
    ("HGETALL", "h"),
    ("SADD", "s", "m"),
    ("SMEMBERS", "s"),
    ("ZADD", "z", "1.5", "m"),
    ("ZSCORE", "z", "m"),
    ("NOSUCHCOMMAND",),
    ("EVAL", "return {1,{2,{3,{}}},'x',false}", "0"),
    ("DEBUG", "PROTOCOL", "attrib"),
    ("DEBUG", "PROTOCOL", "bignum"),
    ("DEBUG", "PROTOCOL", "verbatim"),
    ("DEBUG", "PROTOCOL", "map"),
    ("DEBUG", "PROTOCOL", "true"),
    ("DEBUG", "PROTOCOL", "null"),
    ("MULTI",),
    ("INCR", "n"),
    ("EXEC",),
    ("PING",),
]
DUMMY = "dummy * both drop ARG no-such-argument"
LAST = "=the-last-one="


def replies_to(wire: Wire, protocol: int, pieces: list[bytes]) -> bytes:
    """All replies, up to that to the last ECHO."""
    wire.send(("FLUSHALL",), ("HELLO", protocol))
    for piece in pieces:
        wire.raw(piece)
    wire.send(("ECHO", LAST))
    got = b""
    while not got.endswith(b"%s\r\n" % LAST.encode()):
        got += wire.socket.recv(65536)
    return got[got.index(b"modules") :]  # the reply to HELLO says the connection's number


@pytest.mark.parametrize("rule", [None, DUMMY])
@pytest.mark.parametrize("protocol", [2, 3])
def test_all_replies_come_back_and_are_counted(
    running: Proxy, server: RedisServer, wire: Wire, protocol: int, rule: str | None
) -> None:
    if rule:
        running.rule(rule)
    stream = b"".join(encode(*request) for request in STREAM)
    direct = replies_to(running.wire(str(server.socket)), protocol, [stream])
    assert replies_to(wire, protocol, [stream]) == direct
    seen = running.link(LINK)
    assert (seen["requests"], seen["replies"], seen["pushes"]) == (len(STREAM) + 3, len(STREAM) + 3, 0)
    assert running.stats()["opaque"] == 0


@pytest.mark.parametrize("rule", [None, DUMMY])
def test_requests_cut_anywhere(running: Proxy, server: RedisServer, wire: Wire, rule: str | None) -> None:
    if rule:
        running.rule(rule)
    stream = b"".join(encode(*request) for request in STREAM[:9]) + b"ECHO inline\r\n\r\n*0\r\n" + encode("PING")
    direct = replies_to(running.wire(str(server.socket)), 2, [stream])
    for cut in range(1, len(stream)):
        wire.send(("FLUSHALL",))
        wire.expect(b"+OK\r\n")
        wire.raw(stream[:cut])
        running.settle()
        wire.raw(stream[cut:])
        wire.send(("ECHO", LAST))
        wanted = direct[direct.index(b"+OK\r\n$1\r\n1") :]
        assert wire.read(len(wanted)) == wanted
    one_by_one = [stream[at : at + 1] for at in range(len(stream))]
    assert replies_to(another(running), 2, one_by_one) == direct


def test_replies_cut_anywhere_and_one_of_them_dropped(running: Proxy) -> None:
    """From a server that is cut short by us: the fourth of six replies is lost, pushes before and after it are not."""
    replies = [
        b"+OK\r\n",
        b"$-1\r\n",
        b"|1\r\n+ttl\r\n:3\r\n*2\r\n%1\r\n+k\r\n~1\r\n#t\r\n,1.5\r\n",
        b"*3\r\n$4\r\nlost\r\n$0\r\n\r\n*0\r\n",
        b"=7\r\ntxt:abc\r\n",
        b"(123\r\n",
    ]
    push = b">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$4\r\nlost\r\n"
    stream = b"".join([*replies[:3], push, replies[3], push, *replies[4:]])
    wanted = stream.replace(replies[3], b"")
    target = running.directory / "fake.sock"
    address = running.add(LINK, target)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(target))
        listening.listen()
        for cut in range(len(stream)):
            client = running.wire(address)
            fake, _ = listening.accept()
            with fake:
                running.rule("lose * to-client drop COMMAND GET KEY d")
                requests = b"".join(encode("GET", key) for key in "abcdef")
                client.raw(requests)
                assert fake.recv(1000) == requests
                fake.sendall(stream[:cut])
                running.settle()
                fake.sendall(stream[cut:])
                client.expect(wanted)
                assert (running.stat("lose")["fired"], running.ask("RULE", "REMOVE", "lose")) == (1, 1)
            client.close()


def test_a_big_value_streams_through_little_memory(running: Proxy, server: RedisServer, wire: Wire) -> None:
    value = os.urandom(MIB) * 64
    running.rule("dummy * both drop COMMAND DEL")
    writer = threading.Thread(target=wire.send, args=(("SET", "big", value),))
    writer.start()
    most = 0
    while writer.is_alive():
        most = max(most, running.stats()["memory"])
    wire.expect(b"+OK\r\n")
    wire.send(("GET", "big"))
    wait_until(lambda: not wire.silent())
    most = max(most, running.stats()["memory"])  # nobody reads: the queue is as full as it gets
    wire.expect(b"$%d\r\n" % len(value))
    assert wire.read(len(value) + 2) == value + b"\r\n"
    assert most < 3 * MIB
    assert resident_kib(running, "VmHWM") < RESIDENT_MOST_KIB


# --- actions on replies ---


def test_exactly_one_set_reply_is_held_and_released(running: Proxy, server: RedisServer, wire: Wire) -> None:
    running.rule("held * to-client hold COMMAND set KEY lock COUNT 1")
    other = another(running)
    wire.send(("SET", "other", 1), ("SET", "lock", 1), ("GET", "lock"))
    wire.expect(b"+OK\r\n")
    running.fired("held")
    wait_until(lambda: running.link(LINK)["replies"] == 3)
    assert wire.silent() and server.link.get("lock") == b"1"
    other.send(("SET", "lock", 2))
    other.expect(b"+OK\r\n")
    assert running.stat("held")["held"] == 1
    assert running.ask("RULE", "RELEASE", "held") == 1
    wire.expect(b"+OK\r\n$1\r\n1\r\n")
    fired, released = running.records("rule", "released")
    assert (fired["kind"], fired["name"], fired["op"], fired["value"]) == ("rule", "held", 1, 5)
    assert (released["kind"], released["name"], released["op"], released["value"]) == ("released", "held", 1, 5)
    assert fired["extra"] == released["extra"]


def test_held_messages_are_released_in_order_and_by_number(running: Proxy, wire: Wire) -> None:
    running.rule("held * to-client hold COMMAND ECHO")
    second = another(running)
    wire.send(("ECHO", "1"))
    running.fired("held", 1)
    second.send(("ECHO", "2"))
    running.fired("held", 2)
    wire.send(("ECHO", "3"))
    running.fired("held", 3)
    assert running.ask("RULE", "RELEASE", "held", 2) == 2
    wire.expect(b"$1\r\n1\r\n")
    second.expect(b"$1\r\n2\r\n")
    assert wire.silent() and running.stat("held")["held"] == 1
    assert running.ask("RULE", "REMOVE", "held") == 1
    wire.expect(b"$1\r\n3\r\n")
    assert running.ask("RULE", "REMOVE", "held") == 0
    assert running.stat("held") == {
        "name": "held",
        "fired": 3,
        "matched": 3,
        "held": 0,
        "released": 3,
        "swallowed": 0,
        "active": 0,
    }


def test_a_dropped_reply_is_the_one_that_was_meant(running: Proxy, server: RedisServer, wire: Wire) -> None:
    running.rule("lost * to-client drop COMMAND INCR NTH 2 COUNT 1")
    wire.send(*[("INCR", "n")] * 4)
    wire.expect(b":1\r\n:3\r\n:4\r\n")
    stat = running.stat("lost")
    assert (stat["fired"], stat["matched"], stat["swallowed"]) == (1, 4, 4)
    assert server.link.get("n") == b"4"


def test_a_request_sent_before_the_rule_has_no_reply_to_match(running: Proxy, wire: Wire) -> None:
    wire.send(("BLPOP", "list", 0))
    wait_until(lambda: running.link(LINK)["requests"] == 1)
    running.rule("lost * to-client drop COMMAND BLPOP")
    running.rule("all * to-client drop REPLY")
    pusher = another(running)
    pusher.send(("RPUSH", "list", "x"))
    wire.expect(encode("list", "x"))
    running.fired("all", 1)
    assert running.stat("lost")["matched"] == 0


# --- actions on requests ---


def test_a_held_request_arrives_although_its_client_has_closed(running: Proxy, server: RedisServer, wire: Wire) -> None:
    running.rule("held * to-server hold COMMAND SET")
    wire.send(("SET", "k", "late"), ("INCR", "n"))
    running.fired("held")
    wire.close()
    running.settle()
    assert server.link.get("k") is None
    assert running.ask("RULE", "RELEASE", "held") == 1
    wait_until(lambda: server.link.get("n") == b"1")
    assert server.link.get("k") == b"late"
    wait_until(lambda: running.stats()["connections"] == 0)


def test_a_dropped_request_leaves_the_others_replies_in_place(running: Proxy, server: RedisServer, wire: Wire) -> None:
    running.rule("lost * to-server drop KEY b")
    running.rule("held * to-client hold COMMAND GET KEY c")
    wire.send(("SET", "a", 1), ("SET", "b", 2), ("SET", "c", 3), ("GET", "c"), ("GET", "a"))
    wire.expect(b"+OK\r\n+OK\r\n")
    running.fired("held")
    assert wire.silent() and server.link.get("b") is None
    running.ask("RULE", "RELEASE", "held")
    wire.expect(b"$1\r\n3\r\n$1\r\n1\r\n")


@pytest.mark.parametrize("protocol", [2, 3])
def test_a_duplicated_request_counts_twice_and_is_answered_once(
    running: Proxy, server: RedisServer, wire: Wire, protocol: int
) -> None:
    wire.send(("HELLO", protocol), ("ECHO", LAST))
    while not wire.socket.recv(65536).endswith(LAST.encode() + b"\r\n"):
        pass
    running.rule("twice * to-server duplicate COMMAND INCR COUNT 1")
    wire.send(("INCR", "n"), ("GET", "n"), ("INCR", "n"))
    wire.expect(b":1\r\n$1\r\n2\r\n:3\r\n")
    running.ask("RULE", "REMOVE", "twice")
    running.rule("twice * to-server duplicate COMMAND SUBSCRIBE")
    wire.send(("SUBSCRIBE", "c", "d"), ("PING",))
    confirmed = b"".join(
        b"%c3\r\n$9\r\nsubscribe\r\n$1\r\n%c\r\n:%d\r\n" % (b"*>"[protocol == 3], b"cd"[each], each + 1)
        for each in (0, 1)
    )
    wire.expect(confirmed + (b"+PONG\r\n" if protocol == 3 else b"*2\r\n$4\r\npong\r\n$0\r\n\r\n"))
    assert running.stats()["memory"] == 0


def test_a_duplicated_request_that_is_long(running: Proxy, server: RedisServer, wire: Wire) -> None:
    value = b"x" * 300_000
    running.rule("twice * to-server duplicate COMMAND APPEND")
    wire.send(("APPEND", "k", value), ("STRLEN", "k"))
    wire.expect(b":300000\r\n:600000\r\n")
    (record,) = running.records("rule")
    assert record["value"] == len(encode("APPEND", "k", value))


def test_reordered_requests_and_replies(running: Proxy, server: RedisServer, wire: Wire) -> None:
    running.rule("swap * to-server reorder COMMAND SET NTH 2 COUNT 1")
    running.rule("held * to-client hold COMMAND APPEND")
    wire.send(("SET", "k", "1"), ("SET", "k", "2"))
    wire.expect(b"+OK\r\n")
    running.fired("swap")
    running.settle()
    assert wire.silent() and server.link.get("k") == b"1", "it waits for the next"
    wire.send(("APPEND", "k", "3"), ("GET", "k"))
    running.fired("held")
    assert wire.silent(), "the reply to APPEND comes first now"
    running.ask("RULE", "RELEASE", "held")
    wire.expect(b":2\r\n+OK\r\n$1\r\n2\r\n")
    running.rule("back * to-client reorder COMMAND GET COUNT 1")
    wire.send(("GET", "k"), ("ECHO", "x"))
    wire.expect(b"$1\r\nx\r\n$1\r\n2\r\n")


def test_what_waits_for_its_successor_goes_on_when_the_rule_is_removed(
    running: Proxy, server: RedisServer, wire: Wire
) -> None:
    running.rule("swap * to-server reorder COMMAND SET")
    wire.send(("SET", "k", "1"))
    running.fired("swap")
    running.ask("RULE", "REMOVE", "swap")
    wire.expect(b"+OK\r\n")
    running.rule("swap * to-server reorder COMMAND SET")
    wire.send(("SET", "k", "2"))
    wire.close()
    wait_until(lambda: server.link.get("k") == b"2")


# --- cutting ---


@pytest.mark.parametrize("tcp", [False, True])
def test_truncate(running: Proxy, server: RedisServer, tcp: bool) -> None:
    wire = running.wire(running.add(LINK, server.socket, tcp=tcp))
    running.rule("cut * to-client truncate 4 COMMAND GET")
    server.link.set("k", "value")
    wire.send(("PING",), ("GET", "k"))
    wire.expect(b"+PONG\r\n$5\r\n")
    assert wire.ended()
    wait_until(lambda: running.stats()["connections"] == 0)
    assert running.stat("cut")["swallowed"] == 7
    again = another(running)
    running.rule("half * to-server truncate 20 COMMAND SET")
    again.send(("SET", "k", "never"))
    assert again.ended()
    assert server.link.get("k") == b"value"


@pytest.mark.parametrize("tcp", [False, True])
def test_reset(running: Proxy, server: RedisServer, tcp: bool) -> None:
    wire = running.wire(running.add(LINK, server.socket, tcp=tcp))
    running.rule("cut * to-client reset COMMAND INCR NTH 2")
    wire.send(("INCR", "n"), ("INCR", "n"), ("INCR", "n"))
    wire.expect(b":1\r\n")
    if tcp:
        with pytest.raises(ConnectionResetError):
            wire.socket.recv(1)
    assert wire.ended()
    assert server.link.get("n") == b"3"
    running.rule("before * to-server reset COMMAND SET")
    again = another(running)
    again.send(("SET", "k", "never"))
    assert again.ended() and server.link.get("k") is None


def test_half_close(running: Proxy, server: RedisServer, wire: Wire) -> None:
    running.rule("half * to-client half-close COMMAND ECHO")
    wire.send(("ECHO", "x"), ("SET", "k", "1"), ("SET", "k", "2"))
    wire.expect(b"$1\r\nx\r\n")
    assert wire.ended()
    wire.send(("SET", "k", "3"))
    wait_until(lambda: server.link.get("k") == b"3")
    assert running.stat("half")["swallowed"] >= 10
    running.rule("deaf * to-server half-close COMMAND SET KEY last")
    again = another(running)
    again.send(("SET", "last", "1"), ("SET", "k", "4"))
    wait_until(lambda: server.link.get("last") == b"1")
    wait_until(lambda: running.stats()["connections"] == 1)
    assert server.link.get("k") == b"3"


def test_black_hole_on_a_whole_direction(running: Proxy, server: RedisServer, wire: Wire) -> None:
    idle = another(running)
    idle.send(("PING",))
    idle.expect(b"+PONG\r\n")
    wire.send(("PING",))
    wire.expect(b"+PONG\r\n")
    before = running.link(LINK)["bytes-to-server"]
    running.rule("hole client-1* to-server black-hole")
    wire.send(("SET", "k", "1"))
    wire.send(("SET", "k", "2"))
    late = another(running)
    late.send(("SET", "k", "3"))
    running.fired("hole", 2)
    wait_until(lambda: running.stat("hole")["swallowed"] == 3 * len(encode("SET", "k", "1")))
    assert running.link(LINK)["bytes-to-server"] == before and server.link.get("k") is None
    assert [record["op"] for record in running.records("rule")] == [1, 2]
    running.ask("RULE", "REMOVE", "hole")
    assert wire.ended() and late.ended()
    idle.send(("PING",))
    idle.expect(b"+PONG\r\n")


def test_black_hole_swallows_the_end_of_the_stream_too(running: Proxy, server: RedisServer, wire: Wire) -> None:
    def clients() -> int:
        return len(server.link.client_list())

    wire.send(("PING",))
    wire.expect(b"+PONG\r\n")
    before = clients()
    running.rule("hole * to-server black-hole")
    wire.close()
    running.settle()
    assert clients() == before and running.stat("hole")["fired"] == 0
    running.ask("RULE", "REMOVE", "hole")
    wait_until(lambda: clients() == before - 1)


def test_black_hole_takes_what_waits(running: Proxy, server: RedisServer, wire: Wire) -> None:
    running.rule("held * to-server hold COMMAND SET")
    wire.send(("SET", "k", "1"), ("INCR", "n"))
    running.fired("held")
    running.settle()
    running.rule("hole * both black-hole")
    assert running.stat("held")["held"] == 0
    assert running.stat("hole")["swallowed"] == len(encode("SET", "k", "1") + encode("INCR", "n"))
    running.ask("RULE", "REMOVE", "held")
    running.ask("RULE", "REMOVE", "hole")
    assert wire.ended() and server.link.get("n") is None


def test_black_hole_from_a_message_on(running: Proxy, server: RedisServer, wire: Wire) -> None:
    running.rule("hole * to-client black-hole COMMAND GET")
    other = another(running)
    wire.send(("SET", "k", "1"), ("GET", "k"), ("SET", "k", "2"))
    wire.expect(b"+OK\r\n")
    wait_until(lambda: running.stat("hole")["swallowed"] == 12)
    other.send(("SET", "k", "3"))
    other.expect(b"+OK\r\n")
    running.fired("hole", 1)
    running.ask("RULE", "REMOVE", "hole")
    assert wire.ended()
    assert server.link.get("k") == b"3"


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

    def ask(line: str) -> None:
        wire.raw(line.encode() + b"\r\n") if inline else wire.send(tuple(line.split()))

    if "NTH" in options:
        for line in ("SET a 1", "SET a 2"):
            ask(line)
            wire.expect(b"+OK\r\n")
    for number, line in enumerate(matching, 1):
        ask(line)
        running.fired("x", number)
    for line in others:
        ask(line)
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
    by_link = [record["extra"] for record in running.records("rule")]
    assert len(set(by_link)) == 2


def test_of_several_rules_the_first_wins_and_delays_add_up(running: Proxy, server: RedisServer, wire: Wire) -> None:
    running.rule("slow-1 * to-client delay 20 COMMAND GET")
    running.rule("first * to-server drop KEY a COUNT 1")
    running.rule("second * to-server drop KEY a")
    running.rule("slow-2 * to-client delay 30 KEY b")
    wire.send(("SET", "a", 1), ("SET", "a", 2), ("GET", "b"))
    began = time.monotonic()
    wire.expect(b"$-1\r\n")
    assert 0.049 < time.monotonic() - began < 2
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
    running.ask("RULE", "REMOVE", "x")
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
    running.ask("RULE", "REMOVE", "held")
    wire.expect(b"$1\r\nx\r\n+OK\r\n")
    server.link.set("k", "1")
    wait_until(lambda: b'"SET" "k" "1"' in wire.socket.recv(4096))
    (note,) = running.records("note")
    assert LINK in note["name"]
    running.rule("hole * to-client black-hole")
    server.link.set("k", "2")
    running.fired("hole")
    assert wire.silent()


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


@pytest.mark.parametrize("garbage", [b"*1\r\n:1\r\n", b"*1\r\n$-5\r\n", b"*99999999999999999999\r\n", b"*?\r\n"])
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
            running.ask("RULE", "REMOVE", "hole")
            assert fake.recv(100) == b"" and client.ended()


# --- time ---


def test_delay_in_real_time(running: Proxy, wire: Wire) -> None:
    running.rule("slow * to-client delay 50 COMMAND PING")
    began = time.monotonic()
    wire.send(("PING",), ("ECHO", "x"))
    wire.expect(b"+PONG\r\n$1\r\nx\r\n")
    assert 0.05 <= time.monotonic() - began < 2


def test_rate_in_real_time(running: Proxy, server: RedisServer, wire: Wire) -> None:
    running.rule("narrow * to-server rate 1000000 COMMAND SET")
    began = time.monotonic()
    wire.send(("SET", "k", b"x" * 100_000))
    wire.expect(b"+OK\r\n")
    assert 0.1 <= time.monotonic() - began < 2


def test_virtual_time_stands_still_until_it_is_moved() -> None:
    with proxy(VIRTUAL) as running, redis_behind(running) as server:
        wire = running.wire(running.add(LINK, server.socket))
        assert running.deadline_ns is None and running.settle() == -1
        running.rule("slow * to-server delay 100 COMMAND SET")
        wire.send(("SET", "a", "1"))
        assert running.settle() == running.deadline_ns == 100_000_000
        assert running.advance(40) == 100_000_000
        wire.send(("SET", "b", "2"), ("GET", "a"))
        assert running.settle() == 100_000_000
        time.sleep(0.15)
        assert server.link.get("a") is None
        assert running.advance(59.999999) == 100_000_000 and server.link.get("a") is None
        assert running.advance(0.000001) == 140_000_000 == running.deadline_ns
        wire.expect(b"+OK\r\n")
        assert running.settle() == 140_000_000
        assert running.advance(40) == -1 and running.deadline_ns is None
        wire.expect(b"+OK\r\n$1\r\n1\r\n")
        assert [record.get("mono_ns", 0) for record in running.records("rule")] == [0, 40_000_000]


def test_a_delayed_request_arrives_although_its_client_has_closed() -> None:
    with proxy(VIRTUAL) as running, redis_behind(running) as server:
        wire = running.wire(running.add(LINK, server.socket))
        running.rule("slow * to-server delay 100")
        wire.send(("SET", "a", "1"))
        assert running.settle() == 100_000_000
        wire.close()
        assert running.settle() == 100_000_000
        running.advance(100)
        wait_until(lambda: server.link.get("a") == b"1")


def test_jitter_and_rate_in_virtual_time_come_from_the_seed() -> None:
    def delays(*options: str) -> list[int]:
        with proxy(VIRTUAL) as running, redis_behind(running) as server:
            wire = running.wire(running.add(LINK, server.socket))
            running.rule("slow * to-server delay 10 JITTER 20", *options)
            due = []
            for _ in range(20):
                wire.send(("PING",))
                deadline_ns = running.settle()
                due.append(deadline_ns - running.stage.mono_ns)
                running.advance(due[-1] / 1e6)
                wire.expect(b"+PONG\r\n")
            return due

    once = delays()
    assert once == delays() and once != delays("SEED", "9")
    assert all(10_000_000 <= each <= 30_000_000 for each in once) and len(set(once)) > 15


def test_rate_in_virtual_time_is_exact() -> None:
    with proxy(VIRTUAL) as running, redis_behind(running) as server:
        wire = running.wire(running.add(LINK, server.socket))
        running.rule("narrow * to-server rate 1000")
        running.rule("far * to-server delay 5")
        request = encode("SET", "a", "1")
        wire.raw(request * 3)
        for number in (1, 2, 3):
            due_ns = len(request) * number * 1_000_000 + 5_000_000
            assert running.settle() == due_ns
            running.advance((due_ns - running.stage.mono_ns) / 1e6)
            wire.expect(b"+OK\r\n")
        assert wire.silent()


# --- SETTLE ---


def test_settle_comes_after_all_that_was_there(running: Proxy) -> None:
    """Whatever was sent before SETTLE has been passed on when it answers: nothing is in flight in the proxy."""
    target = running.directory / "fake.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(target))
        listening.listen(64)
        wires = [running.wire(running.add(f"link-{each}", target)) for each in range(20)]
        fakes = [listening.accept()[0] for _ in wires]
        for turn in range(100):
            for wire in wires:
                wire.send(("ECHO", turn))
            running.settle()
            for fake in fakes:
                fake.setblocking(False)
                assert fake.recv(1000) == encode("ECHO", turn)  # at once
        newcomer = Wire(running.link("link-0")["listen"])
        newcomer.send(("PING",))
        newcomer.close()
        running.settle()
        fake = listening.accept()[0]
        fake.setblocking(False)
        assert fake.recv(1000) == encode("PING") and fake.recv(1) == b""
        for each in (fake, *fakes):
            each.close()


def test_settle_is_quick(running: Proxy, wire: Wire) -> None:
    took = []
    for _ in range(300):
        began = time.perf_counter()
        running.settle()
        took.append(time.perf_counter() - began)
    assert sorted(took)[len(took) // 2] < 0.002  # tens of microseconds and the client library


# --- links ---


def test_links_over_tcp_and_to_another_target(running: Proxy, server: RedisServer) -> None:
    with redis_behind(running, "redis-2") as second:
        address = running.add(LINK, server.socket, tcp=True)
        assert address.startswith("127.0.0.1:") and not address.endswith(":0")
        wire = running.wire(address)
        wire.send(("SET", "where", "first"))
        wire.expect(b"+OK\r\n")
        assert running.ask("LINK", "TARGET", "client-*", str(second.socket)) == 1
        assert wire.ended()
        again = running.wire(address)
        again.send(("GET", "where"))
        again.expect(b"$-1\r\n")
        assert running.link(LINK)["target"] == str(second.socket)
        assert running.ask("LINK", "CLOSE", "*") == 1 and again.ended()
        assert running.ask("LINK", "REMOVE", LINK) == 1 and running.ask("LINK", "REMOVE", LINK) == 0
        running.links -= 1
        with pytest.raises(ConnectionRefusedError):
            Wire(address)


def test_a_target_that_is_not_there_closes_the_client(running: Proxy) -> None:
    nobody = running.wire(running.add("a", running.directory / "nobody.sock"))
    assert nobody.ended()
    with socket.socket() as taken:  # bound and not listening: refused
        taken.bind(("127.0.0.1", 0))
        refused = running.wire(running.add("b", f"127.0.0.1:{taken.getsockname()[1]}", tcp=True))
        assert refused.ended()


def test_a_server_that_ends_takes_nothing_of_what_it_said(running: Proxy, server: RedisServer, wire: Wire) -> None:
    running.rule("held * to-client hold COMMAND GET")
    wire.send(("SET", "k", "1"), ("GET", "k"))
    wire.expect(b"+OK\r\n")
    running.fired("held")
    server.process.kill()
    server.process.wait()
    running.settle()
    assert wire.silent()
    running.ask("RULE", "RELEASE", "held")
    wire.expect(b"$1\r\n1\r\n")
    assert wire.ended()


def test_a_reader_that_is_slow_gets_everything(running: Proxy, server: RedisServer, wire: Wire) -> None:
    server.link.set("k", b"x" * 100_000)
    wire.send(*[("GET", "k")] * 100)
    wait_until(lambda: running.stats()["memory"] > MIB)
    assert running.stats()["memory"] < 2 * MIB
    reply = b"$100000\r\n" + b"x" * 100_000 + b"\r\n"
    wire.expect(reply * 100)


def test_ten_thousand_connections(running: Proxy, server: RedisServer) -> None:
    """Two descriptors each in the proxy: where the limit is lower, as many as it lets in."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    spare = 100
    wanted = min(10_000, (hard - spare) // 2)
    assert wanted >= 1000, f"ulimit -Hn is {hard}: too low for a proxy"
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    server.link.config_set("maxclients", wanted + spare)
    address = running.add(LINK, server.socket)
    wires: list[Wire] = []
    try:
        wires += [Wire(address) for _ in range(wanted)]
        for number, wire in enumerate(wires):
            wire.send(("SET", number, number))
        for wire in wires:
            wire.expect(b"+OK\r\n")
        assert running.stats()["connections"] == wanted
        assert server.link.dbsize() == wanted
    finally:
        for wire in wires:
            wire.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_without_descriptors_it_waits_and_does_not_spin(running: Proxy, server: RedisServer, wire: Wire) -> None:
    wire.send(("PING",))
    wire.expect(b"+PONG\r\n")
    used = len(list(Path(f"/proc/{running.process.pid}/fd").iterdir()))
    _, hard = resource.prlimit(running.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(running.process.pid, resource.RLIMIT_NOFILE, (used, hard))
    waiting = another(running)
    waiting.send(("PING",))

    def cpu_ticks() -> int:
        fields = Path(f"/proc/{running.process.pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    before = cpu_ticks()
    time.sleep(0.3)
    assert waiting.silent()
    assert cpu_ticks() - before <= 10, "a third of the time would be spinning"
    wire.send(("PING",))
    wire.expect(b"+PONG\r\n")
    resource.prlimit(running.process.pid, resource.RLIMIT_NOFILE, (used + 10, hard))
    waiting.expect(b"+PONG\r\n")


def test_memory_is_flat_over_many_rules_and_connections(running: Proxy, server: RedisServer) -> None:
    address = running.add(LINK, server.socket)

    def churn() -> None:
        for number in range(100):
            running.rule("slow * to-server delay 1 COMMAND SET")
            running.rule("x * both hold ARG", str(number))
            wire = Wire(address)
            wire.send(("SET", "k", number), ("SET", "k", "v"))
            wire.raw(b"*2\r\n$3\r\nGET")
            running.settle()
            wire.close()
            running.ask("RULE", "REMOVE", "x")
            running.ask("RULE", "REMOVE", "slow")
        wait_until(lambda: running.stats()["memory"] == 0 and running.stats()["connections"] == 0)

    churn()
    before = resident_kib(running)
    churn()
    churn()
    assert resident_kib(running) - before < GROWTH_MOST_KIB
    assert len(running.ask("RULE", "LIST")) == 2


# --- the control port ---

WRONG = [
    ("NONSENSE",),
    ("",),
    ("LINK",),
    ("LINK", "ADD", "x"),
    ("LINK", "ADD", "x", "/tmp/" + "y" * 200, "/tmp/z"),
    ("LINK", "ADD", "x", "0.0.0.0:0", "/tmp/z"),
    ("LINK", "ADD", "x", "127.0.0.1:99999", "/tmp/z"),
    ("LINK", "ADD", "x", "redis.example:6379", "/tmp/z"),
    ("LINK", "ADD", "x", "127.0.0.1:0", "nowhere"),
    ("LINK", "ADD", "x", "127.0.0.1:0", "127.0.0.1:1", "PLANE"),
    ("LINK", "ADD", "", "127.0.0.1:0", "127.0.0.1:1"),
    ("LINK", "ADD", "x" * 300, "127.0.0.1:0", "127.0.0.1:1"),
    ("LINK", "TARGET", "*", "nowhere"),
    ("RULE", "ADD", "x", "*", "to-server"),
    ("RULE", "ADD", "x", "*", "sideways", "drop"),
    ("RULE", "ADD", "x", "*", "to-server", "explode"),
    ("RULE", "ADD", "x", "*", "to-server", "delay"),
    ("RULE", "ADD", "x", "*", "to-server", "delay", "-1"),
    ("RULE", "ADD", "x", "*", "to-server", "delay", "1s"),
    ("RULE", "ADD", "x", "*", "to-server", "delay", "9" * 30),
    ("RULE", "ADD", "x", "*", "to-server", "rate", "0"),
    ("RULE", "ADD", "x", "*", "to-server", "drop", "JITTER", "1"),
    ("RULE", "ADD", "x", "*", "to-server", "drop", "COMMAND"),
    ("RULE", "ADD", "x", "*", "to-server", "drop", "COMAND", "GET"),
    ("RULE", "ADD", "x", "*", "to-server", "drop", "NTH", "0"),
    ("RULE", "ADD", "x", "*", "to-server", "drop", "COUNT", "x"),
    ("RULE", "ADD", "x", "*", "both", "drop", "PUSH"),
    ("RULE", "ADD", "x", "*", "to-server", "drop", "REPLY"),
    ("RULE", "ADD", "x", "*", "to-client", "drop", "PUSH", "REPLY"),
    ("RULE", "STAT", "x"),
    ("RULE", "RELEASE", "x"),
    ("RULE", "RELEASE", "x", "0"),
    ("SETTLE", "now"),
    ("two\r\nlines",),
    ("RULE", "ADD", "x", "*", "to-server", "\r\n+OK\r\n"),
]


@pytest.mark.parametrize("words", WRONG)
def test_bad_control_input_is_answered_with_a_sentence(running: Proxy, words: tuple[str, ...]) -> None:
    with pytest.raises(redis.exceptions.ResponseError) as error:
        running.ask(*words)
    assert len(str(error.value)) > 10
    assert running.ask("PING") in (True, b"PONG")
    assert running.stats()["links"] == running.stats()["rules"] == 0


def test_names_are_taken_once(running: Proxy, server: RedisServer, wire: Wire) -> None:
    running.rule("x * to-server drop COMMAND GET")
    with pytest.raises(redis.exceptions.ResponseError, match="RULE REMOVE"):
        running.rule("x * to-server drop")
    with pytest.raises(redis.exceptions.ResponseError, match="already"):
        running.add(LINK, server.socket)
    running.links -= 1
    with pytest.raises(redis.exceptions.ResponseError, match="in use"):
        running.ask("LINK", "ADD", "other", running.link(LINK)["listen"], str(server.socket))
    with pytest.raises(redis.exceptions.ResponseError, match="no hold"):
        running.ask("RULE", "RELEASE", "x")
    wire.send(("GET", "k"))
    running.fired("x")
    running.ask("RULE", "REMOVE", "x")
    running.rule("x * to-server drop COMMAND SET")
    assert running.stat("x")["fired"] == 0
    names = [record["text"] for record in running.records("text")]
    assert names.count("x") <= 1


def test_hostile_control_bytes_end_that_connection_only(running: Proxy) -> None:
    for data in (
        b"\x00\xff\r\n",
        b"*1\r\n$-5\r\n",
        b"*9999999999\r\n",
        b"$3\r\nGET\r\n",
        b"*1\r\n*1\r\n:1\r\n",
        b"*0\r\n",
    ):
        wire = running.wire(str(running.control_path))
        wire.raw(data)
        assert wire.socket.recv(100).startswith(b"-ERR"), data
        wire.close()
    assert running.ask("PING")


def test_settle_keeps_its_place_among_pipelined_commands(running: Proxy) -> None:
    wire = running.wire(str(running.control_path))
    wire.send(("PING",), ("SETTLE",), ("PING",), ("SETTLE",), ("QUIT",))
    wire.expect(b"+PONG\r\n:-1\r\n+PONG\r\n:-1\r\n+OK\r\n")
    assert wire.ended()


def test_a_proxy_that_cannot_start_says_why(running: Proxy) -> None:
    import subprocess

    from harness.driver import paths

    with short_directory() as directory:
        good = ["--history", str(running.history), "--stage", str(running.directory / "stage"), "--actor", "1"]
        for words in (
            [],
            [*good],
            [*good, "--control", "/no/such/directory/x"],
            ["--history", "/nothing", *good[2:], "--control", str(directory / "c")],
            [*good[:-1], "x", "--control", str(directory / "c")],
        ):
            done = subprocess.run([paths.program("proxy"), *words], capture_output=True, text=True, timeout=5)
            assert done.returncode == 2 and done.stderr.startswith("proxy: "), words


def test_linger_is_a_reset_on_tcp() -> None:
    """What test_reset relies on: a socket that lingers for no time is broken off, not ended."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        client = socket.create_connection(listening.getsockname())
        accepted, _ = listening.accept()
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        accepted.close()
        with pytest.raises(ConnectionResetError):
            client.recv(1)
        client.close()
    assert pairs([b"a", 1]) == {"a": 1}
