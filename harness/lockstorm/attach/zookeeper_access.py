"""ZooKeeper: the connections of clients, what is there, and the node of a run."""

import contextlib
import socket
from collections.abc import Iterator

from lockstorm.attach.run_names import directory_of
from lockstorm.attach.server_access import ServerAccess, ServerLine, ServerSurvey
from lockstorm.attach.server_address import ServerAddress, place
from lockstorm.attach.transport import Login, Seed, first_answer, not_answered_as, reason_of
from lockstorm.base.errors import UsageError
from lockstorm.servers.zookeeper_wire import (
    NO_NODE,
    NODE_EXISTS,
    NOT_EMPTY,
    NotZooKeeper,
    ZooKeeperConnection,
    ZooKeeperRefusal,
    ask_word,
    codes_suppressed,
    version_in,
)

OWN_NODE = "zookeeper"  # of the servers, in the root
SESSION_MS = 10_000
UNKNOWN = "unknown"
SHORTEST_MS, LONGEST_MS = 1, (1 << 31) - 1  # what is asked for to learn what is granted


class ZooKeeperAccess(ServerAccess):
    """Several servers of one ensemble may be named: each connection begins with another one, as clients do."""

    def __init__(self, address: ServerAddress, run: str, login: Login) -> None:
        super().__init__(address, run, login)
        self._directory = directory_of(address, run)
        self._connections = 0

    def check(self) -> None:
        with self._session():
            pass

    def locate(self) -> Seed:
        seeds = self.address.seeds
        first = self._connections % len(seeds)
        self._connections += 1
        return first_answer((*seeds[first:], *seeds[:first]), self.transport.reach)

    def carry(self, client: socket.socket, seed: Seed) -> ServerLine:
        return ServerLine(self.transport.open(seed))

    def survey(self) -> ServerSurvey:
        base = self.address.name
        with self._session() as session:
            try:
                nodes = [name for name in session.children(base or "/") if base or name != OWN_NODE]
            except ZooKeeperRefusal as refusal:
                if refusal.code != NO_NODE:
                    raise
                raise UsageError(
                    f"{self.address.shown} has no node {base}: create it, or leave it out of the URL"
                ) from None
        return ServerSurvey(first_answer(self.address.seeds, self._version), base or "/", len(nodes))

    def _version(self, seed: Seed) -> str:
        """By a word that servers answer unless they are told not to."""
        with contextlib.closing(self.transport.open(seed)) as connected, contextlib.suppress(OSError):
            return version_in(ask_word(connected, "srvr"), UNKNOWN)
        return UNKNOWN

    def lease_range_ms(self) -> tuple[int, int]:
        with self._session(SHORTEST_MS) as shortest, self._session(LONGEST_MS) as longest:
            return shortest.timeout_ms, longest.timeout_ms

    def prepare(self) -> None:
        with self._session() as session:
            try:
                session.create(self._directory)
            except ZooKeeperRefusal as refusal:
                if refusal.code != NODE_EXISTS:
                    raise UsageError(
                        f"{self.address.shown} refuses to create the node {self._directory}: {refusal}"
                    ) from None

    def remains(self) -> dict[str, int]:
        """The nodes that end with a session."""
        with self._session() as session:
            found = list(session.below(self._directory))
            return {path: -1 for path in found if self._owner(session, path)}

    def remove_once(self) -> int:
        """Counts without the run's own node."""
        with self._session() as session:
            found = list(session.below(self._directory))
            for path in (*found, self._directory):
                with codes_suppressed(NO_NODE, NOT_EMPTY):
                    session.delete(path)
            return len(found)

    def _owner(self, session: ZooKeeperConnection, path: str) -> int:
        with codes_suppressed(NO_NODE):
            return session.owner(path)
        return 0

    # --- sessions ---

    @contextlib.contextmanager
    def _session(self, timeout_ms: int = SESSION_MS) -> Iterator[ZooKeeperConnection]:
        """At the first server that gives one."""
        seed, session = first_answer(self.address.seeds, lambda seed: (seed, self._open(seed, timeout_ms)))
        with self.explained(seed, session.socket), contextlib.closing(session):
            yield session

    def _open(self, seed: Seed, timeout_ms: int) -> ZooKeeperConnection:
        connected = self.transport.open(seed)
        with self.explained(seed, connected):
            return ZooKeeperConnection(connected, timeout_ms)

    def explain(self, seed: Seed, error: Exception) -> str:
        if isinstance(error, ZooKeeperRefusal):
            return f"{place(*seed)} refuses to work with lockstorm: {error}"
        if isinstance(error, NotZooKeeper):
            return not_answered_as(seed, "a ZooKeeper server")
        if not isinstance(error, OSError) or isinstance(error, TimeoutError):
            return ""
        return f"{place(*seed)} closes the connection ({reason_of(error)}): it may be no ZooKeeper, or have no quorum"
