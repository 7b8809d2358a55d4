"""A real etcd of a trial, one node or several: each in a directory of its own, on unix sockets there.

etcd takes the address unix://NAME:PORT for a socket called NAME:PORT in its working directory. So every node can have a
way of its own to every other one, which leads through the proxy: what it finds under the other's name where it runs.
"""

import contextlib
import http.client
import json
import os
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Self

from harness.driver import paths
from harness.driver.errors import Inconclusive
from harness.driver.process import Nursery, Process

START_LIMIT_S = 20.0
ANSWER_LIMIT_S = 5.0
CLIENT_PORT, PEER_PORT = 1, 2  # no ports: they tell its two sockets apart
ADDRESS_ROOM = 107  # of a unix socket's path

# etcd grants no lease shorter than one and a half elections take, rounded up to a second: with these, a second. One
# node has nobody to wait for; several have to be patient, or a busy machine makes them elect anew.
TIMING_ALONE = {"heartbeat-interval": 20, "election-timeout": 100}
TIMING_TOGETHER = {"heartbeat-interval": 50, "election-timeout": 500}

NO_LEADER = "0"


class UnixConnection(http.client.HTTPConnection):
    """HTTP on a unix socket."""

    def __init__(self, path: Path, limit_s: float) -> None:
        super().__init__("localhost", timeout=limit_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


@cache
def version() -> str:
    """What would be started."""
    said = subprocess.run([paths.etcd(), "--version"], capture_output=True, text=True, check=True).stdout
    return next((line.rpartition(" ")[2] for line in said.splitlines() if line.startswith("etcd Version")), "?")


class EtcdServer:
    """One node. Started by `start`; `ready` waits until it knows a leader."""

    def __init__(self, nursery: Nursery, name: str) -> None:
        self.name = name
        self.number = -1  # among the conductor's servers
        self.directory = nursery.directory / name
        self.directory.mkdir(mode=0o700)
        self.socket = self.directory / f"{name}:{CLIENT_PORT}"
        self.peer_socket = self.directory / f"{name}:{PEER_PORT}"
        self._nursery = nursery
        self._command: list[str] = []
        self.process: Process

    def meet(self, peers: Sequence["EtcdServer"], way_to: Callable[[Path, Self, "EtcdServer"], object]) -> None:
        """Says who belongs to its cluster. `way_to` makes the socket under which it finds another one."""
        for peer in peers:
            if peer is not self:
                way_to(self.directory / peer.peer_socket.name, self, peer)
        client, own = _url(self.socket), _url(self.peer_socket)
        options = {
            "name": self.name,
            "data-dir": "data",
            "listen-client-urls": client,
            "advertise-client-urls": client,
            "listen-peer-urls": own,
            "initial-advertise-peer-urls": own,
            "initial-cluster": ",".join(f"{peer.name}={_url(peer.peer_socket)}" for peer in peers),
            "logger": "zap",
            "log-level": "error",
            **(TIMING_TOGETHER if len(peers) > 1 else TIMING_ALONE),
        }
        words = [f"--{key}={value}" for key, value in options.items()]
        # Without an environment: etcd takes options from it. To sync is for power failures; a killed process loses
        # nothing that the kernel has.
        self._command = ["env", "-i", "-C", str(self.directory), paths.etcd(), *words, "--unsafe-no-fsync"]

    def start(self) -> None:
        if len(os.fsencode(self.peer_socket)) > ADDRESS_ROOM:
            raise Inconclusive(f"{self.peer_socket} is too long for a unix socket: set TMPDIR to a shorter path")
        self.process = self._nursery.start(self.name, self._command)

    def ready(self) -> None:
        """Returns when it knows a leader; its own log is the reason when it does not."""
        deadline = time.monotonic() + START_LIMIT_S
        while True:
            with contextlib.suppress(Inconclusive):
                if self.socket.exists() and self.leader() != NO_LEADER:
                    return
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise Inconclusive(f"etcd did not start: {self._nursery.log_tail(self.name) or 'it gave no reason'}")
            time.sleep(0.005)

    def ask(self, path: str, question: dict[str, Any] | None = None, limit_s: float = ANSWER_LIMIT_S) -> dict[str, Any]:
        """One question of the driver's own, not through the proxy."""
        with contextlib.closing(UnixConnection(self.socket, limit_s)) as connection:
            try:
                connection.request("POST", path, json.dumps(question or {}))
                answer = connection.getresponse()
                said: dict[str, Any] = json.loads(answer.read())
            except (OSError, http.client.HTTPException, ValueError) as reason:
                raise Inconclusive(f"{self.name} does not answer: {reason or type(reason).__name__}") from None
        if answer.status != http.client.OK:
            raise Inconclusive(f"{self.name}: {said.get('error', answer.status)}")
        return said

    def status(self) -> dict[str, Any]:
        return self.ask("/v3/maintenance/status")

    def member(self) -> str:
        """Its number in its cluster."""
        return str(self.status()["header"]["member_id"])

    def leader(self) -> str:
        """The leader's number, as far as this node knows."""
        return str(self.status().get("leader", NO_LEADER))

    def version(self) -> str:
        return str(self.status()["version"])

    def restart(self) -> None:
        """Starts it again after its process has ended, with its data."""
        self.process.wait()
        for path in (self.socket, self.peer_socket):
            path.unlink(missing_ok=True)
        self.start()
        self.ready()


def _url(path: Path) -> str:
    return f"unix://{path.name}"


def leader_of(servers: Sequence[EtcdServer], within_s: float = START_LIMIT_S) -> EtcdServer:
    """The one that a majority of these knows as its leader; waits until there is such a one among them."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        votes: dict[str, int] = {}
        members: dict[str, EtcdServer] = {}
        for server in servers:
            with contextlib.suppress(Inconclusive):
                status = server.ask("/v3/maintenance/status", limit_s=1)
                members[status["header"]["member_id"]] = server
                votes[status.get("leader", NO_LEADER)] = votes.get(status.get("leader", NO_LEADER), 0) + 1
        for leader, count in votes.items():
            if leader in members and count * 2 > len(servers):
                return members[leader]
        time.sleep(0.01)
    raise Inconclusive(f"etcd has no leader within {within_s:g} s")
