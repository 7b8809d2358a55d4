"""The entries of the bug zoo (scenarios/zoo/*.toml): published bugs of locks, each with the scenario and the search
that have to show it. scenarios/zoo/README.md describes an entry."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_type_hints

from lockstorm.base import paths
from lockstorm.base.errors import UsageError, at_place
from lockstorm.base.option_fields import choose
from lockstorm.locks.lock_names import lock_named
from lockstorm.matrix.matrix import time_of
from lockstorm.results.properties import PROPERTIES
from lockstorm.scenario.cells import CellKey
from lockstorm.scenario.play import prepare_trial, scenario_named
from lockstorm.search.search_plan import SearchRequest, plan_search
from lockstorm.trial.settings import TrialSettings

ZOO = paths.ROOT / "scenarios" / "zoo"
TEXTS = ("name", "reference", "what", "lock", "fixed", "property")  # keys that every entry has
TABLES = {  # optional tables of an entry: the request whose fields they set, and the fields that they may set
    "request": (
        TrialSettings,
        ("store", "clients", "lease_ms", "duration_ms", "permits", "seed", "fixed_lease", "time"),
    ),
    "explore": (
        SearchRequest,
        (
            *("store", "clients", "replicas", "faults", "lease_ms", "turns", "work_ms", "wait_ms", "permits", "seed"),
            *("fixed_lease", "extends", "varied", "require"),
        ),
    ),
}


@dataclass(frozen=True)
class Bug:
    """One published bug. `request`: options of its scenario; `explore`: options of its search."""

    name: str
    reference: str
    what: str
    lock: str  # with the bug
    fixed: str  # without
    property: str  # that the bug violates
    scenario: str | None = None  # that triggers it; None: only the explorer shows it
    request: Mapping[str, Any] | None = None
    explore: Mapping[str, Any] | None = None
    tuned: str = ""  # why its search needs options; without any, it is the search as it comes
    unexplored: str = ""  # why the explorer cannot express it

    def request_for(self, lock: str) -> TrialSettings:
        """Its scenario with this lock, in virtual time where possible."""
        assert self.scenario
        time = time_of(self.scenario, lock, None) or "virtual"
        return TrialSettings(lock, self.scenario, require=self.property, **{"time": time, **(self.request or {})})

    def search_for(self, lock: str, **limits: Any) -> SearchRequest:
        """The search as it comes, unless the entry has options: then for the property that the bug violates."""
        assert self.explore is not None
        require = {"require": self.property} if self.explore else {}
        return SearchRequest(lock, **{**require, **self.explore}, **limits)

    def cell_key_of(self, lock: str) -> CellKey:
        """The cell of the matrix that tells what has to be installed for its scenario."""
        assert self.scenario
        return self.scenario, lock, (self.request or {}).get("store", "open")


@cache
def bugs() -> dict[str, Bug]:
    """All entries by name, in the order of files and lines. Callers must not change it."""
    return read_zoo(ZOO)


def read_zoo(directory: Path) -> dict[str, Bug]:
    """Raises UsageError with the file, entry, key and reason when an entry is wrong."""
    found: dict[str, Bug] = {}
    for path in sorted(directory.glob("*.toml")):
        for bug in read_entries(path):
            if bug.name in found:
                raise UsageError(f"{path}: {bug.name}: name: another entry has this name")
            found[bug.name] = bug
    if not found:
        raise UsageError(f"{directory}: there are no entries in *.toml")
    return found


def read_entries(path: Path) -> list[Bug]:
    try:
        content = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path}: {error}") from None
    entries = content.pop("bug", [])
    if content or not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise UsageError(f"{path}: {', '.join(content) or 'bug'}: every entry has to begin with [[bug]]")
    return [
        _bug_of(entry, f"{path}: {entry.get('name', f'entry {number}')}") for number, entry in enumerate(entries, 1)
    ]


def _bug_of(entry: dict[str, Any], where: str) -> Bug:  # TOML, which is checked here
    known = [field.name for field in fields(Bug)]
    for key, value in entry.items():
        _at(f"{where}: {key}", choose, "key", key, known)
        is_text = key not in TABLES
        if is_text and not (isinstance(value, str) and value.strip()):
            raise UsageError(f"{where}: {key}: {value!r} is not a text")
        if not is_text:
            _check_table(value, key, where)
    missing = [key for key in TEXTS if key not in entry]
    if missing:
        raise UsageError(f"{where}: {missing[0]}: it is missing")
    bug = Bug(**entry)
    _check_names(bug, where)
    _check_played(bug, where)
    return bug


def _check_table(value: Any, key: str, where: str) -> None:
    """Checks the keys of a table and the types of their values."""
    if not isinstance(value, dict):
        raise UsageError(f"{where}: {key}: {value!r} is not a table: write [bug.{key}]")
    owner, known = TABLES[key]
    hints = get_type_hints(owner)
    for name, chosen in value.items():
        _at(f"{where}: {key}.{name}", choose, "key", name, list(known))
        kinds = tuple(kind for kind in get_args(hints[name]) or (hints[name],) if kind is not NoneType)
        if type(chosen) not in kinds:
            raise UsageError(f"{where}: {key}.{name}: {chosen!r} is not of type {kinds[0].__name__}")


def _check_names(bug: Bug, where: str) -> None:
    _at(f"{where}: lock", lock_named, bug.lock)
    _at(f"{where}: fixed", lock_named, bug.fixed)
    _at(f"{where}: property", choose, "property", bug.property, [name for name in PROPERTIES if name != "cost"])
    if bug.scenario:
        _at(f"{where}: scenario", scenario_named, bug.scenario)
    if bug.lock == bug.fixed:
        raise UsageError(f"{where}: fixed: it is the lock with the bug")


def _check_played(bug: Bug, where: str) -> None:
    """Checks everything that can be checked of both locks before anything is started."""
    if (bug.explore is None) == (not bug.unexplored):
        raise UsageError(f"{where}: explore: give either this table, or unexplored with a reason")
    if bool(bug.explore) != bool(bug.tuned):
        raise UsageError(f"{where}: tuned: say why the search needs options, and only if there are any")
    if not bug.scenario and bug.explore is None:
        raise UsageError(f"{where}: scenario: there is neither a scenario nor anything for the explorer")
    if bug.request is not None and not bug.scenario:
        raise UsageError(f"{where}: request: it belongs to a scenario, which is missing")
    for lock in (bug.lock, bug.fixed):
        if bug.scenario:
            _at(f"{where}: scenario", prepare_trial, bug.request_for(lock))
        if bug.explore is not None:
            _at(f"{where}: explore", plan_search, bug.search_for(lock))


def _at(where: str, check: Any, *words: Any) -> None:
    """Puts the place in the file before a reason."""
    with at_place(where):
        check(*words)
