"""What a lock will make at servers, for `attach --dry-run`."""

from lockstorm.attach.run_names import UNKNOWN_RUN, directory_of, key_prefixes, schema_of
from lockstorm.attach.server_address import ServerAddress

ADVISORY = "one lock, whose number is the hash of the lock's name, hashtextextended(name, 0); it ends with its session"
POSTGRES_TABLES = {  # lock -> the tables that it makes
    "pg-advisory": (),
    "pg-advisory-xact": (),
    "pg-for-update": ("lock_row",),
    "pg-lease": ("lease",),
    "pg-skip-locked": ("outbox",),
}
RUN = "RUN"  # in the place of the run's own number


def planned_traces(address: ServerAddress, lock: str) -> list[tuple[str, str]]:
    """Lines with what they are about."""
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
