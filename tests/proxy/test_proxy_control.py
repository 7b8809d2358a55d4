"""The proxy: its control port, its links, virtual and real time, and SETTLE."""

import os
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import redis

from lockstorm.base import paths
from lockstorm.process.held_port import HeldPort
from lockstorm.servers.redis_server import RedisServer
from tests.helpers.proxying import LINK, VIRTUAL, Proxy, Wire, encode, pairs, proxy, redis_behind, wait_until
from tests.helpers.support import short_directory

# --- time ---


def test_delay_in_real_time(running: Proxy, wire: Wire) -> None:
    running.rule("slow * to-client delay 50 COMMAND PING")
    began = time.monotonic()
    wire.send(("PING",), ("ECHO", "x"))
    wire.expect(b"+PONG\r\n$1\r\nx\r\n")
    assert 0.05 <= time.monotonic() - began < 60


def test_rate_in_real_time(running: Proxy, server: RedisServer, wire: Wire) -> None:
    running.rule("narrow * to-server rate 1000000 COMMAND SET")
    began = time.monotonic()
    wire.send(("SET", "k", b"x" * 100_000))
    wire.expect(b"+OK\r\n")
    assert 0.1 <= time.monotonic() - began < 60


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
        assert [record.mono_ns for record in running.records("rule")] == [0, 40_000_000]


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


def test_what_is_due_on_several_connections_is_delivered_in_its_order() -> None:
    with proxy(VIRTUAL) as running, redis_behind(running) as server:
        delays_ms = [70, 20, 50, 10, 60, 40, 30]
        for delay_ms in delays_ms:
            wire = running.wire(running.add(f"link-{delay_ms}", server.socket))
            running.rule(f"slow-{delay_ms} link-{delay_ms} to-server delay {delay_ms}")
            wire.send(("RPUSH", "order", delay_ms))
            running.settle()
        for delay_ms in sorted(delays_ms)[:3]:
            assert running.deadline_ns == delay_ms * 1_000_000
            running.advance(delay_ms - running.page.mono_ns / 1e6)
            wait_until(lambda: server.link.rpop("order") == str(delay_ms).encode())  # noqa: B023
        running.advance(100)
        assert running.deadline_ns is None
        wait_until(lambda: server.link.llen("order") == 4)


def test_what_is_due_at_the_same_moment_is_delivered_in_the_order_in_which_it_came() -> None:
    """The moment of a connection's first message counts, whatever follows on it. The server reads its connections in
    the order in which they have input, once it has looked at those that have none any more."""
    with proxy(VIRTUAL) as running, redis_behind(running) as server:
        running.rule("slow * to-server delay 10 COMMAND RPUSH")
        wires = [running.wire(running.add(f"link-{number}", server.socket)) for number in range(5)]
        for wire in wires:
            wire.send(("PING",))
            wire.expect(b"+PONG\r\n")  # so that the server has accepted it
        assert server.link.ping()  # and has looked at all of them since
        for number, wire in enumerate(wires):
            wire.send(("RPUSH", "order", number))
            running.settle()
        wires[1].send(("RPUSH", "order", "more"))
        running.settle()
        running.advance(10)
        wait_until(lambda: server.link.llen("order") == 6)
        assert server.link.lrange("order", 0, -1) == [b"0", b"1", b"more", b"2", b"3", b"4"]


def test_bytes_that_are_no_message_are_each_delayed_once() -> None:
    with proxy(VIRTUAL) as running:
        target = running.directory / "fake.sock"
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(target))
            listening.listen()
            wire = running.wire(running.add(LINK, target, "PLAIN"))
            fake, _ = listening.accept()
            with fake:
                running.rule("slow * to-server delay 20")
                for turn in (1, 2, 3):
                    wire.raw(b"x")
                    assert running.settle() == turn * 20_000_000
                    assert running.advance(20) == -1
                    assert fake.recv(10) == b"x"


def test_jitter_in_virtual_time_comes_from_the_seed() -> None:
    def delays(*options: str) -> list[int]:
        with proxy(VIRTUAL) as running, redis_behind(running) as server:
            wire = running.wire(running.add(LINK, server.socket))
            running.rule("slow * to-server delay 10 JITTER 20", *options)
            due = []
            for _ in range(20):
                wire.send(("PING",))
                deadline_ns = running.settle()
                due.append(deadline_ns - running.page.mono_ns)
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
            running.advance((due_ns - running.page.mono_ns) / 1e6)
            wire.expect(b"+OK\r\n")
        assert wire.silent()


FARTHEST_MS = (2**63 - 1) // 1_000_000  # of one rule


