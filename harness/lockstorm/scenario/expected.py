"""The table of expected verdicts (scenarios/expected.toml)."""

import tomllib
from dataclasses import dataclass
from functools import cache

from lockstorm.base import paths
from lockstorm.base.errors import UsageError
from lockstorm.locks.lock_names import lock_named
from lockstorm.native.library import locks
from lockstorm.results.properties import PROPERTIES
from lockstorm.scenario.scenario import scenarios
from lockstorm.trial.settings import STORES

STATUSES = ("holds", "violated", "inconclusive")
AS_THE_FAULT = "as the fault"
ANY_LOCK = "*"


@dataclass(frozen=True)
class ExpectedCell:
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
def expected() -> dict[tuple[str, str, str], ExpectedCell]:
    """All cells by (scenario, lock, store). Raises UsageError on a name that does not exist.

    A line for "*" with a store mode applies to each lock on redis-servers that has no line of its own, except for
    properties that do not apply to the lock. Locks on other services need lines of their own."""
    path = paths.ROOT / "scenarios" / "expected.toml"
    cells: dict[tuple[str, str, str], ExpectedCell] = {}
    covered: dict[str, list[tuple[str, str]]] = {}
    for scenario, lock, store in pairs():
        covered.setdefault(scenario, []).append((lock, store))
    for scenario, table in tomllib.loads(path.read_text()).items():
        lines = {tuple(pair.partition("/")[::2]): dict(line) for pair, line in table.items()}
        known = covered.get(scenario, [])
        for lock, store in lines:
            if (lock, store) not in known and not (lock == ANY_LOCK and store in STORES and known):
                raise UsageError(
                    f"{path}: [{scenario}] {lock}/{store}: there is no such scenario, lock or store mode, "
                    "or they do not go together"
                )
        for lock, store in known:
            any_lock = lines.get((ANY_LOCK, store)) if lock_named(lock).service == "redis" else None
            fenced = scenarios()[scenario].gives_tokens or lock_named(lock).token
            if any_lock and not fenced:  # of a lock without tokens fencing is not judged
                any_lock = {name: value for name, value in any_lock.items() if name != "fencing"}
            if line := lines.get((lock, store)) or any_lock:
                cells[scenario, lock, store] = _cell(scenario, lock, store, dict(line), str(path))
    return cells


def pairs() -> list[tuple[str, str, str]]:
    """Every (scenario, lock, store) that the table covers: the scenario applies to the lock and has the store mode. A
    store that checks tokens requires a lock or a scenario that gives them."""
    return [
        (name, lock.name, store)
        for name, scenario in scenarios().items()
        for lock in locks()
        for store in scenario.stores
        if not scenario.inapplicable_reason(lock) and scenario.suits(store, lock)
    ]


def _cell(scenario: str, lock: str, store: str, line: dict[str, str], path: str) -> ExpectedCell:
    reason = line.pop("reason", "")
    control = line.pop("control", None)
    where = f"{path}: [{scenario}] {lock}/{store}"
    for name, status in line.items():
        if name not in PROPERTIES or status not in STATUSES:
            raise UsageError(f"{where}: {name} = {status!r}; known are {PROPERTIES} with {STATUSES}")
    if control not in (None, AS_THE_FAULT):
        raise UsageError(f"{where}: control = {control!r}; it is left out or {AS_THE_FAULT!r}")
    holds = dict.fromkeys(line, "holds")
    return ExpectedCell(scenario, lock, store, line, dict(line) if control else holds, reason)
