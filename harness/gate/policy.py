"""The policy: which locks have to keep what, under which faults (`lockstorm.toml`, docs/gate.md)."""

import datetime
import re
import tomllib
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

from harness.driver import adapter, plugin
from harness.driver.errors import UsageError
from harness.driver.library import locks
from harness.driver.play import (
    LEASE_LIMIT_MS,
    PERMIT_LIMIT,
    PROPERTIES,
    SEED_LIMIT,
    Wish,
    checked,
    choose,
    lock_named,
    usual_time,
)
from harness.driver.scenario import USUAL_STORES, scenarios
from harness.driver.storm import ALL, DURATION_LEAST_MS, TRIALS_LIMIT, known_faults
from harness.driver.trial import TIMES
from harness.gate import places

USUAL_FILE = "lockstorm.toml"
REPEAT_LIMIT = 1_000
CLIENTS_LIMIT = 64
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
JUDGED = tuple(name for name in PROPERTIES if name != "cost")  # cost is told, never judged
UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}

# Where the resource refuses old tokens, two holders at once are what the fence is there for.
USUAL_REQUIRE = {
    "open": ("mutual_exclusion", "integrity", "liveness"),
    "fence-writes": ("integrity", "fencing", "liveness"),
    "fence-reads-and-writes": ("integrity", "fencing", "liveness"),
}
# What may stand in each table. In [[lock]], one of BROUGHT takes the place of `name`.
BROUGHT = {"adapter": adapter.PREFIX, "plugin": plugin.PREFIX}
KEYS = {
    "": ("lock", "require", "scenarios", "storm", "budget", "accept", "runs"),
    "lock": ("name", "adapter", "plugin", "store", "require", "used", "lease", "permits", "fixed_lease"),
    "require": USUAL_STORES,
    "scenarios": ("play", "skip", "repeat", "seed", "time", "controls"),
    "storm": ("name", "faults", "trials", "duration", "clients", "lease", "seed", "time"),
    "budget": ("time", "trials"),
    "accept": ("lock", "store", "scenario", "property", "why", "until"),
    "runs": ("directory", "keep"),
}


@dataclass(frozen=True)
class LockChoice:
    """A lock, what it protects, and what has to hold."""

    name: str
    store: str
    require: tuple[str, ...]
    line: int
    used: str | None = None  # where in the project it is chosen: path or path:line
    lease_ms: int | None = None
    permits: int | None = None
    fixed_lease: bool = False

    said: str = ""  # how the policy names it

    @property
    def title(self) -> str:
        return f"{self.name}/{self.store}"


@dataclass(frozen=True)
class StormChoice:
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
        """What stands where a scenario's name would."""
        return f"storm-{self.name}"


@dataclass(frozen=True)
class Acceptance:
    """A violation that is known, and why and until when it may be there."""

    lock: str
    store: str | None  # None: whatever protects the resource
    scenario: str
    properties: tuple[str, ...]
    why: str
    until: datetime.date  # the last day
    line: int

    def covers(self, lock: str, store: str, scenario: str) -> bool:
        return (self.lock, self.scenario) == (lock, scenario) and self.store in (None, store)


