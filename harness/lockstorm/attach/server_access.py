"""What the gateway does at servers, whatever their kind: each kind has a module *_access.py."""

import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from lockstorm.attach.run_names import describe_traces
from lockstorm.attach.server_address import ServerAddress
from lockstorm.attach.transport import Login, Seed, Transport
from lockstorm.base.errors import UsageError

ANY_LEASE_MS = 24 * 3600 * 1000  # longer than any that is tried
AGAIN_S = 0.2  # what was sent before its connection was closed may still be carried out
RETRY_S = 1.0
RETRY_LIMIT_S = 20.0  # a failover may be going on


@dataclass(frozen=True)
class ServerLine:
    """A connection to the server for one of a client's. `greeting`: what the client gets first. `translate`: makes what
    is sent to the server from what the client has sent. `is_over`: whether what the server has sent means that the
    connection has to be closed."""

    socket: socket.socket
    greeting: bytes = b""
    translate: Callable[[bytes], bytes] = bytes
    is_over: Callable[[bytes], bool] = lambda _: False


@dataclass(frozen=True)
class ServerSurvey:
    """What is at the servers before anything is touched. `database`: its number; its name on PostgreSQL; on ZooKeeper
    the node below which ours is made. `keys`: in it; in a Redis cluster at the master of the slot of the lock's keys;
    on PostgreSQL the tables, on ZooKeeper the nodes. `slot`: only in a cluster."""

    version: str
    database: int | str
    keys: int
    slot: int | None = None


class ServerAccess(ABC):
    """Every method raises UsageError, with one sentence, if the servers do not do what is asked for."""

    follows = False  # the server to use may change: `locate` is to be asked again and again

    def __init__(self, address: ServerAddress, run: str, login: Login) -> None:
        self.address, self.run, self.login = address, run, login
        self.transport = Transport(address, login)

    @abstractmethod
    def check(self) -> None:
        """Connects once, and logs in."""

    def locate(self) -> Seed:
        """Where the server is now."""
        return self.address.seeds[0]

    @abstractmethod
    def carry(self, client: socket.socket, seed: Seed) -> ServerLine:
        """A connection whose next bytes are this client's."""

    @abstractmethod
    def survey(self) -> ServerSurvey:
        """What is there. Changes nothing. Refuses servers on which a lock cannot work."""

    @abstractmethod
    def remains(self) -> dict[str, int]:
        """What clients of the run have there: name -> ms until it expires; below 0: never."""

    def prepare(self) -> None:  # noqa: B027 (most need nothing)
        """Makes what has to be there before the first client."""

    @abstractmethod
    def remove_once(self) -> int:
        """Removes what the run has made. Returns how many it has found: 0 means that nothing is left."""

    @abstractmethod
    def explain(self, seed: Seed, error: Exception) -> str:
        """An error of a connection as a sentence; empty: it says enough itself."""

    # --- for all kinds ---

    def explained(self, seed: Seed, connected: socket.socket) -> AbstractContextManager[None]:
        return self.transport.explained(seed, connected, lambda error: self.explain(seed, error))

    def remove(self) -> int:
        """Removes until a second look finds nothing. Tries again while a server does not answer."""
        until_s, removed = time.monotonic() + RETRY_LIMIT_S, 0
        while True:
            try:
                found = self.remove_once()
            except UsageError as reason:
                if time.monotonic() > until_s:
                    raise UsageError(f"{describe_traces(self.address, self.run)} may be left: {reason}") from None
                time.sleep(RETRY_S)
                continue
            removed += found
            if not found:
                return removed
            time.sleep(AGAIN_S)

    def lease_range_ms(self) -> tuple[int, int]:
        """The shortest and the longest lease that the servers grant."""
        return 0, ANY_LEASE_MS
