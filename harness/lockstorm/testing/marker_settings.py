"""What the markers of a test ask for, as the settings of a trial."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lockstorm.base.errors import UsageError, at_place
from lockstorm.base.option_fields import Option, options_of
from lockstorm.locks import adapter as adapters
from lockstorm.locks import plugin as plugins
from lockstorm.locks.lock_names import APP_PREFIX, lock_named
from lockstorm.scenario.play import usual_time
from lockstorm.testing.item_state import MARKER, SEED
from lockstorm.trial.settings import TrialSettings

GivenSettings = dict[str, Any]  # by name, as a marker or a call gives them; each is checked by its own type
LOCKS = ("lock", "adapter", "plugin", "app")  # each names the lock, or the application
# Fields that no option of a command sets: a named scenario sets them itself.
BY_HAND_FIELDS: dict[str, type] = {
    "counter": int,
    "replicas": int,
    "topology": str,
    "persistence": str,
    "settable_clocks": bool,
    "server_options": tuple,
}
TYPES: dict[str, type] = {"number": int, "duration": int, "flag": bool}


def durations_read(where: str, settings: Mapping[str, Any], *owners: type) -> GivenSettings:
    """The settings by the names of their fields: lease="10s", or a timedelta, as lease_ms=10_000,
    which a test may also say itself."""
    options = {each.key: (name, each) for owner in owners for name, each in options_of(owner).items()}
    read: GivenSettings = {}
    for key, value in settings.items():
        name, each = options.get(key, (key, None))
        if each and each.kind == "duration":
            try:
                value = each.read_duration(_duration_of(value))
            except UsageError as error:
                raise UsageError(f"{where}: {str(error).removeprefix('--')}") from None
        read[name if each and each.kind == "duration" else key] = value
    return read


def _duration_of(value: Any) -> str:
    return f"{round(value / timedelta(milliseconds=1))}ms" if isinstance(value, timedelta) else str(value)


def given_settings(item: pytest.Item, changes: Mapping[str, Any]) -> GivenSettings:
    """The settings that the markers of a test name, the closest last, with `changes` to them; checked one by one."""
    given: GivenSettings = {}
    for marker in reversed(list(item.iter_markers(MARKER))):
        where = f"{item.nodeid}: @pytest.mark.{MARKER}"
        if marker.args:
            raise UsageError(f'{where}: {marker.args[0]!r} has no name: write {MARKER}(lock="redlock"), say')
        settings = durations_read(where, marker.kwargs, TrialSettings)
        check_given(where, settings)
        given = _merged(given, settings)
    return _merged(given, changes)


def trial_settings(item: pytest.Item, given: Mapping[str, Any], scenario: str, *, by_hand: bool) -> TrialSettings:
    """The request for a trial with the given settings. Raises UsageError, with the name of the test."""
    if own := [name for name in BY_HAND_FIELDS if name in given and not by_hand]:
        raise UsageError(f"{item.nodeid}: {own[0]} is for trials that a test drives itself; {scenario} sets it")
    lock = lock_of(item, given)
    fields = {name: value for name, value in given.items() if name not in LOCKS}
    with at_place(item.nodeid):
        return TrialSettings(lock, scenario, **{"time": usual_time(lock_named(lock)), **fields, **seed_of(item, given)})


def lock_of(item: pytest.Item, given: Mapping[str, Any]) -> str:
    """The name of the lock. The paths of an adapter and of a plug-in are relative to pytest's rootdir."""
    if "lock" in given:
        return str(given["lock"])
    for kind, prefix in (("adapter", adapters.PREFIX), ("plugin", plugins.PREFIX)):
        if kind in given:
            word = str(given[kind])
            is_path = "/" in word or isinstance(given[kind], Path)
            return prefix + (str(item.config.rootpath / word) if is_path else word)
    if "app" in given:
        return APP_PREFIX + str(item.config.rootpath / str(given["app"]))
    raise UsageError(
        f'{item.nodeid}: no marker names a lock: @pytest.mark.{MARKER}(adapter="./lock-adapter"), or lock=, or plugin='
    )


def seed_of(item: pytest.Item, given: Mapping[str, Any]) -> dict[str, int]:
    """The seed of a trial, as a setting; empty: the usual one."""
    usual = item.config.getoption(SEED)
    return {"seed": given["seed"]} if "seed" in given else {} if usual is None else {"seed": usual}


def _merged(farther: Mapping[str, Any], closer: Mapping[str, Any]) -> GivenSettings:
    """A closer one that names the lock replaces the lock, however the farther one has named it."""
    replaced = LOCKS if any(name in closer for name in LOCKS) else ()
    return {**{name: value for name, value in farther.items() if name not in replaced}, **closer}


def check_given(where: str, settings: Mapping[str, Any]) -> None:
    """Raises UsageError for a setting that does not exist or is not of its type."""
    options = options_of(TrialSettings)
    known = [*LOCKS, *(each.key for each in options.values()), *BY_HAND_FIELDS]
    for name, value in settings.items():
        if name not in known and name not in options:
            raise UsageError(f"{where}: there is no setting called {name!r}: there are {', '.join(known)}")
        _check_type(where, name, value, options.get(name))
    locks = [name for name in LOCKS if name in settings]
    if len(locks) > 1:
        raise UsageError(f"{where}: {' and '.join(locks)} each name a lock: one of them")


def _check_type(where: str, name: str, value: Any, option: Option | None) -> None:
    kind = TYPES.get(option.kind, str) if option else BY_HAND_FIELDS.get(name, str)
    kinds = (str, Path) if name in LOCKS else (kind,)
    is_flag_for_number = kind is int and isinstance(value, bool)
    if not isinstance(value, kinds) or is_flag_for_number:
        raise UsageError(f"{where}: {name}={value!r}: expected {kind.__name__}")
