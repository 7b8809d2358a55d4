"""What locks and resources live on, and whether it is here."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from harness.driver import paths
from harness.driver.errors import NotInstalled, UsageError
from harness.driver.library import locks_on

TABLE = "table-"  # what the names of store modes begin with

# Why locks on a service can only be tried in real time.
REAL_TIME_ONLY = {
    "etcd": "etcd reads the clock without the C library, so nothing that works without privileges moves it",
}

LEASE_UNIT_MS = {"etcd": 1000}  # what leases are counted in; otherwise milliseconds

# How late a server may end a lease that is over by the machine's clock; otherwise at once. etcd looks every 500 ms, and
# for one that it could not end at the first look only 3 s later again (lease/lessor.go: revokeExpiredLeases,
# defaultExpiredleaseRetryInterval).
LEASE_LATE_MS = {"etcd": 500 + 3_000 + 500}


def lease_late_ms(lock: Mapping[str, Any]) -> int:
    """How long after its end a lease may still keep everybody out."""
    return LEASE_LATE_MS.get(lock["service"], 0)


def real_time_reason(lock: Mapping[str, Any]) -> str:
    """Why this lock can only be tried in real time."""
    if lock.get("adapter"):
        return "a library reads the machine's clock"
    if lock.get("plugin") and lock["plugin"]["elsewhere"]:
        return str(lock["plugin"]["elsewhere"][0])
    return REAL_TIME_ONLY[lock["service"]]


def lease_unit_ms(lock: Mapping[str, Any]) -> int:
    """What the leases of this lock are counted in."""
    return int(lock.get("lease_unit_ms") or LEASE_UNIT_MS.get(lock["service"], 1))


def check_lease(lock: Mapping[str, Any], lease_ms: int | None) -> None:
    """Raises UsageError for a lease that its service would make another one of."""
    unit_ms, who = lease_unit_ms(lock), lock["name"] if lock.get("adapter") else lock["service"]
    if lease_ms is not None and lease_ms % unit_ms:
        raise UsageError(f"a lease of {lease_ms} ms: {who} counts leases in units of {unit_ms} ms")


def lease_at_least(lock: Mapping[str, Any], lease_ms: int) -> int:
    """The shortest lease that its service can grant and that is no shorter."""
    unit_ms = lease_unit_ms(lock)
    return -(-lease_ms // unit_ms) * unit_ms


@cache
def missing(service: str) -> str:
    """Why no lock on this service can be tried here; empty: they can."""
    if not all(lock["built"] for lock in locks_on(service)):
        return f"this build cannot speak to {service}: make deps-all, then make build"
    try:
        if service == "postgres":
            paths.postgres()
        elif service == "etcd":
            paths.etcd()
        elif service == "zookeeper":
            paths.java()
            paths.zookeeper_classes()
    except NotInstalled as reason:
        return str(reason)
    return ""


def is_table(store: str) -> bool:
    """Whether the resource is a table of PostgreSQL, and not in the store's memory."""
    return store.startswith(TABLE)


def missing_for(lock: Mapping[str, Any], store: str, *, pooled: bool = False) -> str:
    """Why this lock cannot be tried here with this store, through a pooler or not; empty: it can."""
    resource = missing("postgres") if is_table(store) else ""
    return missing(lock["service"]) or resource or (missing_pooler() if pooled else "")


@cache
def missing_pooler() -> str:
    """Why there is no PgBouncer here; empty: there is."""
    try:
        paths.pgbouncer()
    except NotInstalled as reason:
        return str(reason)
    return ""


def check_installed(lock: Mapping[str, Any], store: str, *, pooled: bool) -> None:
    """Raises NotInstalled with the reason."""
    if reason := missing_for(lock, store, pooled=pooled):
        raise NotInstalled(f"not installed: {reason}")
