"""The lanes of a diagram, in their order."""

import re

from lockstorm.report.diagram import Lane
from lockstorm.results.event import Event

STORE_KINDS = ("store-read", "store-write")
CLIENT_KINDS = ("lock-open", "acquire-invoke", "read-invoke", "write-invoke", "release-invoke", "renew-invoke")


def lock_lane(lock: str) -> str:
    return f"lock {lock}"


def host_of(client: str) -> str:
    """The host of a client: `client-1` for `client-1.2`, which was started there after `client-1` had ended."""
    return re.sub(r"\.\d+$", "", client)


def natural(name: str) -> list[tuple[int, str]]:
    """A key that sorts client-2 before client-10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def lanes_of(events: list[Event]) -> list[Lane]:
    """Clients, then each lock that has a lease, then nodes, then stores."""
    actors = {str(event.actor) for event in events if event.kind in CLIENT_KINDS}
    clients = {host_of(actor) if host_of(actor) in actors else actor for actor in actors}
    stores = {str(event.actor) for event in events if event.kind in STORE_KINDS}
    locks = {str(event.name) for event in events if event.kind == "lock-open" and event.value}
    nodes: set[str] = set()
    for event in events:
        if event.kind in ("rule", "released"):
            nodes |= set(str(event.extra_name or "").split(">"))
        if event.kind == "fault-inject":
            nodes |= {target.rpartition(">")[2] for target in str(event.value_name or "").split(", ")}
    nodes -= clients | stores | {"", *map(str, actors)}
    kinds = (
        ("client", sorted(clients, key=natural)),
        ("lock", [lock_lane(lock) for lock in sorted(locks, key=natural)]),
        ("node", sorted(nodes, key=natural)),
        ("store", sorted(stores, key=natural)),
    )
    return [Lane(name, kind) for kind, names in kinds for name in names]
