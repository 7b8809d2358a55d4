"""The faults that a storm can be made of: whom each may strike, with which options, and what the trial must have.

One entry a fault, sorted; an entry whose fault is not in the table of faults is of no use and does no harm. Everything
here is a pure function of the dice and the ground: nothing is running yet.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeAlias, TypeVar

Option: TypeAlias = "int | str"
Options: TypeAlias = "dict[str, Option]"
Lock: TypeAlias = "Mapping[str, Any]"  # as the table of locks describes it
T = TypeVar("T")

ALL_CLIENTS = "clients"  # a target: everybody at once
DRIFT_MOST_PPM = 500_000


class Dice:
    """Draws from a seed. Only Random.random is asked, whose sequence Python promises not to change."""

    def __init__(self, seed: int) -> None:
        self._uniform = Random(seed).random

    def below(self, number: int) -> int:
        return int(self._uniform() * number)

    def between(self, low: int, high: int) -> int:
        return low + self.below(high - low + 1)

    def pick(self, choices: Sequence[T]) -> T:
        return choices[self.below(len(choices))]

    def log_uniform(self, low: int, high: int) -> int:
        """As many between 1 and 2 as between 1000 and 2000."""
        drawn = math.exp(math.log(low) + self._uniform() * (math.log(high) - math.log(low)))
        return min(high, max(low, round(drawn)))


@dataclass(frozen=True)
class Ground:
    """What a storm passes over: who can be struck, and how long things take there."""

    lock: Lock
    time: str
    lease_ms: int
    longest_ms: int  # of a fault
    clients: tuple[str, ...]
    servers: tuple[str, ...]
    replica_links: tuple[str, ...] = ()


def _nothing(dice: Dice, ground: Ground) -> Options:
    return {}


def _fits(lock: Lock) -> str:
    return ""


@dataclass(frozen=True)
class StormFault:
    """How a storm draws one fault. What stands in its way is a rule, not a matter of luck:

    - `excludes`: a kind of thing ("process" of a client, "server") that nobody else may have in hands meanwhile;
    - `shares`: a kind of thing that it has in hands together with others that share it;
    - `asks`: a kind of thing that has to be reachable when it begins and when it ends;
    - `silences`: its client may get no answer; `revives`: its end starts a client, which has to get all answers.

    Of which client or server, its target says; a link counts as the server that it leads to.
    """

    name: str
    targets: Callable[[Ground], Sequence[str]]
    options: Callable[[Dice, Ground], Options] = _nothing
    lasts: bool = True  # else it is healed as soon as it is injected
    lands: bool = False  # may be made to land at a checkpoint of its client
    unfit: Callable[[Lock], str] = _fits  # why it cannot bite with this lock; empty: it can
    needs: Mapping[str, Any] = field(default_factory=dict)  # fields of the trial's settings
    apart: bool = False  # "all" does not mean it: it needs a trial of its own kind, or is about other locks
    anywhere: bool = False  # not to redis-servers and their clients only
    excludes: str = ""
    shares: str = ""
    asks: str = ""
    silences: bool = False
    revives: bool = False


# --- whom ---


def _clients(ground: Ground) -> Sequence[str]:
    return ground.clients


def _everybody(ground: Ground) -> Sequence[str]:
    return (ALL_CLIENTS, *ground.clients)


def _servers(ground: Ground) -> Sequence[str]:
    return ground.servers


def _clocks(ground: Ground) -> Sequence[str]:
    return (*ground.servers, *ground.clients)


def _cuts(ground: Ground) -> Sequence[str]:
    return (*ground.clients, *ground.servers, *ground.replica_links)


# --- how ---


def _nth(dice: Dice, ground: Ground) -> Options:
    return {"nth": dice.between(1, 3)}


def _nth_and_servers(dice: Dice, ground: Ground) -> Options:
    return {"nth": dice.between(1, 4), "servers": dice.pick(("redis-*", *ground.servers))}


def _late(dice: Dice, ground: Ground) -> Options:
    return {"ms": dice.log_uniform(1, ground.longest_ms), "nth": dice.between(1, 2)}


def _jump(dice: Dice, ground: Ground) -> Options:
    return {"offset-ms": dice.pick((1, -1)) * dice.log_uniform(1, ground.longest_ms)}


def _drift(dice: Dice, ground: Ground) -> Options:
    return {"ppm": dice.pick((1, -1)) * dice.log_uniform(100, DRIFT_MOST_PPM)}


def _cut(dice: Dice, ground: Ground) -> Options:
    return {"direction": dice.pick(("both", "both", "to-server", "to-client")), **_nodes(dice, ground)}


def _nodes(dice: Dice, ground: Ground) -> Options:
    """Which servers are meant, where that is not redis-servers."""
    service = ground.lock["service"]
    return {} if service == "redis" else {"servers": f"{service}-*"}


def _crash(dice: Dice, ground: Ground) -> Options:
    if ground.lock["service"] != "redis":
        return {"data": "kept"}
    data = dice.pick(("none", "kept", "tail"))
    return {"data": data, "lost": dice.between(1, 3)} if data == "tail" else {"data": data}


def _eviction(dice: Dice, ground: Ground) -> Options:
    return {"policy": dice.pick(("volatile-lru", "volatile-ttl", "allkeys-lru", "noeviction"))}


def _failover(dice: Dice, ground: Ground) -> Options:
    options: Options = {"replicated": dice.pick(("no", "yes"))}
    if ground.time == "virtual" and dice.pick((True, False)):
        options["clock-ms"] = dice.log_uniform(1, ground.longest_ms)
    return options


def _slowness(dice: Dice, ground: Ground) -> Options:
    if ground.time == "virtual" or dice.pick((True, False)):
        return {"how": "script"}
    return {"how": "sleep", "duration-ms": dice.log_uniform(1, ground.longest_ms)}


def _election(dice: Dice, ground: Ground) -> Options:
    return {"how": dice.pick(("kill", "pause")), "replicated": dice.pick(("no", "yes"))}


# --- with which locks ---


def _hears_messages(lock: Lock) -> str:
    return "" if lock["waits"] == "push" else f"the clients of {lock['name']} wait for no message"


def _lives_on_one(lock: Lock) -> str:
    return (
        "" if lock["nodes"] == 1 else f"{lock['name']} lives on {lock['nodes']} servers that know nothing of each other"
    )


def _has_no_replica(lock: Lock) -> str:
    return f"crash-server is for {lock['name']}, whose server has a replica" if lock["replicas"] else ""


STORM_FAULTS = (
    StormFault("client-pause", _servers, lambda dice, _: {"mode": dice.pick(("write", "all"))}, excludes="server"),
    StormFault("clock-drift", _clocks, _drift, asks="server", needs={"settable_clocks": True}, anywhere=True),
    StormFault("clock-jump", _clocks, _jump, asks="server", needs={"settable_clocks": True}, anywhere=True),
    StormFault("close-links", _clients, _nodes, lasts=False, apart=True, anywhere=True),
    StormFault("crash-server", _servers, _crash, needs={"persistence": "aof"}, excludes="server", anywhere=True),
    StormFault("delay-message", _clients, _late, unfit=_hears_messages),
    StormFault("delay-write", _clients, _nth, anywhere=True),
    StormFault("drop-message", _clients, _nth, unfit=_hears_messages),
    StormFault("duplicate-request", _clients, _nth_and_servers),
    StormFault("evict", _servers, _eviction, excludes="server"),
    StormFault("failover", _servers, _failover, unfit=_lives_on_one, needs={"replicas": 1}, excludes="server"),
    StormFault(
        "failover-cluster",
        _servers,
        _election,
        unfit=_lives_on_one,
        needs={"topology": "cluster"},
        apart=True,
        excludes="server",
    ),
    StormFault(
        "failover-sentinel",
        _servers,
        _election,
        unfit=_lives_on_one,
        needs={"topology": "sentinel"},
        apart=True,
        excludes="server",
    ),
    StormFault("flush", _servers, lasts=False, asks="server"),
    StormFault(
        "kill-client",
        _clients,
        lambda *_: {"restart": "yes"},
        lands=True,
        excludes="process",
        revives=True,
        anywhere=True,
    ),
    StormFault(
        "kill-connections",
        _servers,
        lambda dice, _: {"type": dice.pick(("all", "normal", "pubsub"))},
        lasts=False,
        asks="server",
    ),
    StormFault("kill-server", _servers, unfit=_has_no_replica, apart=True, excludes="server"),
    StormFault("kill-subscriber", _clients, _nth, unfit=_hears_messages),
    StormFault("lose-reply", _clients, _nth_and_servers, silences=True),
    StormFault("max-clients", _servers, excludes="server"),
    StormFault("partition", _cuts, _cut, excludes="server", silences=True, anywhere=True),
    StormFault("pause-client", _clients, lands=True, shares="process", anywhere=True),
    StormFault("pause-server", _servers, excludes="server", anywhere=True),
    StormFault(
        "read-only", _servers, lambda dice, _: {"how": dice.pick(("min-replicas", "replica"))}, excludes="server"
    ),
    StormFault("script-flush", _servers, lasts=False, asks="server"),
    StormFault("slow-server", _servers, _slowness, excludes="server"),
    StormFault("stall-worker", _clients, lands=True, shares="process", anywhere=True),
    StormFault("suspend-host", _everybody, shares="process", anywhere=True),
)

BY_NAME = {entry.name: entry for entry in STORM_FAULTS}


# --- who is in whose way ---


def _things(kind: str, target: str) -> set[str]:
    """What of this kind a target is; ALL_CLIENTS is every process."""
    end = target.rpartition(">")[2]
    is_client = end.startswith("client")
    return {end} if is_client == (kind != "server") else set()


def _meet(kind: str, target: str, other: str) -> bool:
    mine, others = _things(kind, target), _things(kind, other)
    return bool(kind and mine and others) and (mine == others or ALL_CLIENTS in mine | others)


def _blocks(active: StormFault, target: str, fault: StormFault, its_target: str) -> bool:
    kind = active.excludes
    return kind in (fault.excludes, fault.shares, fault.asks) and _meet(kind, target, its_target)


def delays(active: StormFault, target: str, fault: StormFault, its_target: str) -> bool:
    """Whether a fault cannot end while another one is in effect."""
    unreachable = active.excludes == "server" and bool(_things("server", target))
    if fault.revives and (unreachable or (active.silences and target == its_target)):
        return True
    return _blocks(active, target, fault, its_target)


def forbids(active: StormFault, target: str, fault: StormFault, its_target: str) -> bool:
    """Whether a fault cannot begin while another one is in effect."""
    if (active.name, target) == (fault.name, its_target) or _blocks(active, target, fault, its_target):
        return True
    kind = fault.excludes
    return kind == active.shares and _meet(kind, target, its_target)