@pytest.mark.parametrize(
    "rules",
    [
        [f"delay {FARTHEST_MS}"],
        [f"delay {FARTHEST_MS}", f"delay {FARTHEST_MS}"],
        [f"delay {FARTHEST_MS} JITTER {FARTHEST_MS}", "delay 1"],
        ["delay 1", f"delay {FARTHEST_MS}", "rate 1"],
    ],
)
@pytest.mark.parametrize("began_ms", [0, 1_000])
def test_what_is_delayed_beyond_all_time_never_arrives(rules: list[str], began_ms: int) -> None:
    """A sum of delays that no stamp can show is not one that has passed."""
    with proxy(VIRTUAL) as running, redis_behind(running) as server:
        wire = running.wire(running.add(LINK, server.socket))
        running.advance(began_ms)
        for number, rule in enumerate(rules):
            running.rule(f"slow-{number} * to-server {rule}")
        wire.send(("SET", "a", "1"))
        running.fired("slow-0")
        assert running.settle() == -1 and running.deadline_ns is None
        assert running.advance(3_600_000) == -1
        assert server.link.get("a") is None
        assert running.command("LINK", "CLOSE", LINK) == 1


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


def test_settle_tells_who_has_heard_of_something(running: Proxy, server: RedisServer) -> None:
    """Activity is reported once."""

    def targets() -> list[Any]:
        next_ns, *targets = running.command("SETTLE", "TARGETS")
        assert next_ns == -1
        return list(targets)

    one, other = (running.add(name, server.socket) for name in ("one", "other"))
    there = bytes(server.socket)
    assert targets() == []
    wires = running.wire(one), running.wire(other)
    assert targets() == [there, 1, there, 1]  # connected to
    wires[1].send(("PING",))
    running.settle()  # a SETTLE without TARGETS reports none and forgets none
    assert targets() == [there, 0]  # written to
    wires[1].expect(b"+PONG\r\n")
    assert targets() == []  # an answer is nothing that its server hears of
    running.rule("hold other to-server hold")
    wires[1].send(("PING",))
    assert targets() == []
    running.command("RULE", "RELEASE", "hold")
    assert targets() == [there, 0]
    os.kill(server.process.pid, signal.SIGSTOP)
    wires[0].close()
    assert targets() == [there, 0]
    os.kill(server.process.pid, signal.SIGCONT)
    wait_until(lambda: running.link("one")["connections"] == 0)
    assert targets() == []  # which is nothing that it has to hear of again
    running.rule("reset other to-client reset PUSH")
    running.command("LINK", "CLOSE", "other")
    assert targets() == [there, 0]


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
        seen = running.link(LINK)
        assert seen["bytes-to-server"] == len(encode("SET", "where", "first"))
        assert seen["bytes-to-client"] == len(b"+OK\r\n")
        assert running.command("LINK", "TARGET", "client-*", str(second.socket)) == 1
        assert wire.ended()
        again = running.wire(address)
        again.send(("GET", "where"))
        again.expect(b"$-1\r\n")
        assert running.link(LINK)["target"] == str(second.socket)
        assert running.command("LINK", "CLOSE", "*") == 1 and again.ended()
        assert running.command("LINK", "REMOVE", LINK) == 1 and running.command("LINK", "REMOVE", LINK) == 0
        running.links -= 1
        with pytest.raises(ConnectionRefusedError):
            Wire(address)


def test_the_numbers_of_ports(running: Proxy) -> None:
    """Nothing is connected to before a client comes."""
    target = f"127.0.0.1:{2**16 - 1}"
    running.add("last", target)
    assert running.link("last")["target"] == target
    with pytest.raises(redis.exceptions.ResponseError) as error:
        running.command("LINK", "ADD", "too high", "127.0.0.1:0", f"127.0.0.1:{2**16}")
    assert str(error.value) == f"127.0.0.1:{2**16}: a port is at most 65535"


def test_a_target_with_an_address_of_ipv6(running: Proxy) -> None:
    running.add("six", "[::1]:6379")
    assert running.link("six")["target"] == "[::1]:6379"


def test_a_target_that_is_not_there_closes_the_client(running: Proxy) -> None:
    unreachable = running.wire(running.add("a", running.directory / "unreachable.sock"))
    assert unreachable.ended()
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
    running.command("RULE", "RELEASE", "held")
    wire.expect(b"$1\r\n1\r\n")
    assert wire.ended()


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
    ("LINK", "ADD", "x", "127.0.0.1:0", "127.0.0.1:"),
    ("LINK", "ADD", "x", "127.0.0.1:0", ":6379"),
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
    ("RULE", "ADD", "x", "*", "to-client", "drop", "REPLY", "PUSH"),
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
        running.command(*words)
    assert len(str(error.value)) > 10
    assert running.command("PING") in (True, b"PONG")
    assert running.stats()["links"] == running.stats()["rules"] == 0


