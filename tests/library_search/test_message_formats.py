"""Where messages end in the protocols of the services of a library's world."""

import json
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.building import make


@pytest.fixture(scope="session")
def program() -> Path:
    return make("test-programs") / "tests" / "messages"


def described(program: Path, name: str, data: bytes) -> list[dict[str, Any]]:
    done = subprocess.run([program, name], input=data, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def messages(program: Path, name: str, data: bytes) -> list[tuple[int, bool]]:
    """Of each message its length, and whether it is plain."""
    return [(each["length"], each["plain"]) for each in described(program, name, data)]


def sorts(program: Path, name: str, *data: bytes) -> list[int]:
    """Of each message a number for what it asks for, from 0 in the order of the first one of its sort."""
    found = [each["sort"] for each in described(program, name, b"".join(data)) if not each["plain"]]
    return [list(dict.fromkeys(found)).index(each) for each in found]


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """An HTTP/2 frame (RFC 9113, section 4.1)."""
    return struct.pack("!I", len(payload))[1:] + struct.pack("!BBI", kind, flags, stream) + payload


def typed(kind: bytes, payload: bytes) -> bytes:
    """A message of PostgreSQL's protocol."""
    return kind + struct.pack("!I", len(payload) + 4) + payload


DATA, HEADERS, RESET, SETTINGS, PING = 0, 1, 3, 4, 6
END = 1


def test_a_call_of_grpc_is_one_request_and_one_answer(program: Path) -> None:
    preface, settings = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", frame(SETTINGS, 0, 0, b"")
    call = frame(HEADERS, 4, 1, b"head") + frame(DATA, END, 1, b"question")
    asked = [(len(preface), True), (len(settings), True), (len(call), False)]
    assert messages(program, "grpc-requests", preface + settings + call) == asked
    answer = frame(HEADERS, 4, 1, b"head") + frame(DATA, 0, 1, b"answer") + frame(HEADERS, 4 | END, 1, b"trailers")
    stream = frame(DATA, 0, 3, b"event")
    got = messages(program, "grpc-replies", settings + answer + stream + frame(PING, 1, 0, b"12345678"))
    # The trailers come a piece later than the data here, and are then a message of their own.
    assert sum(length for length, _ in got) == len(settings + answer + stream) + 17
    assert got[0] == (len(settings), True) and got[-1] == (17, True) and (len(stream), False) in got


def test_a_cancelled_call_of_grpc_is_a_message(program: Path) -> None:
    preface, reset = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", frame(RESET, 0, 1, b"1234")
    assert messages(program, "grpc-requests", preface + reset)[1:] == [(len(reset), False)]


def test_a_gateway_of_etcd_is_asked_by_http_1_1(program: Path) -> None:
    post = b"POST /v3/kv/txn HTTP/1.1\r\nHost: etcd\r\nContent-Length: 4\r\n\r\nbody"
    get = b"GET /version HTTP/1.1\r\nHost: etcd\r\n\r\n"
    assert messages(program, "grpc-requests", post + get + post) == [(len(each), False) for each in (post, get, post)]
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n0123456789"
    head, chunk, last = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"a\r\n0123456789\r\n", b"0\r\n\r\n"
    got = messages(program, "grpc-replies", answer + head + chunk + chunk + last + answer)
    # The last chunk comes a piece later than the one before it here, and is then a message of its own.
    assert got == [(len(each), False) for each in (answer, head + chunk, chunk, last, answer)]


def test_a_body_whose_length_is_no_number_is_refused(program: Path) -> None:
    asked = b"POST / HTTP/1.1\r\nContent-Length: many\r\n\r\n"
    assert subprocess.run([program, "grpc-requests"], input=asked, capture_output=True, timeout=60).returncode == 1


def test_a_session_of_zookeeper_is_opened_and_kept_up_by_plain_messages(program: Path) -> None:
    def packet(payload: bytes) -> bytes:
        return struct.pack("!I", len(payload)) + payload

    opening, ping = packet(b"\0" * 45), packet(struct.pack("!ii", -2, 11))
    create = packet(struct.pack("!ii", 1, 1) + b"/lock")
    expected = [(len(opening), True), (len(ping), True), (len(create), False)]
    assert messages(program, "zookeeper-requests", opening + ping + create) == expected


def test_a_query_of_postgres_is_one_request_and_its_answer_ends_with_ready(program: Path) -> None:
    opening = struct.pack("!II", 8, 80877103) + struct.pack("!II", 8, 196608)
    parsed = typed(b"P", b"x") + typed(b"B", b"") + typed(b"E", b"") + typed(b"S", b"")
    expected = [(8, True), (8, True), (len(typed(b"Q", b"one\0")), False), (len(parsed), False)]
    assert messages(program, "postgres-requests", opening + typed(b"Q", b"one\0") + parsed) == expected
    answer = typed(b"T", b"row") + typed(b"D", b"1") + typed(b"C", b"SELECT") + typed(b"Z", b"I")
    start = typed(b"R", b"\0\0\0\0") + typed(b"Z", b"I")
    told = typed(b"A", b"channel")
    expected = [(1, True), (len(start), False), (len(told), False), (len(answer), False)]
    assert messages(program, "postgres-replies", b"N" + start + told + answer) == expected


FLUSH = typed(b"H", b"")
PREPARE = typed(b"P", b"x\0select $1\0\0\0") + typed(b"D", b"Sx\0") + FLUSH
PREPARED = typed(b"1", b"") + typed(b"t", b"\0\1\0\0\0\x17") + typed(b"T", b"row")
UNKNOWN = typed(b"E", b"SERROR\0\0")
READY = typed(b"Z", b"I")
FLUSHED = {
    "a statement is prepared, as by asyncpg": (PREPARE, PREPARED, len(PREPARED)),
    "it has no rows": (PREPARE, typed(b"1", b"") + typed(b"t", b"\0\0") + typed(b"n", b""), 17),
    "an error ends it": (PREPARE, UNKNOWN, len(UNKNOWN)),
    "a portal is described": (typed(b"D", b"P\0") + FLUSH, typed(b"T", b"row"), 8),
    "rows are fetched": (typed(b"E", b"\0\0\0\0\0") + FLUSH, typed(b"D", b"1") * 2 + typed(b"s", b""), 17),
    "a Sync comes behind it": (PREPARE + typed(b"S", b""), PREPARED + READY, len(PREPARED + READY)),
}


@pytest.mark.parametrize("case", FLUSHED)
def test_the_answer_to_a_flush_of_postgres_ends_with_its_last_part(program: Path, tmp_path: Path, case: str) -> None:
    request, answer, length = FLUSHED[case]
    (tmp_path / "request").write_bytes(request)
    done = subprocess.run(
        [program, "postgres-replies", tmp_path / "request"],
        input=answer + READY,
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 0
    lengths = [json.loads(line)["length"] for line in done.stdout.splitlines()]
    assert lengths == [length, len(READY)]


def command(*words: bytes) -> bytes:
    """A command of Redis, as an array of bulk strings."""
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def test_requests_of_a_sort_ask_for_the_same_of_whichever_lock(program: Path) -> None:
    take, give = b"return redis.call('set', KEYS[1], ARGV[1])", b"return redis.call('del', KEYS[1])"
    scripts = [command(b"EVAL", text, b"1", key) for text in (take, give, take) for key in (b"one", b"another")]
    assert sorts(program, "resp-requests", *scripts) == [0, 0, 1, 1, 0, 0]
    plain = [command(b"GET", b"one"), command(b"SUBSCRIBE", b"one"), command(b"GET", b"another"), command(b"PING")]
    assert sorts(program, "resp-requests", *plain) == [0, 1, 0]

    opening = struct.pack("!II", 8, 196608)
    lock, free = (b"SELECT pg_advisory_%s(%d)\0" % (verb, key) for verb, key in ((b"lock", 1), (b"unlock", 1)))
    again = b"SELECT pg_advisory_lock(23)\0"
    other = typed(b"P", b"name\0" + b"DELETE FROM locks\0") + typed(b"S", b"")
    renamed = typed(b"P", b"another\0" + b"DELETE FROM locks\0") + typed(b"S", b"")
    asked = [typed(b"Q", lock), typed(b"Q", again), other, renamed]
    assert sorts(program, "postgres-requests", opening, *asked) == [0, 0, 1, 1]
    assert sorts(program, "postgres-requests", opening, typed(b"Q", b"BEGIN\0"), typed(b"Q", free)) == [0, 1]

    def packet(operation: int, path: bytes) -> bytes:
        payload = struct.pack("!ii", 1, operation) + path
        return struct.pack("!I", len(payload)) + payload

    asked = [packet(1, b"/lock"), packet(2, b"/lock"), packet(1, b"/other")]
    assert sorts(program, "zookeeper-requests", struct.pack("!I", 45) + b"\0" * 45, *asked) == [0, 1, 0]

    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    calls = [frame(HEADERS, 4, 1, b"head") + frame(DATA, END, 1, body) for body in (b"one", b"four", b"two")]
    assert sorts(program, "grpc-requests", preface, *calls) == [0, 1, 0]
    post = b"POST /v3/%s HTTP/1.1\r\nContent-Length: 1\r\n\r\n%d"
    posts = [post % each for each in ((b"txn", 1), (b"put", 1), (b"txn", 2))]
    assert sorts(program, "grpc-requests", *posts) == [0, 1, 0]
