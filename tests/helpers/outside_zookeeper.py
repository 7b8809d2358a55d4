"""A ZooKeeper server on a port, which a test starts by itself: lockstorm did not start it."""

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lockstorm.base.hang_limit import CONNECTION_LIMIT_S, START_LIMIT_S, HangLimit
from lockstorm.process.held_port import HeldPort
from lockstorm.servers.zookeeper_server import java_command
from lockstorm.servers.zookeeper_wire import ZooKeeperConnection

SESSION_MS = 10_000
ASK_S = 1.0  # of a server that starts: it never answers a session that was asked for before it was ready


@dataclass
class OutsideZooKeeper:
    port: int
    process: subprocess.Popen[bytes]

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.port}"

    @contextlib.contextmanager
    def session(self, limit_s: float = CONNECTION_LIMIT_S) -> Iterator[ZooKeeperConnection]:
        connected = socket.create_connection(("127.0.0.1", self.port), limit_s)
        with connected, contextlib.closing(ZooKeeperConnection(connected, SESSION_MS)) as session:
            yield session

    def children(self, path: str = "/") -> list[str]:
        """The names below a node, without the servers' own."""
        with self.session() as session:
            return sorted(name for name in session.children(path) if name != "zookeeper")


@contextlib.contextmanager
def outside_zookeeper(directory: Path, tick_ms: int = 200) -> Iterator[OutsideZooKeeper]:
    """A session lasts from 2 to 20 ticks."""
    with HeldPort() as held:
        place = directory / f"zookeeper-{held.number}"
        place.mkdir()
        (place / "zoo.cfg").write_text(
            f"dataDir={place}/data\nclientPort={held.number}\nclientPortAddress=127.0.0.1\ntickTime={tick_ms}\n"
            "admin.enableServer=false\n"
        )
        process = subprocess.Popen(
            java_command(place / "zoo.cfg"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=place
        )
        server = OutsideZooKeeper(held.number, process)
        try:
            _await(server)
            yield server
        finally:
            process.kill()
            process.wait()


def _await(server: OutsideZooKeeper) -> None:
    limit = HangLimit(START_LIMIT_S)
    while True:
        with contextlib.suppress(OSError), server.session(ASK_S) as session:
            session.children("/")
            return
        assert not limit.is_over() and server.process.poll() is None
        time.sleep(0.05)
