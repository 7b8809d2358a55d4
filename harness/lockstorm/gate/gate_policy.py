"""The policy (`lockstorm.toml`, docs/gate.md): the properties that each lock must keep, and the faults to play."""

import datetime
import re
import tomllib
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

from lockstorm.base import paths
from lockstorm.base.durations import UNITS_MS, parse_duration_ms
from lockstorm.base.errors import UsageError
from lockstorm.base.option_fields import choose
from lockstorm.gate import toml_positions
from lockstorm.locks import adapter, plugin
from lockstorm.locks.lock_names import lock_named
from lockstorm.native.library import locks
from lockstorm.results.properties import PROPERTIES, with_capacity
from lockstorm.scenario.play import check_settings, usual_time
from lockstorm.scenario.scenario import USUAL_STORES, scenarios
from lockstorm.storm.storm_plan import ALL, DURATION_LEAST_MS, TRIALS_LIMIT, known_faults
from lockstorm.trial.settings import LEASE_LIMIT_MS, PERMIT_LIMIT, SEED_LIMIT, TIMES, TrialSettings

REPEAT_LIMIT = 1_000
CLIENTS_LIMIT = 64
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
JUDGED = tuple(name for name in PROPERTIES if name != "cost")  # cost is reported, never judged

# Mutual exclusion is not required where the resource refuses old tokens: the fence makes two holders harmless. Of a
# lock with several permits, capacity is required instead of integrity (with_capacity).
USUAL_REQUIRE = {
    "open": ("mutual_exclusion", "integrity", "liveness"),
    "fence-writes": ("integrity", "fencing", "liveness"),
    "fence-reads-and-writes": ("integrity", "fencing", "liveness"),
}
# The keys of [[lock]] that name a user-supplied lock instead of `name`, and the prefix of such a lock's name.
USER_SUPPLIED = {"adapter": adapter.PREFIX, "plugin": plugin.PREFIX}
# The keys that each table may have; "" is the top level.
KEYS = {
    "": ("lock", "require", "deployment", "scenarios", "storm", "budget", "accept", "runs"),
    "lock": (
        *("name", "adapter", "plugin", "store", "require", "used", "lease", "permits", "fixed_lease"),
        "checks_validity",
    ),
    "require": USUAL_STORES,
    "deployment": ("server",),
    "scenarios": ("play", "skip", "repeat", "seed", "time", "controls"),
    "storm": ("name", "faults", "trials", "duration", "clients", "lease", "seed", "time"),
    "budget": ("time", "trials"),
    "accept": ("lock", "store", "scenario", "property", "why", "until"),
    "runs": ("directory", "keep"),
}


@dataclass(frozen=True)
class LockChoice:
    """A lock, the store mode of the resource that it protects, and the properties that must hold."""

    name: str
    store: str
    require: tuple[str, ...]
    line: int
    used: str | None = None  # the place in the project that chooses the lock: path or path:line
    lease_ms: int | None = None
    permits: int | None = None
    fixed_lease: bool = False
    checks_validity: bool = False
    written_name: str = ""  # the name in the policy; of a user-supplied lock without its prefix
    server: str | None = None  # of a lock on Redis: what [deployment] names

    @property
    def title(self) -> str:
        return f"{self.name}/{self.store}"


@dataclass(frozen=True)
class StormChoice:
    """A storm to play against each lock."""

    name: str
    faults: str = ALL  # separated by commas
    trials: int = 1
    duration_ms: int | None = None
    clients: int | None = None
    lease_ms: int | None = None
    seed: int = 1
    time: str = "virtual"

    @property
    def scenario(self) -> str:
        """The storm's name in place of a scenario's."""
        return f"storm-{self.name}"


@dataclass(frozen=True)
class Acceptance:
    """A known violation of a lock in a scenario or storm, accepted for a reason and until a day."""

    lock: str
    store: str | None  # None: any store mode
    scenario: str
    properties: tuple[str, ...]
    why: str
    until: datetime.date  # the last day
    line: int

    def covers(self, lock: str, store: str, scenario: str) -> bool:
        return (self.lock, self.scenario) == (lock, scenario) and self.store in (None, store)


