"""The store: a RESP server for any Redis client, with four ways to refuse."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis

from lockstorm.base import paths
from lockstorm.trial.trial import Trial
from tests.helpers.support import trial


@contextmanager
def store(mode: str) -> Iterator[tuple[redis.Redis, Trial]]:
    lock = "none" if mode == "open" else "set-nx-px-fenced"
    with trial(lock, store=mode) as running:
        link = redis.Redis(unix_socket_path=str(running.store.socket), driver_info=None, protocol=2)
        link.response_callbacks.clear()  # SET answers with a value here, not with OK
        yield link, running
        link.close()


def ask(link: redis.Redis, *words: Any) -> Any:
    """The answer, or the text of the error."""
    try:
        return link.execute_command(*words)  # type: ignore[no-untyped-call]
    except redis.exceptions.ResponseError as error:
        return str(error)


def test_values_and_versions() -> None:
    with store("open") as (link, _):
        assert ask(link, "GET", "register") == [0, 0]
        assert ask(link, "SET", "register", 7) == [7, 1]
        assert ask(link, "GET", "register") == [7, 1]
        assert ask(link, "ADD", "counter", 5) == [5, 1]
        assert ask(link, "ADD", "counter", -7) == [-2, 2]
        assert ask(link, "ADD", "set", 3) == [1, 1]
        assert ask(link, "ADD", "set", 3) == [0, 2]
        assert ask(link, "ADD", "set", -4) == [1, 3]
        assert ask(link, "MEMBERS") == [-4, 3]
        assert ask(link, "GET", "set") == [2, 3]
        assert ask(link, "MODE") == b"open"
        assert ask(link, "SET", "register", -(2**63)) == [-(2**63), 2]


def test_open_accepts_every_write() -> None:
    with store("open") as (link, _):
        assert ask(link, "SET", "counter", 1, "TOKEN", 9) == [1, 1]
        assert ask(link, "SET", "counter", 2, "TOKEN", 1) == [2, 2]
        assert ask(link, "SET", "counter", 3) == [3, 3]


def test_fence_writes_checks_writes_only_and_learns_from_writes_only() -> None:
    with store("fence-writes") as (link, _):
        assert ask(link, "GET", "counter", "TOKEN", 9) == [0, 0]
        assert ask(link, "SET", "counter", 1, "TOKEN", 3) == [1, 1], "the read with token 9 does not count"
        assert ask(link, "SET", "counter", 2, "TOKEN", 5) == [2, 2]
        assert ask(link, "SET", "counter", 3, "TOKEN", 4).startswith("FENCED token 4 is older than 5")
        assert ask(link, "ADD", "set", 3, "TOKEN", 4).startswith("FENCED")
        assert ask(link, "SET", "counter", 4, "TOKEN", 5) == [4, 3], "its holder may write again"
        assert ask(link, "GET", "counter", "TOKEN", 1) == [4, 3]
        assert ask(link, "SET", "counter", 4).startswith("NOTOKEN")


def test_fence_reads_and_writes_checks_both_and_learns_from_both() -> None:
    with store("fence-reads-and-writes") as (link, _):
        assert ask(link, "GET", "counter", "TOKEN", 9) == [0, 0]
        assert ask(link, "SET", "counter", 1, "TOKEN", 8).startswith("FENCED token 8 is older than 9")
        assert ask(link, "GET", "counter", "TOKEN", 8).startswith("FENCED")
        assert ask(link, "SET", "counter", 1, "TOKEN", 9) == [1, 1]
        assert ask(link, "GET", "counter").startswith("NOTOKEN")


def test_compare_owner_accepts_writes_of_the_last_reader() -> None:
    with store("compare-owner") as (link, _):
        assert ask(link, "SET", "counter", 1, "GRANT", 9).startswith("OWNED"), "no client has read yet"
        assert ask(link, "GET", "counter", "GRANT", 9) == [0, 0]
        assert ask(link, "GET", "counter", "GRANT", 3) == [0, 0], "no order among grants"
        assert ask(link, "SET", "counter", 1, "GRANT", 9).startswith("OWNED somebody else has read since")
        assert ask(link, "SET", "counter", 1, "GRANT", 3) == [1, 1]
        assert ask(link, "ADD", "counter", 1, "GRANT", 3) == [2, 2], "it stays the owner until another client reads"
        assert ask(link, "ADD", "counter", 1, "GRANT", 9).startswith("OWNED")
        assert ask(link, "GET", "counter", "TOKEN", 9).startswith("NOGRANT")
        assert ask(link, "GET", "counter", "GRANT", 9) == [2, 2]


def test_compare_and_set_takes_writes_of_the_newest_version() -> None:
    with store("compare-and-set") as (link, _):
        assert ask(link, "GET", "counter") == [0, 0]
        assert ask(link, "SET", "counter", 5, "VERSION", 0) == [5, 1]
        assert ask(link, "SET", "counter", 6, "VERSION", 0).startswith("CHANGED")
        assert ask(link, "SET", "counter", 6).startswith("CHANGED"), "computed from nothing"
        assert ask(link, "SET", "register", 6, "VERSION", 0) == [6, 1], "a version each"
        assert ask(link, "ADD", "counter", 1) == [6, 2], "the store computes that one itself"
        assert ask(link, "SET", "counter", 7, "VERSION", 2, "TOKEN", 1) == [7, 3], "tokens mean nothing"


def test_a_refused_token_teaches_nothing() -> None:
    with store("fence-writes") as (link, _):
        assert ask(link, "SET", "counter", 1, "TOKEN", 5) == [1, 1]
        assert ask(link, "SET", "register", 1, "TOKEN", 4).startswith("FENCED")
        assert ask(link, "SET", "counter", 2, "TOKEN", 5) == [2, 2]


NO_NUMBERS = ["", "x", "1x", "1 ", " 1", "\t1", "+1", "--1", "-", "0x1", "1.0", "1e3", "1\0", "1\0002", "\0", "9" * 30]
OPTIONS = ["TOKEN", "VERSION", "ACTOR", "OP", "GRANT"]


@pytest.mark.parametrize(
    "words",
    [
        ("GET",),
        ("GET", "nothing"),
        ("SET", "counter"),
        ("SET", "counter", "x"),
        ("SET", "counter", str(2**63)),
        ("SET", "counter", "1", "TOKEN"),
        ("SET", "counter", "1", "TOKEN", "-1"),
        ("SET", "counter", "1", "OP", str(2**32)),
        ("SET", "counter", "1", "TOKIN", "1"),
        ("SET", "set", "1"),
        ("ADD", "register", "1"),
        ("FLUSHALL",),
        ("SET", "counter", ""),
        ("", ""),
        ("SET", "counter", "1", "VERSION", "-2"),
        ("SET", "counter", "1", "GRANT", "-1"),
        ("SET", "counter", "1", "ACTOR", str(2**32)),
        ("SET\0", "counter", "1"),
        ("SET", "counter\0", "1"),
        ("SET", "counter", "1", "TOKEN\0", "1"),
    ],
)
def test_wrong_requests_are_answered_and_change_nothing(words: tuple[str, ...]) -> None:
    with store("open") as (link, _):
        answer = ask(link, *words)
        assert isinstance(answer, str) and answer.startswith(("usage", "unknown", "ERR")), answer
        assert ask(link, "GET", "counter") == [0, 0]
        assert ask(link, "GET", "set") == [0, 0]


def test_a_malformed_number_is_an_error_and_never_a_number() -> None:
    requests: list[tuple[str, ...]] = [("SET", "counter", number) for number in NO_NUMBERS]
    requests += [("ADD", "set", number) for number in NO_NUMBERS]
    requests += [("SET", "counter", "1", option, number) for option in OPTIONS for number in NO_NUMBERS]
    with store("open") as (link, running):
        accepted = [request for request in requests if not str(ask(link, *request)).startswith("usage")]
        assert accepted == []
        assert ask(link, "GET", "counter") == ask(link, "GET", "set") == [0, 0]
        assert not [record for record in running.story() if record.kind == "store-write"]


@pytest.mark.parametrize("option", ["--actor", "--stranger", "--counter"])
@pytest.mark.parametrize("number", ["", "x", "7x", " 7", "+7", "9" * 30])
def test_a_store_that_is_started_with_no_number_says_so(option: str, number: str, tmp_path: Path) -> None:
    given = {"--history": tmp_path / "none", "--page": tmp_path / "none", "--socket": tmp_path / "socket"}
    words = {**given, "--mode": "open", "--actor": 1, option: number}
    command = [paths.program("store"), *[str(word) for pair in words.items() for word in pair]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stderr) == (2, f"store: not a usable number: {option} {number}\n")


def test_hostile_bytes_end_the_connection_and_nothing_else() -> None:
    import socket

    with store("open") as (link, running):
        for bytes_ in (
            b"\x00\xff garbage\r\n",
            b"*1\r\n$-5\r\n",
            b"*9999999999\r\n",
            b"$3\r\nGET\r\n",
            b"*1\r\n*1\r\n:1\r\n",
        ):
            with socket.socket(socket.AF_UNIX) as raw:
                raw.settimeout(5)
                raw.connect(str(running.store.socket))
                raw.sendall(bytes_)
                assert raw.recv(100).startswith(b"-ERR"), bytes_
        assert ask(link, "PING") in (True, b"PONG")


def test_redis_cli_can_talk_to_it() -> None:
    with store("open") as (_, running):
        words = ["redis-cli", "-s", str(running.store.socket), "SET", "counter", "41"]
        assert subprocess.run(words, capture_output=True, text=True, check=True).stdout.split() == ["41", "1"]
        strangers = [record for record in running.story() if record.kind == "store-write"]
        assert [(record.name, record.value) for record in strangers] == [("stranger", 41)]
