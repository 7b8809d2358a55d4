"""ZooKeeper's protocol, as far as anybody here needs it: a session, and requests about nodes."""

import contextlib
import re
import socket
import struct
from collections.abc import Iterator

from lockstorm.process.line_client import take

CREATE, DELETE, EXISTS, CHILDREN, CLOSE = 1, 2, 3, 8, -11
NO_NODE, NODE_EXISTS, NOT_EMPTY, NO_RIGHT = -101, -110, -111, -102
ERROR_NAMES = {NO_RIGHT: "it may not", -4: "the connection is lost", -112: "the session has expired", -115: "no login"}
EVERYBODY = struct.pack("!ii", 1, 31)  # one entry with all rights, for the user that follows
ANSWER_MOST = 64 << 20
OWNER_AT = 4 * 8 + 3 * 4  # of the session that a node belongs to, in what is known about it
PASSWORD_BYTES = 16


class ZooKeeperRefusal(Exception):
    """An error of the server."""

    def __init__(self, code: int) -> None:
        super().__init__(ERROR_NAMES.get(code, f"error {code}"))
        self.code = code


class NotZooKeeper(OSError):
    """The answer is not in ZooKeeper's protocol."""


class ZooKeeperConnection:
    """A session; `timeout_ms` is what the server has granted. A lost connection is an OSError."""

    def __init__(self, connected: socket.socket, timeout_ms: int) -> None:
        self.socket = connected
        self._xid = 0
        self._send(struct.pack("!iqiq", 0, 0, timeout_ms, 0) + _text(b"\0" * PASSWORD_BYTES) + b"\0")
        answer = self._read()
        if len(answer) < 16:
            raise NotZooKeeper
        self.timeout_ms = int(struct.unpack("!i", answer[4:8])[0])

    def children(self, path: str) -> list[str]:
        answer = self._ask(CHILDREN, _text(path.encode()) + b"\0")
        (count,), at, names = struct.unpack("!i", answer[:4]), 4, []
        for _ in range(count):
            (length,) = struct.unpack("!i", answer[at : at + 4])
            names.append(answer[at + 4 : at + 4 + length].decode(errors="replace"))
            at += 4 + length
        return names

    def below(self, path: str) -> Iterator[str]:
        """All nodes below one ("": the root), the deepest first."""
        names: list[str] = []
        with codes_suppressed(NO_NODE):
            names = self.children(path or "/")
        for name in names:
            yield from self.below(f"{path}/{name}")
            yield f"{path}/{name}"

    def owner(self, path: str) -> int:
        """The session that a node belongs to; 0: none."""
        answer = self._ask(EXISTS, _text(path.encode()) + b"\0")
        return int(struct.unpack("!q", answer[OWNER_AT : OWNER_AT + 8])[0])

    def create(self, path: str) -> None:
        """A node that everybody may change."""
        rights = EVERYBODY + _text(b"world") + _text(b"anyone")
        self._ask(CREATE, _text(path.encode()) + _text(b"") + rights + struct.pack("!i", 0))

    def delete(self, path: str) -> None:
        self._ask(DELETE, _text(path.encode()) + struct.pack("!i", -1))

    def close(self) -> None:
        with contextlib.suppress(OSError, ZooKeeperRefusal):
            self._ask(CLOSE, b"")
        self.socket.close()

    def _ask(self, kind: int, body: bytes) -> bytes:
        self._xid += 1
        self._send(struct.pack("!ii", self._xid, kind) + body)
        answer = self._read()
        if len(answer) < 16:
            raise NotZooKeeper
        xid, _, code = struct.unpack("!iqi", answer[:16])
        if xid != self._xid:
            raise NotZooKeeper
        if code:
            raise ZooKeeperRefusal(code)
        return answer[16:]

    def _send(self, text: bytes) -> None:
        self.socket.sendall(_text(text))

    def _read(self) -> bytes:
        (length,) = struct.unpack("!i", take(self.socket, 4))
        if not 0 <= length <= ANSWER_MOST:
            raise NotZooKeeper
        return take(self.socket, length)


@contextlib.contextmanager
def codes_suppressed(*codes: int) -> Iterator[None]:
    try:
        yield
    except ZooKeeperRefusal as refusal:
        if refusal.code not in codes:
            raise


def ask_word(connected: socket.socket, word: str) -> str:
    """The server's answer to a four-letter word, after which it closes the connection."""
    connected.sendall(word.encode())
    return b"".join(iter(lambda: connected.recv(1 << 16), b"")).decode(errors="replace")


def version_in(said: str, unknown: str) -> str:
    """The server's version in its answer to "srvr"."""
    found = re.search(r"version: ([0-9.]+)", said)
    return found[1] if found else unknown


def _text(text: bytes) -> bytes:
    return struct.pack("!i", len(text)) + text
