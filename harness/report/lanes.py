"""Who has a lane, and in which order."""

import re

from harness.report.diagram import Lane
from harness.report.words import Event

STORE_KINDS = ("store-read", "store-write")
CLIENT_KINDS = ("lock-open", "acquire-invoke", "read-invoke", "write-invoke", "release-invoke", "renew-invoke")


def lock_lane(lock: str) -> str:
    return f"lock {lock}"


def host_of(client: str) -> str:
    """`client-1.2` is the client that was started on the host of `client-1` after that had ended."""
    return re.sub(r"\.\d+$", "", client)


def natural(name: str) -> list[tuple[int, str]]:
    """client-2 stands before client-10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def lanes_of(events: list[Event]) -> list[Lane]:
    """Clients, then what the servers keep of each lock that has a lease, then nodes, then stores."""
    actors = {str(event.get("actor")) for event in events if event["kind"] in CLIENT_KINDS}
    clients = {host_of(actor) if host_of(actor) in actors else actor for actor in actors}
    stores = {str(event.get("actor")) for event in events if event["kind"] in STORE_KINDS}
    locks = {str(event.get("name")) for event in events if event["kind"] == "lock-open" and event.get("value")}
    nodes: set[str] = set()
    for event in events:
        if event["kind"] in ("rule", "released"):
            nodes |= set(str(event.get("extra_name", "")).split(">"))
        if event["kind"] == "fault-inject":
            nodes |= {target.rpartition(">")[2] for target in str(event.get("value_name", "")).split(", ")}
    nodes -= clients | stores | {"", *map(str, actors)}
    kinds = (
        ("client", sorted(clients, key=natural)),
        ("lock", [lock_lane(lock) for lock in sorted(locks, key=natural)]),
        ("node", sorted(nodes, key=natural)),
        ("store", sorted(stores, key=natural)),
    )
    return [Lane(name, kind) for kind, names in kinds for name in names]
