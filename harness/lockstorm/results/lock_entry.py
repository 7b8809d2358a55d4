"""A lock: an entry of the table of locks, which harness/locks/common/describe_lock.c writes as JSON, or the entry of a
user-supplied lock."""

from typing import Literal

import msgspec

Service = Literal["redis", "etcd", "postgres", "zookeeper"]
Topology = Literal["single", "sentinel", "cluster"]
Waits = Literal["not", "polling", "push", "blocking-pop", "in-server"]


class HostedLibrary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The program that hosts a lock library in another language (docs/adapters.md)."""

    path: str
    name: str  # of the library
    version: str  # empty if the adapter names none
    tcp: bool  # whether it connects to its servers over TCP instead of UNIX sockets
    operations: list[str]  # beyond acquire and release
    topology: Topology = "single"  # of its servers, for which the library is configured


class HostedPlugin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The shared object that contains a user's lock in C."""

    path: str
    name: str
    version: str  # a checksum of the file
    elsewhere: list[str]  # what it does outside its environment, each as a clause


class LockEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A lock: its texts, its traits (struct lock_type), and the servers that it needs."""

    name: str
    summary: str
    explanation: str
    source: str
    fixed: str | None  # for a lock of the bug zoo: the lock without the bug
    lease: bool
    token: bool
    reentrant: bool
    fair: bool
    renews: bool  # it has a watchdog that renews its lease
    renewable: bool
    once: bool
    capacity: int  # most holders at a time; -1: the number of permits that the user asks for
    waits: Waits
    service: Service
    built: bool  # this build has the client library of its service
    real_time_only: bool  # its clock cannot be virtual
    nodes: int
    replicas: int
    transaction: bool = False  # an open transaction holds it: its end is the release
    poll_ms: int = 0  # the longest that a waiter sleeps between two tries; 0: it does not poll, or does not say
    lease_unit_ms: int | None = None  # None: that of its service
    adapter: HostedLibrary | None = None
    plugin: HostedPlugin | None = None

    @property
    def library(self) -> HostedLibrary:
        """The adapter that hosts this lock; only for a lock with an adapter."""
        assert self.adapter
        return self.adapter

    @property
    def shared_object(self) -> HostedPlugin:
        """The plug-in that contains this lock; only for a lock in a plug-in."""
        assert self.plugin
        return self.plugin
