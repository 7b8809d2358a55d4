"""The servers around a master: sentinels that watch it, or the other nodes of its cluster.

Without a fault, a silent master counts as down only after PATIENCE_MS, so that a busy machine does not look like a lost
master. The faults failover-sentinel and failover-cluster shorten that time while they last.
"""

import binascii
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count, pairwise
from typing import Any

from lockstorm.base.errors import Inconclusive
from lockstorm.base.hang_limit import CONNECTION_LIMIT_S, START_LIMIT_S, HangLimit
from lockstorm.process.process import Sandbox
from lockstorm.results.lock_entry import Topology
from lockstorm.servers.redis_server import RedisServer

TOPOLOGIES: tuple[Topology, ...] = ("single", "sentinel", "cluster")

PATIENCE_MS = 30_000
SENTINELS = 3
QUORUM = 2
CLUSTER_MASTERS = 3
SLOTS = 16384
MEET_AGAIN_S = 5.0  # a node that is not heard of for a second is forgotten: it may be the machine that stood still

# In ms; with the defaults it takes 10 s until the sentinels know the replicas. With a ping period below 400 ms, they
# would find every replica's INFO too old in an election while the master is down (7.0: older than five ping periods).
SENTINEL_PERIODS = {
    "info-period": 100,
    "ping-period": 400,
    "ask-period": 100,
    "publish-period": 100,
    "min-link-reconnect-period": 100,
    "election-timeout": 2000,
    "tilt-period": 1000,
}


@dataclass(frozen=True)
class Elections:
    """How a lost master is found out and replaced. Without a patience of the team's, a fault has its own (500 ms), and
    otherwise it is PATIENCE_MS."""

    sentinels: int = SENTINELS
    quorum: int = QUORUM
    down_after_ms: int | None = None  # sentinels
    failover_timeout_ms: int = 2000
    node_timeout_ms: int | None = None  # the cluster

    def patience_ms(self, topology: Topology) -> int | None:
        return {"single": None, "sentinel": self.down_after_ms, "cluster": self.node_timeout_ms}[topology]

    def fault_options(self, topology: Topology) -> dict[str, int]:
        name = {"sentinel": "down-after-ms", "cluster": "node-timeout-ms"}.get(topology)
        patience_ms = self.patience_ms(topology)
        return {name: patience_ms} if name and patience_ms else {}


def _await(condition: Callable[[], bool], what: str, begin_again: Callable[[], None] = lambda: None) -> None:
    """`begin_again` is called whenever the condition has not come for a while."""
    limit, soon = HangLimit(START_LIMIT_S, CONNECTION_LIMIT_S), HangLimit(MEET_AGAIN_S)
    while not condition():
        if limit.is_over():
            raise Inconclusive(f"{what}: not within {START_LIMIT_S:g} s")
        if soon.is_over():
            begin_again()
            soon = HangLimit(MEET_AGAIN_S)
        time.sleep(0.01)


# --- sentinels ---


class Sentinel:
    """A redis-server in sentinel mode. Started by the constructor; `ready` waits until it answers."""

    def __init__(
        self,
        sandbox: Sandbox,
        name: str,
        master: RedisServer,
        announce: Callable[[str, int], int],
        elections: Elections = Elections(),
    ) -> None:
        self.name = name
        self.elections = elections
        self.number = -1  # the scheduler does not know it
        self.probe = ""
        self.socket = sandbox.directory / f"{name}.sock"
        self.directory = sandbox.directory / name
        self.directory.mkdir(mode=0o700)
        self._sandbox, self._master, self._announce = sandbox, master, announce
        self._start()
        import redis

        self.link = redis.Redis(unix_socket_path=str(self.socket), socket_timeout=CONNECTION_LIMIT_S, driver_info=None)

    def _start(self) -> None:
        self.port, master = self._sandbox.hold_port(), self._master
        settings = {
            "port": self.port,
            "bind": "127.0.0.1",
            "unixsocket": self.socket,
            "unixsocketperm": 700,
            "dir": self.directory,
            "sentinel announce-ip": "127.0.0.1",
            "sentinel announce-port": self._announce(self.name, self.port),
            f"sentinel monitor {master.name}": f"127.0.0.1 {master.announced} {self.elections.quorum}",
            f"sentinel down-after-milliseconds {master.name}": self.elections.down_after_ms or PATIENCE_MS,
            f"sentinel failover-timeout {master.name}": self.elections.failover_timeout_ms,
        }
        file = self.directory / "sentinel.conf"  # the sentinel also writes its state there
        file.write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
        self.process = self._sandbox.start(self.name, [master.program, str(file), "--sentinel"])

    def ready(self) -> None:
        import redis

        words = ["SENTINEL", "DEBUG", *(word for name, ms in SENTINEL_PERIODS.items() for word in (name, ms))]
        ask, failures = partial(self.link.execute_command, *words), (redis.exceptions.RedisError,)
        self._sandbox.await_start(self.name, self.name, self.process, ask, failures, look_s=CONNECTION_LIMIT_S)

    def knows(self, replicas: int) -> bool:
        said: Any = self.link.sentinel_master(self._master.name)
        return int(said["num-slaves"]) == replicas and int(said["num-other-sentinels"]) == self.elections.sentinels - 1

    def close(self) -> None:
        self.link.close()


