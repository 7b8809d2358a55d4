"""The proxy: what passes through it unharmed, and what each action does to a message, with a real redis-server."""

import socket

import pytest

from lockstorm.servers.redis_server import RedisServer
from tests.helpers.proxying import CLOSED, DUMMY, LAST, LINK, Proxy, Wire, another, encode, faked_server, wait_until

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
                assert (running.stat("lose")["fired"], running.command("RULE", "REMOVE", "lose")) == (1, 1)
            client.close()


@pytest.mark.parametrize("rule", [None, DUMMY])
def test_a_message_that_is_never_completed_passes_with_the_end(running: Proxy, rule: str | None) -> None:
    if rule:
        running.rule(rule)
    begun = b"*2\r\n$3\r\nGET\r\n$1\r"
    with faked_server(running) as (client, fake):
        client.raw(begun)
        running.settle()
        client.socket.shutdown(socket.SHUT_WR)
        got = b""
        while more := fake.recv(100):
            got += more
        assert got == begun


def test_a_server_goes_on_answering_a_client_that_has_closed(running: Proxy) -> None:
    with faked_server(running) as (client, fake):
        client.send(("X",))
        assert fake.recv(100) == encode("X")
        client.close()
        assert fake.recv(100) == CLOSED
        for _ in range(3):
            fake.sendall(b"+OK\r\n")
            running.settle()
            assert running.stats()["connections"] == 1
    wait_until(lambda: running.stats()["connections"] == 0)


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
    assert running.command("RULE", "RELEASE", "held") == 1
    wire.expect(b"+OK\r\n$1\r\n1\r\n")
    fired, released = running.records("rule", "released")
    assert (fired.kind, fired.name, fired.op, fired.value) == ("rule", "held", 1, 5)
    assert (released.kind, released.name, released.op, released.value) == ("released", "held", 1, 5)
    assert fired.extra == released.extra


def test_held_messages_are_released_in_order_and_by_number(running: Proxy, wire: Wire) -> None:
    running.rule("held * to-client hold COMMAND ECHO")
    second = another(running)
    wire.send(("ECHO", "1"))
    running.fired("held", 1)
    second.send(("ECHO", "2"))
    running.fired("held", 2)
    wire.send(("ECHO", "3"))
    running.fired("held", 3)
    assert running.command("RULE", "RELEASE", "held", 2) == 2
    wire.expect(b"$1\r\n1\r\n")
    second.expect(b"$1\r\n2\r\n")
    assert wire.silent() and running.stat("held")["held"] == 1
    assert running.command("RULE", "REMOVE", "held") == 1
    wire.expect(b"$1\r\n3\r\n")
    assert running.command("RULE", "REMOVE", "held") == 0
    assert running.stat("held") == {
        "name": "held",
        "fired": 3,
        "matched": 3,
        "held": 0,
        "released": 3,
        "swallowed": 0,
        "active": 0,
    }


def test_what_is_held_on_a_connection_that_is_closed_is_held_no_more(
    running: Proxy, server: RedisServer, wire: Wire
) -> None:
    """The last that is held goes, another is held after it: those that are left are released."""
    running.rule("held * to-client hold COMMAND ECHO")
    closed, third = running.wire(running.add("other", server.socket)), another(running)
    for number, each in enumerate((wire, closed), 1):
        each.send(("ECHO", number))
        running.fired("held", number)
    assert running.command("LINK", "CLOSE", "other") == 1
    assert closed.ended() and running.stat("held")["held"] == 1
    third.send(("ECHO", "3"))
    running.fired("held", 3)
    assert running.command("RULE", "RELEASE", "held") == 2
    wire.expect(b"$1\r\n1\r\n")
    third.expect(b"$1\r\n3\r\n")


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
    assert running.command("RULE", "RELEASE", "held") == 1
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
    running.command("RULE", "RELEASE", "held")
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
    running.command("RULE", "REMOVE", "twice")
    running.rule("twice * to-server duplicate COMMAND SUBSCRIBE")
    wire.send(("SUBSCRIBE", "c", "d"), ("PING",))
    confirmed = b"".join(
        b"%c3\r\n$9\r\nsubscribe\r\n$1\r\n%c\r\n:%d\r\n" % (b"*>"[protocol == 3], b"cd"[each], each + 1)
        for each in (0, 1)
    )
    wire.expect(confirmed + (b"+PONG\r\n" if protocol == 3 else b"*2\r\n$4\r\npong\r\n$0\r\n\r\n"))
    assert running.stats()["memory"] == 0


