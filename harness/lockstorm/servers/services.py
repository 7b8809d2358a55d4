"""The services that locks and resources live on: whether they are installed, and how they count leases."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

from lockstorm.base import paths
from lockstorm.base.errors import NotInstalled, UsageError
from lockstorm.base.shared_objects import missing_for_files, missing_sentence
from lockstorm.native.library import locks_on
from lockstorm.results.lock_entry import LockEntry

TABLE = "table-"  # prefix of the store modes that keep the resource in a table

# Why locks on a service can only be tried in real time.
REAL_TIME_ONLY = {
    "etcd": "etcd reads the clock without the C library, so nothing that works without privileges moves it",
}

PACKAGES = {  # of ci/packages, which an installed lockstorm does not have
    "postgres": ("postgresql", "libpq-dev", "libfaketime", "pgbouncer"),
    "etcd": ("etcd-server", "libcurl4-openssl-dev"),
    "zookeeper": ("zookeeper", "libzookeeper-st-dev"),
}

PROGRAMS = {"postgres": (paths.postgres,), "etcd": (paths.etcd,), "zookeeper": (paths.java, paths.zookeeper_classes)}

LEASE_UNIT_MS = {"etcd": 1000}  # unit of a lease; 1 ms for other services

# How long after its end a server may still keep a lease; 0 for other services. etcd revokes expired leases every 500
# ms, and retries one that it could not revoke after 3 s (lease/lessor.go: revokeExpiredLeases,
# defaultExpiredleaseRetryInterval).
LEASE_LATE_MS = {"etcd": 500 + 3_000 + 500}


def real_time_reason(lock: LockEntry) -> str:
    if lock.adapter:
        return "a library reads the machine's clock"
    if lock.plugin and lock.plugin.elsewhere:
        return str(lock.plugin.elsewhere[0])
    return REAL_TIME_ONLY[lock.service]


def lease_unit_ms(lock: LockEntry) -> int:
    return int(lock.lease_unit_ms or LEASE_UNIT_MS.get(lock.service, 1))


def check_lease(lock: LockEntry, lease_ms: int | None) -> None:
    """Raises UsageError for a lease that its service would round."""
    unit_ms, who = lease_unit_ms(lock), lock.name if lock.adapter else lock.service
    if lease_ms is not None and lease_ms % unit_ms:
        raise UsageError(f"a lease of {lease_ms} ms: {who} counts leases in units of {unit_ms} ms")


def lease_at_least(lock: LockEntry, lease_ms: int) -> int:
    """The shortest lease of at least lease_ms that its service can grant."""
    unit_ms = lease_unit_ms(lock)
    return -(-lease_ms // unit_ms) * unit_ms


def _missing_library(service: str) -> str:
    if not all(lock.built for lock in locks_on(service)):
        packages = f"on Debian and Ubuntu apt-get install {' '.join(PACKAGES[service])}"
        how = packages if paths.IS_INSTALLED else "make deps-all"
        return f"this build cannot speak to {service}: {how}, then {paths.HOW_TO_BUILD}"
    if service != "redis" and (lacking := missing_for_files(map(Path, map(paths.program, paths.SERVICE_PROGRAMS)))):
        return missing_sentence(lacking)
    return ""


@cache
def missing(service: str) -> str:
    """Why no lock on this service can be tried here; empty: they can."""
    if reason := _missing_library(service):
        return reason
    return _missing_program(*PROGRAMS.get(service, ()))


def is_table(store: str) -> bool:
    """Whether the resource is a table of PostgreSQL, and not in the store's memory."""
    return store.startswith(TABLE)


def missing_for(lock: LockEntry, store: str, *, pooled: bool = False) -> str:
    """Why this lock cannot be tried here with this store, through a pooler or not; empty: it can."""
    resource = missing("postgres") if is_table(store) else ""
    return missing(lock.service) or resource or (missing_pooler() if pooled else "")


@cache
def missing_pooler() -> str:
    """Why there is no PgBouncer here; empty: there is."""
    return _missing_program(paths.pgbouncer)


def _missing_program(*places: Callable[[], str]) -> str:
    try:
        for place in places:
            place()
    except NotInstalled as reason:
        return str(reason)
    return ""


def check_installed(lock: LockEntry, store: str, *, pooled: bool) -> None:
    if reason := missing_for(lock, store, pooled=pooled):
        raise NotInstalled(f"not installed: {reason}")


def check_built(lock: LockEntry, store: str) -> None:
    """Raises NotInstalled if this build cannot speak to the lock's servers, which need not be installed here."""
    if reason := _missing_library(lock.service) or (missing("postgres") if is_table(store) else ""):
        raise NotInstalled(f"not installed: {reason}")
