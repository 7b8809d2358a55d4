"""The nodes of a lock on Redis: alone, with replicas or sentinels, or a cluster; and the successors of masters."""

import contextlib
import os
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from lockstorm.base.errors import Inconclusive, UsageError
from lockstorm.native.library import library
from lockstorm.servers.lacking_commands import lacking_commands, lacking_options
from lockstorm.servers.redis_server import Network, RedisServer
from lockstorm.servers.topology import CLUSTER_MASTERS, Sentinel, cluster_ranges, join, slot_of, watch
from lockstorm.trial.client import Client
from lockstorm.trial.nodes import Nodes
from lockstorm.trial.trial_context import TrialContext

# Options of redis-server; with "aof" it acknowledges a write only when that is in the append-only file and on the disk.
PERSISTENCE = {
    "none": (),
    "aof": ("--appendonly", "yes", "--appendfsync", "always"),
}
FAULTS_KEYS = b"lockstorm:"
LENGTHS = {b"list": "LLEN", b"set": "SCARD", b"zset": "ZCARD", b"hash": "HLEN"}  # by type: how many elements a key has
# Commands of the trial itself and of replicas, whose number depends on the machine. A lock's own WAIT is not counted
# either, therefore.
UNCOUNTED_COMMANDS = ("ping", "time", "info", "hello", "wait", "replconf", "psync", "config|get", "config|set")


