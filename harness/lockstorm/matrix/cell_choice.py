"""Which cells of the matrix a user has chosen."""

from lockstorm.base.errors import UsageError
from lockstorm.base.option_fields import choose
from lockstorm.locks.adapter import is_adapter
from lockstorm.locks.lock_names import lock_named
from lockstorm.matrix.matrix import inapplicable_pairs, time_of
from lockstorm.scenario.cells import CellKey
from lockstorm.scenario.expected import pairs
from lockstorm.scenario.library_expected import library_cells
from lockstorm.scenario.play import scenario_named
from lockstorm.trial.settings import STORES, TIMES


def choose_cells(lock: str | None, scenario: str | None, store: str | None, time: str | None) -> list[CellKey]:
    """The cells that match all of the comma-separated names. Raises UsageError on an unknown name or if none match."""
    locks = {lock_named(name).name for name in lock.split(",")} if lock else None
    scenarios = {scenario_named(name).name for name in scenario.split(",")} if scenario else None
    stores = {choose("store mode", name, list(STORES)) for name in store.split(",")} if store else None
    if time is not None:
        choose("time", time, list(TIMES))
    chosen = [
        cell_key
        for cell_key in [*pairs(), *library_pairs(locks)]
        if (not scenarios or cell_key[0] in scenarios)
        and (not locks or cell_key[1] in locks)
        and (not stores or cell_key[2] in stores)
    ]
    playable = [cell_key for cell_key in chosen if time_of(*cell_key[:2], time)]
    if chosen and not playable:
        raise UsageError(f"none of these scenarios can be played in {time} time")
    if not chosen:
        raise UsageError(why_empty(scenarios, locks))
    return chosen


def library_pairs(locks: set[str] | None) -> list[CellKey]:
    """The cells of the adapters among these locks."""
    return [cell_key for lock in sorted(locks or ()) if is_adapter(lock) for cell_key in library_cells(lock)]


def why_empty(scenarios: set[str] | None, locks: set[str] | None) -> str:
    if scenarios and locks:
        reasons = [pair.reason for pair in inapplicable_pairs(scenarios, locks)]
        if len(reasons) == len(scenarios) * len(locks):
            return f"no cell matches: {'; '.join(dict.fromkeys(reasons))}"
    return "no cell matches: a store mode other than open needs a lock with tokens"
