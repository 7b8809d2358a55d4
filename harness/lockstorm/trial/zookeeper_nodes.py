"""The servers of a lock on ZooKeeper: one alone, or an ensemble in real time."""

from collections.abc import Mapping, Sequence

from lockstorm.base.errors import Inconclusive, UsageError
from lockstorm.native.library import library
from lockstorm.servers.ensemble_settings import MEMBERS, ZOOKEEPER_SYNC_LIMIT, by_name
from lockstorm.servers.zookeeper_server import ZooKeeperServer, java_version, leading_server
from lockstorm.trial.client import Client
from lockstorm.trial.nodes import Nodes

ANY_INTERFACE = "0.0.0.0"  # which process/preload/loopback.c makes the loopback interface


class ZooKeeperNodes(Nodes[ZooKeeperServer]):
    title, program = "ZooKeeper", "zookeeper"
    by_tcp = True
    touch = b"srvr"
    remains_of = "ephemeral node"

    @property
    def clocked(self) -> Sequence[ZooKeeperServer]:
        return self.known

    def start(self) -> None:
        settings = self.trial.settings
        self.refuse_redis_settings()
        if settings.settable_clocks and settings.time == "real":
            raise Inconclusive("in real time nothing sets the clock of ZooKeeper: use virtual time")
        if settings.nodes > 1 and settings.time == "virtual":
            raise UsageError("several ZooKeeper servers are for real time: elections are made of timeouts")
        names = [f"zookeeper-{each + 1}" for each in range(settings.nodes)]
        hold = self.trial.sandbox.hold_port
        ports = {name: (hold(), hold()) for name in names} if settings.nodes > 1 else {}
        self.known = [self._start_one(name, ports) for name in names]
        # A task that waits gives the turn back; the client's other task could not read the answer otherwise.
        library().scheduler_set_unreliable(self.trial.scheduler)

    def _start_one(self, name: str, ports: Mapping[str, tuple[int, int]]) -> ZooKeeperServer:
        """`ports`: server -> its ports for the quorum and for elections."""
        frozen = self.trial.settings.time == "virtual"
        clock = self.trial.sandbox.directory / f"{name}.clock" if frozen else None
        number = self.trial.scheduler.add_server(clock, None)
        peers = {peer: self._peer_address(name, peer, *ports[peer]) for peer in ports}
        deployment = self.trial.settings.deployment
        own = by_name(each for each in deployment.of("zookeeper") if each.name != MEMBERS) if deployment else {}
        if "tickTime" in own:
            own.setdefault("syncLimit", str(ZOOKEEPER_SYNC_LIMIT))
        server = ZooKeeperServer(self.trial.sandbox, name, clock=clock, peers=peers, configured=own)
        server.number = number
        self.trial.on_exit.callback(server.close)
        return server

    def _peer_address(self, name: str, peer: str, quorum: int, election: int) -> str:
        """Where one server reaches another: through a link of its own; and where it listens itself.

        Of two servers, the one with the higher number opens the connection for elections, to the address that the other
        one has told it: what that one has as its own. That would be a way past the link, on which a server that is cut
        off is elected again and again, while nobody can follow it. An address of any interface is no address to
        connect to, so they keep to their own configuration (QuorumCnxManager.InitialMessage.isWildcardAddress).
        """
        if name == peer:
            return f"{ANY_INTERFACE}:{quorum}:{election}"
        quorum = self.trial.links.peer_port(f"{peer}-quorum", quorum, f"peer-{name}")
        election = self.trial.links.peer_port(f"{peer}-election", election, f"peer-{name}")
        return f"127.0.0.1:{quorum}:{election}"

    def ready(self) -> None:
        for server in self.known:
            server.ready()
            self._watch_over(server)

    def _watch_over(self, server: ZooKeeperServer) -> None:
        """The scheduler watches its threads instead of sending it a PING. In real time it waits for no server."""
        if self.trial.settings.time == "real":
            return
        library().scheduler_set_server_process(self.trial.scheduler, server.number, server.process.pid)
        library().scheduler_set_server_timer(
            self.trial.scheduler, server.number, server.timer(), server.address.encode()
        )
        server.calibrate(library().scheduler_server_wall_us(self.trial.scheduler, server.number))

    def address(self, client: Client, node: ZooKeeperServer) -> str:
        return self.link(client, node, node.address)

    def addresses(self, client: Client) -> list[str]:
        """Each client begins with another server, so that not all use the same one."""
        addresses = super().addresses(client)
        first = client.task // 2 % len(addresses)
        return [*addresses[first:], *addresses[:first]]

    def versions(self) -> dict[str, str]:
        return {**super().versions(), "java": java_version()}

    def remains(self) -> dict[bytes, int]:
        """A server tells the number of ephemeral nodes, not their names."""
        return {b"%d" % (each + 1): -1 for each in range(int(self.known[0].value("zk_ephemerals_count")))}

    @property
    def leader(self) -> ZooKeeperServer:
        return leading_server(self.known)

    def restart(self, server: ZooKeeperServer) -> bool:
        super().restart(server)
        self._watch_over(server)
        return True
