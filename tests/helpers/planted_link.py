"""The connection of a planted adapter to a Redis: as much of RESP as these programs need. They start some two hundred
times in a run of the tests, and to load redis-py takes ten times as long as all else that they do. Redis-py itself is
tested as the shipped adapter of that name, and in the starter."""

import socket
from typing import Any, BinaryIO

Value = str | int | bytes


class Link:
    """Connects when it is first asked, and again after an error. `node`: one of `nodes` in the request `open`."""

    def __init__(self, node: dict[str, Any]) -> None:
        self.node = node
        self.timeout_s: float | None = None  # of each wait for an answer
        self.tries = 2  # on a connection that breaks
        self._stream: BinaryIO | None = None
        self._socket: socket.socket | None = None

    def ask(self, *words: Value) -> Any:
        """The answer to a command: bytes, int, None or a list. Raises OSError without an answer, or for an error."""
        for left in reversed(range(self.tries)):
            try:
                answer = self._asked(words)
                break
            except OSError as error:
                self.close()
                if not left or not isinstance(error, ConnectionError):
                    raise
        if isinstance(answer, OSError):
            raise answer
        return answer

    def _asked(self, words: tuple[Value, ...]) -> Any:
        if not self._stream:
            self._connect()
        assert self._socket and self._stream
        texts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        parts = (b"$%d\r\n%s\r\n" % (len(text), text) for text in texts)
        self._socket.sendall(b"*%d\r\n%s" % (len(texts), b"".join(parts)))
        return self._answer(self._stream)

    def close(self) -> None:
        for each in (self._stream, self._socket):
            if each:
                each.close()
        self._stream = self._socket = None

    def _connect(self) -> None:
        if "unix" in self.node:
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.settimeout(self.timeout_s)
            self._socket.connect(self.node["unix"])
        else:
            self._socket = socket.create_connection((self.node["host"], self.node["port"]), self.timeout_s)
        self._stream = self._socket.makefile("rb")

    def _answer(self, stream: BinaryIO) -> Any:
        line = stream.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server closed the connection")
        kind, text = line[:1], line[1:-2]
        if kind == b"+":
            return text
        if kind == b"-":
            return OSError(text.decode())
        if kind == b":":
            return int(text)
        if int(text) < 0:
            return None
        if kind == b"$":
            return stream.read(int(text) + 2)[:-2]
        return [self._answer(stream) for _ in range(int(text))]


def set_if_absent(link: Link, name: str, value: Value, lease_ms: int) -> bool:
    return link.ask("SET", name, value, "NX", "PX", lease_ms) is not None
