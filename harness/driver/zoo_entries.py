"""The entries of the bug zoo (scenarios/zoo/*.toml): bugs that people have had with their locks, each with what has to
show it. scenarios/zoo/README.md says what an entry is."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_type_hints

from harness.driver import paths
from harness.driver.cells import Trio
from harness.driver.errors import UsageError
from harness.driver.explore import ExploreWish, plan
from harness.driver.matrix import time_of
from harness.driver.play import PROPERTIES, Wish, choose, lock_named, scenario_named, settings_for

ZOO = paths.ROOT / "scenarios" / "zoo"
TEXTS = ("name", "reference", "what", "lock", "fixed", "property")  # which every entry has
ALSO_TEXTS = ("scenario", "unexplored")
TABLES = {  # which an entry may have: whose fields it chooses, and those that it may choose
    "wish": (Wish, ("store", "clients", "lease_ms", "duration_ms", "permits", "seed", "fixed_lease", "time")),
    "explore": (
        ExploreWish,
        (
            "store",
            "clients",
            "replicas",
            "faults",
            "lease_ms",
            "turns",
            "work_ms",
            "wait_ms",
            "permits",
            "seed",
            "fixed_lease",
            "extends",
            "require",
        ),
    ),
}


@dataclass(frozen=True)
class Bug:
    """One published bug. `wish`: what is not as usual in its scenario; `explore`: what the explorer may do."""

    name: str
    reference: str
    what: str
    lock: str  # with the bug
    fixed: str  # without
    property: str  # that the bug violates
    scenario: str | None = None  # that triggers it; None: only the explorer does
    wish: Mapping[str, Any] | None = None
    explore: Mapping[str, Any] | None = None
    unexplored: str = ""  # why the explorer cannot express it

    def wish_for(self, lock: str) -> Wish:
        """Of its scenario with this lock, in virtual time where that can be."""
        assert self.scenario
        time = time_of(self.scenario, lock, None) or "virtual"
        return Wish(self.scenario, lock, **{"time": time, **(self.wish or {})}, require=self.property)

    def explore_for(self, lock: str, **limits: Any) -> ExploreWish:
        assert self.explore is not None
        return ExploreWish(lock, **{"require": self.property, **self.explore}, **limits)

    def trio_of(self, lock: str) -> Trio:
        """What has to be installed for its scenario."""
        assert self.scenario
        return self.scenario, lock, (self.wish or {}).get("store", "open")


@cache
def bugs() -> dict[str, Bug]:
    """All entries by name, in the order of files and lines. Not to be changed."""
    return read_zoo(ZOO)


def read_zoo(directory: Path) -> dict[str, Bug]:
    """Raises UsageError with file, entry, key and reason when one is not what it should be."""
    found: dict[str, Bug] = {}
    for path in sorted(directory.glob("*.toml")):
        for bug in read_entries(path):
            if bug.name in found:
                raise UsageError(f"{path}: {bug.name}: name: another entry has it already")
            found[bug.name] = bug
    if not found:
        raise UsageError(f"{directory}: there are no entries in *.toml")
    return found


def read_entries(path: Path) -> list[Bug]:
    try:
        said = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path}: {error}") from None
    entries = said.pop("bug", [])
    if said or not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise UsageError(f"{path}: {', '.join(said) or 'bug'}: only entries that begin with [[bug]] are known")
    return [
        _bug_of(entry, f"{path}: {entry.get('name', f'entry {number}')}") for number, entry in enumerate(entries, 1)
    ]


def _bug_of(entry: dict[str, Any], where: str) -> Bug:
    known = [field.name for field in fields(Bug)]
    for key, value in entry.items():
        _about(f"{where}: {key}", choose, "key", key, known)
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
    """Its keys, and what kind of value each has."""
    if not isinstance(value, dict):
        raise UsageError(f"{where}: {key}: {value!r} is not a table: write [bug.{key}]")
    owner, known = TABLES[key]
    hints = get_type_hints(owner)
    for name, chosen in value.items():
        _about(f"{where}: {key}.{name}", choose, "key", name, list(known))
        kinds = tuple(kind for kind in get_args(hints[name]) or (hints[name],) if kind is not NoneType)
        if type(chosen) not in kinds:
            raise UsageError(f"{where}: {key}.{name}: {chosen!r} is not of kind {kinds[0].__name__}")


def _check_names(bug: Bug, where: str) -> None:
    _about(f"{where}: lock", lock_named, bug.lock)
    _about(f"{where}: fixed", lock_named, bug.fixed)
    _about(f"{where}: property", choose, "property", bug.property, [name for name in PROPERTIES if name != "cost"])
    if bug.scenario:
        _about(f"{where}: scenario", scenario_named, bug.scenario)
    if bug.lock == bug.fixed:
        raise UsageError(f"{where}: fixed: it is the lock with the bug")


def _check_played(bug: Bug, where: str) -> None:
    """Everything that can be checked of both locks before anything is started."""
    if (bug.explore is None) == (not bug.unexplored):
        raise UsageError(f"{where}: explore: either it, or unexplored with the reason why there is none")
    if not bug.scenario and bug.explore is None:
        raise UsageError(f"{where}: scenario: there is neither one nor anything for the explorer")
    if bug.wish is not None and not bug.scenario:
        raise UsageError(f"{where}: wish: it is of a scenario, and there is none")
    for lock in (bug.lock, bug.fixed):
        if bug.scenario:
            _about(f"{where}: scenario", settings_for, bug.wish_for(lock))
        if bug.explore is not None:
            _about(f"{where}: explore", plan, bug.explore_for(lock))


def _about(where: str, check: Any, *words: Any) -> None:
    """What is wrong is said of its place in the file."""
    try:
        check(*words)
    except UsageError as reason:
        raise UsageError(f"{where}: {reason}") from None
