"""A connection on which one question at a time is asked, in RESP2: what every trial asks its servers and its proxy a
dozen times, for a tenth of what a whole client library takes for it."""

import socket
from pathlib import Path
from typing import Any

LIMIT_S = 10.0


class Refusal(Exception):
    """An error reply; its text, without the sign in front."""


class Line:
    """Connects with the first question. Whatever goes wrong with the connection is an OSError, and closes it."""

    def __init__(self, path: Path, greeting: tuple[str, ...] = ()) -> None:
        self._path = path
        self._greeting = greeting  # asked first of all on every connection
        self._socket: socket.socket | None = None
        self._unread = b""

    def ask(self, *words: str | int | bytes) -> Any:
        """The answer to a command. Raises Refusal for an error reply."""
        try:
            if not self._socket:
                self._connect()
            return self._exchange(words)
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        if self._socket:
            self._socket.close()
        self._socket, self._unread = None, b""

    def _connect(self) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(LIMIT_S)
        self._socket.connect(bytes(self._path))
        if self._greeting:
            self._exchange(self._greeting)

    def _exchange(self, words: tuple[str | int | bytes, ...]) -> Any:
        assert self._socket
        raw = [word if isinstance(word, bytes) else str(word).encode("utf-8", "surrogateescape") for word in words]
        self._socket.sendall(b"*%d\r\n" % len(raw) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in raw))
        return self._answer()

    def _answer(self) -> Any:
        head = self._line()
        kind, rest = head[:1], head[1:]
        if kind == b"+":
            return rest
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self._bytes(int(rest))
        if kind == b"*":
            return None if rest == b"-1" else [self._answer() for _ in range(int(rest))]
        if kind == b"-":
            raise Refusal(rest.decode(errors="replace"))
        raise OSError(f"an answer that is not RESP2: {head[:40]!r}")

    def _line(self) -> bytes:
        while b"\r\n" not in self._unread:
            self._read()
        line, _, self._unread = self._unread.partition(b"\r\n")
        return line

    def _bytes(self, length: int) -> bytes:
        while len(self._unread) < length + 2:
            self._read()
        text, self._unread = self._unread[:length], self._unread[length + 2 :]
        return text

    def _read(self) -> None:
        assert self._socket
        some = self._socket.recv(1 << 16)
        if not some:
            raise ConnectionError("the connection was closed")
        self._unread += some
