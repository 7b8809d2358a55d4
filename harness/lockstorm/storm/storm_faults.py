"""The faults that a storm can draw: the targets and options of each, and what it requires of the trial.

One entry per fault, sorted; an entry whose fault is missing from the table of faults is ignored. The functions are
pure: they depend on the random numbers and the storm's context, for nothing is running yet.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from random import Random
from typing import Any, TypeAlias, TypeVar

from lockstorm.results.lock_entry import LockEntry

Option: TypeAlias = "int | str"
Options: TypeAlias = "dict[str, Option]"
T = TypeVar("T")

ALL_CLIENTS = "clients"  # a target: all clients at once
REDIS = ("redis",)
ANYWHERE = ("redis", "postgres", "etcd", "zookeeper")
DRIFT_MOST_PPM = 500_000
SET_CLOCK = {"settable_clocks": True}  # what a fault that sets clocks requires of a trial


class Rng:
    """Random numbers of a seed. Uses only Random.random, whose sequence Python promises not to change."""

    def __init__(self, seed: int) -> None:
        self._uniform = Random(seed).random

    def below(self, number: int) -> int:
        return int(self._uniform() * number)

    def between(self, low: int, high: int) -> int:
        return low + self.below(high - low + 1)

    def pick(self, choices: Sequence[T]) -> T:
        return choices[self.below(len(choices))]

    def log_uniform(self, low: int, high: int) -> int:
        """Logarithmically uniform: between 1 and 2 as often as between 1000 and 2000."""
        drawn = math.exp(math.log(low) + self._uniform() * (math.log(high) - math.log(low)))
        return min(high, max(low, round(drawn)))


@dataclass(frozen=True)
class StormContext:
    """What a storm can strike, and the times that matter there."""

    lock: LockEntry
    time: str
    lease_ms: int
    longest_ms: int  # of a fault
    clients: tuple[str, ...]
    servers: tuple[str, ...]
    replica_links: tuple[str, ...] = ()
    is_configured: bool = False  # a deployment says what the servers write to disk


@dataclass(frozen=True)
class StormFault:
    """How a storm draws one fault, and which faults it cannot overlap with:

    - `excludes`: a kind of thing ("process" of a client, "server") that it needs for itself;
    - `shares`: a kind of thing that it uses together with other faults that share it;
    - `must_reach`: a kind of thing that must be reachable when it begins and when it ends;
    - `silences`: its client may get no answer; `revives`: when it ends a client starts, which must get all answers.

    The target says which client or server that is; a link counts as the server that it leads to.
    """

    name: str
    targets: Callable[[StormContext], Sequence[str]]
    options: Callable[[Rng, StormContext], Options] = lambda *_: {}
    lasts: bool = True  # else it is healed as soon as it is injected
    lands: bool = False  # may be injected at a checkpoint of its client
    inapplicable_reason: Callable[[LockEntry], str] = lambda _: ""  # why it has no effect on this lock; "": it has
    required_settings: Mapping[str, Any] = field(default_factory=dict)  # fields of the trial's settings
    services: tuple[str, ...] = REDIS  # the services of the locks that it applies to
    explicit_on: tuple[str, ...] = ()  # services on which "all" leaves it out: it needs a trial of its own kind, or is
    # meant for other locks
    clocks_only: bool = False  # strikes nothing but clients' clocks, which a library does not read in real time
    excludes: str = ""
    shares: str = ""
    must_reach: str = ""
    silences: bool = False
    revives: bool = False


# --- targets ---


_client_targets, _server_targets = attrgetter("clients"), attrgetter("servers")


def _all_or_one_client(context: StormContext) -> Sequence[str]:
    return (ALL_CLIENTS, *context.clients)


def _clock_targets(context: StormContext) -> Sequence[str]:
    """In real time a library reads the machine's clock, which cannot be set."""
    reads_it = context.lock.adapter and context.time == "real"
    return context.servers if reads_it else (*context.servers, *context.clients)


def _cut_targets(context: StormContext) -> Sequence[str]:
    return (*context.clients, *context.servers, *context.replica_links)


# --- options ---


def _nth_options(rng: Rng, context: StormContext) -> Options:
    return {"nth": rng.between(1, 3)}


