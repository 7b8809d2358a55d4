"""Redis: the connections of clients, what is there, and the keys of a run."""

import contextlib
import socket
from collections.abc import Iterator
from typing import Any

from lockstorm.attach.run_names import resource_of
from lockstorm.attach.server_access import ServerAccess, ServerLine, ServerSurvey
from lockstorm.attach.server_address import SENTINEL_PASSWORD, ServerAddress, place
from lockstorm.attach.transport import Login, Seed, first_answer, not_answered_as, reason_of
from lockstorm.base.errors import UsageError
from lockstorm.process.line_client import NotRedis, Refusal, RespConnection
from lockstorm.servers.topology import slot_of

SCAN_COUNT = 1000
WRONG_MODE = {  # INFO's redis_mode -> what its URL would have to be
    "sentinel": "is a sentinel: name it by redis+sentinel://HOST:PORT/MASTER",
    "cluster": "is a node of a cluster: name it by redis+cluster://HOST:PORT",
    "standalone": "is no node of a cluster: name it by redis://HOST:PORT",
}


class RedisAccess(ServerAccess):
    """The server that has the lock's keys: the one that the URL names, the master that sentinels name, or the master of
    the keys' slot in a cluster."""

    def __init__(self, address: ServerAddress, run: str, login: Login) -> None:
        super().__init__(address, run, login)
        self.follows = address.kind != "single"
        self._slot = slot_of(resource_of(address, run))
        self._known: tuple[Seed, ...] = address.seeds  # of a cluster: all nodes that were seen

    def check(self) -> None:
        with self._opened(self.locate()):
            pass

    def carry(self, client: socket.socket, seed: Seed) -> ServerLine:
        return ServerLine(self._open_database(seed).socket)

    def survey(self) -> ServerSurvey:
        address = self.address
        with self._opened(self.locate()) as connected:
            info = _fields(
                ask_redis(connected, "INFO", "server") + b"\r\n" + ask_redis(connected, "INFO", "replication")
            )
            mode = info.get("redis_mode", "standalone")
            if mode != ("cluster" if address.kind == "cluster" else "standalone"):
                wrong = WRONG_MODE.get(mode, f"works in the mode {mode}, which is not known")
                raise UsageError(f"{address.shown} {wrong}")
            if info.get("role", "master") != "master":
                master = f"{info.get('master_host')}:{info.get('master_port')}"
                raise UsageError(
                    f"{address.shown} is a replica of {master}, and a lock needs the master: name that one"
                )
            keys = int(ask_redis(connected, "DBSIZE"))
        version = info.get("valkey_version") or info.get("redis_version", "unknown")
        return ServerSurvey(version, address.database, keys, self._slot if address.kind == "cluster" else None)

    def remains(self) -> dict[str, int]:
        with self._opened(self.locate()) as connected:
            keys = sorted(set(self._keys(connected)))
            return {key.decode(errors="surrogateescape"): int(ask_redis(connected, "PTTL", key)) for key in keys}

    def remove_once(self) -> int:
        """From every master."""
        return sum(self._remove_from(seed) for seed in self._every_master())

    def _remove_from(self, seed: Seed) -> int:
        with self._opened(seed) as connected:
            return sum(int(ask_redis(connected, "DEL", key)) for key in set(self._keys(connected)))

    def _keys(self, connected: RespConnection) -> Iterator[bytes]:
        """Those of the run, some of them twice."""
        cursor = b"0"
        while True:
            cursor, found = ask_redis(connected, "SCAN", cursor, "MATCH", f"*{self.run}*", "COUNT", SCAN_COUNT)
            yield from found
            if cursor == b"0":
                return

    # --- who has the keys ---

    def locate(self) -> Seed:
        if self.address.kind == "sentinel":
            return first_answer(self._known, self._ask_sentinel)
        if self.address.kind == "cluster":
            return first_answer(self._known, self._ask_node)
        return self.address.seeds[0]

    def _every_master(self) -> list[Seed]:
        """Where keys can be: all masters of a cluster, or the server."""
        if self.address.kind != "cluster":
            return [self.locate()]
        slots = first_answer(self._known, self._slots)
        return list(dict.fromkeys(master for _, _, master in slots))

    def _ask_sentinel(self, seed: Seed) -> Seed:
        connected = self._open_as(seed, "", self.login.sentinel_password, SENTINEL_PASSWORD)
        with contextlib.closing(connected.socket), self.explained(seed, connected.socket):
            found = connected.request("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self.address.master)
        if found is None:
            raise UsageError(f"the sentinel {place(*seed)} knows no master called {self.address.master}")
        return found[0].decode(), int(found[1])

    def _ask_node(self, seed: Seed) -> Seed:
        for first, last, master in self._slots(seed):
            if first <= self._slot <= last:
                return master
        raise UsageError(f"the cluster of {place(*seed)} has no master for slot {self._slot}, that of the lock's keys")

    def _slots(self, seed: Seed) -> list[tuple[int, int, Seed]]:
        """First slot, last slot, master."""
        connected = self._open(seed)
        with contextlib.closing(connected.socket), self.explained(seed, connected.socket):
            found = connected.request("CLUSTER", "SLOTS")
        nodes = [[(each[0].decode() or seed[0], int(each[1])) for each in entry[2:]] for entry in found]
        self._known = tuple(dict.fromkeys([seed, *(each[0] for each in nodes), *self.address.seeds]))
        return [(int(entry[0]), int(entry[1]), own[0]) for entry, own in zip(found, nodes, strict=True)]

    # --- one connection ---

    @contextlib.contextmanager
    def _opened(self, seed: Seed) -> Iterator[RespConnection]:
        connected = self._open_database(seed)
        with contextlib.closing(connected.socket):
            yield connected

    def _open_database(self, seed: Seed) -> RespConnection:
        """A connection whose next bytes are a client's: logged in, in the database."""
        connected = self._open(seed)
        if self.address.database:
            with self.explained(seed, connected.socket):
                connected.request("SELECT", self.address.database)
        return connected

    def _open(self, seed: Seed) -> RespConnection:
        """A connection to one of the servers, logged in."""
        return self._open_as(seed, self.address.user, self.login.password, self.address.password_variable)

    def _open_as(self, seed: Seed, user: str, password: str, variable: str) -> RespConnection:
        connected = RespConnection(self.transport.open(seed))
        with self.transport.explained(seed, connected.socket, lambda error: self.explain(seed, error, variable)):
            if password:
                connected.request("AUTH", *([user] if user else []), password)
            connected.request("PING")
        return connected

    def explain(self, seed: Seed, error: Exception, variable: str = "") -> str:
        """`variable`: with the password that was given; empty: the server's."""
        if isinstance(error, Refusal):
            return _explain_refusal(place(*seed), str(error), variable or self.address.password_variable)
        return not_answered_as(seed, "a Redis server") if isinstance(error, NotRedis) else ""


def ask_redis(connected: RespConnection, *words: str | int | bytes) -> Any:
    try:
        return connected.request(*words)
    except Refusal as refusal:
        shown = " ".join(str(word) for word in words[:2] if not isinstance(word, bytes))
        raise UsageError(f"the server refuses {shown}: {refusal}") from None
    except OSError as error:
        raise UsageError(f"the server does not answer: {reason_of(error)}") from None


def _fields(text: bytes) -> dict[str, str]:
    lines = text.decode(errors="replace").splitlines()
    return {name: value for name, found, value in (line.partition(":") for line in lines) if found}


def _explain_refusal(where: str, refusal: str, variable: str) -> str:
    code = refusal.partition(" ")[0]
    if code == "NOAUTH":
        return f"{where} asks for a password: put it into the variable {variable}"
    if code == "WRONGPASS" or "invalid password" in refusal:
        return f"{where} refuses the user or the password of the variable {variable}: check both"
    if "AUTH" in refusal and "without any password" in refusal:
        return f"{where} has no password, and the variable {variable} has one: unset it"
    return f"{where} refuses to work with lockstorm: {refusal}"
