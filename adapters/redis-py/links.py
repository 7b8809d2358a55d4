"""redis-py's clients, each for a topology of servers. None sends a command again by itself: what is tried is what the
lock does about a lost answer. Old versions send it once more."""

from typing import Any

from redis import Redis

from lockstorm.adapter_program.lines import Line

try:
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    ONCE: Line = {"retry": Retry(NoBackoff(), 0)}
except ImportError:
    ONCE = {}


def single(question: Line) -> Any:
    return Redis(unix_socket_path=question["nodes"][0]["unix"], socket_timeout=1, **ONCE)


def sentinel(question: Line) -> Any:
    from redis.sentinel import Sentinel

    sentinels = [(node["host"], node["port"]) for node in question["nodes"]]
    return Sentinel(sentinels, socket_timeout=1, **ONCE).master_for(question["master"])


def cluster(question: Line) -> Any:
    from redis.cluster import ClusterNode, RedisCluster

    seeds = [ClusterNode(node["host"], node["port"]) for node in question["nodes"]]
    return RedisCluster(startup_nodes=seeds, socket_timeout=1, **ONCE)


CONNECTED = {"single": single, "sentinel": sentinel, "cluster": cluster}
