"""The nodes of a lock on etcd: one cluster, in real time."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.driver.errors import Inconclusive, UsageError
from harness.driver.etcd_server import EtcdServer, leader_of
from harness.driver.nodes import Nodes
from harness.driver.services import REAL_TIME_ONLY, check_lease

if TYPE_CHECKING:
    from harness.driver.client import Client
    from harness.driver.trial import Trial


class EtcdNodes(Nodes[EtcdServer]):
    title = "etcd"
    touch = b"GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n"

    def __init__(self, trial: "Trial") -> None:
        super().__init__(trial)
        self.members: list[EtcdServer] = []

    @property
    def known(self) -> Sequence[EtcdServer]:
        return self.members

    def start(self) -> None:
        said = self.trial.settings
        check_lease(self.trial.lock, said.lease_ms)
        if said.time == "virtual":
            raise UsageError(f"{said.lock} can only be tried in real time: {REAL_TIME_ONLY['etcd']}")
        self.refuse_redis_settings()
        if said.settable_clocks:
            raise Inconclusive(f"nothing sets the clock of etcd: {REAL_TIME_ONLY['etcd']}")
        self.members = [EtcdServer(self.trial.nursery, f"etcd-{each + 1}") for each in range(said.nodes)]
        for server in self.members:
            server.number = self.enlist(None, None)
            server.meet(self.members, self._way)
        for server in self.members:
            server.start()

    def _way(self, place: Path, server: EtcdServer, peer: EtcdServer) -> None:
        """Where one node finds another: a link of its own, if there is a proxy."""
        if self.trial.proxy:
            name = f"{server.name}>{peer.name}"
            self.trial.proxy.link(name, peer.peer_socket, listen=str(place), option="PLAIN")
        else:
            place.symlink_to(peer.peer_socket)

    def ready(self) -> None:
        for server in self.members:
            server.ready()

    def address(self, client: "Client", node: EtcdServer) -> str:
        return self.trial.link(f"{client.host}>{node.name}", node.socket, option="PLAIN")

    def versions(self) -> dict[str, str]:
        return {"etcd": self.members[0].version()}

    def remains(self) -> dict[bytes, int]:
        return self.members[0].keys()

    def leader(self, without: EtcdServer | None = None) -> EtcdServer:
        """The leader of all, or of all but one; waits until there is one."""
        return leader_of([server for server in self.members if server is not without])
