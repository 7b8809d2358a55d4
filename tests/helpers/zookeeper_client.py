"""A minimal ZooKeeper client, for requests that the client library of the locks does not make."""

import socket
import struct
from types import TracebackType
from typing import Self

CREATE, DELETE, EXISTS, CHILDREN, CLOSE = 1, 2, 3, 8, -11
EPHEMERAL_SEQUENTIAL = 3
NO_NODE = -101
ALL_RIGHTS = 31


class ZooKeeperClient:
    """A session without heartbeats, for a trial whose clock does not advance."""

    def __init__(self, port: int, timeout_ms: int = 1_000_000) -> None:
        self._connection = socket.create_connection(("127.0.0.1", port), 10)
        self._xid = 0
        self._send(struct.pack("!iqiqi16s?", 0, 0, timeout_ms, 0, 16, b"", False))
        self._receive()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ask(CLOSE)
        self._connection.close()

    def create(self, path: str, flags: int = 0) -> str:
        """Creates a node and returns its path, to which the server may have added a number."""
        rights = struct.pack("!ii", 1, ALL_RIGHTS) + text("world") + text("anyone")
        status, answer = self._ask(CREATE, text(path) + text("") + rights + struct.pack("!i", flags))
        assert status == 0, status
        return answer[4:].decode()

    def delete(self, path: str) -> None:
        status, _ = self._ask(DELETE, text(path) + struct.pack("!i", -1))
        assert status == 0, status

    def czxid(self, path: str) -> int | None:
        status, answer = self._ask(EXISTS, text(path) + b"\0")
        assert status in (0, NO_NODE), status
        return None if status else int.from_bytes(answer[:8])

    def children(self, path: str) -> list[str]:
        status, answer = self._ask(CHILDREN, text(path) + b"\0")
        assert status == 0, status
        names, at = [], 4
        for _ in range(int.from_bytes(answer[:4])):
            length = int.from_bytes(answer[at : at + 4])
            names.append(answer[at + 4 : at + 4 + length].decode())
            at += 4 + length
        return names

    def _ask(self, kind: int, body: bytes = b"") -> tuple[int, bytes]:
        self._xid += 1
        self._send(struct.pack("!ii", self._xid, kind) + body)
        answer = self._receive()
        xid, _, status = struct.unpack("!iqi", answer[:16])
        assert xid == self._xid
        return status, answer[16:]

    def _send(self, message: bytes) -> None:
        self._connection.sendall(struct.pack("!i", len(message)) + message)

    def _receive(self) -> bytes:
        return self._exactly(int.from_bytes(self._exactly(4)))

    def _exactly(self, length: int) -> bytes:
        found = b""
        while len(found) < length:
            part = self._connection.recv(length - len(found))
            assert part, "the server has closed the connection"
            found += part
        return found


def text(word: str) -> bytes:
    return struct.pack("!i", len(word)) + word.encode()
