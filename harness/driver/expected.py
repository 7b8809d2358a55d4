"""The table of expected verdicts (scenarios/expected.toml)."""

import tomllib
from dataclasses import dataclass
from functools import cache
from typing import Any

from harness.driver import paths
from harness.driver.errors import UsageError
from harness.driver.library import locks
from harness.driver.play import PROPERTIES, lock_named
from harness.driver.scenario import scenarios
from harness.driver.trial import STORES

STATUSES = ("holds", "violated", "inconclusive")
AS_THE_FAULT = "as the fault"
ANY_LOCK = "*"


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
    """All cells by (scenario, lock, store). Raises UsageError on a name that does not exist.

    A pair without a line of its own is as "*" with that store mode, as far as those properties apply to its lock. That
    is said of redis-servers: a lock on anything else has lines of its own."""
    path = paths.ROOT / "scenarios" / "expected.toml"
    cells: dict[tuple[str, str, str], Cell] = {}
    for scenario, said_of in tomllib.loads(path.read_text()).items():
        told = {tuple(pair.partition("/")[::2]): dict(said) for pair, said in said_of.items()}
        known = [(lock, store) for each, lock, store in pairs() if each == scenario]
        for lock, store in told:
            if (lock, store) not in known and not (lock == ANY_LOCK and store in STORES and known):
                raise UsageError(
                    f"{path}: [{scenario}] {lock}/{store}: there is no such scenario, lock or store mode, "
                    "or they do not go together"
                )
        for lock, store in known:
            any_lock = told.get((ANY_LOCK, store)) if lock_named(lock)["service"] == "redis" else None
            fenced = scenarios()[scenario].gives_tokens or lock_named(lock)["token"]
            said = told.get((lock, store)) or (any_lock if fenced else without_fencing(any_lock))
            if said:
                cells[scenario, lock, store] = _cell(scenario, lock, store, dict(said), str(path))
    return cells


def without_fencing(said: dict[str, Any] | None) -> dict[str, Any] | None:
    """What is said of every lock, for one without tokens: there is no fencing to judge."""
    return {name: value for name, value in said.items() if name != "fencing"} if said else None


def pairs() -> list[tuple[str, str, str]]:
    """Every (scenario, lock, store) that the table is about: the scenario is about such a lock and has such a store,
    and one that checks tokens needs somebody to give them."""
    return [
        (scenario, lock["name"], store)
        for scenario, told in scenarios().items()
        for lock in locks()
        for store in told.stores
        if not told.unfit(lock) and told.suits(store, lock)
    ]


def _cell(scenario: str, lock: str, store: str, said: dict[str, Any], path: str) -> Cell:
    reason = said.pop("reason", "")
    control = said.pop("control", None)
    where = f"{path}: [{scenario}] {lock}/{store}"
    for name, status in said.items():
        if name not in PROPERTIES or status not in STATUSES:
            raise UsageError(f"{where}: {name} = {status!r}; known are {PROPERTIES} with {STATUSES}")
    if control not in (None, AS_THE_FAULT):
        raise UsageError(f"{where}: control = {control!r}; it is left out or {AS_THE_FAULT!r}")
    holds = dict.fromkeys(said, "holds")
    return Cell(scenario, lock, store, said, dict(said) if control else holds, reason)
