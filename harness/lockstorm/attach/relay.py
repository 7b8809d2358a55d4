"""Carries bytes between clients, who come on a unix socket, and the server: each connection of a client has one of its
own to the server."""

import contextlib
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable

from lockstorm.attach.server_access import ServerAccess, ServerLine
from lockstorm.attach.transport import Seed
from lockstorm.base.errors import UsageError

CHUNK = 1 << 16
LOOK_S = 0.5  # how often it asks who is the master now
CLOSE_LIMIT_S = 3.0


class Relay:
    """`start`, then connections are carried until `close`. When the master changes, connections to the old one are
    closed, as a client that follows the sentinels would do."""

    def __init__(self, access: ServerAccess, listener: socket.socket) -> None:
        self._access, self._listener = access, listener
        self._carried: dict[socket.socket, Seed] = {}  # a client's connection -> the server that it leads to
        self.failures: dict[str, int] = {}  # why clients' connections could not be carried -> how many
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._closed = False

    def start(self) -> None:
        self._spawn(self._accept)
        if self._access.follows:
            self._spawn(self._follow)

    def close(self) -> None:
        """Returns when no client can reach the server any more."""
        self._closed = True
        self._drop(lambda _: True)
        until_s = time.monotonic() + CLOSE_LIMIT_S
        for thread in self._threads:
            thread.join(max(0.0, until_s - time.monotonic()))
        self._listener.close()

    def _spawn(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, daemon=True)
        with self._lock:
            self._threads = [each for each in self._threads if each.is_alive()] + [thread]
            thread.start()

    def _accept(self) -> None:
        self._listener.settimeout(LOOK_S)
        while not self._closed:
            with contextlib.suppress(TimeoutError):
                client, _ = self._listener.accept()
                self._spawn(lambda client=client: self._carry(client))  # type: ignore[misc]

    def _follow(self) -> None:
        while not self._closed:
            time.sleep(LOOK_S)
            with contextlib.suppress(UsageError):  # sentinels or nodes that do not answer for a while
                master = self._access.locate()
                self._drop(lambda server, master=master: server != master)  # type: ignore[misc]

    def _drop(self, is_meant: Callable[[Seed], bool]) -> None:
        with self._lock:
            meant = [client for client, server in self._carried.items() if is_meant(server)]
        for client in meant:
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)

    def _carry(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            try:
                seed = self._access.locate()
                with self._lock:
                    self._carried[client] = seed
                line = self._access.carry(client, seed)
                with line.socket:
                    self._exchange(client, line)
            except UsageError as reason:
                with self._lock:
                    self.failures[str(reason)] = self.failures.get(str(reason), 0) + 1
            finally:
                with self._lock:
                    self._carried.pop(client, None)

    def _exchange(self, client: socket.socket, line: ServerLine) -> None:
        """Until one side ends."""
        server = line.socket
        client.settimeout(None)
        server.setblocking(False)
        client.sendall(line.greeting)
        while not self._closed:
            some = read_what_came(server)
            if some == b"":
                return
            if some:
                client.sendall(some)
                if line.is_over(some):
                    return
                continue
            ready = select.select([client, server], [], [], LOOK_S)[0]
            if client in ready:
                sent = client.recv(CHUNK)
                if not sent:
                    return
                self._send(server, line.translate(sent))

    def _send(self, server: socket.socket, data: bytes) -> None:
        left = memoryview(data)
        while left and not self._closed:
            try:
                left = left[server.send(left) :]
            except (BlockingIOError, ssl.SSLWantWriteError):
                select.select([], [server], [], LOOK_S)
            except ssl.SSLWantReadError:
                select.select([server], [], [], LOOK_S)


def read_what_came(server: socket.socket) -> bytes | None:
    """What can be read now; None: nothing. Of an encrypted connection more may be decrypted already than select knows,
    so it is read before each wait."""
    try:
        return server.recv(CHUNK)
    except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
        return None