def _nth_server_options(rng: Rng, context: StormContext) -> Options:
    return {"nth": rng.between(1, 4), "servers": rng.pick(("redis-*", *context.servers))}


def _delay_options(rng: Rng, context: StormContext) -> Options:
    return {"ms": rng.log_uniform(1, context.longest_ms), "nth": rng.between(1, 2)}


def _jump_options(rng: Rng, context: StormContext) -> Options:
    return {"offset-ms": rng.pick((1, -1)) * rng.log_uniform(1, context.longest_ms)}


def _drift_options(rng: Rng, context: StormContext) -> Options:
    options: Options = {"ppm": rng.pick((1, -1)) * rng.log_uniform(100, DRIFT_MOST_PPM)}
    return {**options, "keep": "yes"} if context.lock.service == "zookeeper" else options


def _cut_options(rng: Rng, context: StormContext) -> Options:
    return {"direction": rng.pick(("both", "both", "to-server", "to-client")), **_node_options(rng, context)}


def _node_options(rng: Rng, context: StormContext) -> Options:
    """The servers option, which the faults need for servers other than redis-server."""
    service = context.lock.service
    return {} if service == "redis" else {"servers": f"{service}-*"}


def _crash_options(rng: Rng, context: StormContext) -> Options:
    if context.lock.service != "redis":
        return {"data": "kept"}
    if context.is_configured:
        return {"data": "configured"}
    data = rng.pick(("none", "kept", "tail"))
    return {"data": data, "lost": rng.between(1, 3)} if data == "tail" else {"data": data}


def _eviction_options(rng: Rng, context: StormContext) -> Options:
    return {"policy": rng.pick(("volatile-lru", "volatile-ttl", "allkeys-lru", "noeviction"))}


def _failover_options(rng: Rng, context: StormContext) -> Options:
    options: Options = {"replicated": rng.pick(("no", "yes"))}
    if context.time == "virtual" and rng.pick((True, False)):
        options["clock-ms"] = rng.log_uniform(1, context.longest_ms)
    return options


def _slowness_options(rng: Rng, context: StormContext) -> Options:
    if context.time == "virtual" or rng.pick((True, False)):
        return {"how": "script"}
    return {"how": "sleep", "duration-ms": rng.log_uniform(1, context.longest_ms)}


def _election_options(rng: Rng, context: StormContext) -> Options:
    return {"how": rng.pick(("kill", "pause")), "replicated": rng.pick(("no", "yes"))}


# --- locks that a fault does not apply to ---


def _hears_messages(lock: LockEntry) -> str:
    return "" if lock.waits == "push" else f"the clients of {lock.name} wait for no message"


def _lives_on_one(lock: LockEntry) -> str:
    return "" if lock.nodes == 1 else f"{lock.name} lives on {lock.nodes} servers that know nothing of each other"


def _has_no_replica(lock: LockEntry) -> str:
    return f"crash-server is for {lock.name}, whose server has a replica" if lock.replicas else ""


