"""How often each shipped adapter's library broke each promise, in a search that does not stop at the first. Beside it:
what its lock is, as its adapter says, and what it costs.
scenarios/libraries.json keeps it; `python -m lockstorm.libraries.promise_figures NAME...` measures."""

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import date

import msgspec

from lockstorm.base import paths
from lockstorm.base.atomic_file import write_json
from lockstorm.libraries.library_words import read_words
from lockstorm.locks.adapter import PREFIX, adapter_entry, adapter_facts, shipped_adapters
from lockstorm.search.explore import search_schedules
from lockstorm.search.library_plan import PROMISES, promises_made
from lockstorm.search.search_plan import SearchRequest, plan_search
from lockstorm.search.search_result import SearchResult

RECORD = paths.ROOT / "scenarios" / "libraries.json"
SEED = 1


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
    asks_again: bool = False  # a release that failed is asked once more: version 3 of the protocol
    tells: bool = False  # it gives notices of loss


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
        **{name: getattr(entry, name) for name in ("waits", "nodes", "lease", "renews", "fair", "token")},
        extends=entry.renewable,
        cancels=facts.cancel if facts else False,
        modes=list(facts.modes) if facts else ["exclusive"],
        reenters=list(facts.reenters) if facts else [],
        asks_again=facts is not None and facts.protocol > 2,
        tells=facts is not None and facts.loss_notice != "never",
    )


class PromiseFigures(msgspec.Struct, frozen=True, kw_only=True):
    library: str
    version: str
    service: str  # and its topology, if that is not single
    schedules: int
    calls: int
    unplayed: int
    broken: dict[str, int]  # by promise: in how many schedules
    by_calls: list[str]  # promises that were broken in a schedule without a fault
    measured: date  # on which day
    traits: LibraryTraits | None = None
    cost: LibraryCost | None = None  # None: not measured

    @property
    def inapplicable(self) -> list[str]:
        """The promises that the library does not make: its schedules cannot break them, so it has not kept them."""
        if not self.traits:
            return []
        asked = ("lease", "renews", "token", "fair", "cancels", "asks_again", "tells")
        made = promises_made(**{name: getattr(self.traits, name) for name in asked})
        return [promise for promise in PROMISES if promise not in made and promise not in self.broken]


def figures_measured(adapter: str) -> PromiseFigures:
    """Searches a library, with the usual faults. Raises NotInstalled."""
    entry = adapter_entry(PREFIX + adapter)
    schedules = read_words()[0][adapter].schedules
    request = SearchRequest(PREFIX + adapter, seed=SEED, schedules=schedules, keep_going=True)
    topology = entry.library.topology
    servers = entry.service if topology == "single" else f"{entry.service} {topology}"
    return figures_of(search_schedules(plan_search(request), lambda _: None), servers)


def figures_of(result: SearchResult, service: str) -> PromiseFigures:
    assert result.library
    broken = {name: result.properties[name].count for name in PROMISES}
    by_calls = {name for group in result.groups if not group.faults for name in group.violates}
    return PromiseFigures(
        library=result.library.name,
        version=result.library.version,
        service=service,
        schedules=result.tried,
        calls=result.calls or 0,
        unplayed=result.unplayed or 0,
        broken={name: count for name, count in broken.items() if count},
        by_calls=[name for name in PROMISES if name in by_calls],
        measured=date.today(),
    )


def promise_figures() -> dict[str, PromiseFigures]:
    return msgspec.json.decode(RECORD.read_bytes(), type=dict[str, PromiseFigures]) if RECORD.exists() else {}


def keep_figures(measured: Mapping[str, PromiseFigures]) -> None:
    """Keeps these, and the figures of the others."""
    record = {**promise_figures(), **measured}
    kept = {each: msgspec.to_builtins(record[each]) for each in shipped_adapters() if each in record}
    write_json(RECORD, kept, indent=1)


def measure_adapters(names: Sequence[str]) -> None:
    """Measures these; what they cost stays as it was measured before (library_cost.py)."""
    for name in names:
        figures, before = figures_measured(name), promise_figures().get(name)
        figures = msgspec.structs.replace(figures, traits=traits_of(name), cost=before.cost if before else None)
        keep_figures({name: figures})
        print(name, json.dumps(figures.broken), flush=True)


if __name__ == "__main__":
    measure_adapters(sys.argv[1:] or shipped_adapters())