@dataclass(frozen=True)
class Policy:
    """All settings of a policy file, checked."""

    file: Path
    text: str
    locks: tuple[LockChoice, ...]
    require: dict[str, tuple[str, ...]]  # by store mode
    play: tuple[str, ...]  # scenarios; each lock gets those that apply to it
    storms: tuple[StormChoice, ...] = ()
    repeat: int = 1
    seed: int = 1
    time: str | None = None
    controls: bool = True
    accepted: tuple[Acceptance, ...] = ()
    budget_ms: int | None = None
    budget_trials: int | None = None
    runs: Path = field(default=Path("runs"))
    keep: int | None = None


class Table:
    """A table of the file. Each method reads one key, and raises UsageError with the line of a wrong value."""

    def __init__(
        self, file: Path, lines: dict[toml_positions.Path, int], path: toml_positions.Path, values: Any
    ) -> None:
        self.file, self.lines, self.path = file, lines, path
        self.kind = str(path[0]) if path else ""
        if not isinstance(values, dict):
            raise self.error(None, f"[{self.kind}] has to be a table")
        self.values: dict[str, Any] = values
        for key in values:
            self._check_key(key)

    def _check_key(self, key: str) -> None:
        known = KEYS[self.kind]
        if key not in known:
            near = get_close_matches(key, known, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(known)}"
            where = f" in [{self.kind}]" if self.kind else ""
            raise self.error(key, f"unknown key {key!r}{where}: {hint}")

    def line(self, key: str | None = None) -> int:
        return toml_positions.line_at(self.lines, self.path if key is None else (*self.path, key))

    def error(self, key: str | None, what: object) -> UsageError:
        return UsageError(f"{self.file}:{self.line(key)}: {what}")

    def checked(self, key: str, check: Callable[[], Any]) -> Any:
        """The result of a check; its UsageError gets the line of this key."""
        try:
            return check()
        except UsageError as error:
            raise self.error(key, error) from None

    def text(self, key: str, default: str | None = None) -> str | None:
        value = self.values.get(key, default)
        if value is not None and (not isinstance(value, str) or not value.strip()):
            raise self.error(key, f"{key} has to be a text")
        return value

    def required_text(self, key: str) -> str:
        value = self.text(key)
        if value is None:
            raise self.error(None, f"[[{self.kind}]] lacks {key}")
        return value

    def name(self, key: str, kind: str, known: Collection[str], default: str | None = None) -> str:
        value = self.required_text(key) if default is None else self.text(key, default)
        return str(self.checked(key, lambda: choose(kind, str(value), list(known))))

    def names(self, key: str, kind: str, known: Collection[str]) -> tuple[str, ...] | None:
        """A list of names, or a single name; None: the key is missing."""
        value = self.values.get(key)
        if value is None:
            return None
        value = [value] if isinstance(value, str) else value
        if not isinstance(value, list) or not value or not all(isinstance(name, str) for name in value):
            raise self.error(key, f"{key} has to be a list of names")
        names = [name.replace("-", "_") if kind == "property" else name for name in value]
        return tuple(dict.fromkeys(self.checked(key, partial(choose, kind, name, list(known))) for name in names))

    def number(self, key: str, low: int, high: int, default: int | None = None) -> int | None:
        value = self.values.get(key, default)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self.error(key, f"{key} has to be a whole number from {low} to {high}")
        return value

    def flag(self, key: str, default: bool) -> bool:
        value = self.values.get(key, default)
        if not isinstance(value, bool):
            raise self.error(key, f"{key} has to be true or false")
        return value

    def duration_ms(self, key: str, low_ms: int, high_ms: int) -> int | None:
        value = self.values.get(key)
        if value is None:
            return None
        value_ms = parse_duration_ms(value) if isinstance(value, str) else None
        if value_ms is None or not low_ms <= value_ms <= high_ms:
            raise self.error(
                key, f"{key} has to be a duration such as 500ms, 10s or 5m, from {low_ms}ms to {high_ms}ms"
            )
        return value_ms

    def date(self, key: str) -> datetime.date:
        value = self.values.get(key)
        if not isinstance(value, datetime.date) or isinstance(value, datetime.datetime):
            raise self.error(key if key in self.values else None, f"{key} has to be a day, such as 2027-03-31")
        return value

    def table(self, key: str) -> "Table":
        return Table(self.file, self.lines, (*self.path, key), self.values.get(key, {}))

    def tables(self, key: str) -> list["Table"]:
        value = self.values.get(key, [])
        if not isinstance(value, list):
            raise self.error(key, f"write [[{key}]]: there may be several")
        return [Table(self.file, self.lines, (*self.path, key, number), each) for number, each in enumerate(value)]


