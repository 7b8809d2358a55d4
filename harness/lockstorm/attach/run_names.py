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
ADVISORY = "one lock, whose number is the hash of the lock's name, hashtextextended(name, 0); it ends with its session"
POSTGRES_TABLES = {  # lock -> the tables that it makes
    "pg-advisory": (),
    "pg-advisory-xact": (),
    "pg-for-update": ("lock_row",),
    "pg-lease": ("lease",),
    "pg-skip-locked": ("outbox",),
}
RUN = "RUN"  # in the place of the run's own number


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


def planned_traces(address: ServerAddress, lock: str) -> list[tuple[str, str]]:
    """What a lock will make at servers, for `attach --dry-run`: lines with what they are about."""
    if address.service == "postgres":
        return _on_postgres(lock)
    if address.service == "etcd":
        plain, hexadecimal = key_prefixes(UNKNOWN_RUN.removesuffix(f"{RUN}:"))
        return [
            ("keys", f"only names that begin with {plain}{RUN}: or, in hexadecimal, {hexadecimal}, removed at the end"),
            ("leases", "those that clients ask for, revoked at the end"),
        ]
    if address.service == "zookeeper":
        node = directory_of(address, UNKNOWN_RUN)
        return [
            ("node", f"{node} and what is below it, removed at the end"),
            ("sessions", "those of clients; the servers end what a client has left when its timeout has passed"),
        ]
    return [("keys", f"only names that contain {UNKNOWN_RUN}, removed at the end")]


def _on_postgres(lock: str) -> list[tuple[str, str]]:
    tables = POSTGRES_TABLES.get(lock)
    content = "which stays empty" if tables == () else f"with the table {' '.join(tables or ())}"
    if tables is None:
        content = "with the tables that the lock makes"
    lines = [("schema", f"{schema_of(UNKNOWN_RUN)}, {content}, dropped at the end")]
    lines += [("advisory", ADVISORY)] if tables == () else []
    return [*lines, ("sessions", f"those of clients, with the application_name {UNKNOWN_RUN}, ended at the end")]
