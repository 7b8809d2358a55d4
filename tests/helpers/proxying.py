"""A proxy that belongs to a test, with a redis-server behind it."""

import contextlib
import mmap
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from lockstorm.base import paths
from lockstorm.base.hang_limit import CONNECTION_LIMIT_S, START_LIMIT_S, HangLimit
from lockstorm.native.judgement import read_history
from lockstorm.native.library import FOREVER, Message, Settings, library
from lockstorm.native.seam import SharedPage
from lockstorm.process.process import Sandbox
from lockstorm.results.event import Event
from lockstorm.servers.redis_server import RedisServer

VIRTUAL, REAL = 1, 2
LINK = "client-1>redis-1"
DUMMY = "dummy * both drop ARG no-such-argument"
LAST = "=the-last-one="
ACTOR = "proxy"
CLOSED = b""


def wait_until(condition: Callable[[], object], within_s: float = START_LIMIT_S) -> None:
    limit = HangLimit(within_s)
    while not condition():
        assert not limit.is_over(), "the condition did not become true in time"
        time.sleep(0.001)


class Wire:
    """A connection that sends and receives bytes."""

    def __init__(self, address: str) -> None:
        if address.startswith("/"):
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.connect(address)
        else:
            host, _, port = address.rpartition(":")
            self.socket = socket.create_connection((host, int(port)))
        self.socket.settimeout(CONNECTION_LIMIT_S)

    def send(self, *requests: tuple[str | bytes | int, ...]) -> None:
        self.raw(b"".join(encode(*request) for request in requests))

    def raw(self, data: bytes) -> None:
        self.socket.sendall(data)

    def read(self, count: int) -> bytes:
        """Exactly `count` bytes, fewer if the stream ends before."""
        got = bytearray()
        while len(got) < count and (more := self.socket.recv(min(count - len(got), 1 << 20))):
            got += more
        return bytes(got)

    def expect(self, wanted: bytes) -> None:
        assert self.read(len(wanted)) == wanted

    def silent(self) -> bool:
        """Nothing is there to be read now."""
        self.socket.setblocking(False)
        try:
            self.socket.recv(1, socket.MSG_PEEK)
            return False
        except BlockingIOError:
            return True
        finally:
            self.socket.settimeout(CONNECTION_LIMIT_S)

    def ended(self) -> bool:
        """The stream ends, or is broken off, without another byte."""
        try:
            return self.socket.recv(1) == CLOSED
        except ConnectionResetError:
            return True

    def close(self) -> None:
        self.socket.close()


def encode(*words: str | bytes | int) -> bytes:
    """A request."""
    parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