STORM_FAULTS = (
    StormFault(
        "client-clock-jump",
        _client_targets,
        _jump_options,
        must_reach="server",
        required_settings=SET_CLOCK,
        clocks_only=True,
        services=ANYWHERE,
    ),
    StormFault(
        "clock-drift",
        _clock_targets,
        _drift_options,
        must_reach="server",
        required_settings=SET_CLOCK,
        services=ANYWHERE,
    ),
    StormFault(
        "clock-jump",
        _server_targets,
        _jump_options,
        must_reach="server",
        required_settings=SET_CLOCK,
        services=("redis", "postgres"),
    ),
    StormFault("close-links", _client_targets, _node_options, lasts=False, services=ANYWHERE, explicit_on=ANYWHERE),
    StormFault(
        "crash-server",
        _server_targets,
        _crash_options,
        required_settings={"persistence": "deployed"},
        excludes="server",
        services=("redis", "postgres"),
    ),
    StormFault("delay-message", _client_targets, _delay_options, inapplicable_reason=_hears_messages),
    StormFault("delay-write", _client_targets, _nth_options, services=ANYWHERE),
    StormFault("drop-message", _client_targets, _nth_options, inapplicable_reason=_hears_messages),
    StormFault("duplicate-request", _client_targets, _nth_server_options),
    StormFault("evict", _server_targets, _eviction_options, excludes="server"),
    StormFault(
        "failover",
        _server_targets,
        _failover_options,
        inapplicable_reason=_lives_on_one,
        required_settings={"replicas": 1},
        excludes="server",
    ),
    *(
        StormFault(
            f"failover-{topology}",
            _server_targets,
            _election_options,
            inapplicable_reason=_lives_on_one,
            required_settings={"topology": topology},
            explicit_on=REDIS,
            excludes="server",
        )
        for topology in ("cluster", "sentinel")
    ),
    StormFault("flush", _server_targets, lasts=False, must_reach="server"),
    StormFault(
        "kill-client",
        _client_targets,
        lambda *_: {"restart": "yes"},
        lands=True,
        excludes="process",
        revives=True,
        services=ANYWHERE,
    ),
    StormFault(
        "kill-connections",
        _server_targets,
        lambda rng, _: {"type": rng.pick(("all", "normal", "pubsub"))},
        lasts=False,
        must_reach="server",
    ),
    StormFault(
        "kill-server",
        _server_targets,
        inapplicable_reason=_has_no_replica,
        excludes="server",
        services=("redis", "etcd", "zookeeper"),
        explicit_on=REDIS,
    ),
    StormFault("kill-subscriber", _client_targets, _nth_options, inapplicable_reason=_hears_messages),
    StormFault("lose-reply", _client_targets, _nth_server_options, silences=True),
    StormFault("max-clients", _server_targets, excludes="server"),
    StormFault("partition", _cut_targets, _cut_options, excludes="server", silences=True, services=ANYWHERE),
    StormFault("pause-client", _client_targets, lands=True, shares="process", services=ANYWHERE),
    StormFault(
        "pause-commands", _server_targets, lambda rng, _: {"mode": rng.pick(("write", "all"))}, excludes="server"
    ),
    StormFault("pause-server", _server_targets, excludes="server", services=ANYWHERE),
    StormFault(
        "read-only", _server_targets, lambda rng, _: {"how": rng.pick(("min-replicas", "replica"))}, excludes="server"
    ),
    StormFault("script-flush", _server_targets, lasts=False, must_reach="server"),
    StormFault("slow-server", _server_targets, _slowness_options, excludes="server"),
    StormFault("stall-worker", _client_targets, lands=True, shares="process", services=ANYWHERE),
    StormFault("suspend-host", _all_or_one_client, clocks_only=True, shares="process", services=ANYWHERE),
)

BY_NAME = {entry.name: entry for entry in STORM_FAULTS}


# --- which faults cannot overlap ---


def _things(kind: str, target: str) -> set[str]:
    """The thing of this kind that a target is; ALL_CLIENTS is every process."""
    end = target.rpartition(">")[2]
    is_client = end.startswith("client")
    return {end} if is_client == (kind != "server") else set()


def _meet(kind: str, target: str, other: str) -> bool:
    mine, others = _things(kind, target), _things(kind, other)
    return bool(kind and mine and others) and (mine == others or ALL_CLIENTS in mine | others)


def _blocks(active: StormFault, target: str, fault: StormFault, its_target: str) -> bool:
    kind = active.excludes
    return kind in (fault.excludes, fault.shares, fault.must_reach) and _meet(kind, target, its_target)


def delays(active: StormFault, target: str, fault: StormFault, its_target: str) -> bool:
    """Whether a fault cannot end while the active one is in effect."""
    unreachable = active.excludes == "server" and bool(_things("server", target))
    if fault.revives and (unreachable or (active.silences and target == its_target)):
        return True
    return _blocks(active, target, fault, its_target)


def forbids(active: StormFault, target: str, fault: StormFault, its_target: str) -> bool:
    """Whether a fault cannot begin while the active one is in effect."""
    if (active.name, target) == (fault.name, its_target) or _blocks(active, target, fault, its_target):
        return True
    kind = fault.excludes
    return kind == active.shares and _meet(kind, target, its_target)
