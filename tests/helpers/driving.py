"""The scheduler's C functions with tasks, servers and a proxy that a test plays: every turn and every PING is seen."""

import contextlib
import ctypes as c
import mmap
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lockstorm.native.library import FOREVER, Message, RunResult, TaskState, library
from lockstorm.native.seam import SharedPage, TaskSlot

VIRTUAL, REAL = 1, 2
MS = 1_000_000
TURN_LIMIT_MS = 10_000


class Puppet:
    """A task. At each turn it goes on to the next state of its script, with a deadline in ms (None: for ever); after
    the last it is idle."""

    def __init__(self, driven: "Driven", script: list[tuple[TaskState, float | None]]) -> None:
        self.driven, self.script = driven, script
        self.number = driven.call("add_task")
        self.slot = driven.slot(self.number)
        self.turns: list[tuple[TaskState, float]] = []  # what it was given the turn for, and when (ms)
        self.keeps_turn = self.ending = False
        self.turn_fd = driven.call("turn_fd", self.number)
        self.slot.state = TaskState.READY
        self.thread = threading.Thread(target=self._live, daemon=True)
        self.thread.start()

    def _live(self) -> None:
        while True:
            os.eventfd_read(self.turn_fd)
            if self.ending:
                return
            self.turns.append((TaskState(self.slot.state), self.driven.page.mono_ns / MS))
            self.driven.order.append(self.number)
            if self.keeps_turn:
                continue
            state, deadline_ms = self.script.pop(0) if self.script else (TaskState.IDLE, 0)
            self.slot.deadline_ns = FOREVER if deadline_ms is None else int(deadline_ms * MS)
            self.slot.state = state
            os.eventfd_write(self.driven.call("yield_fd"), 1)

    def end(self) -> None:
        self.ending = True
        os.eventfd_write(self.turn_fd, 1)
        self.thread.join()


class Driven:
    """A scheduler, its page, and the tasks and servers that take part."""

    def __init__(self, directory: Path, time: int = VIRTUAL, seed: int = 7) -> None:
        self.directory = directory
        self.path = directory / "page"
        self.message = Message()
        assert library().shared_page_create(bytes(self.path), time, seed, 0, self.message), str(self.message)
        self.scheduler = library().scheduler_open(bytes(self.path), self.message)
        assert self.scheduler, str(self.message)
        with self.path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)
        assert len(self._map) == c.sizeof(SharedPage)
        self.page = SharedPage.from_buffer(self._map)
        self.puppets: list[Puppet] = []
        self.peers: list[Peer] = []
        self.order: list[int] = []  # the tasks, in the order of their turns

    def call(self, name: str, *words: Any) -> Any:
        return getattr(library(), f"scheduler_{name}")(self.scheduler, *words)

    def slot(self, number: int) -> TaskSlot:
        slot: TaskSlot = self.page.tasks[number]
        return slot

    def puppet(self, *script: tuple[TaskState, float | None]) -> Puppet:
        self.puppets.append(Puppet(self, list(script)))
        return self.puppets[-1]

    def run(self, *awaited: Puppet, until_ms: float | None = None, first: bool = False) -> RunResult:
        tasks = (c.c_int * len(awaited))(*[each.number for each in awaited])
        until_ns = FOREVER if until_ms is None else int(until_ms * MS)
        return RunResult(self.call("run", tasks, len(awaited), first, until_ns, TURN_LIMIT_MS))

    @property
    def now_ms(self) -> float:
        return float(self.call("mono_ns") / MS)

    def server(self, name: str, clock: Path | None = None) -> "Peer":
        """Adds a server that speaks RESP."""
        peer = Peer(self.directory / name)
        self.peers.append(peer)
        peer.number = self.call("add_server", bytes(clock) if clock else None, bytes(peer.path), self.message)
        assert peer.number >= 0, str(self.message)
        return peer

    def proxy(self, *answers: bytes) -> "Peer":
        """The proxy answers SETTLE TARGETS with each of these in turn, then that nothing is due."""
        peer = Peer(self.directory / "proxy", [*answers])
        self.peers.append(peer)
        assert self.call("set_proxy", bytes(peer.path), self.message), str(self.message)
        return peer

    def settle(self) -> bool:
        return bool(self.call("settle"))

    @property
    def unanswered(self) -> str:
        return bytes(self.call("unanswered")).decode()

    def close(self) -> None:
        for puppet in self.puppets:
            puppet.end()
            del puppet.slot
        self.call("close")
        for peer in self.peers:
            peer.close()
        del self.page
        with contextlib.suppress(BufferError):  # a slot that a test still has
            self._map.close()


@contextmanager
def driven(directory: Path, time: int = VIRTUAL, seed: int = 7) -> Iterator[Driven]:
    running = Driven(directory, time, seed)
    try:
        yield running
    finally:
        running.close()


def targets(*heard: tuple["Peer | str", int]) -> bytes:
    """An answer to SETTLE TARGETS: these addresses had activity; those with a 1 had a new connection."""
    parts = [b"*%d\r\n:-1\r\n" % (1 + 2 * len(heard))]
    for peer, joined in heard:
        address = str(peer.path if isinstance(peer, Peer) else peer).encode()
        parts.append(b"$%d\r\n%s\r\n:%d\r\n" % (len(address), address, joined))
    return b"".join(parts)


class Peer:
    """Speaks RESP on a unix socket, and notes the commands."""

    number: int

    def __init__(self, path: Path, settled: list[bytes] | None = None) -> None:
        self.path, self.settled = path, settled or []
        self.said: list[str] = []
        self.answers: dict[str, bytes | None] = {"PING": b"+PONG\r\n", "CLIENT": b"+OK\r\n", "WAIT": b":1\r\n"}
        self.answers["PUBLISH"] = b":0\r\n"
        self.connections: list[socket.socket] = []
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(str(path))
        self.listening.listen()
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection = self.listening.accept()[0]
                self.connections.append(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError), connection, connection.makefile("rb") as reader:
            while words := read_request(reader.readline, reader.read):
                answer = self._answer(words)
                if answer is None:
                    return
                connection.sendall(answer)

    def _answer(self, words: list[str]) -> bytes | None:
        """None: it closes the connection instead."""
        self.said.append(" ".join(words))
        if words[0] == "SETTLE":
            return self.settled.pop(0) if self.settled else targets()
        return self.answers[words[0]]

    @property
    def pings(self) -> int:
        return self.said.count("PING")

    def hang_up(self) -> None:
        for connection in self.connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()
        self.thread.join()
        self.hang_up()


def read_request(line: Callable[[], bytes], read: Callable[[int], bytes]) -> list[str]:
    """The words of a request; none at the end of the stream."""
    head = line()
    if not head:
        return []
    words = []
    for _ in range(int(head[1:])):
        length = int(line()[1:])
        words.append(read(length + 2)[:-2].decode())
    return words
