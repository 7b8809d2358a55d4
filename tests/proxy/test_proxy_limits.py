"""The proxy under load: much data, many connections, few descriptors, any rules in any order."""

import contextlib
import os
import random
import resource
import threading
import time
from pathlib import Path

import pytest

from lockstorm.servers.redis_server import RedisServer
from tests.helpers.proxying import (
    LAST,
    LINK,
    Proxy,
    Wire,
    another,
    encode,
    wait_until,
)

MIB = 1 << 20

# What the program may have in memory: 16 MiB, while its own buffers are 2 MiB at most. A sanitizer keeps what is freed.
SANITIZED = "LOCKSTORM_PROGRAMS" in os.environ
RESIDENT_MOST_KIB = 16 << (20 if SANITIZED else 10)
GROWTH_MOST_KIB = 400 << (10 if SANITIZED else 0)


def resident_kib(running: Proxy, what: str = "VmRSS") -> int:
    """Its memory by the kernel's books."""
    return int(Path(f"/proc/{running.process.pid}/status").read_text().split(f"{what}:")[1].split()[0])


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
    most = max(most, running.stats()["memory"])  # the receiver does not read: the queue is as full as it gets
    wire.expect(b"$%d\r\n" % len(value))
    assert wire.read(len(value) + 2) == value + b"\r\n"
    assert most < 3 * MIB
    assert resident_kib(running, "VmHWM") < RESIDENT_MOST_KIB


def test_a_reader_that_is_slow_gets_everything(running: Proxy, server: RedisServer, wire: Wire) -> None:
    server.link.set("k", b"x" * 100_000)
    wire.send(*[("GET", "k")] * 100)
    wait_until(lambda: running.stats()["memory"] > MIB)
    assert running.stats()["memory"] < 2 * MIB
    reply = b"$100000\r\n" + b"x" * 100_000 + b"\r\n"
    wire.expect(reply * 100)


def test_ten_thousand_connections(running: Proxy, server: RedisServer) -> None:
    """As many as a redis-server lets in by default, less some; two descriptors each in the proxy: where the limit is
    lower, as many as it lets in. A redis-server of an ordinary user may not raise its own limit a second time."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    spare = 100
    wanted = min(10_000 - spare, (hard - spare) // 2)
    assert wanted >= 1000, f"ulimit -Hn is {hard}: too low for a proxy"
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
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
            running.command("RULE", "REMOVE", "x")
            running.command("RULE", "REMOVE", "slow")
        wait_until(lambda: running.stats()["memory"] == 0 and running.stats()["connections"] == 0)

    churn()
    before = resident_kib(running)
    churn()
    churn()
    assert resident_kib(running) - before < GROWTH_MOST_KIB
    assert len(running.command("RULE", "LIST")) == 2


HARMLESS = [
    "both delay 1 JITTER 2",
    "both rate 4000000",
    "to-server hold COMMAND SET COUNT 9",
    "to-client hold",
    "to-server duplicate COMMAND GET",
    "to-client hold KEY 3 NTH 4",
    "to-server delay 3 ARG 5",
]
HARMFUL = [
    "both drop NTH 20 COUNT 1",
    "to-server reorder COMMAND SET COUNT 3",
    "to-client reorder REPLY NTH 3",
    "to-client truncate 3 KEY 7 NTH 9",
    "to-server reset COMMAND ECHO NTH 30",
    "both half-close NTH 60 COUNT 1",
    "both black-hole COMMAND GET NTH 50",
    "to-client duplicate COMMAND SET",
    "to-client black-hole",
]


def any_traffic(rng: random.Random, requests: int) -> bytes:
    """Requests that are answered alike however often and late they come."""
    parts = []
    for _ in range(requests):
        key = str(rng.randrange(9))
        size = rng.choice((0, 1, 30, 3000, 70_000)) if rng.random() < 0.2 else 5
        kind = rng.choice(("SET", "GET", "ECHO", "SUB"))
        if kind == "SET":
            parts.append(encode("SET", key, key * size))
        elif kind == "GET":
            parts.append(encode("GET", "absent-" + key))
        elif kind == "ECHO":
            parts.append(encode("ECHO", "e" * size))
        else:
            parts.append(encode("SUBSCRIBE", "c", key) + encode("UNSUBSCRIBE"))
    return b"".join(parts)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("harmful", [False, True])
def test_any_rules_come_and_go_under_any_traffic(
    running: Proxy, server: RedisServer, wire: Wire, seed: int, harmful: bool
) -> None:
    """Rules that lose nothing change nothing of what comes back; whatever they do, the proxy forgets no byte
    of memory (which the fixture looks at)."""
    rng = random.Random(seed * 2 + harmful)
    stream = any_traffic(rng, 300)
    direct = running.wire(str(server.socket))
    direct.raw(stream + encode("ECHO", LAST))
    wanted = b""
    while not wanted.endswith(LAST.encode() + b"\r\n"):
        wanted += direct.socket.recv(1 << 20)
    got = bytearray()

    def receive() -> None:
        with contextlib.suppress(ConnectionResetError, TimeoutError):
            while len(got) < len(wanted) and (more := wire.socket.recv(1 << 20)):
                got.extend(more)

    if harmful:
        wire.socket.settimeout(0.5)
    reader = threading.Thread(target=receive)
    reader.start()
    at = rules = 0
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        for piece in range(40):
            step = len(stream) // 39
            wire.raw(stream[at : at + step])
            at += step
            if piece % 4 == 0:
                running.rule(f"r{rules} * {rng.choice(HARMLESS + HARMFUL if harmful else HARMLESS)}")
                rules += 1
            elif piece % 4 == 2:
                running.command("RULE", "REMOVE", f"r{rng.randrange(rules)}")
        wire.send(("ECHO", LAST))
    for number in range(rules):
        running.command("RULE", "REMOVE", f"r{number}")
    reader.join()
    if not harmful:
        assert bytes(got) == wanted
