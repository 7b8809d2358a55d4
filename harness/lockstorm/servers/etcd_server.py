"""A real etcd of a trial, one node or several: each in a directory of its own, on unix sockets there.

etcd takes the address unix://NAME:PORT for a socket called NAME:PORT in its working directory. So each node can reach
each other one through a link of its own: the socket with the other's name in its directory.
"""

import base64
import contextlib
import json
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from lockstorm.base import paths
from lockstorm.base.errors import Inconclusive
from lockstorm.base.hang_limit import CONNECTION_LIMIT_S, START_LIMIT_S, HangLimit
from lockstorm.process.process import Process, Sandbox, check_socket_path

ANSWER_LIMIT_S = CONNECTION_LIMIT_S
LEADER_ASK_LIMIT_S = 1.0  # one that is stopped does not answer; the others are asked meanwhile, and it again
CLIENT_PORT, PEER_PORT = 1, 2  # not ports: they tell its two sockets apart

# The shortest lease of etcd is one and a half election timeouts, rounded up to a second: with these, a second. A single
# node waits for no other; several need longer timeouts, or they elect anew on a busy machine.
TIMING_ALONE = {"heartbeat-interval": 20, "election-timeout": 100}
TIMING_TOGETHER = {"heartbeat-interval": 50, "election-timeout": 500}

EVERY_KEY = base64.b64encode(b"\0").decode()  # as both ends of a range: all keys
NO_LEADER = "0"
MS_PER_S = 1000
EtcdJson = dict[str, Any]  # of etcd; few fields are read


class EtcdServer:
    """One node. Started by `start`; `ready` waits until it knows a leader. `port`: it listens there, too."""

    def __init__(self, sandbox: Sandbox, name: str, port: int = 0) -> None:
        self.name, self.port = name, port
        self.number = -1  # in the scheduler
        self.directory = sandbox.directory / name
        self.directory.mkdir(mode=0o700)
        self.socket = self.directory / f"{name}:{CLIENT_PORT}"
        self.peer_socket = self.directory / f"{name}:{PEER_PORT}"
        self._sandbox = sandbox
        self._command: list[str] = []
        self.process: Process

    def meet(
        self,
        peers: Sequence["EtcdServer"],
        way_to: Callable[[Path, Self, "EtcdServer"], object],
        configured: Mapping[str, str] | None = None,
    ) -> None:
        """Sets the members of its cluster. `way_to` makes the socket on which it reaches another one. `configured`: a
        team's own options."""
        for peer in peers:
            if peer is not self:
                way_to(self.directory / peer.peer_socket.name, self, peer)
        client, own = _url(self.socket), _url(self.peer_socket)
        cluster = ",".join(f"{peer.name}={_url(peer.peer_socket)}" for peer in peers)
        options = {**(TIMING_TOGETHER if len(peers) > 1 else TIMING_ALONE), **(configured or {})}
        if self.port:
            options["listen-client-urls"] = f"{client},http://127.0.0.1:{self.port}"
        command = etcd_command(self.name, client, own, cluster, options)
        self._command = ["env", "-i", "-C", str(self.directory), *command]  # etcd takes options from an environment

    def start(self) -> None:
        check_socket_path(self.peer_socket)
        self.process = self._sandbox.start(self.name, self._command)

    def ready(self) -> None:
        """Returns when it knows a leader. Raises Inconclusive with its own log if it does not start."""
        self._sandbox.await_start(
            "etcd", self.name, self.process, self._has_leader, (Inconclusive,), nap_s=0.005, look_s=ANSWER_LIMIT_S
        )

    def _has_leader(self) -> bool:
        return self.socket.exists() and self.leader() != NO_LEADER

    def ask(self, path: str, question: EtcdJson | None = None, limit_s: float = ANSWER_LIMIT_S) -> EtcdJson:
        """Sends one request of the driver, not through the proxy."""
        import http.client  # most trials have no etcd, and this takes long to load

        try:
            with contextlib.closing(http.client.HTTPConnection("localhost")) as connection:
                connection.sock = socket.socket(socket.AF_UNIX)
                connection.sock.settimeout(limit_s)
                connection.sock.connect(str(self.socket))
                connection.request("POST", path, json.dumps(question or {}))
                answer = connection.getresponse()
                said: EtcdJson = json.loads(answer.read())
        except (OSError, ValueError, http.client.HTTPException) as reason:
            raise Inconclusive(f"{self.name} does not answer: {reason or type(reason).__name__}") from None
        if answer.status != http.client.OK:
            raise Inconclusive(f"{self.name}: {said.get('error', answer.status)}")
        return said

    def status(self) -> EtcdJson:
        return self.ask("/v3/maintenance/status")

    def member(self) -> str:
        """Its member id in the cluster."""
        return str(self.status()["header"]["member_id"])

    def leader(self) -> str:
        """The leader's member id, as far as this node knows."""
        return str(self.status().get("leader", NO_LEADER))

    def keys(self) -> dict[bytes, int]:
        """All keys, each with the rest of its lease in ms; -1: it has no lease."""
        found = self.ask("/v3/kv/range", {"key": EVERY_KEY, "range_end": EVERY_KEY, "keys_only": True})
        return {base64.b64decode(each["key"]): self._rest_ms(each.get("lease")) for each in found.get("kvs", [])}

    def flush(self) -> None:
        self.ask("/v3/kv/deleterange", {"key": EVERY_KEY, "range_end": EVERY_KEY})

    def _rest_ms(self, lease: str | None) -> int:
        if not lease:
            return -1
        left_s = int(self.ask("/v3/lease/timetolive", {"ID": lease}).get("TTL", 0))
        return max(0, left_s) * MS_PER_S  # below 0: it has expired, and its keys are about to be deleted

    def version(self) -> str:
        return str(self.status()["version"])

    def restart(self) -> None:
        self.process.wait()
        for path in (self.socket, self.peer_socket):
            path.unlink(missing_ok=True)
        self.start()
        self.ready()

    def close(self) -> None:
        """Kills it, for it has nothing to save."""
        self.process.end()


def etcd_command(name: str, client: str, peer: str, cluster: str, more: Mapping[str, object]) -> list[str]:
    """A member that listens at these two URLs. fsync protects against power failures; a killed process loses nothing
    that the kernel has."""
    options = {
        "name": name,
        "data-dir": "data",
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": cluster,
        "logger": "zap",
        "log-level": "error",
        **more,
    }
    return [paths.etcd(), *(f"--{key}={value}" for key, value in options.items()), "--unsafe-no-fsync"]


def _url(path: Path) -> str:
    return f"unix://{path.name}"


def leader_of(servers: Sequence[EtcdServer], within_s: float = START_LIMIT_S) -> EtcdServer:
    """The server that a majority of these has as its leader; waits until there is one."""
    limit = HangLimit(within_s, len(servers) * LEADER_ASK_LIMIT_S)
    while not limit.is_over():
        votes: dict[str, int] = {}
        members: dict[str, EtcdServer] = {}
        for server in servers:
            with contextlib.suppress(Inconclusive):
                status = server.ask("/v3/maintenance/status", limit_s=LEADER_ASK_LIMIT_S)
                members[status["header"]["member_id"]] = server
                votes[status.get("leader", NO_LEADER)] = votes.get(status.get("leader", NO_LEADER), 0) + 1
        for leader, count in votes.items():
            if leader in members and count * 2 > len(servers):
                return members[leader]
        time.sleep(0.01)
    raise Inconclusive(f"etcd has no leader within {within_s:g} s")
