"""What is at the servers before anything is touched."""

from dataclasses import dataclass

from lockstorm.attach.gateway import Gateway, ask_server
from lockstorm.base.errors import UsageError
from lockstorm.servers.topology import slot_of

WRONG_MODE = {  # INFO's redis_mode -> what its URL would have to be
    "sentinel": "is a sentinel: name it by redis+sentinel://HOST:PORT/MASTER",
    "cluster": "is a node of a cluster: name it by redis+cluster://HOST:PORT",
    "standalone": "is no node of a cluster: name it by redis://HOST:PORT",
}


@dataclass(frozen=True)
class ServerSurvey:
    """`keys`: in the database; in a cluster at the master of the slot of the lock's keys."""

    version: str
    database: int
    keys: int
    slot: int | None


def survey_server(gateway: Gateway) -> ServerSurvey:
    """Asks the server. Raises UsageError if a lock cannot work on it."""
    address, client = gateway.address, gateway.client()
    info = _fields(ask_server(client, "INFO", "server") + b"\r\n" + ask_server(client, "INFO", "replication"))
    mode = info.get("redis_mode", "standalone")
    if mode != ("cluster" if address.kind == "cluster" else "standalone"):
        raise UsageError(f"{address.shown} {WRONG_MODE.get(mode, f'works in the mode {mode}, which is not known')}")
    if info.get("role", "master") != "master":
        master = f"{info.get('master_host')}:{info.get('master_port')}"
        raise UsageError(f"{address.shown} is a replica of {master}, and a lock needs the master: name that one")
    keys = int(ask_server(client, "DBSIZE"))
    client.close()
    slot = slot_of(gateway.resource) if address.kind == "cluster" else None
    version = info.get("valkey_version") or info.get("redis_version", "unknown")
    return ServerSurvey(version, address.database, keys, slot)


def _fields(text: bytes) -> dict[str, str]:
    lines = text.decode(errors="replace").splitlines()
    return {name: value for name, found, value in (line.partition(":") for line in lines) if found}
