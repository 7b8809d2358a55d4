"""What the lock of a library is, as its adapter says, and what it costs."""

import msgspec

from lockstorm.locks.adapter import PREFIX, adapter_entry, adapter_facts


class LibraryTraits(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to hello, as far as it decides which lock to choose."""

    waits: str  # not, polling, push, blocking-pop, in-server
    nodes: int
    lease: bool
    renews: bool  # a watchdog extends the lease
    extends: bool  # the caller can
    fair: bool
    token: bool
    cancels: bool  # a wait can be ended from outside
    modes: list[str]
    reenters: list[str]


class LibraryCost(msgspec.Struct, frozen=True, kw_only=True):
    """An acquire and release without a competitor, in real time, beside its C port; medians of pairs that were measured
    one after the other."""

    port: str
    us: float
    port_us: float
    ratio: float


def traits_of(adapter: str) -> LibraryTraits:
    """Starts the adapter. Raises NotInstalled."""
    entry = adapter_entry(PREFIX + adapter)
    facts = adapter_facts(entry.library.path)
    return LibraryTraits(
        waits=entry.waits,
        nodes=entry.nodes,
        lease=entry.lease,
        renews=entry.renews,
        extends=entry.renewable,
        fair=entry.fair,
        token=entry.token,
        cancels=facts.cancel if facts else False,
        modes=list(facts.modes) if facts else ["exclusive"],
        reenters=list(facts.reenters) if facts else [],
    )
