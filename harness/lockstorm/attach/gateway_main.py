"""The process between the proxy and servers that lockstorm did not start: `python -m lockstorm.attach.gateway_main`.

It knows the password, which it reads from its input, so that clients and adapters need not. It has a session of its
own. When its input ends - the driver has closed it, or was killed - it lets no client through any more, runs the `heal`
of a fault that was not healed, removes what the run has made at the servers and its directory, and ends.
"""

import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from lockstorm.attach.etcd_access import EtcdAccess
from lockstorm.attach.gateway import Begin, GatewayAnswer, GatewayRequest
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

    def __init__(self, begin: Begin) -> None:
        self._variables = begin.variables
        self._touched = False  # something may have been made at the servers
        self._played = False  # a trial has begun
        self._group = 0  # of a command of the team that is running
        self._heals: dict[str, tuple[str, float]] = {}
        address = parse_address(begin.url)
        self.access = ACCESSES[address.service](address, begin.run, begin.login)
        self.access.check()
        self.directory = Path(tempfile.mkdtemp(prefix="lockstorm-"))
        self.socket = self.directory / SOCKET
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(bytes(self.socket))
        self.listener.listen(BACKLOG)
        self.relay = Relay(self.access, self.listener)
        self.relay.start()

    def obey(self, request: GatewayRequest) -> GatewayAnswer:
        match request.do:
            case "begin-fault":
                self._heals[request.fault] = request.heal, request.limit_s
            case "end-fault":
                self._heals.pop(request.fault, None)
            case "begin-command" | "end-command":
                self._group = request.group
            case "survey":
                return GatewayAnswer(survey=self.access.survey())
            case "lease-range":
                self._touched = True
                return GatewayAnswer(lease_range_ms=self.access.lease_range_ms())
            case "remains":
                return GatewayAnswer(remains=self.access.remains())
            case "begin-trial":
                has_played, self._played, self._touched = self._played, True, True
                removed = self.access.remove() if has_played else 0
                self.access.prepare()
                return GatewayAnswer(removed=removed)
        return GatewayAnswer()

    def clean_up(self) -> GatewayAnswer:
        self.relay.close()
        healed = {}
        if self._group:
            end_group(self._group)
        for fault, (heal, limit_s) in reversed(self._heals.items()):
            done = run_shell(heal, limit_s, self._variables)
            healed[fault] = "" if done.ok else done.explained(limit_s)
        shutil.rmtree(self.directory, ignore_errors=True)
        removed = self.access.remove() if self._touched else 0
        return GatewayAnswer(removed=removed, healed=healed, failures=dict(self.relay.failures))


def _answered(act: Callable[[], GatewayAnswer]) -> bool:
    """Prints the answer, or the sentence of a failure. Nobody may be there to read it."""
    try:
        answer = act()
    except UsageError as reason:
        answer = GatewayAnswer(error=str(reason))
    try:
        os.write(sys.stdout.fileno(), msgspec.json.encode(answer) + b"\n")
    except OSError:
        return False
    return not answer.error


def _main() -> None:
    process: GatewayProcess | None = None

    def begin() -> GatewayAnswer:
        nonlocal process
        process = GatewayProcess(msgspec.json.decode(sys.stdin.readline(), type=Begin))
        return GatewayAnswer(socket=str(process.socket))

    if not _answered(begin) or not process:
        return
    gateway = process
    while line := sys.stdin.readline():
        _answered(partial(gateway.obey, msgspec.json.decode(line, type=GatewayRequest)))
    _answered(gateway.clean_up)


if __name__ == "__main__":
    _main()
