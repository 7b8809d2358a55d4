"""The driver: sets a trial up, tells its clients what to do, breaks things, and has the history judged.

Scenarios import from here and nothing else.
"""

from harness.driver.client import ANYWHERE, Client
from harness.driver.errors import Inconclusive, LockstormError, UsageError
from harness.driver.library import Object, Outcome
from harness.driver.scenario import ANY_SERVICE, TABLE_STORES, USUAL_STORES, Scenario, scenario
from harness.driver.trial import Trial

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
