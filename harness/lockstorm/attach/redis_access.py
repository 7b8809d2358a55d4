"""Redis: the connections of clients, what is there, and the keys of a run."""

import contextlib
import socket
from collections.abc import Iterator
from typing import Any

from lockstorm.attach.run_names import resource_of
from lockstorm.attach.server_access import ServerAccess, ServerLine
from lockstorm.attach.server_address import ServerAddress
from lockstorm.attach.server_connection import ServerConnector
from lockstorm.attach.server_survey import ServerSurvey
from lockstorm.attach.transport import Login, Seed, reason_of
from lockstorm.base.errors import UsageError
from lockstorm.process.line_client import Refusal, RespConnection
from lockstorm.servers.topology import slot_of

SCAN_COUNT = 1000
WRONG_MODE = {  # INFO's redis_mode -> what its URL would have to be
    "sentinel": "is a sentinel: name it by redis+sentinel://HOST:PORT/MASTER",
    "cluster": "is a node of a cluster: name it by redis+cluster://HOST:PORT",
    "standalone": "is no node of a cluster: name it by redis://HOST:PORT",
}


class RedisAccess(ServerAccess):
    """One server, the master under sentinels, or the master of the slot of the lock's keys in a cluster."""

    def __init__(self, address: ServerAddress, run: str, login: Login) -> None:
        super().__init__(address, run)
        self.follows = address.kind != "single"
        self._slot = slot_of(resource_of(address, run))
        self._connector = ServerConnector(address, login, self._slot)

    def check(self) -> None:
        with self._opened(self.locate()):
            pass

    def locate(self) -> Seed:
        return self._connector.locate()

    def carry(self, client: socket.socket, seed: Seed) -> ServerLine:
        return ServerLine(self._connector.open_database(seed).socket)

    @contextlib.contextmanager
    def _opened(self, seed: Seed) -> Iterator[RespConnection]:
        connected = self._connector.open_database(seed)
        with contextlib.closing(connected.socket):
            yield connected

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

    def prepare(self) -> None:
        """Keys need nothing before them."""

    def remains(self) -> dict[str, int]:
        with self._opened(self.locate()) as connected:
            keys = sorted(set(self._keys(connected)))
            return {key.decode(errors="surrogateescape"): int(ask_redis(connected, "PTTL", key)) for key in keys}

    def remove_once(self) -> int:
        """From every master."""
        return sum(self._remove_from(seed) for seed in self._connector.every_master())

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


def ask_redis(connected: RespConnection, *words: str | int | bytes) -> Any:
    """The reply to a command."""
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