def watch(
    sandbox: Sandbox, master: RedisServer, announce: Callable[[str, int], int], elections: Elections = Elections()
) -> list[Sentinel]:
    """Starts sentinels that watch a master; returns when all know it, its replicas and each other."""
    names = [f"sentinel-{each + 1}" for each in range(elections.sentinels)]
    sentinels = [Sentinel(sandbox, name, master, announce, elections) for name in names]
    for sentinel in sentinels:
        sentinel.ready()
    _await(lambda: all(each.knows(len(master.replicas)) for each in sentinels), "the sentinels know each other")
    return sentinels


# --- the cluster ---


def slot_of(key: bytes) -> int:
    """The slot of a key: that of the text in its first braces, if it has any."""
    _, opened, rest = key.partition(b"{")
    tag, closed, _ = rest.partition(b"}")
    return binascii.crc_hqx(tag if opened and closed and tag else key, 0) % SLOTS


def tagged(name: bytes) -> bytes:
    """The name in braces: keys that contain it all have the same slot."""
    return name if b"{" in name else b"{" + name + b"}"


def cluster_ranges() -> list[range]:
    ends = [each * SLOTS // CLUSTER_MASTERS for each in range(CLUSTER_MASTERS + 1)]
    return [range(first, after) for first, after in pairwise(ends)]


def probe_in(slots: range) -> str:
    """A key whose slot is one of these."""
    return next(key for key in (f"lockstorm:probe:{{{n}}}" for n in count()) if slot_of(key.encode()) in slots)


def _ask(server: RedisServer, *words: str | int) -> str:
    reply = server.link.execute_command("CLUSTER", *words)  # type: ignore[no-untyped-call]
    return reply.decode() if isinstance(reply, bytes) else str(reply)


def _knows(server: RedisServer, identity: str) -> bool:
    return identity in _ask(server, "NODES")


def _is_settled(server: RedisServer, nodes: int, replicas: int) -> bool:
    lines = _ask(server, "NODES").splitlines()
    followers = [line for line in lines if "slave" in line.split()[2]]
    known = len(lines) == nodes and not any("handshake" in line for line in lines) and len(followers) == replicas
    return known and "cluster_state:ok" in _ask(server, "INFO")


def _meet(nodes: Sequence[RedisServer]) -> None:
    for number, node in enumerate(nodes):
        for other in nodes[:number]:
            _ask(node, "MEET", "127.0.0.1", other.announced, other.announced_bus)


def join(
    masters: Sequence[RedisServer], replicas: Mapping[RedisServer, RedisServer], elections: Elections = Elections()
) -> None:
    """Makes a cluster of nodes without a configuration; returns when every node reports it as ok."""
    nodes = [*masters, *replicas]
    for master, slots in zip(masters, cluster_ranges(), strict=True):
        _ask(master, "ADDSLOTSRANGE", slots[0], slots[-1])
        master.probe = probe_in(slots)
    for epoch, node in enumerate(nodes, 1):
        _ask(node, "SET-CONFIG-EPOCH", epoch)
    meet = partial(_meet, nodes)
    meet()
    for replica, master in replicas.items():
        identity = _ask(master, "MYID")
        _await(partial(_knows, replica, identity), "the nodes of the cluster meet", meet)
        _ask(replica, "REPLICATE", identity)
        replica.probe = master.probe
    _await(lambda: all(_is_settled(node, len(nodes), len(replicas)) for node in nodes), "the cluster is ok", meet)
    for node in nodes:
        node.link.config_set("cluster-node-timeout", elections.node_timeout_ms or PATIENCE_MS)