def test_names_are_taken_once(running: Proxy, server: RedisServer, wire: Wire) -> None:
    running.rule("x * to-server drop COMMAND GET")
    with pytest.raises(redis.exceptions.ResponseError, match="RULE REMOVE"):
        running.rule("x * to-server drop")
    with pytest.raises(redis.exceptions.ResponseError, match="already"):
        running.add(LINK, server.socket)
    running.links -= 1
    with pytest.raises(redis.exceptions.ResponseError, match="in use"):
        running.command("LINK", "ADD", "other", running.link(LINK)["listen"], str(server.socket))
    with pytest.raises(redis.exceptions.ResponseError, match="no hold"):
        running.command("RULE", "RELEASE", "x")
    wire.send(("GET", "k"))
    running.fired("x")
    running.command("RULE", "REMOVE", "x")
    running.rule("x * to-server drop COMMAND SET")
    assert running.stat("x")["fired"] == 0
    names = [record.text for record in running.records("text")]
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
    assert running.command("PING")


def test_a_control_command_may_come_byte_by_byte(running: Proxy) -> None:
    wire = running.wire(str(running.control_path))
    for each in encode("PING"):
        wire.raw(bytes([each]))
        running.settle()  # by now the proxy has read the byte, which stands before this request
    wire.expect(b"+PONG\r\n")


def test_settle_keeps_its_place_among_pipelined_commands(running: Proxy) -> None:
    wire = running.wire(str(running.control_path))
    wire.send(("PING",), ("SETTLE",), ("PING",), ("SETTLE",), ("QUIT",))
    wire.expect(b"+PONG\r\n:-1\r\n+PONG\r\n:-1\r\n+OK\r\n")
    assert wire.ended()


def test_nothing_is_left_of_a_caller_that_has_gone(running: Proxy) -> None:
    def descriptors() -> int:
        return len(list(Path(f"/proc/{running.process.pid}/fd").iterdir()))

    running.settle()
    before = descriptors()
    callers = [running.wire(str(running.control_path)) for _ in range(3)]
    wait_until(lambda: descriptors() == before + len(callers))
    for caller in callers:
        caller.close()
    wait_until(lambda: descriptors() == before)


def test_a_proxy_that_cannot_start_says_why(running: Proxy) -> None:
    with short_directory() as directory:
        good = ["--history", str(running.history), "--page", str(running.directory / "page"), "--actor", "1"]
        for words in (
            [],
            [*good],
            [*good, "--control", "/no/such/directory/x"],
            ["--history", "/nothing", *good[2:], "--control", str(directory / "c")],
            [*good[:-1], "x", "--control", str(directory / "c")],
        ):
            done = subprocess.run([paths.program("proxy"), *words], capture_output=True, text=True, timeout=600)
            assert done.returncode == 2 and done.stderr.startswith("proxy: "), words


# --- targets that do not listen ---


@pytest.mark.parametrize("option", [(), ("PLAIN",), ("PATIENT",)])
def test_a_target_that_does_not_listen_ends_a_connection_unless_the_link_is_patient(
    running: Proxy, option: tuple[str, ...]
) -> None:
    with HeldPort() as port, socket.socket() as target:
        wire = running.wire(running.add(LINK, f"127.0.0.1:{port.number}", *option, tcp=True))
        if "PATIENT" not in option:
            assert wire.ended()
            return
        wire.raw(b"first")
        time.sleep(0.05)
        assert wire.silent()
        target.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        target.bind(("127.0.0.1", port.number))
        target.listen()
        accepted, _ = target.accept()
        with accepted:
            assert accepted.recv(5, socket.MSG_WAITALL) == b"first"
            accepted.sendall(b"answer")
            wire.expect(b"answer")
        assert wire.ended()


def test_who_has_gone_waits_for_no_target(running: Proxy) -> None:
    """A server that begins to listen must not take the connection for a new one."""
    with HeldPort() as port:
        address = running.add(LINK, f"127.0.0.1:{port.number}", "PATIENT", tcp=True)
        gone, waits = running.wire(address), running.wire(address)
        wait_until(lambda: running.stats()["connections"] == 2)
        gone.close()
        wait_until(lambda: running.stats()["connections"] == 1)
        assert waits.silent()


def test_an_option_that_a_link_does_not_have(running: Proxy) -> None:
    said = "'PATIENTLY' is no option of LINK ADD: the options are PATIENT, PLAIN, PLAIN-STEPPED, STEPPED and TIMED"
    with pytest.raises(redis.ResponseError, match=said):
        running.add(LINK, "127.0.0.1:1", "PATIENTLY")
    running.links = 0


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
