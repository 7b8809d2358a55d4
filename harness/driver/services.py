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


def check_lease(lock: Mapping[str, Any], lease_ms: int | None) -> None:
    """Raises UsageError for a lease that its service would make another one of."""
    unit_ms = LEASE_UNIT_MS.get(lock["service"], 1)
    if lease_ms is not None and lease_ms % unit_ms:
        raise UsageError(f"a lease of {lease_ms} ms: {lock['service']} counts leases in units of {unit_ms} ms")


def lease_at_least(lock: Mapping[str, Any], lease_ms: int) -> int:
    """The shortest lease that its service can grant and that is no shorter."""
    unit_ms = LEASE_UNIT_MS.get(lock["service"], 1)
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
