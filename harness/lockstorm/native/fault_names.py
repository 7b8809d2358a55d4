"""The names of faults, of the table in faults/names/fault_rows.c. Old names are read here and nowhere else."""

from collections.abc import Collection
from difflib import get_close_matches
from functools import cache

from lockstorm.base.errors import UsageError
from lockstorm.native.library import faults
from lockstorm.results.fault_entry import World

WORLD_NAMES: dict[World, str] = {"trial": "a trial", "simulation": "the simulation of C locks", "library": "--adapter"}


@cache
def fault_names(world: World) -> tuple[str, ...]:
    return tuple(fault.name for fault in faults() if fault.worlds[world].is_ is not None)


@cache
def _names_now() -> dict[str, str]:
    return {fault.old_name: fault.name for fault in faults() if fault.old_name}


def name_now(word: str) -> str:
    """Today's name of a fault, for a name from a file or a command line of before; other words stay as they are."""
    return _names_now().get(word, word)


def fault_on(word: str, is_client: bool) -> str:
    """Today's name of a fault on this target: clock-jump was once the name of a client's, too."""
    return "client-clock-jump" if is_client and word == "clock-jump" else name_now(word)


def choose_fault(word: str, world: World, known: Collection[str] | None = None) -> str:
    """Today's name of a fault of this world. `known`: the only ones that apply. UsageError for any other word."""
    name = name_now(word)
    for fault in faults():
        absent = fault.worlds[world].is_not
        if fault.name == name and absent:
            raise UsageError(f"there is no {name} in {WORLD_NAMES[world]}: {absent}")
    usable = sorted(fault_names(world) if known is None else known)
    if name not in usable:  # the nearest may be an old name
        near = get_close_matches(word, [*usable, *_names_now()], n=1, cutoff=0.5)
        name = name_now(near[0]) if near else word
        hint = f"did you mean {name}?" if name in usable else f"there are: {', '.join(usable)}"
        raise UsageError(f"there is no fault called {word!r}: {hint}")
    return name
