"""Many clients: where a process for each would be too many, groups of them share a process (harness/client_group)."""

import math
import resource
from dataclasses import replace

from lockstorm.base.errors import UsageError
from lockstorm.results.lock_entry import LockEntry
from lockstorm.trial.settings import CLIENT_LIMIT, GROUPED_CLIENT_LIMIT, TrialSettings

GROUP_CLIENTS = 2500  # most clients of one process
GROUPS_LEAST = 2  # processes, so that clients run side by side
CLIENTS_PER_S = 1000  # each second that clients wait for an answer is for so many of them
OWN_DESCRIPTORS = 128  # of a server or a group, besides its connections: files, the driver's connections, watchdogs
LEASE_LEAST_MS, LEASE_MS_EACH = 10_000, 8
SERVED_MS_EACH = 100  # a release may make all the others try
BACKLOG = 4096  # connections that a server has not accepted yet


def grouped(settings: TrialSettings, lock: LockEntry, clients: int, *, stored: bool) -> TrialSettings:
    """The settings of a trial in which so many clients share a few processes. `stored`: they use the resource. Raises
    UsageError if that is not possible with this lock, or on this machine."""
    if reason := not_grouped_reason(lock):
        raise UsageError(f"{clients:,} clients: more than {CLIENT_LIMIT} share processes, {reason}")
    if clients > GROUPED_CLIENT_LIMIT:
        raise UsageError(f"{clients:,} clients: at most {GROUPED_CLIENT_LIMIT:,}")
    connections = 2 if lock.waits == "push" else 1  # to each server: one that is subscribed carries no commands
    _check_descriptors(lock, clients, connections, stored=stored)
    options = ("--maxclients", str(clients * connections + OWN_DESCRIPTORS), "--tcp-backlog", str(BACKLOG))
    return replace(
        settings,
        time="real",
        direct=True,
        grouped_clients=clients,
        server_options=(*settings.server_options, *options),
    )


def not_grouped_reason(lock: LockEntry) -> str:
    """Why clients of this lock cannot share a process; empty if they can."""
    if lock.adapter:
        return f"and {lock.name} is a program of its own for each client"
    if lock.service != "redis":
        return f"which is for locks on Redis, and {lock.name} lives on {lock.service}"
    if lock.plugin and lock.plugin.elsewhere:
        return f"and {lock.name} may stop all of them: it {', '.join(lock.plugin.elsewhere)}"
    return ""


def _check_descriptors(lock: LockEntry, clients: int, connections: int, *, stored: bool) -> None:
    """A server has a descriptor for each connection, and so has a group: for those to all nodes and to the store."""
    _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    of_group = math.ceil(clients / group_count(clients)) * (connections * lock.nodes + stored)
    needed = max(clients * connections, of_group) + 2 * OWN_DESCRIPTORS
    if limit != resource.RLIM_INFINITY and needed > limit:
        most = (limit - 2 * OWN_DESCRIPTORS) // connections
        raise UsageError(
            f"{clients:,} clients of {lock.name} need {needed:,} descriptors in one process, and the limit is "
            f"{limit:,} (ulimit -Hn): raise it, or use at most {most:,} clients"
        )


def group_count(clients: int) -> int:
    return min(clients, max(GROUPS_LEAST, math.ceil(clients / GROUP_CLIENTS)))


def group_sizes(clients: int) -> list[int]:
    groups = group_count(clients)
    return [clients // groups + (each < clients % groups) for each in range(groups)]


def many_lease_ms(clients: int) -> int:
    """The lease of a trial in which so many clients wait: a quarter of it is enough for all to begin to wait."""
    return max(LEASE_LEAST_MS, LEASE_MS_EACH * clients)


def served_ms(clients: int) -> int:
    """How long so many clients that share processes may take until each was served."""
    return SERVED_MS_EACH * clients


def patience(clients: int) -> int:
    """How many times as long as a single client each of so many waits for an answer."""
    return max(1, math.ceil(clients / CLIENTS_PER_S))
