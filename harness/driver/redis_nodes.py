"""The nodes of a lock on Redis: with replicas, watched by sentinels, or a cluster; and who has taken whose place."""

import contextlib
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import redis

from harness.driver.errors import Inconclusive, UsageError
from harness.driver.library import library
from harness.driver.nodes import Nodes
from harness.driver.redis_server import Network, RedisServer
from harness.driver.topology import CLUSTER_MASTERS, Sentinel, cluster_ranges, join, slot_of, watch

if TYPE_CHECKING:
    from harness.driver.client import Client
    from harness.driver.trial import Trial

# What a redis-server is told; "aof": nothing is acknowledged before it is in the append-only file, and on the disk.
PERSISTENCE = {
    "none": (),
    "aof": ("--appendonly", "yes", "--appendfsync", "always"),
}
FAULTS_KEYS = b"lockstorm:"
# Asked by the trial and by replicas, how often depends on the machine. So a lock's own WAIT is not counted either.
TRIALS_OWN = ("ping", "time", "info", "hello", "wait", "replconf", "psync", "config|get", "config|set")


class RedisNodes(Nodes[RedisServer]):
    title = "Redis"
    touch = b"*1\r\n$4\r\nPING\r\n"

    def __init__(self, trial: "Trial") -> None:
        super().__init__(trial)
        self.masters: list[RedisServer] = []  # the nodes that clients know: where a link leads that names one
        self.replicas: list[RedisServer] = []
        self.cluster: list[RedisServer] = []  # all masters and replicas of a cluster, but for those
        self.sentinels: list[Sentinel] = []
        self._successors: dict[str, RedisServer] = {}  # node -> who is its master now, if not itself

    @property
    def known(self) -> Sequence[RedisServer]:
        return self.masters

    @property
    def every(self) -> Sequence[RedisServer]:
        return [*self.masters, *self.replicas, *self.cluster]

    @property
    def clocked(self) -> Sequence[RedisServer]:
        return [*self.masters, *self.replicas]

    # --- life ---

    def start(self) -> None:
        self._check_topology()
        said = self.trial.settings
        count = CLUSTER_MASTERS if said.topology == "cluster" else said.nodes
        replicas_each = said.replicas if said.topology == "single" else max(1, said.replicas)
        self.masters = [self._start_one(f"redis-{each + 1}") for each in range(count)]
        self._nodes_of_replicas = {
            self._start_one(f"{node.name}-replica-{each + 1}"): node
            for node in self.masters
            for each in range(replicas_each)
        }
        self.replicas = list(self._nodes_of_replicas)

    def _check_topology(self) -> None:
        said = self.trial.settings
        if said.topology == "single":
            return
        if said.time == "virtual":
            raise UsageError(f"the topology {said.topology} is for real time: elections are made of timeouts")
        if said.nodes != 1:
            one = "one master" if said.topology == "sentinel" else "one cluster"
            raise Inconclusive(f"{said.lock} needs {said.nodes} servers that know nothing of each other, not {one}")

    def _start_one(self, name: str) -> RedisServer:
        trial, said = self.trial, self.trial.settings
        frozen, directory = said.time == "virtual", self.trial.nursery.directory
        clock = directory / f"{name}.clock" if frozen or said.settable_clocks else None
        number = self.enlist(clock, directory / f"{name}.sock")
        network = Network(said.topology == "cluster", trial.peer_port) if said.topology != "single" else None
        options = (*PERSISTENCE[said.persistence], *said.server_options)
        server = RedisServer(trial.nursery, name, clock=clock, frozen=frozen, options=options, network=network)
        server.number = number
        trial.at_exit(server.close)
        return server

    def ready(self) -> None:
        said, pairs = self.trial.settings, self._nodes_of_replicas
        for server in (*self.masters, *self.replicas):
            server.ready()
            self._calibrate(server)
        if said.topology == "cluster":
            self._join_cluster()
        else:
            for replica, node in pairs.items():
                self._follow_by_hand(replica, node)
                library().conductor_set_replicas(self.trial.conductor, node.number, len(node.replicas))
        if said.topology == "sentinel":
            self.sentinels = watch(self.trial.nursery, self.masters[0], self.trial.peer_port)
            for sentinel in self.sentinels:
                self.trial.at_exit(sentinel.close)

    def _calibrate(self, server: RedisServer) -> None:
        if not library().conductor_calibrate(self.trial.conductor, server.number):
            raise Inconclusive(f"the clock of {server.name} could not be read")

    def _join_cluster(self) -> None:
        """Of a cluster's nodes, clients know the one that has the slot of the resource."""
        masters, replicas = self.masters, self._nodes_of_replicas
        join(masters, replicas)
        slot = slot_of(self.trial.resource)
        self.masters = [masters[each] for each, slots in enumerate(cluster_ranges()) if slot in slots]
        self.replicas = [replica for replica, node in replicas.items() if node is self.masters[0]]
        own = (*self.masters, *self.replicas)
        self.cluster = [server for server in (*masters, *replicas) if server not in own]
        for replica in self.replicas:
            replica.await_link(self.masters[0])

    # --- what a trial asks ---

    def address(self, client: "Client", node: RedisServer) -> str:
        hosted = self.trial.lock.get("adapter")
        listen = "127.0.0.1:0" if hosted and hosted["tcp"] else None
        return self.trial.link(f"{client.host}>{node.name}", self.master(node).socket, listen=listen)

    def versions(self) -> dict[str, str]:
        return {"redis-server": self.masters[0].version()}

    def commands(self) -> int:
        return sum(count for node in self.masters for name, count in node.calls().items() if name not in TRIALS_OWN)

    def check(self) -> None:
        """A lock whose keys do not share a slot of the cluster is told so by every server, and is not what it is
        elsewhere. A master of the slot says MOVED for keys of other slots only."""
        for node in self.masters if self.cluster else []:
            with contextlib.suppress(redis.exceptions.ConnectionError):
                errors = self.master(node).link.info("errorstats")
                for name in ("CROSSSLOT", "MOVED"):
                    if f"errorstat_{name}" in errors:
                        lock = self.trial.settings.lock
                        raise Inconclusive(f"{lock} cannot work in a cluster: {name}, its keys do not share a slot")

    def restart(self, server: RedisServer) -> bool:
        super().restart(server)
        self._calibrate(server)
        return True

    def kill(self, server: RedisServer) -> None:
        """Ends a node or a replica, with its data: there is no persistence."""
        server.process.kill()
        server.process.wait()
        server.gone = True
        library().conductor_set_silent(self.trial.conductor, server.number, True)
        self.lose_replica(server)

    def remains(self) -> dict[bytes, int]:
        """Its keys, but for those that faults have put there."""
        links = [self.master(node).link for node in self.masters]
        keys = {os.fsencode(key): int(link.pttl(key)) for link in links for key in link.keys("*")}
        return {key: rest_ms for key, rest_ms in keys.items() if not key.startswith(FAULTS_KEYS)}

    # --- who follows whom ---

    def master(self, node: RedisServer) -> RedisServer:
        """Where the links lead that name this node: itself, or who has taken its place."""
        return self._successors.get(node.name, node)

    def follow(self, server: RedisServer, master: RedisServer) -> bool:
        """The server becomes a replica of that master, with whoever followed the server, and they acknowledge what is
        written there. Sentinels and clusters see to it themselves."""
        moving = [*(replica for replica in server.replicas if replica is not master), server]
        for replica in moving:
            self.lose_replica(replica)
            if self.trial.settings.topology == "single":
                self._follow_by_hand(replica, master)
            else:
                replica.await_link(master)
        library().conductor_set_replicas(self.trial.conductor, master.number, len(master.replicas))
        return True

    def _follow_by_hand(self, replica: RedisServer, master: RedisServer) -> None:
        if not master.port:
            master.listen()
        alone = (
            self.trial.settings.topology == "single"
        )  # sentinels want to see everybody at the address that they know
        link = self.trial.peer_port(master.name, master.port, replica.name) if alone else master.announced
        replica.follow(master, link)

    def lose_replica(self, replica: RedisServer) -> bool:
        """The replica does not hear of its master's writes any more."""
        for node in self.every:
            if replica in node.replicas:
                node.replicas.remove(replica)
                library().conductor_set_replicas(self.trial.conductor, node.number, len(node.replicas))
        return True

    def lead_clients(self, old: RedisServer, new: RedisServer) -> bool:
        """Links of clients that lead to a server lead to another from now on. False: none does."""
        nodes = [node for node in self.masters if self.master(node) is old]
        for node in nodes:
            self._successors[node.name] = new
            self.trial.lead(f"client-*>{node.name}", new.socket)
        if self.cluster:
            new.link.config_resetstat()  # what it answered as a replica says nothing about keys (check)
        return bool(nodes)

    def around(self, server: RedisServer) -> list[RedisServer | Sentinel]:
        """Who has to do with a server: its replicas first, then the other nodes of its cluster, or the sentinels."""
        if self.trial.settings.topology == "single":
            return [*server.replicas]
        known: list[RedisServer | Sentinel] = [*server.replicas, *self.every, *self.sentinels]
        return [each for each in dict.fromkeys(known) if each is not server]
