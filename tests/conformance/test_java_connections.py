"""The adapters of Java's libraries on Redis connect when they are opened. A command whose connection is lost is not
sent again: its outcome is unknown, as elsewhere."""

import contextlib
import json
import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from typing import Any, Self

import pytest

from lockstorm.base import paths
from lockstorm.base.errors import NotInstalled
from lockstorm.base.hang_limit import HangLimit, await_readable
from lockstorm.locks.adapter import PREFIX, adapter_entry, adapter_path, library_environment

pytestmark = pytest.mark.waits  # a library runs in real time here

LIMIT_S = 60
CHANGES_A_LOCK = {"SET", "EVAL", "EVALSHA"}
# Lettuce asks for RESP3 first, and for RESP2 of a server that does not know HELLO.
ANSWERS = {"PING": b"+PONG\r\n", "CLIENT": b"+OK\r\n"}
UNKNOWN = b"-ERR unknown command\r\n"


class ClosingServer:
    """A server that closes its connection at each command that changes a lock, without an answer, and counts these
    commands and its connections."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.changed = threading.Condition()
        self.commands = self.connections = 0

    def __enter__(self) -> Self:
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def accept(self) -> None:
        while True:
            try:
                link, _ = self.listener.accept()
            except OSError:  # closed
                return
            threading.Thread(target=self.serve, args=[link], daemon=True).start()

    def serve(self, link: socket.socket) -> None:
        with contextlib.suppress(ConnectionResetError), link, link.makefile("rb") as stream:
            for number, command in enumerate(commands_of(stream.readline, stream.read)):
                with self.changed:
                    self.connections += number == 0
                    self.commands += command in CHANGES_A_LOCK
                    self.changed.notify_all()
                if command in CHANGES_A_LOCK:
                    link.shutdown(socket.SHUT_RDWR)
                    return
                link.sendall(ANSWERS.get(command, UNKNOWN))

    def await_connections(self, count: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: self.connections >= count, LIMIT_S)


def commands_of(readline: Callable[[], bytes], read: Callable[[int], bytes]) -> Iterator[str]:
    """The name of each command of a stream of RESP, in capitals, until it ends."""
    while line := readline():
        words = [read(int(readline()[1:]) + 2)[:-2] for _ in range(int(line[1:]))]
        yield words[0].decode().upper()


class Adapter:
    """A running adapter, in version 1 of the protocol."""

    def __init__(self, name: str) -> None:
        self.process = subprocess.Popen(
            [paths.program("spawn"), adapter_path(name)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **library_environment(), "LOCKSTORM_PARENT": str(os.getpid())},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()  # ends its input

    def ask(self, verb: str, **more: object) -> dict[str, Any]:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps({"id": 1, "op": verb, **more}).encode() + b"\n")
        self.process.stdin.flush()
        assert await_readable([self.process.stdout.fileno()], HangLimit(LIMIT_S))
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer


@pytest.mark.parametrize("name", ["shedlock", "shedlock-safe", "spring-integration", "spring-integration-renew"])
def test_what_was_lost_with_its_connection_is_not_sent_again(name: str) -> None:
    try:
        adapter_entry(PREFIX + name)
    except NotInstalled as reason:
        pytest.skip(str(reason))
    with ClosingServer() as server, Adapter(name) as adapter:
        nodes = [{"host": "127.0.0.1", "port": server.listener.getsockname()[1]}]
        adapter.ask("hello", protocol=1)
        opened = adapter.ask("open", resource="one", lease_ms=60_000, permits=1, fixed_lease=False, nodes=nodes)
        assert opened["outcome"] == "ok"
        assert server.connections == 1
        assert adapter.ask("acquire", wait_ms=0)["outcome"] == "unknown"
        assert server.commands == 1
        server.await_connections(2)  # it is connected again, and asks nothing by itself
        assert adapter.ask("acquire", wait_ms=0)["outcome"] == "unknown"
        assert server.commands == 2  # what is asked waits for the connection to be ready, and is sent once