@dataclass(frozen=True)
class Policy:
    file: Path
    text: str
    locks: tuple[LockChoice, ...]
    require: dict[str, tuple[str, ...]]  # by store mode
    play: tuple[str, ...]  # scenarios; whatever fits each lock
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
    """A table of the file; what it gives is checked, and what is wrong is told with its line."""

    def __init__(self, file: Path, found: dict[places.Path, int], path: places.Path, said: Any) -> None:
        self.file, self.places, self.path = file, found, path
        self.kind = str(path[0]) if path else ""
        if not isinstance(said, dict):
            raise self.wrong(None, f"[{self.kind}] has to be a table")
        self.said: dict[str, Any] = said
        for key in said:
            self._check_key(key)

    def _check_key(self, key: str) -> None:
        known = KEYS[self.kind]
        if key not in known:
            near = get_close_matches(key, known, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(known)}"
            where = f" in [{self.kind}]" if self.kind else ""
            raise self.wrong(key, f"unknown key {key!r}{where}: {hint}")

    def line(self, key: str | None = None) -> int:
        return places.line_at(self.places, self.path if key is None else (*self.path, key))

    def wrong(self, key: str | None, what: object) -> UsageError:
        return UsageError(f"{self.file}:{self.line(key)}: {what}")

    def ask(self, key: str, check: Callable[[], Any]) -> Any:
        """What a check gives; what it refuses, with the line of this key."""
        try:
            return check()
        except UsageError as error:
            raise self.wrong(key, error) from None

    def text(self, key: str, usual: str | None = None) -> str | None:
        value = self.said.get(key, usual)
        if value is not None and (not isinstance(value, str) or not value.strip()):
            raise self.wrong(key, f"{key} has to be a text")
        return value

    def needed(self, key: str) -> str:
        value = self.text(key)
        if value is None:
            raise self.wrong(None, f"[[{self.kind}]] lacks {key}")
        return value

    def name(self, key: str, kind: str, known: Collection[str], usual: str | None = None) -> str:
        value = self.needed(key) if usual is None else self.text(key, usual)
        return str(self.ask(key, lambda: choose(kind, str(value), list(known))))

    def names(self, key: str, kind: str, known: Collection[str]) -> tuple[str, ...] | None:
        """Names in a list, or a single one."""
        value = self.said.get(key)
        if value is None:
            return None
        value = [value] if isinstance(value, str) else value
        if not isinstance(value, list) or not value or not all(isinstance(name, str) for name in value):
            raise self.wrong(key, f"{key} has to be a list of names")
        said = [name.replace("-", "_") if kind == "property" else name for name in value]
        return tuple(dict.fromkeys(self.ask(key, partial(choose, kind, name, list(known))) for name in said))

    def number(self, key: str, low: int, high: int, usual: int | None = None) -> int | None:
        value = self.said.get(key, usual)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self.wrong(key, f"{key} has to be a whole number from {low} to {high}")
        return value

    def flag(self, key: str, usual: bool) -> bool:
        value = self.said.get(key, usual)
        if not isinstance(value, bool):
            raise self.wrong(key, f"{key} has to be true or false")
        return value

    def duration_ms(self, key: str, low_ms: int, high_ms: int) -> int | None:
        value = self.said.get(key)
        if value is None:
            return None
        found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h)", value) if isinstance(value, str) else None
        if not found or not low_ms <= (value_ms := int(float(found[1]) * UNITS_MS[found[2]])) <= high_ms:
            raise self.wrong(
                key, f"{key} has to be a duration such as 500ms, 10s or 5m, from {low_ms}ms to {high_ms}ms"
            )
        return value_ms

    def date(self, key: str) -> datetime.date:
        value = self.said.get(key)
        if not isinstance(value, datetime.date) or isinstance(value, datetime.datetime):
            raise self.wrong(key if key in self.said else None, f"{key} has to be a day, such as 2027-03-31")
        return value

    def table(self, key: str) -> "Table":
        return Table(self.file, self.places, (*self.path, key), self.said.get(key, {}))

    def tables(self, key: str) -> list["Table"]:
        value = self.said.get(key, [])
        if not isinstance(value, list):
            raise self.wrong(key, f"write [[{key}]]: there may be several")
        return [Table(self.file, self.places, (*self.path, key, number), said) for number, said in enumerate(value)]


def read_policy(file: Path, home: Path | None = None) -> Policy:
    """Raises UsageError, with the line, on everything that is wrong with it. `home`: where its adapters and plug-ins
    are, if not beside it."""
    try:
        text = file.read_text()
        said = tomllib.loads(text)
    except FileNotFoundError:
        raise UsageError(f"there is no {file}: `lockstorm init` writes one, -f names another") from None
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{file} is not text in UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file}: {error}") from None
    top = Table(file, places.find_places(text), (), said)
    require = read_require(top.table("require"))
    chosen = tuple(read_lock(table, require, home or file.parent) for table in top.tables("lock"))
    if not chosen:
        raise UsageError(f"{file} names no lock: [[lock]] with a name; `lockstorm locks` lists them")
    titles = [lock.title for lock in chosen]
    for lock in chosen:
        if titles.count(lock.title) > 1:
            raise UsageError(f"{file}:{lock.line}: {lock.title} is there more than once")
    play = read_scenarios(top.table("scenarios"))
    storms = read_storms(top.tables("storm"))
    if not play and not storms:
        raise UsageError(f"{file} leaves nothing to play: neither scenarios nor storms")
    played, budget, runs = top.table("scenarios"), top.table("budget"), top.table("runs")
    return Policy(
        file=file,
        text=text,
        locks=chosen,
        require=require,
        play=play,
        storms=storms,
        repeat=played.number("repeat", 1, REPEAT_LIMIT, 1) or 1,
        seed=played.number("seed", 0, SEED_LIMIT - REPEAT_LIMIT, 1) or 0,
        time=None if "time" not in played.said else played.name("time", "time", TIMES),
        controls=played.flag("controls", True),
        accepted=tuple(read_acceptance(table, chosen, play, storms) for table in top.tables("accept")),
        budget_ms=budget.duration_ms("time", 1_000, 24 * UNITS_MS["h"]),
        budget_trials=budget.number("trials", 1, TRIALS_LIMIT),
        runs=file.parent / (runs.text("directory", "runs") or "runs"),
        keep=runs.number("keep", 1, TRIALS_LIMIT),
    )


