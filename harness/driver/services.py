"""What locks live on, and whether it is here."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from harness.driver import paths
from harness.driver.errors import NotInstalled
from harness.driver.library import locks_on


@cache
def missing(service: str) -> str:
    """Why no lock on this service can be tried here; empty: they can."""
    if not all(lock["built"] for lock in locks_on(service)):
        return f"this build cannot speak to {service}: make deps-all, then make build"
    try:
        if service == "postgres":
            paths.postgres()
        elif service == "zookeeper":
            paths.java()
            paths.zookeeper_classes()
    except NotInstalled as reason:
        return str(reason)
    return ""


def check_installed(lock: Mapping[str, Any]) -> None:
    """Raises NotInstalled with the reason."""
    if reason := missing(lock["service"]):
        raise NotInstalled(f"not installed: {reason}")