class RedisNodes(Nodes[RedisServer]):
    title, program = "Redis", "redis-server"
    link_option = "STEPPED"
    touch = b"*1\r\n$4\r\nPING\r\n"

    def __init__(self, trial: TrialContext) -> None:
        super().__init__(trial)
        self.replicas: list[RedisServer] = []
        self.cluster: list[RedisServer] = []  # all other masters and replicas of a cluster
        self.sentinels: list[Sentinel] = []
        self._lacking = lacking_commands(trial.settings.without, trial.settings.server)

    @property
    def every(self) -> Sequence[RedisServer]:
        return [*self.known, *self.replicas, *self.cluster]

    @property
    def clocked(self) -> Sequence[RedisServer]:
        return [*self.known, *self.replicas]

    def versions(self) -> dict[str, str]:
        lacking = f" without {', '.join(self._lacking)}" if self._lacking else ""
        return {self.program: self.known[0].version() + lacking}

    # --- life ---

    def start(self) -> None:
        self._check_topology()
        settings = self.trial.settings
        count = CLUSTER_MASTERS if settings.topology == "cluster" else settings.nodes
        replicas_each = settings.replicas if settings.topology == "single" else max(1, settings.replicas)
        self.known = [self._start_one(f"redis-{each + 1}") for each in range(count)]
        self._nodes_of_replicas = {
            self._start_one(f"{node.name}-replica-{each + 1}"): node
            for node in self.known
            for each in range(replicas_each)
        }
        self.replicas = list(self._nodes_of_replicas)

    def _check_topology(self) -> None:
        settings = self.trial.settings
        if settings.topology == "single":
            return
        if settings.time == "virtual":
            raise UsageError(f"the topology {settings.topology} is for real time: elections are made of timeouts")
        if settings.nodes != 1:
            one = "one master" if settings.topology == "sentinel" else "one cluster"
            raise Inconclusive(
                f"{settings.lock} needs {settings.nodes} servers that know nothing of each other, not {one}"
            )

    def _start_one(self, name: str) -> RedisServer:
        trial, settings = self.trial, self.trial.settings
        frozen, directory = settings.time == "virtual", self.trial.sandbox.directory
        clock = directory / f"{name}.clock" if frozen or settings.settable_clocks else None
        number = self.trial.scheduler.add_server(clock, directory / f"{name}.sock")
        network = (
            Network(settings.topology == "cluster", trial.links.peer_port) if settings.topology != "single" else None
        )
        options = (*PERSISTENCE[settings.persistence], *settings.server_options, *lacking_options(self._lacking))
        deployment = settings.deployment
        configured = deployment.of("redis") if deployment and deployment.is_redis_configured else None
        server = RedisServer(
            trial.sandbox,
            name,
            clock=clock,
            frozen=frozen,
            options=options,
            network=network,
            program=settings.server,
            configured=configured,
        )
        server.number = number
        trial.on_exit.callback(server.close)
        return server

    def ready(self) -> None:
        settings, pairs = self.trial.settings, self._nodes_of_replicas
        for server in (*self.known, *self.replicas):
            server.ready()
        if settings.topology == "cluster":
            self._join_cluster()
        else:
            for replica, node in pairs.items():
                self._follow_by_hand(replica, node)
                library().scheduler_set_server_replicas(self.trial.scheduler, node.number, len(node.replicas))
        if settings.topology == "sentinel":
            self.sentinels = watch(self.trial.sandbox, self.known[0], self.trial.links.peer_port, settings.elections)
            for sentinel in self.sentinels:
                self.trial.on_exit.callback(sentinel.close)

    def _join_cluster(self) -> None:
        """Joins the nodes to a cluster. Clients know only the one that has the slot of the resource."""
        masters, replicas = self.known, self._nodes_of_replicas
        join(masters, replicas, self.trial.settings.elections)
        slot = slot_of(self.trial.resource)
        self.known = [masters[each] for each, slots in enumerate(cluster_ranges()) if slot in slots]
        self.replicas = [replica for replica, node in replicas.items() if node is self.known[0]]
        own = (*self.known, *self.replicas)
        self.cluster = [server for server in (*masters, *replicas) if server not in own]
        for replica in self.replicas:
            replica.await_link(self.known[0])

    # --- the interface of Nodes ---

    def address(self, client: Client, node: RedisServer) -> str:
        option = "TIMED" if self.trial.lock.adapter else ""  # a library does not say how long BLPOP is to wait
        return self.link(client, node, self.master(node).socket, option=option)

    def commands(self) -> int:
        return sum(
            count for node in self.known for name, count in node.calls().items() if name not in UNCOUNTED_COMMANDS
        )

    def check(self) -> None:
        """A lock whose keys do not share a slot of the cluster gets CROSSSLOT or MOVED from every server, and cannot
        work. The master of the slot answers MOVED only for keys of other slots."""
        if not self.cluster:
            return
        import redis

        for node in self.known:
            with contextlib.suppress(redis.exceptions.ConnectionError):
                errors = self.master(node).link.info("errorstats")
                for name in ("CROSSSLOT", "MOVED"):
                    if f"errorstat_{name}" in errors:
                        lock = self.trial.settings.lock
                        raise Inconclusive(f"{lock} cannot work in a cluster: {name}, its keys do not share a slot")

    def kill(self, server: RedisServer) -> None:
        """Ends a node or a replica. Its data is lost, for there is no persistence."""
        server.process.end()
        server.gone = True
        library().scheduler_set_server_silent(self.trial.scheduler, server.number, True)
        self.lose_replica(server)

    def contents(self) -> list[dict[bytes, bytes]]:
        links: list[Any] = [self.master(node).link for node in self.known]
        return [{key: link.dump(key) for key in link.keys("*") if not key.startswith(FAULTS_KEYS)} for link in links]

    def asked(self) -> int:
        counted = [self.master(node).calls(succeeded=True) for node in self.known]
        return sum(count for calls in counted for name, count in calls.items() if name in self._asking)

    @cached_property
    def _asking(self) -> set[str]:
        """The commands that write, and scripts, by the server's own table."""
        return {"eval", "evalsha", "fcall"} | {
            name
            for name, command in self.known[0].link.command().items()
            if "write" in command["flags"] and "blocking" not in command["flags"]
        }

    def remains(self) -> dict[bytes, int]:
        """The keys, without those of faults."""
        links = [self.master(node).link for node in self.known]
        keys = {os.fsencode(key): int(link.pttl(key)) for link in links for key in link.keys("*")}
        return {key: rest_ms for key, rest_ms in keys.items() if not key.startswith(FAULTS_KEYS)}

    def traces(self) -> dict[bytes, int]:
        found: dict[bytes, int] = {}
        for node in self.known:
            link: Any = self.master(node).link
            where = b" on " + node.name.encode() if len(self.known) > 1 else b""
            for key in link.keys("*"):
                length = LENGTHS.get(link.type(key))
                if not key.startswith(FAULTS_KEYS):
                    found[b"key " + key + where] = int(link.execute_command(length, key)) if length else 1
            for channel, count in link.pubsub_numsub(*link.pubsub_channels()):
                found[b"subscription to " + channel + where] = int(count)
        return found

    # --- replication ---

    def follow(self, server: RedisServer, master: RedisServer) -> bool:
        """Makes the server and its replicas replicas of that master; returns when they acknowledge its writes. With
        sentinels or in a cluster, only waits until they have done it themselves."""
        moving = [*(replica for replica in server.replicas if replica is not master), server]
        for replica in moving:
            self.lose_replica(replica)
            if self.trial.settings.topology == "single":
                self._follow_by_hand(replica, master)
            else:
                replica.await_link(master)
        library().scheduler_set_server_replicas(self.trial.scheduler, master.number, len(master.replicas))
        return True

    def _follow_by_hand(self, replica: RedisServer, master: RedisServer) -> None:
        if not master.port:
            master.listen()
        # Sentinels expect every server at the address that they know.
        alone = self.trial.settings.topology == "single"
        link = self.trial.links.peer_port(master.name, master.port, replica.name) if alone else master.announced
        replica.follow(master, link)

    def lose_replica(self, replica: RedisServer) -> bool:
        """Notes that the replica no longer receives its master's writes."""
        for node in self.every:
            if replica in node.replicas:
                node.replicas.remove(replica)
                library().scheduler_set_server_replicas(self.trial.scheduler, node.number, len(node.replicas))
        return True

    def lead_clients(self, old: RedisServer, new: RedisServer) -> bool:
        """Makes the clients' links to a server lead to another one. False: no link leads to the first."""
        nodes = [node for node in self.known if self.master(node) is old]
        for node in nodes:
            self._successors[node.name] = new
            self.trial.links.lead(f"client-*>{node.name}", new.socket)
        if self.cluster:
            new.link.config_resetstat()  # its errors as a replica say nothing about keys (check)
        return bool(nodes)

    def around(self, server: RedisServer) -> list[RedisServer | Sentinel]:
        """The servers around a server: its replicas first, then the other nodes of its cluster, or the sentinels."""
        if self.trial.settings.topology == "single":
            return [*server.replicas]
        known: list[RedisServer | Sentinel] = [*server.replicas, *self.every, *self.sentinels]
        return [each for each in dict.fromkeys(known) if each is not server]
