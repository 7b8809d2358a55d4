"""The process between the proxy and servers that lockstorm did not start: `python -m lockstorm.attach.gateway_main`.

It knows the password, which it reads from its input, so that clients and adapters need not. It has a session of its
own. When its input ends - the driver has closed it, or was killed - it lets no client through any more, runs the `heal`
of a fault that was not healed, removes what the run has made at the servers and its directory, and ends.
"""

import json
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lockstorm.attach.etcd_access import EtcdAccess
from lockstorm.attach.postgres_access import PostgresAccess
from lockstorm.attach.redis_access import RedisAccess
from lockstorm.attach.relay import Relay
from lockstorm.attach.server_access import ServerAccess
from lockstorm.attach.server_address import ServerAddress, parse_address
from lockstorm.attach.shell_command import end_group, run_shell
from lockstorm.attach.transport import Login
from lockstorm.attach.zookeeper_access import ZooKeeperAccess
from lockstorm.base.errors import UsageError

BACKLOG = 128
SOCKET = ".s.PGSQL.5432"  # what libpq looks for in a directory; other clients take any name
ACCESSES: dict[str, Callable[[ServerAddress, str, Login], ServerAccess]] = {
    "redis": RedisAccess,
    "postgres": PostgresAccess,
    "etcd": EtcdAccess,
    "zookeeper": ZooKeeperAccess,
}


class GatewayProcess:
    """Answers each line of its input with one line, but the end of the input with what it has cleaned up."""

    def __init__(self, said: Mapping[str, Any]) -> None:
        self._variables = said["variables"]
        self._touched = False  # something may have been made at the servers
        self._played = False  # a trial has begun
        self._group = 0  # of a command of the team that is running
        self._heals: dict[str, tuple[str, float]] = {}
        address = parse_address(said["url"])
        self.access = ACCESSES[address.service](address, said["run"], Login(**said["login"]))
        self.access.check()
        self.directory = Path(tempfile.mkdtemp(prefix="lockstorm-"))
        self.socket = self.directory / SOCKET
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(bytes(self.socket))
        self.listener.listen(BACKLOG)
        self.relay = Relay(self.access, self.listener)
        self.relay.start()

    def obey(self, said: Mapping[str, Any]) -> dict[str, Any]:
        """`begin-fault` and `end-fault` tell it which fault it would have to heal; `begin-trial` comes before the first
        client of a trial, and removes what an earlier trial has left."""
        if said["do"] == "begin-fault":
            self._heals[said["fault"]] = said["heal"], said["limit_s"]
        elif said["do"] == "begin-command":
            self._group = said["group"]
        elif said["do"] == "end-command":
            self._group = 0
        elif said["do"] == "end-fault":
            self._heals.pop(said["fault"], None)
        elif said["do"] == "survey":
            return asdict(self.access.survey())
        elif said["do"] == "lease-range":
            self._touched = True
            return {"lease_range_ms": self.access.lease_range_ms()}
        elif said["do"] == "remains":
            return {"remains": self.access.remains()}
        else:
            return {"removed": self._begin_trial()}
        return {}

    def _begin_trial(self) -> int:
        is_first, self._played, self._touched = not self._played, True, True
        removed = 0 if is_first else self.access.remove()
        self.access.prepare()
        return removed

    def clean_up(self) -> dict[str, Any]:
        self.relay.close()
        healed = {}
        if self._group:
            end_group(self._group)
        for fault, (heal, limit_s) in reversed(self._heals.items()):
            done = run_shell(heal, limit_s, self._variables)
            healed[fault] = "" if done.ok else done.explained(limit_s)
        shutil.rmtree(self.directory, ignore_errors=True)
        removed = self.access.remove() if self._touched else 0
        return {"removed": removed, "healed": healed, "failures": self.relay.failures}


def _answered(act: Callable[[], dict[str, Any]]) -> bool:
    """Prints the answer, or the sentence of a failure. Nobody may be there to read it."""
    try:
        answer = act()
    except UsageError as reason:
        answer = {"error": str(reason)}
    try:
        os.write(sys.stdout.fileno(), (json.dumps(answer) + "\n").encode())
    except OSError:
        return False
    return "error" not in answer


def _main() -> None:
    process: GatewayProcess | None = None

    def begin() -> dict[str, Any]:
        nonlocal process
        process = GatewayProcess(json.loads(sys.stdin.readline()))
        return {"socket": str(process.socket)}

    if not _answered(begin) or not process:
        return
    gateway = process
    while line := sys.stdin.readline():
        said = json.loads(line)
        _answered(lambda said=said: gateway.obey(said))  # type: ignore[misc]
    _answered(gateway.clean_up)


if __name__ == "__main__":
    _main()
