"""[deployment] of a policy: its tables and their keys."""

from typing import Annotated

import msgspec

from lockstorm.base.table_fields import LEFT_OUT, about, keys_of, number, text
from lockstorm.servers.ensemble_settings import MEMBERS_LIMIT, ZOOKEEPER_SETTINGS

REPLICAS_LIMIT = 5
SENTINELS_LIMIT = 7
PATIENCE_LEAST_MS, PATIENCE_MOST_MS = 100, 30_000  # an election is waited for for 60 s (election.h)
FAILOVER_TIMEOUT_MOST_MS = 600_000
Setting = str | int | bool


class SentinelTable(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, rename="kebab"):
    """Sentinels, in real time; with it, failover-sentinel is played with every lock on one redis-server."""

    sentinels: Annotated[int, number("How many there are. Default: 3.", 1, SENTINELS_LIMIT)] = LEFT_OUT
    quorum: Annotated[int, number("How many must consider the master down. Default: 2.", 1, SENTINELS_LIMIT)] = LEFT_OUT
    down_after_milliseconds: Annotated[
        int, number("Default: 500 in an election.", PATIENCE_LEAST_MS, PATIENCE_MOST_MS)
    ] = LEFT_OUT
    failover_timeout: Annotated[int, number("In ms. Default: 2000.", PATIENCE_LEAST_MS, FAILOVER_TIMEOUT_MOST_MS)] = (
        LEFT_OUT
    )


class ClusterTable(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, rename="kebab"):
    """A cluster, in real time; with it, failover-cluster is played with every lock on one redis-server."""

    node_timeout: Annotated[int, number("In ms. Default: 500 in an election.", PATIENCE_LEAST_MS, PATIENCE_MOST_MS)] = (
        LEFT_OUT
    )


class EtcdTable(msgspec.Struct, omit_defaults=True):
    """The number of members, and options of etcd, which checks them."""

    members: Annotated[int, number("Number of servers of a lock. Default: 1.", 1, MEMBERS_LIMIT)] = LEFT_OUT


class ZookeeperTable(msgspec.Struct, omit_defaults=True, rename="camel"):
    """The number of members, and settings of ZooKeeper. The trial chooses the values of the others that it has."""

    members: Annotated[int, number("Number of servers of a lock, in real time. Default: 1.", 1, MEMBERS_LIMIT)] = (
        LEFT_OUT
    )
    tick_time: Annotated[int, number("In ms. A session lasts from 2 to 20 ticks.", *ZOOKEEPER_SETTINGS["tickTime"])] = (
        LEFT_OUT
    )
    init_limit: Annotated[
        int, number("Ticks in which a follower connects to the leader.", *ZOOKEEPER_SETTINGS["initLimit"])
    ] = LEFT_OUT
    sync_limit: Annotated[
        int, number("Ticks after which a silent follower or leader is given up.", *ZOOKEEPER_SETTINGS["syncLimit"])
    ] = LEFT_OUT
    min_session_timeout: Annotated[
        int, number("Shortest session, in ms. Default: 2 ticks.", *ZOOKEEPER_SETTINGS["minSessionTimeout"])
    ] = LEFT_OUT
    max_session_timeout: Annotated[
        int, number("Longest session, in ms. Default: 20 ticks.", *ZOOKEEPER_SETTINGS["maxSessionTimeout"])
    ] = LEFT_OUT


class DeploymentTable(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The servers that the locks live on."""

    server: Annotated[str, text("Of locks on Redis: a program, such as valkey-server. Default: redis-server.")] = (
        LEFT_OUT
    )
    without: Annotated[str, text("Commands that the redis-servers lack, as LPOS,HELLO.")] = LEFT_OUT
    config: Annotated[
        str, text("The redis.conf of the servers, relative to this file. Default: nothing is written to disk.")
    ] = LEFT_OUT
    replicas: Annotated[
        int,
        number("Number of replicas of each redis-server. Default: 0, or min-replicas-to-write.", 0, REPLICAS_LIMIT),
    ] = LEFT_OUT
    redis: Annotated[dict[str, Setting], about("Settings of redis-server, over those of config.")] = LEFT_OUT
    sentinel: SentinelTable = LEFT_OUT
    cluster: ClusterTable = LEFT_OUT
    postgresql: Annotated[
        dict[str, Setting],
        about("Settings of PostgreSQL; those that decide what a failover forgets are taken."),
    ] = LEFT_OUT
    etcd: EtcdTable = LEFT_OUT
    zookeeper: ZookeeperTable = LEFT_OUT


KEYS = keys_of(DeploymentTable, "deployment")
