"""The expected verdicts of the shipped adapters in virtual time: those of the C port of the same pattern, except for
the differences that scenarios/adapters.toml lists."""

import tomllib
from dataclasses import replace
from functools import cache
from typing import Any

from lockstorm.base import paths
from lockstorm.base.errors import UsageError
from lockstorm.locks.adapter import PREFIX, is_adapter, searched_only_reason, shipped_adapters
from lockstorm.locks.lock_names import lock_named
from lockstorm.results.properties import PROPERTIES
from lockstorm.scenario.cells import CellKey
from lockstorm.scenario.expected import AS_THE_FAULT, STATUSES, ExpectedCell, expected
from lockstorm.scenario.scenario import scenarios

FILE = paths.ROOT / "scenarios" / "adapters.toml"


@cache
def library_tables() -> dict[str, dict[str, Any]]:  # statuses, reasons and lists, by the names of scenarios
    """What the file says of each shipped adapter: its `port`, the scenarios that are `not_played`, each with a reason,
    the only ones that were `played` so far, if it names them, and its differences by scenario, or scenario/store if the
    store mode is another one than open."""
    tables = tomllib.loads(FILE.read_text())
    if sorted(tables) != shipped_adapters():
        raise UsageError(
            f"{FILE} is about {', '.join(sorted(tables))}, and shipped are {', '.join(shipped_adapters())}"
        )
    for adapter, table in tables.items():
        named = {*table, *table.get("not_played", {}), *table.get("played", ())} - {"port", "not_played", "played"}
        unknown = {key.partition("/")[0] for key in named} - {*scenarios()}
        if unknown:
            raise UsageError(f"{FILE}: [{adapter}]: there is no scenario called {', '.join(sorted(unknown))}")
    return tables


def adapters_in_trials() -> list[str]:
    """The shipped adapters that trials play. Of the others the file names no scenario: `played = []`."""
    return [adapter for adapter, table in library_tables().items() if table.get("played") != []]


def port_of(adapter: str) -> str:
    """The C lock that is a port of this adapter's pattern."""
    return lock_named(library_tables()[adapter]["port"]).name


@cache
def library_cells(lock: str) -> dict[CellKey, ExpectedCell | None]:
    """Every cell of an adapter's lock (adapter:NAME), and what is expected of it; None: neither its port nor the file
    says anything. Starts the adapter. Raises UsageError for one that is not shipped, or on a contradiction."""
    adapter, entry = lock.removeprefix(PREFIX), lock_named(lock)
    if adapter not in library_tables():
        raise UsageError(
            f"{adapter} has no expected verdicts to be compared with; `lockstorm gate --adapter {adapter}` judges it"
        )
    if reason := searched_only_reason(entry):
        raise UsageError(f"{lock}: {reason}")
    left_out = library_tables()[adapter].get("not_played", {})
    played = library_tables()[adapter].get("played", scenarios())
    keys = [
        (name, lock, store)
        for name, scenario in scenarios().items()
        for store in scenario.stores
        if not scenario.inapplicable_reason(entry)
        and scenario.suits(store, entry)
        and name not in left_out
        and name in played
    ]
    return {key: library_cell(key) for key in keys}


def _of_port(key: CellKey) -> ExpectedCell | None:
    """What is expected of the port in this cell. Of a library that gives no tokens no fencing is judged."""
    scenario, lock, store = key
    port = port_of(lock.removeprefix(PREFIX))
    cell = expected().get((scenario, port, store))
    if not cell or lock_named(lock).token or not lock_named(port).token:
        return cell
    fault, control = ({n: s for n, s in each.items() if n != "fencing"} for each in (cell.fault, cell.control))
    return replace(cell, fault=fault, control=control)


def library_cell(key: CellKey) -> ExpectedCell | None:
    """What is expected of one cell, which is known to apply to the adapter's lock."""
    scenario, lock, store = key
    adapter = lock.removeprefix(PREFIX)
    name = scenario if store == "open" else f"{scenario}/{store}"
    differences = dict(library_tables()[adapter].get(name, {}))
    of_port = _of_port(key)
    if not differences:
        return of_port and ExpectedCell(scenario, lock, store, of_port.fault, of_port.control, "")
    reason, control = differences.pop("reason", ""), differences.pop("control", None)
    fault = {**(of_port.fault if of_port else {}), **differences}
    where = f"{FILE}: [{adapter}] {name}"
    in_control = control if isinstance(control, dict) else {}
    statuses = {**differences, **in_control}
    if not reason or not set(statuses) <= set(PROPERTIES) or not {*statuses.values()} <= set(STATUSES):
        raise UsageError(f"{where}: statuses that differ from those of {port_of(adapter)}, and a reason")
    if of_port and fault == of_port.fault and not control:
        raise UsageError(f"{where}: {port_of(adapter)} has the same statuses, so it is no difference")
    if control not in (None, AS_THE_FAULT, in_control):
        raise UsageError(f"{where}: control = {control!r}; it is left out, {AS_THE_FAULT!r}, or statuses")
    if control == AS_THE_FAULT:
        return ExpectedCell(scenario, lock, store, fault, dict(fault), reason)
    healthy = of_port.control if of_port else {}
    holds = dict.fromkeys(fault, "holds") | {each: healthy[each] for each in healthy.keys() & fault.keys()}
    return ExpectedCell(scenario, lock, store, fault, holds | in_control, reason)


def expected_of(key: CellKey) -> ExpectedCell | None:
    """What is expected of a cell, of a lock of the table or of a shipped adapter."""
    return library_cells(key[1]).get(key) if is_adapter(key[1]) else expected().get(key)
