"""Connections to Redis servers: found, encrypted, logged in, in their database. What fails is one sentence
(UsageError)."""

import contextlib
from collections.abc import Callable, Iterator
from typing import TypeVar

from lockstorm.attach.server_address import SENTINEL_PASSWORD, ServerAddress, place
from lockstorm.attach.transport import CONNECT_LIMIT_S, SEEDS_MOST, Login, Seed, Transport
from lockstorm.base.errors import UsageError
from lockstorm.process.line_client import NotRedis, Refusal, RespConnection

Answer = TypeVar("Answer")


class ServerConnector:
    """Connects to the server that has the lock's keys: the one that the URL names, the master that sentinels name, or
    the master of the keys' slot in a cluster."""

    def __init__(self, address: ServerAddress, login: Login, slot: int = 0) -> None:
        self._address, self._login, self._slot = address, login, slot
        self._transport = Transport(address, login)
        self._known: tuple[Seed, ...] = address.seeds  # of a cluster: all nodes that were seen

    def open_database(self, seed: Seed) -> RespConnection:
        """A connection whose next bytes are a client's: logged in, in the database."""
        connected = self.open(seed)
        if self._address.database:
            with self._explained(seed, connected):
                connected.request("SELECT", self._address.database)
        return connected

    def open(self, seed: Seed) -> RespConnection:
        """A connection to one of the servers, logged in."""
        variable = self._address.password_variable
        return self._open(seed, self._address.user, self._login.password, variable)

    # --- who has the keys ---

    def locate(self) -> Seed:
        """Where the server is now."""
        if self._address.kind == "sentinel":
            return self._first(self._ask_sentinel)
        if self._address.kind == "cluster":
            return self._first(self._ask_node)
        return self._address.seeds[0]

    def every_master(self) -> list[Seed]:
        """Where keys can be: all masters of a cluster, or the server."""
        if self._address.kind != "cluster":
            return [self.locate()]
        slots = self._first(self._slots)
        return list(dict.fromkeys(master for _, _, master in slots))

    def _first(self, ask: Callable[[Seed], Answer]) -> Answer:
        """The answer of the first seed that gives one."""
        failure = UsageError("")
        for seed in self._known[:SEEDS_MOST]:
            try:
                return ask(seed)
            except UsageError as error:
                failure = error
        raise failure

    def _ask_sentinel(self, seed: Seed) -> Seed:
        connected = self._open(seed, "", self._login.sentinel_password, SENTINEL_PASSWORD)
        with contextlib.closing(connected.socket), self._explained(seed, connected):
            found = connected.request("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._address.master)
        if found is None:
            raise UsageError(f"the sentinel {place(*seed)} knows no master called {self._address.master}")
        return found[0].decode(), int(found[1])

    def _ask_node(self, seed: Seed) -> Seed:
        for first, last, master in self._slots(seed):
            if first <= self._slot <= last:
                return master
        raise UsageError(f"the cluster of {place(*seed)} has no master for slot {self._slot}, that of the lock's keys")

    def _slots(self, seed: Seed) -> list[tuple[int, int, Seed]]:
        """First slot, last slot, master."""
        connected = self.open(seed)
        with contextlib.closing(connected.socket), self._explained(seed, connected):
            found = connected.request("CLUSTER", "SLOTS")
        nodes = [[(each[0].decode() or seed[0], int(each[1])) for each in entry[2:]] for entry in found]
        self._known = tuple(dict.fromkeys([seed, *(each[0] for each in nodes), *self._address.seeds]))
        return [(int(entry[0]), int(entry[1]), own[0]) for entry, own in zip(found, nodes, strict=True)]

    # --- one connection ---

    def _open(self, seed: Seed, user: str, password: str, variable: str) -> RespConnection:
        connected = RespConnection(self._transport.open(seed))
        with self._explained(seed, connected, variable):
            if password:
                connected.request("AUTH", *([user] if user else []), password)
            connected.request("PING")
        return connected

    @contextlib.contextmanager
    def _explained(self, seed: Seed, connected: RespConnection, variable: str = "") -> Iterator[None]:
        """Closes the connection if something fails, and says what in one sentence."""
        where = place(*seed)
        try:
            yield
            return
        except Refusal as refusal:
            text = _explain_refusal(where, str(refusal), variable or self._address.password_variable)
        except NotRedis:
            text = f"{where} answers, but not as a Redis server does: check the host and the port"
        except TimeoutError:
            text = f"{where} accepts connections but does not answer within {CONNECT_LIMIT_S:g} s"
        except OSError as error:
            text = self._transport.explain_end(seed, error)
        connected.socket.close()
        raise UsageError(text) from None


def _explain_refusal(where: str, refusal: str, variable: str) -> str:
    code = refusal.partition(" ")[0]
    if code == "NOAUTH":
        return f"{where} asks for a password: put it into the variable {variable}"
    if code == "WRONGPASS" or "invalid password" in refusal:
        return f"{where} refuses the user or the password of the variable {variable}: check both"
    if "AUTH" in refusal and "without any password" in refusal:
        return f"{where} has no password, and the variable {variable} has one: unset it"
    return f"{where} refuses to work with lockstorm: {refusal}"
