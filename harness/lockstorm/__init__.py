"""The driver: sets a trial up, tells its clients what to do, breaks things, and has the history judged.

Scenarios import from here and nothing else; an adapter imports `serve`. Each name is loaded when it is first used: a
command that plays no trial starts in a third of the time.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lockstorm.adapter_program.serve import serve
    from lockstorm.base.errors import Inconclusive, LockstormError, UsageError
    from lockstorm.native.library import Object, Outcome
    from lockstorm.scenario.scenario import ANY_SERVICE, TABLE_STORES, USUAL_STORES, Scenario, scenario
    from lockstorm.trial.client import ANYWHERE, Client
    from lockstorm.trial.trial import Trial

__all__ = [
    "ANYWHERE",
    "ANY_SERVICE",
    "TABLE_STORES",
    "USUAL_STORES",
    "Client",
    "Inconclusive",
    "LockstormError",
    "Object",
    "Outcome",
    "Scenario",
    "Trial",
    "UsageError",
    "scenario",
    "serve",
]

_HOMES = {
    "lockstorm.adapter_program.serve": ("serve",),
    "lockstorm.base.errors": ("Inconclusive", "LockstormError", "UsageError"),
    "lockstorm.native.library": ("Object", "Outcome"),
    "lockstorm.scenario.scenario": ("ANY_SERVICE", "TABLE_STORES", "USUAL_STORES", "Scenario"),
    "lockstorm.trial.client": ("ANYWHERE", "Client"),
    "lockstorm.trial.trial": ("Trial",),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _Package(ModuleType):
    """`scenario` is the decorator here, although the import of the room `lockstorm.scenario` sets the attribute too."""

    @property
    def scenario(self) -> Any:
        return import_module("lockstorm.scenario.scenario").scenario

    @scenario.setter
    def scenario(self, room: ModuleType) -> None:
        pass


sys.modules[__name__].__class__ = _Package
