"""The nodes of a lock on etcd: one cluster, in real time."""

from pathlib import Path

from lockstorm.base.errors import Inconclusive, UsageError
from lockstorm.servers.ensemble_settings import etcd_options
from lockstorm.servers.etcd_server import EtcdServer, leader_of
from lockstorm.servers.services import REAL_TIME_ONLY, check_lease
from lockstorm.trial.client import Client
from lockstorm.trial.nodes import Nodes


class EtcdNodes(Nodes[EtcdServer]):
    title = program = "etcd"
    touch = b"GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n"

    def start(self) -> None:
        settings = self.trial.settings
        check_lease(self.trial.lock, settings.lease_ms)
        if settings.time == "virtual":
            raise UsageError(f"{settings.lock} can only be tried in real time: {REAL_TIME_ONLY['etcd']}")
        self.refuse_redis_settings()
        if settings.settable_clocks:
            raise Inconclusive(f"nothing sets the clock of etcd: {REAL_TIME_ONLY['etcd']}")
        given = settings.deployment.given("etcd") if settings.deployment else {}
        own = dict(etcd_options(given))
        self.known = [EtcdServer(self.trial.sandbox, f"etcd-{each + 1}") for each in range(settings.nodes)]
        for server in self.known:
            server.number = self.trial.scheduler.add_server(None, None)
            server.meet(self.known, self._make_peer_socket, own)
        for server in self.known:
            server.start()

    def _make_peer_socket(self, place: Path, server: EtcdServer, peer: EtcdServer) -> None:
        """Makes the socket on which one node reaches another: a link of its own, if there is a proxy."""
        if self.trial.links.proxy:
            name = f"{server.name}>{peer.name}"
            self.trial.links.proxy.link(name, peer.peer_socket, listen=str(place), option="PLAIN")
        else:
            place.symlink_to(peer.peer_socket)

    def ready(self) -> None:
        for server in self.known:
            server.ready()

    def address(self, client: Client, node: EtcdServer) -> str:
        return self.link(client, node, node.socket)

    def remains(self) -> dict[bytes, int]:
        return self.known[0].keys()

    def leader(self, without: EtcdServer | None = None) -> EtcdServer:
        """The leader of all nodes, or of all except one; waits until there is a leader."""
        return leader_of([server for server in self.known if server is not without])