def test_a_second_answer_is_swallowed_by_no_rule(running: Proxy, wire: Wire) -> None:
    running.rule("lost * to-client drop COMMAND GET")
    running.rule("twice * to-server duplicate COMMAND GET")
    wire.send(("GET", "k"), ("ECHO", "x"))
    wire.expect(b"$1\r\nx\r\n")
    running.fired("twice")
    assert (running.stat("lost")["swallowed"], running.stat("twice")["swallowed"]) == (len(b"$-1\r\n"), 0)


def test_a_duplicated_request_that_is_long(running: Proxy, server: RedisServer, wire: Wire) -> None:
    value = b"x" * 300_000
    running.rule("twice * to-server duplicate COMMAND APPEND")
    wire.send(("APPEND", "k", value), ("STRLEN", "k"))
    wire.expect(b":300000\r\n:600000\r\n")
    (record,) = running.records("rule")
    assert record.value == len(encode("APPEND", "k", value))


def test_reordered_requests_and_replies(running: Proxy, server: RedisServer, wire: Wire) -> None:
    running.rule("swap * to-server reorder COMMAND SET NTH 2 COUNT 1")
    running.rule("held * to-client hold COMMAND APPEND")
    running.rule("lost * to-client drop COMMAND SET ARG 2")
    wire.send(("SET", "k", "1"), ("SET", "k", "2"))
    wire.expect(b"+OK\r\n")
    running.fired("swap")
    running.settle()
    assert wire.silent() and server.link.get("k") == b"1", "it waits for the next"
    wire.send(("APPEND", "k", "3"), ("GET", "k"))
    running.fired("held")
    assert wire.silent(), "the reply to APPEND comes first now"
    running.command("RULE", "RELEASE", "held")
    wire.expect(b":2\r\n$1\r\n2\r\n")
    running.fired("lost")
    running.rule("back * to-client reorder COMMAND GET COUNT 1")
    wire.send(("GET", "k"), ("ECHO", "x"))
    wire.expect(b"$1\r\nx\r\n$1\r\n2\r\n")


def test_what_waits_for_its_successor_goes_on_when_the_rule_is_removed(
    running: Proxy, server: RedisServer, wire: Wire
) -> None:
    running.rule("swap * to-server reorder COMMAND SET")
    wire.send(("SET", "k", "1"))
    running.fired("swap")
    running.command("RULE", "REMOVE", "swap")
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
    assert [record.op for record in running.records("rule")] == [1, 2]
    running.command("RULE", "REMOVE", "hole")
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
    running.command("RULE", "REMOVE", "hole")
    wait_until(lambda: clients() == before - 1)


def test_black_hole_takes_what_waits(running: Proxy, server: RedisServer, wire: Wire) -> None:
    running.rule("held * to-server hold COMMAND SET")
    wire.send(("SET", "k", "1"), ("INCR", "n"))
    running.fired("held")
    running.settle()
    running.rule("hole * both black-hole")
    assert running.stat("held")["held"] == 0
    assert running.stat("hole")["swallowed"] == len(encode("SET", "k", "1") + encode("INCR", "n"))
    running.command("RULE", "REMOVE", "held")
    running.command("RULE", "REMOVE", "hole")
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
    running.command("RULE", "REMOVE", "hole")
    assert wire.ended()
    assert server.link.get("k") == b"3"
