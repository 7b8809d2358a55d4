"""The servers of a lock on ZooKeeper: one alone, or an ensemble in real time."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from harness.driver.errors import Inconclusive, UsageError
from harness.driver.library import library
from harness.driver.nodes import Nodes
from harness.driver.redis_server import free_port
from harness.driver.zookeeper_server import ZooKeeperServer, java_version

if TYPE_CHECKING:
    from harness.driver.client import Client
    from harness.driver.trial import Trial


class ZooKeeperNodes(Nodes[ZooKeeperServer]):
    title = "ZooKeeper"
    touch = b"srvr"
    remains_of = "ephemeral node"

    def __init__(self, trial: "Trial") -> None:
        super().__init__(trial)
        self.members: list[ZooKeeperServer] = []

    @property
    def known(self) -> Sequence[ZooKeeperServer]:
        return self.members

    @property
    def clocked(self) -> Sequence[ZooKeeperServer]:
        return self.members

    def start(self) -> None:
        said = self.trial.settings
        self.refuse_redis_settings()
        if said.settable_clocks and said.time == "real":
            raise Inconclusive("in real time nothing sets the clock of ZooKeeper: use virtual time")
        if said.nodes > 1 and said.time == "virtual":
            raise UsageError("several ZooKeeper servers are for real time: elections are made of timeouts")
        names = [f"zookeeper-{each + 1}" for each in range(said.nodes)]
        ports = {name: (free_port(), free_port()) for name in names} if said.nodes > 1 else {}
        self.members = [self._start_one(name, ports) for name in names]
        # Whoever asks gives the turn back, or the client's other strand could not read the answer.
        library().conductor_set_unreliable(self.trial.conductor)

    def _start_one(self, name: str, ports: Mapping[str, tuple[int, int]]) -> ZooKeeperServer:
        """`ports`: on which each listens for the others, for what its leader says and for elections."""
        frozen = self.trial.settings.time == "virtual"
        clock = self.trial.nursery.directory / f"{name}.clock" if frozen else None
        number = self.enlist(clock, None)
        peers = {peer: self._peer_address(name, peer, *ports[peer]) for peer in ports}
        server = ZooKeeperServer(self.trial.nursery, name, clock=clock, peers=peers)
        server.number = number
        self.trial.at_exit(server.close)
        return server

    def _peer_address(self, name: str, peer: str, quorum: int, election: int) -> str:
        """Where one server finds another: behind a link of its own; itself where it is."""
        if name != peer:
            quorum = self.trial.peer_port(f"{peer}-quorum", quorum, f"peer-{name}")
            election = self.trial.peer_port(f"{peer}-election", election, f"peer-{name}")
        return f"127.0.0.1:{quorum}:{election}"

    def ready(self) -> None:
        for server in self.members:
            server.ready()
            self._watch_over(server)

    def _watch_over(self, server: ZooKeeperServer) -> None:
        """The conductor looks at its threads instead of asking it. In real time nobody waits for that."""
        if self.trial.settings.time == "real":
            return
        library().conductor_set_process(self.trial.conductor, server.number, server.process.pid)
        library().conductor_set_timer(self.trial.conductor, server.number, server.timer(), server.address.encode())
        server.calibrate(library().conductor_server_wall_us(self.trial.conductor, server.number))

    def address(self, client: "Client", node: ZooKeeperServer) -> str:
        return self.trial.link(f"{client.host}>{node.name}", node.address, listen="127.0.0.1:0", option="PLAIN")

    def addresses(self, client: "Client") -> list[str]:
        """Each client begins with another one, or all would come to the same server."""
        addresses = super().addresses(client)
        first = client.strand // 2 % len(addresses)
        return [*addresses[first:], *addresses[:first]]

    def versions(self) -> dict[str, str]:
        return {"zookeeper": self.members[0].version(), "java": java_version()}

    def remains(self) -> dict[bytes, int]:
        """A server says how many nodes there are that go with their sessions, and not which."""
        return {b"%d" % (each + 1): -1 for each in range(self.members[0].ephemeral_nodes())}

    @property
    def leader(self) -> ZooKeeperServer | None:
        """Which server says that it leads."""
        return next((server for server in self.members if server.is_leader()), None)

    def restart(self, server: ZooKeeperServer) -> bool:
        super().restart(server)
        self._watch_over(server)
        return True
