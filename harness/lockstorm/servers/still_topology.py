"""A Redis cluster, of three nodes or of one, and a master under sentinels, as a search uses them: which server does
what is written down before they start, and nothing changes it. The nodes of a cluster are connected, so that published
messages reach all of them, and take no silence for a failure. A sentinel's clock stands at the start of 1970, before
its first try to connect."""

import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

from lockstorm.base.errors import Inconclusive
from lockstorm.base.hang_limit import START_LIMIT_S, HangLimit
from lockstorm.process.line_client import LineClient
from lockstorm.process.process import Sandbox, flag_words
from lockstorm.results.lock_entry import Topology
from lockstorm.servers.topology import QUORUM, SENTINELS, SLOTS

MASTER = "mymaster"  # the master's name in Redis' own documentation
FIRST_PORT = 7001  # of the addresses that servers announce; nothing listens there (harness/supervisor/calls_connect.c)
NEVER_MS, LONG_MS = 10**12, 10**9  # of a cluster; the most that sentinels take
WRITABLE_AFTER_NS = 3 * 10**9  # a node of a cluster takes no writes in the first two seconds of its time
STAND_STILL_NS = 0
SLOTS_FROM = (0, 1000, 3000)  # of each master: the resources of a search (account, account-2, ...) are not on the same
BUS = ("cluster-port", "cluster-announce-bus-port")  # one port for both
CLUSTER_OPTIONS: dict[str, object] = {
    "cluster-enabled": "yes",
    "cluster-node-timeout": NEVER_MS,
    "cluster-require-full-coverage": "no",
    "cluster-allow-replica-migration": "no",
    "cluster-announce-ip": "127.0.0.1",
    "hz": 10,  # it looks for other nodes that often; the search sets it to 1
}


def server_names(topology: Topology, *, one_node: bool) -> list[str]:
    """The servers of a cluster; the master and its sentinels."""
    if topology == "cluster":
        return [f"redis-{each + 1}" for each in range(1 if one_node else len(SLOTS_FROM))]
    return ["redis-1", *(f"sentinel-{each + 1}" for each in range(SENTINELS))]


def slots_of_masters(masters: int = len(SLOTS_FROM)) -> list[range]:
    return [range(first, after) for first, after in pairwise((*SLOTS_FROM[:masters], SLOTS))]


def is_sentinel(name: str) -> bool:
    return name.startswith("sentinel-")


def service_of(topology: Topology, name: str) -> str:
    """The name of its kind in harness/library_service."""
    if is_sentinel(name):
        return "redis-sentinel"
    return "redis-cluster" if topology == "cluster" else "redis"


def announced_port(place: int) -> int:
    """The port at which other servers say that the server at this place is."""
    return FIRST_PORT + place


def _identity(place: int) -> str:
    return f"{place + 1:040x}"


def server_options(topology: Topology, sandbox: Sandbox, directories: Sequence[Path]) -> list[list[str]]:
    """The arguments of each server, in the order of server_names, beside those that every server of a search has; of a
    sentinel, the file of its configuration comes first. `directories`: each server's own, which are there. Servers of
    the topology single are clusters of one node each."""
    if topology == "cluster":
        return _cluster(sandbox, directories)
    if topology == "single":
        return [_cluster(sandbox, [directory], place)[0] for place, directory in enumerate(directories)]
    return [[], *(_sentinel(directory, place) for place, directory in enumerate(directories) if place > 0)]


def _cluster(sandbox: Sandbox, directories: Sequence[Path], first: int = 0) -> list[list[str]]:
    """`first`: the place of the first one among all servers. Each bus has a port of its own: by default servers without
    a port have the same, and the second one ends."""
    buses = [sandbox.hold_port() for _ in directories]
    for own, directory in enumerate(directories):
        lines = []
        for place, slots in enumerate(slots_of_masters(len(directories))):
            flags = "myself,master" if place == own else "master"
            at = f"127.0.0.1:{announced_port(first + place)}@{buses[place]}"
            lines.append(f"{_identity(place)} {at} {flags} - 0 0 {place + 1} connected {slots[0]}-{slots[-1]}")
        lines.append(f"vars currentEpoch {len(buses)} lastVoteEpoch 0")
        (directory / "nodes.conf").write_text("".join(f"{line}\n" for line in lines))
    return [
        flag_words(CLUSTER_OPTIONS | {"cluster-announce-port": announced_port(first + place)} | dict.fromkeys(BUS, bus))
        for place, bus in enumerate(buses)
    ]


def _sentinel(directory: Path, place: int) -> list[str]:
    settings = {
        f"sentinel myid {_identity(place)}": "",
        f"sentinel monitor {MASTER}": f"127.0.0.1 {announced_port(0)} {QUORUM}",
        f"sentinel down-after-milliseconds {MASTER}": LONG_MS,
        "sentinel announce-ip": "127.0.0.1",
        "sentinel announce-port": announced_port(place),
    }
    lines = [f"{key} {value}".strip() for key, value in settings.items()]
    for other in range(1, SENTINELS + 1):
        if other != place:
            lines.append(f"sentinel known-sentinel {MASTER} 127.0.0.1 {announced_port(other)} {_identity(other)}")
    file = directory / "sentinel.conf"  # the sentinel also writes its state there
    file.write_text("".join(f"{line}\n" for line in lines))
    return [str(file), "--sentinel"]


def await_cluster(
    sockets: Sequence[Path], clocks: Sequence[Path], move: Callable[[Path, int], None], now_ns: int
) -> None:
    """Returns when each node has heard the others and takes writes. `move` sets a clock; they stand at now_ns."""
    limit, clients = HangLimit(START_LIMIT_S), [LineClient(socket) for socket in sockets]
    while not all(_is_whole(client) for client in clients):
        if limit.is_over():
            raise Inconclusive(f"the nodes of the cluster do not find each other within {START_LIMIT_S:g} s")
        now_ns += WRITABLE_AFTER_NS
        for clock in clocks:
            move(clock, now_ns)
        time.sleep(0.01)
    for client in clients:
        client.close()


def _is_whole(client: LineClient) -> bool:
    """Whether a node is sure of the cluster, and every other one has answered it."""
    nodes = [line.split() for line in client.request("CLUSTER", "NODES").decode().splitlines()]
    heard = all(int(pong) > 0 for _, _, flags, _, _, pong, *_ in nodes if "myself" not in flags)
    return heard and b"cluster_state:ok" in client.request("CLUSTER", "INFO")