def read_policy(file: Path, home: Path | None = None) -> Policy:
    """Raises UsageError, with the line, for the first mistake. `home`: the directory of its adapters and plug-ins;
    default: the directory of the file."""
    try:
        text = file.read_text()
        values = tomllib.loads(text)
    except FileNotFoundError:
        raise UsageError(f"there is no {file}: `lockstorm init` writes one, -f names another") from None
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{file} is not text in UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file}: {error}") from None
    top = Table(file, toml_positions.find_key_lines(text), (), values)
    require = read_require(top.table("require"))
    home = home or file.parent
    server = read_server(top.table("deployment"), home)
    chosen = tuple(read_lock(table, require, home, server) for table in top.tables("lock"))
    if not chosen:
        raise UsageError(f"{file} names no lock: [[lock]] with a name; `lockstorm locks` lists them")
    titles = [lock.title for lock in chosen]
    for lock in chosen:
        if titles.count(lock.title) > 1:
            raise UsageError(f"{file}:{lock.line}: {lock.title} is there more than once")
    play = read_scenarios(top.table("scenarios"))
    storms = read_storms(top.tables("storm"))
    if not play and not storms:
        raise UsageError(f"{file} leaves nothing to play: it has neither scenarios nor storms")
    played, budget, runs = top.table("scenarios"), top.table("budget"), top.table("runs")
    return Policy(
        file=file,
        text=text,
        locks=chosen,
        require={**USUAL_REQUIRE, **require},
        play=play,
        storms=storms,
        repeat=played.number("repeat", 1, REPEAT_LIMIT, 1) or 1,
        seed=played.number("seed", 0, SEED_LIMIT - REPEAT_LIMIT, 1) or 0,
        time=None if "time" not in played.values else played.name("time", "time", TIMES),
        controls=played.flag("controls", True),
        accepted=tuple(read_acceptance(table, chosen, play, storms) for table in top.tables("accept")),
        budget_ms=budget.duration_ms("time", 1_000, 24 * UNITS_MS["h"]),
        budget_trials=budget.number("trials", 1, TRIALS_LIMIT),
        runs=file.parent / (runs.text("directory", "runs") or "runs"),
        keep=runs.number("keep", 1, TRIALS_LIMIT),
    )


def read_require(table: Table) -> dict[str, tuple[str, ...]]:
    """The properties that the policy requires, by store mode; without those that it does not mention."""
    chosen = {store: table.names(store, "property", JUDGED) for store in USUAL_REQUIRE}
    return {store: names for store, names in chosen.items() if names}


def read_name(table: Table, home: Path) -> tuple[str, str]:
    """The key that names the lock, and the lock's name. The path of a user-supplied lock is relative to `home`."""
    supplied = [key for key in USER_SUPPLIED if key in table.values]
    if not supplied:
        return "name", table.name("name", "lock", [lock.name for lock in locks()])
    key = supplied[0]
    if "name" in table.values or len(supplied) > 1:
        raise table.error(key, "a lock has a name, or an adapter or a plug-in in its place")
    word = table.text(key) or ""
    if "/" in word and not word.startswith("/"):
        path = str(home / word)
        word = path if path.startswith("/") else f"./{path}"
    name = USER_SUPPLIED[key] + word
    table.checked(key, lambda: lock_named(name))
    return key, name


def read_server(table: Table, home: Path) -> str | None:
    """The program that locks on Redis live on; its path is relative to `home`."""
    word = table.text("server")
    if word is None:
        return None
    chosen = str((home / word).absolute()) if "/" in word else word
    table.checked("server", lambda: paths.redis_server(chosen))
    return chosen


