"""A client that sends one request at a time in RESP2. Every trial sends its servers and its proxy a dozen, and a whole
client library would take ten times as long for them."""

import contextlib
import socket
from pathlib import Path
from typing import Any

from lockstorm.base.hang_limit import CONNECTION_LIMIT_S


class Refusal(Exception):
    """An error reply: its text, without the leading "-"."""


class NotRedis(OSError):
    """The answer is not in RESP2."""


class RespConnection:
    """An error reply is a Refusal, a lost connection an OSError."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self._unread = b""

    def request(self, *words: str | int | bytes) -> Any:
        raw = [word if isinstance(word, bytes) else str(word).encode("utf-8", "surrogateescape") for word in words]
        self.socket.sendall(b"*%d\r\n" % len(raw) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in raw))
        return self._read_reply()

    def _read_reply(self) -> Any:
        head = self._read_line()
        kind, rest = head[:1], head[1:]
        if kind == b"-":
            raise Refusal(rest.decode(errors="replace"))
        if kind == b"+":
            return rest
        with contextlib.suppress(ValueError):
            if kind == b":":
                return int(rest)
            if kind == b"$":
                return None if rest == b"-1" else self._read_bytes(int(rest))
            if kind == b"*":
                return None if rest == b"-1" else [self._read_reply() for _ in range(int(rest))]
        raise NotRedis(f"a reply that is not RESP2: {head[:40]!r}")

    def _read_line(self) -> bytes:
        while b"\r\n" not in self._unread:
            if self._unread[:1] not in (b"", b"-", b"+", b":", b"$", b"*"):  # another protocol may send no line end
                raise NotRedis(f"a reply that is not RESP2: {self._unread[:40]!r}")
            self._receive()
        line, _, self._unread = self._unread.partition(b"\r\n")
        return line

    def _read_bytes(self, length: int) -> bytes:
        while len(self._unread) < length + 2:
            self._receive()
        text, self._unread = self._unread[:length], self._unread[length + 2 :]
        return text

    def _receive(self) -> None:
        some = self.socket.recv(1 << 16)
        if not some:
            raise ConnectionResetError("the connection was closed")
        self._unread += some


def take(connected: socket.socket, length: int) -> bytes:
    """So many bytes; ConnectionResetError if fewer come."""
    found = b""
    while len(found) < length:
        some = connected.recv(length - len(found))
        if not some:
            raise ConnectionResetError("the connection was closed")
        found += some
    return found


class LineClient:
    """Connects with the first request. An error of the connection is an OSError, and closes it."""

    def __init__(self, path: Path, greeting: tuple[str, ...] = ()) -> None:
        self._path = path
        self._greeting = greeting  # the first request on every connection
        self._connection: RespConnection | None = None

    def request(self, *words: str | int | bytes) -> Any:
        """The reply to a command. Raises Refusal for an error reply."""
        try:
            return (self._connection or self._connect()).request(*words)
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        if self._connection:
            self._connection.socket.close()
        self._connection = None

    def _connect(self) -> RespConnection:
        self._connection = RespConnection(socket.socket(socket.AF_UNIX))  # noted first, so that a failure closes it
        self._connection.socket.settimeout(CONNECTION_LIMIT_S)
        self._connection.socket.connect(bytes(self._path))
        if self._greeting:
            self._connection.request(*self._greeting)
        return self._connection
