"""What a run of `lockstorm attach` makes at servers, by name: all of it has the run's own number in its name."""

from lockstorm.attach.server_address import ServerAddress

PREFIX = "lockstorm:attach:"
RESOURCE = "account"
NOUNS = {
    "redis": ("key", "keys"),
    "postgres": ("table", "tables"),
    "etcd": ("key", "keys"),
    "zookeeper": ("node", "nodes"),
}
MADE_THERE = {  # by service: what a run makes and how it goes; and what may be empty
    "redis": (f"keys whose names contain {PREFIX} and removes them", "database"),
    "postgres": ("the schema lockstorm_attach_RUN and drops it", "database"),
    "etcd": (f"keys that begin with {PREFIX} and leases, and removes them", "cluster"),
    "zookeeper": ("the node lockstorm-attach-RUN and removes it", "node"),
}
UNKNOWN_RUN = f"{PREFIX}RUN:"  # before a run has a number


def resource_of(address: ServerAddress, run: str) -> bytes:
    """The name of the lock."""
    name = (run + RESOURCE).encode()
    return b"{" + name + b"}" if address.kind == "cluster" else name  # keys that contain it all have the same slot


def schema_of(run: str) -> str:
    """On PostgreSQL."""
    return run.rstrip(":").replace(":", "_")


def directory_of(address: ServerAddress, run: str) -> str:
    """On ZooKeeper: the path of the node below which all others are."""
    return f"{address.name}/{run.rstrip(':').replace(':', '-')}"


def key_prefixes(run: str) -> tuple[str, str]:
    """On etcd, where some locks write their names in hexadecimal."""
    return run, run.encode().hex()


def describe_traces(address: ServerAddress, run: str) -> str:
    if address.service == "postgres":
        return f"the schema {schema_of(run)}"
    if address.service == "etcd":
        return f"keys that begin with {' or '.join(key_prefixes(run))}, and leases,"
    if address.service == "zookeeper":
        return f"the node {directory_of(address, run)}"
    return f"keys whose names contain {run}"


def counted(service: str, count: int) -> str:
    """ "1 key", "2 tables"."""
    one, many = NOUNS[service]
    return f"{count} {one if count == 1 else many}"