def read_require(table: Table) -> dict[str, tuple[str, ...]]:
    return {store: table.names(store, "property", JUDGED) or usual for store, usual in USUAL_REQUIRE.items()}


def read_name(table: Table, home: Path) -> tuple[str, str]:
    """The key by which the lock is named, and its name: of the table, or of one that is brought along, whose path is
    from `home`."""
    brought = [key for key in BROUGHT if key in table.said]
    if not brought:
        return "name", table.name("name", "lock", [lock["name"] for lock in locks()])
    key = brought[0]
    if "name" in table.said or len(brought) > 1:
        raise table.wrong(key, "a lock has a name, or an adapter or a plug-in in its place")
    word = table.text(key) or ""
    if "/" in word and not word.startswith("/"):
        path = str(home / word)
        word = path if path.startswith("/") else f"./{path}"
    name = BROUGHT[key] + word
    table.ask(key, lambda: lock_named(name))
    return key, name


def read_lock(table: Table, require: dict[str, tuple[str, ...]], home: Path) -> LockChoice:
    key, name = read_name(table, home)
    store = table.name("store", "store mode", USUAL_STORES, "open")
    lease_ms = table.duration_ms("lease", 1, LEASE_LIMIT_MS)
    permits = table.number("permits", 1, PERMIT_LIMIT)
    fixed_lease = table.flag("fixed_lease", False)
    wish = Wish("", name, store, lease_ms=lease_ms, permits=permits, fixed_lease=fixed_lease)
    wish = replace(wish, time=usual_time(lock_named(name)))
    lock, *_ = table.ask("store" if store != "open" else key, lambda: checked(wish))
    own = table.names("require", "property", JUDGED)
    if own and "fencing" in own and not lock["token"]:
        raise table.wrong("require", f"{name} gives no fencing token, so fencing cannot be judged")
    usual = tuple(each for each in require[store] if each != "fencing" or lock["token"])
    required = own or usual
    used, said = table.text("used"), str(table.said[key])
    return LockChoice(name, store, required, table.line(), used, lease_ms, permits, fixed_lease, said)


def read_scenarios(table: Table) -> tuple[str, ...]:
    """In the order of their names. Left out, or "all": all that there are."""
    known = list(scenarios())
    meant = None if table.said.get("play") == "all" else table.said.get("play")
    play = () if meant == [] else (table.names("play", "scenario", known) if meant is not None else tuple(known)) or ()
    skip = table.names("skip", "scenario", known) if table.said.get("skip") != [] else ()
    return tuple(name for name in known if name in play and name not in (skip or ()))


def read_storms(tables: list[Table]) -> tuple[StormChoice, ...]:
    storms: list[StormChoice] = []
    for table in tables:
        name = table.needed("name")
        if not NAME.fullmatch(name):
            raise table.wrong("name", f"{name!r}: a name is made of small letters, digits and single dashes")
        if any(storm.name == name for storm in storms):
            raise table.wrong("name", f"there are two storms called {name}")
        faults = (
            ALL
            if table.said.get("faults", ALL) == ALL
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
    """An acceptance of what is never played would stay unnoticed for ever: it is an error."""
    names = {each.said: each.name for each in chosen}
    lock = names[table.name("lock", "lock in this policy", list(names))]
    store = table.name("store", "store mode", USUAL_STORES) if "store" in table.said else None
    if store and (lock, store) not in [(each.name, each.store) for each in chosen]:
        raise table.wrong("store", f"this policy does not use {lock} with a {store} store")
    scenario = table.name(
        "scenario", "scenario or storm in this policy", [*play, *(storm.scenario for storm in storms)]
    )
    properties = table.names("property", "property", JUDGED)
    if not properties:
        raise table.wrong(None, "[[accept]] lacks property: what is violated, such as mutual_exclusion")
    return Acceptance(lock, store, scenario, properties, table.needed("why"), table.date("until"), table.line())
