"""Servers that answer by themselves after a while: the proxy says when, on TIMED links."""

import socket
from pathlib import Path

import pytest

from tests.helpers.proxying import LINK, VIRTUAL, proxy, redis_behind, wait_until

WAITS = [
    (("BLPOP", "none", "2"), 2_001),
    (("blpop", "a", "b", "0.5"), 501),
    (("BLPOP", "a", "0.0001"), 2),
    (("BRPOP", "a", "1"), 1_001),
    (("BRPOPLPUSH", "a", "b", "1"), 1_001),
    (("BLMOVE", "a", "b", "LEFT", "RIGHT", "1.25"), 1_251),
    (("BZPOPMIN", "z", "3"), 3_001),
    (("BZPOPMAX", "z", "3"), 3_001),
    (("BLMPOP", "4", "1", "a", "LEFT"), 4_001),
    (("BZMPOP", "4", "1", "z", "MIN"), 4_001),
    (("WAIT", "1", "700"), 701),
    (("XREAD", "COUNT", "1", "BLOCK", "900", "STREAMS", "s", "$"), 901),
    (("XREADGROUP", "GROUP", "g", "c", "BLOCK", "900", "STREAMS", "s", ">"), 901),
]


@pytest.mark.parametrize(("request_", "after_ms"), WAITS, ids=[" ".join(request) for request, _ in WAITS])
def test_the_end_of_a_servers_wait_is_a_deadline(request_: tuple[str, ...], after_ms: int) -> None:
    with proxy(VIRTUAL) as running, redis_behind(running) as server:
        server.link.config_set("appendonly", "yes")
        server.link.xgroup_create("s", "g", mkstream=True)
        wire = running.wire(running.add(LINK, server.socket, "TIMED"))
        running.page.mono_ns += 10**9
        running.rule("held * to-client hold")  # an answer that comes at once shows no deadline
        wire.send(request_)
        assert running.settle() == 10**9 + after_ms * 10**6 == running.deadline_ns


def test_a_command_of_newer_servers_is_known_too(tmp_path: Path) -> None:
    """Before 7.2 a server answers WAITAOF at once, with an error: this one does not answer at all."""
    address = tmp_path / "silent.sock"
    with proxy(VIRTUAL) as running, socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(address))
        silent.listen()
        wire = running.wire(running.add(LINK, address, "TIMED"))
        running.page.mono_ns += 10**9
        wire.send(("WAITAOF", "0", "1", "800"))
        assert running.settle() == 10**9 + 801 * 10**6 == running.deadline_ns


NONE = [
    ("BLPOP", "none", "0"),
    ("BLPOP", "none", "nonsense"),
    ("BLPOP", "none", "-1"),
    ("BLPOP", "none", "1e300"),
    ("BLPOP", "none", "0" * 40),
    ("BLPOP",),
    ("WAIT", "0"),
    ("XREAD", "STREAMS", "BLOCK", "5"),
    ("XREAD", "STREAMS", "s", "BLOCK"),
    ("LPOP", "none", "2"),
    ("BLPOPS", "none", "2"),
]


@pytest.mark.parametrize("request_", NONE, ids=[" ".join(request)[:40] for request in NONE])
def test_a_request_without_a_limit_is_none(request_: tuple[str, ...]) -> None:
    with proxy(VIRTUAL) as running, redis_behind(running) as server:
        wire = running.wire(running.add(LINK, server.socket, "TIMED"))
        wire.send(request_)
        assert running.settle() == -1


def test_an_answer_a_delay_and_an_end_count_too() -> None:
    with proxy(VIRTUAL) as running, redis_behind(running) as server:
        wire = running.wire(running.add(LINK, server.socket, "TIMED"))
        wire.send(("BLPOP", "list", "100"))
        assert running.settle() == 100_001_000_000
        server.link.lpush("list", "x")
        wire.expect(b"*2\r\n$4\r\nlist\r\n$1\r\nx\r\n")
        assert running.settle() == -1
        running.rule("slow * to-server delay 50 COMMAND BLPOP")
        wire.send(("BLPOP", "list", "100"))
        assert running.settle() == 50_000_000
        assert running.advance(50) == 100_051_000_000  # it waits from then on
        wire.close()
        wait_until(lambda: running.settle() == -1)


def test_on_other_links_it_is_none() -> None:
    with proxy(VIRTUAL) as running, redis_behind(running) as server:
        wire = running.wire(running.add(LINK, server.socket, "STEPPED"))
        wire.send(("BLPOP", "list", "100"))
        assert running.settle() == -1
