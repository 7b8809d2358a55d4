"""The table of expected verdicts (scenarios/expected.toml)."""

import tomllib
from dataclasses import dataclass
from functools import cache
from typing import Any

from harness.driver import paths
from harness.driver.errors import UsageError
from harness.driver.library import locks
from harness.driver.play import PROPERTIES
from harness.driver.scenario import scenarios
from harness.driver.trial import STORES

STATUSES = ("holds", "violated", "inconclusive")
AS_THE_FAULT = "as the fault"


@dataclass(frozen=True)
class Cell:
    """What one scenario is expected to show for one lock with one store mode."""

    scenario: str
    lock: str
    store: str
    fault: dict[str, str]  # property -> status
    control: dict[str, str]
    reason: str

    def expects(self, control: bool) -> dict[str, str]:
        return self.control if control else self.fault


@cache
def expected() -> dict[tuple[str, str, str], Cell]:
    """All cells by (scenario, lock, store). Raises UsageError on a name that does not exist."""
    path = paths.ROOT / "scenarios" / "expected.toml"
    cells: dict[tuple[str, str, str], Cell] = {}
    for scenario, pairs in tomllib.loads(path.read_text()).items():
        for pair, said in pairs.items():
            cell = _cell(scenario, pair, dict(said), str(path))
            cells[cell.scenario, cell.lock, cell.store] = cell
    return cells


def pairs() -> list[tuple[str, str, str]]:
    """Every (scenario, lock, store) that can be run: the scenario is about such a lock, and a store that checks tokens
    needs a lock that has them."""
    return [
        (scenario, lock["name"], store)
        for scenario, told in scenarios().items()
        for lock in locks()
        for store in STORES
        if not told.unfit(lock) and (store == "open" or lock["token"])
    ]


def _cell(scenario: str, pair: str, said: dict[str, Any], path: str) -> Cell:
    lock, _, store = pair.partition("/")
    reason = said.pop("reason", "")
    control = said.pop("control", None)
    where = f"{path}: [{scenario}] {pair!r}"
    if (scenario, lock, store) not in pairs():
        raise UsageError(f"{where}: there is no such scenario, lock or store mode, or they do not go together")
    for name, status in said.items():
        if name not in PROPERTIES or status not in STATUSES:
            raise UsageError(f"{where}: {name} = {status!r}; known are {PROPERTIES} with {STATUSES}")
    if control not in (None, AS_THE_FAULT):
        raise UsageError(f"{where}: control = {control!r}; it is left out or {AS_THE_FAULT!r}")
    holds = dict.fromkeys(said, "holds")
    return Cell(scenario, lock, store, said, dict(said) if control else holds, reason)