class Proxy:
    """The program under test, and its control port."""

    def __init__(self, sandbox: Sandbox, time_kind: int = REAL, seed: int = 7) -> None:
        self.directory = sandbox.directory
        self.sandbox = sandbox
        lib, message = library(), Message()
        self.history = self.directory / "history"
        page = self.directory / "page"
        settings = Settings(time=time_kind, seed=seed, capacity=1 << 17)
        assert lib.history_create(bytes(self.history), settings, message), str(message)
        assert lib.shared_page_create(bytes(page), time_kind, seed, 0, message), str(message)
        with page.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)
        self.page = SharedPage.from_buffer(self._map)
        self.control_path = self.directory / "control.sock"
        command = [paths.program("proxy"), "--history", str(self.history), "--page", str(page), "--actor", "0"]
        self.process = sandbox.start("proxy", [*command, "--control", str(self.control_path)])
        wait_until(lambda: self.control_path.exists() or self.process.poll() is not None)
        self.control = redis.Redis(
            unix_socket_path=str(self.control_path),
            socket_timeout=CONNECTION_LIMIT_S,
            retry=Retry(NoBackoff(), 0),
            protocol=2,
            driver_info=None,
        )
        self._wires: list[Wire] = []
        self.links = 0

    def command(self, *words: Any) -> Any:
        """Sends a command to the control port and returns the reply; raises an error reply."""
        return self.control.execute_command(*words)  # type: ignore[no-untyped-call]

    def rule(self, line: str, *more: str | bytes) -> None:
        """RULE ADD with blank-separated words; words that contain blanks or are bytes follow in `more`."""
        assert self.command("RULE", "ADD", *line.split(), *more) == b"OK"

    def stat(self, name: str) -> dict[str, Any]:
        return pairs(self.command("RULE", "STAT", name))

    def stats(self) -> dict[str, Any]:
        return pairs(self.command("STATS"))

    def link(self, name: str) -> dict[str, Any]:
        (found,) = [each for each in map(pairs, self.command("LINK", "LIST")) if each["name"] == name]
        return found

    def settle(self) -> int:
        return int(self.command("SETTLE"))

    def add(self, name: str, target: str | Path, *options: str, tcp: bool = False) -> str:
        """Adds a link; returns the address to connect to."""
        self.links += 1
        listen = "127.0.0.1:0" if tcp else str(self.directory / f"link-{self.links}.sock")
        return bytes(self.command("LINK", "ADD", name, listen, str(target), *options)).decode()

    def wire(self, address: str) -> Wire:
        """Opens a connection that is closed with the proxy."""
        self._wires.append(Wire(address))
        return self._wires[-1]

    def advance(self, ms: float) -> int:
        """Moves the virtual clock as the scheduler does, and lets the proxy deliver."""
        self.page.mono_ns += int(ms * 1e6)
        return self.settle()

    @property
    def deadline_ns(self) -> int | None:
        due = int(self.page.proxy_deadline_ns)
        return None if due == FOREVER else due

    def records(self, *kinds: str) -> list[Event]:
        """The records of these kinds that it has appended so far, with names instead of indices."""
        return [record for record in read_history(self.history)[1:] if record.kind in kinds]

    def fired(self, name: str, times: int = 1) -> None:
        """Waits until a rule has fired exactly `times` times."""
        wait_until(lambda: self.stat(name)["fired"] >= times)
        assert self.stat(name)["fired"] == times

    def hang_up(self) -> None:
        """Ends all connections, and checks that the proxy keeps nothing of them."""
        for wire in self._wires:
            wire.close()
        for rule in self.command("RULE", "LIST"):
            self.command("RULE", "REMOVE", pairs(rule)["name"])
        wait_until(lambda: self.stats()["connections"] == 0)
        assert self.stats() == {"connections": 0, "links": self.links, "rules": 0, "memory": 0, "opaque": 0}

    def close(self) -> None:
        for wire in self._wires:
            wire.close()
        self.control.close()
        del self.page
        self._map.close()


def pairs(reply: list[Any]) -> dict[str, Any]:
    words = [word.decode() if isinstance(word, bytes) else word for word in reply]
    return dict(zip(words[::2], words[1::2], strict=True))


@contextmanager
def proxy(time_kind: int = REAL) -> Iterator[Proxy]:
    sandbox = Sandbox()
    running = None
    try:
        running = Proxy(sandbox, time_kind)
        yield running
        assert running.process.poll() is None, sandbox.log_tail("proxy", 20)
        running.hang_up()
        running.command("SHUTDOWN")
        wait_until(lambda: running.process.poll() is not None)
        assert running.process.wait() == 0, sandbox.log_tail("proxy", 20)
    finally:
        if running:
            running.close()
        sandbox.close()


@contextmanager
def redis_behind(running: Proxy, name: str = "redis-1", *options: str) -> Iterator[RedisServer]:
    server = RedisServer(running.sandbox, name, clock=None, options=options)
    with contextlib.closing(server):
        server.ready()
        yield server


@contextmanager
def faked_server(running: Proxy, *options: str) -> Iterator[tuple[Wire, socket.socket]]:
    """Both ends of a connection over a new link."""
    target = running.directory / "fake.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(target))
        listening.listen()
        listening.settimeout(CONNECTION_LIMIT_S)
        client = running.wire(running.add(LINK, target, *options))
        fake, _ = listening.accept()
        with fake:
            fake.settimeout(CONNECTION_LIMIT_S)
            yield client, fake


def another(running: Proxy) -> Wire:
    """Opens one more connection over the link."""
    return running.wire(running.link(LINK)["listen"])
