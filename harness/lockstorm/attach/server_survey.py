"""What is at the servers before anything is touched."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ServerSurvey:
    """`database`: its number; its name on PostgreSQL; on ZooKeeper the node below which ours is made. `keys`: in it; in
    a Redis cluster at the master of the slot of the lock's keys; on PostgreSQL the tables, on ZooKeeper the nodes.
    `slot`: only in a cluster."""

    version: str
    database: int | str
    keys: int
    slot: int | None = None
