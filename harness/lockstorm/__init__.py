"""The driver: sets a trial up, tells its clients what to do, breaks things, and has the history judged.

Scenarios import from here and nothing else.
"""

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
]