def read_lock(table: Table, require: dict[str, tuple[str, ...]], home: Path, server: str | None) -> LockChoice:
    key, name = read_name(table, home)
    if lock_named(name).service != "redis":
        server = None
    store = table.name("store", "store mode", USUAL_STORES, "open")
    lease_ms = table.duration_ms("lease", 1, LEASE_LIMIT_MS)
    permits = table.number("permits", 1, PERMIT_LIMIT)
    fixed_lease = table.flag("fixed_lease", False)
    request = TrialSettings(name, "", store=store, lease_ms=lease_ms, permits=permits, fixed_lease=fixed_lease)
    request = replace(request, time=usual_time(lock_named(name)))
    lock, *_ = table.checked("store" if store != "open" else key, lambda: check_settings(request))
    own = table.names("require", "property", JUDGED)
    if own and "fencing" in own and not lock.token:
        raise table.error("require", f"{name} gives no fencing token, so fencing cannot be judged")
    usual = require.get(store) or with_capacity(USUAL_REQUIRE[store], permits)
    required = own or tuple(each for each in usual if each != "fencing" or lock.token)
    used, written_name = table.text("used"), str(table.values[key])
    checks_validity = table.flag("checks_validity", False)
    options = (used, lease_ms, permits, fixed_lease, checks_validity)
    return LockChoice(name, store, required, table.line(), *options, written_name, server)


def read_scenarios(table: Table) -> tuple[str, ...]:
    """The scenarios to play, in the order of their names; all of them if `play` is missing or "all"."""
    known = list(scenarios())
    wanted = None if table.values.get("play") == "all" else table.values.get("play")
    play = (
        () if wanted == [] else (table.names("play", "scenario", known) if wanted is not None else tuple(known)) or ()
    )
    skip = table.names("skip", "scenario", known) if table.values.get("skip") != [] else ()
    return tuple(name for name in known if name in play and name not in (skip or ()))


def read_storms(tables: list[Table]) -> tuple[StormChoice, ...]:
    storms: list[StormChoice] = []
    for table in tables:
        name = table.required_text("name")
        if not NAME.fullmatch(name):
            raise table.error("name", f"{name!r}: a name is made of small letters, digits and single dashes")
        if any(storm.name == name for storm in storms):
            raise table.error("name", f"there are two storms called {name}")
        faults = (
            ALL
            if table.values.get("faults", ALL) == ALL
            else ",".join(table.names("faults", "fault", sorted(known_faults())) or ())
        )
        storms.append(
            StormChoice(
                name,
                faults,
                table.number("trials", 1, TRIALS_LIMIT, 1) or 1,
                table.duration_ms("duration", DURATION_LEAST_MS, UNITS_MS["h"]),
                table.number("clients", 1, CLIENTS_LIMIT),
                table.duration_ms("lease", 1, LEASE_LIMIT_MS),
                table.number("seed", 0, SEED_LIMIT - TRIALS_LIMIT, 1) or 0,
                table.name("time", "time", TIMES, "virtual"),
            )
        )
    return tuple(storms)


def read_acceptance(
    table: Table, chosen: tuple[LockChoice, ...], play: tuple[str, ...], storms: tuple[StormChoice, ...]
) -> Acceptance:
    """An acceptance of a lock or scenario that the policy does not play is an error: nothing would ever show it."""
    names = {each.written_name: each.name for each in chosen}
    lock = names[table.name("lock", "lock in this policy", list(names))]
    store = table.name("store", "store mode", USUAL_STORES) if "store" in table.values else None
    if store and (lock, store) not in [(each.name, each.store) for each in chosen]:
        raise table.error("store", f"this policy does not use {lock} with a {store} store")
    scenario = table.name(
        "scenario", "scenario or storm in this policy", [*play, *(storm.scenario for storm in storms)]
    )
    properties = table.names("property", "property", JUDGED)
    if not properties:
        raise table.error(None, "[[accept]] lacks property: what is violated, such as mutual_exclusion")
    return Acceptance(lock, store, scenario, properties, table.required_text("why"), table.date("until"), table.line())
