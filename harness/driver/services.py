"""What locks and resources live on, and whether it is here."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from harness.driver import paths
from harness.driver.errors import NotInstalled
from harness.driver.library import locks_on

TABLE = "table-"  # what the names of store modes begin with


@cache
def missing(service: str) -> str:
    """Why no lock on this service can be tried here; empty: they can."""
    if not all(lock["built"] for lock in locks_on(service)):
        return f"this build cannot speak to {service}: make deps-all, then make build"
    try:
        if service == "postgres":
            paths.postgres()
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
