"""The file of a campaign (docs/campaigns.md): searches, matrices, storms, bugs of the zoo and policies, with a budget
each. A key of an entry is an option of the command of that name, with _ in the place of -."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lockstorm.application.application_file import read_application
from lockstorm.base.errors import UsageError
from lockstorm.base.option_fields import options_of
from lockstorm.base.toml_table import TomlTable, read_toml
from lockstorm.gate.gate_plan import plan_gate
from lockstorm.gate.gate_policy import read_policy
from lockstorm.locks import plugin
from lockstorm.locks.adapter import PREFIX
from lockstorm.locks.lock_names import APP_PREFIX, hosts_programs, is_application, lock_named
from lockstorm.matrix.matrix import choose_cells
from lockstorm.scenario.cells import CellKey
from lockstorm.scenario.play import usual_time
from lockstorm.search.search_plan import (
    EXHAUSTIVE,
    OPTIONS_OF_APPLICATIONS,
    OPTIONS_OF_LIBRARIES,
    SCHEDULES_MOST,
    SearchRequest,
    plan_search,
)
from lockstorm.storm.storm_plan import StormRequest, plan_storm
from lockstorm.trial.settings import SEED_LIMIT, TrialSettings
from lockstorm.zoo.zoo import FIXED_SCHEDULES_LEAST, Hunt
from lockstorm.zoo.zoo_entries import Bug, bugs

NAME = re.compile(r"[A-Za-z0-9]+([-_.+][A-Za-z0-9]+)*")
RESERVED = ("campaign",)  # campaign.json
REPEAT_MOST = 1000
CUT_OF_LOCK, CUT_OF_LIBRARY = 10_000, 200  # schedules in a case: some seconds
HUNT_SCHEDULES = 10_000
HUNT_SECONDS = 3600  # a bound, not a budget: the number of schedules is that
WITHOUT = {
    "shard": "the engine divides the work; cut sets the size of a case",
    "workers": "each worker plays one case at a time",
    "time_limit": "a budget of a campaign is a number of schedules: what a time is worth depends on the machine",
    "server": "workers use the redis-server of their machine",
}
TRIAL_KEYS = (
    *("duration", "clients", "seed", "time", "store", "lease", "fixed_lease", "checks_validity", "permits"),
    "require",
)
STORM_KEYS = ("faults", "trials", "longest", "bound", "work", "wait")


SEARCH_KEYS = tuple(option.key for option in options_of(SearchRequest).values())
KEYS = {
    "": ("explore", "matrix", "storm", "zoo", "gate"),
    "explore": ("name", "lock", "adapter", "plugin", "app", "cut", *SEARCH_KEYS),
    "matrix": ("name", "lock", "scenario", "store", "time", "repeat", "seed"),
    "storm": ("name", "lock", "adapter", "plugin", *STORM_KEYS, *TRIAL_KEYS),
    "zoo": ("name", "bug", "schedules", "fixed_schedules", "no_explore"),
    "gate": ("name", "policy"),
}


@dataclass(frozen=True)
class SearchEntry:
    """A search of a C lock, of a library or of an application."""

    name: str
    request: SearchRequest
    cut: int  # schedules in a case


@dataclass(frozen=True)
class MatrixEntry:
    name: str
    cells: tuple[CellKey, ...]
    time: str | None
    repeat: int
    seed: int


@dataclass(frozen=True)
class StormEntry:
    """Storms over one lock, each with the next seed."""

    name: str
    storm: StormRequest


@dataclass(frozen=True)
class ZooEntry:
    """Bugs of the zoo. No `hunt`: only their scenarios."""

    name: str
    bugs: tuple[Bug, ...]
    hunt: Hunt | None


@dataclass(frozen=True)
class GateEntry:
    name: str
    policy: Path


CampaignEntry = SearchEntry | MatrixEntry | StormEntry | ZooEntry | GateEntry


@dataclass(frozen=True)
class CampaignFile:
    file: Path
    text: str
    entries: tuple[CampaignEntry, ...]


def read_campaign_file(file: Path, place: Path | None = None) -> CampaignFile:
    """Reads and checks it. `place`: the directory that paths in it are relative to; None: that of the file. UsageError
    names the line of what is wrong."""
    text, top = read_toml(file, KEYS, "`lockstorm docs campaigns` has one to begin with")
    entries: list[CampaignEntry] = []
    for kind in KEYS[""]:
        for table in top.tables(kind):
            for entry in _entries(kind, table, place or file.parent):
                if entry.name in {each.name for each in entries}:
                    raise table.error("name", f"there are two entries called {entry.name!r}: give one a name")
                entries.append(entry)
    if not entries:
        raise UsageError(f"{file}: it has no entry: {', '.join(f'[[{kind}]]' for kind in KEYS[''])}")
    return CampaignFile(file, text, tuple(entries))


def _entries(kind: str, table: TomlTable, place: Path) -> Iterator[CampaignEntry]:
    match kind:
        case "explore":
            yield from _searches(table, place)
        case "matrix":
            yield _matrix(table)
        case "storm":
            yield from _storms(table, place)
        case "zoo":
            yield _zoo(table)
        case _:
            yield _gate(table, place)


def _gate(table: TomlTable, place: Path) -> GateEntry:
    file = place / table.required_text("policy")
    policy = table.checked("policy", lambda: read_policy(file))
    if policy.attach:
        raise table.error("policy", f"{file}: [attach] names servers that its trials share, one after the other")
    for app in policy.apps:
        if app.plan.seconds:
            key = "time_limit" if app.plan.request.seconds else "schedules, and searches for 60s then"
            lacks = "has" if app.plan.request.seconds else "lacks"
            raise table.error("policy", f"{file}:{app.line}: [[app]] {lacks} {key}: {WITHOUT['time_limit']}")
    table.checked("policy", lambda: plan_gate(policy))
    return GateEntry(_name(table, "gate"), file)


def _name(table: TomlTable, default: str) -> str:
    name = table.text("name", default)
    assert name is not None
    if not NAME.fullmatch(name):
        raise table.error(
            "name", f"the name {name!r} becomes the name of a file: letters and digits, joined by - _ . +"
        )
    if name in RESERVED:
        raise table.error("name", f"the name {name!r} is that of a file of the campaign itself")
    return name


def _locks(table: TomlTable, place: Path) -> list[tuple[str, str]]:
    """The names of an entry and of what is tried, for each lock and application that the table names."""
    found = [(name, name) for name in table.texts("lock")]
    for adapter in table.texts("adapter"):
        path = str(place / adapter) if "/" in adapter and ":" not in adapter else adapter
        found.append((Path(adapter).name.replace(":", "-"), PREFIX + path))
    found += [(Path(path).stem, plugin.PREFIX + str(place / path)) for path in table.texts("plugin")]
    found += [(_app_name(table, place / app), f"{APP_PREFIX}{place / app}") for app in table.texts("app")]
    if not found:
        others = "an adapter, a plugin or an app" if "app" in KEYS[table.kind] else "an adapter or a plugin"
        raise table.error(None, f"[[{table.kind}]] lacks a lock, {others}")
    if "name" not in table.values:
        return found
    name = _name(table, "")
    return [(name if len(found) == 1 else f"{name}-{each}", lock) for each, lock in found]


def _app_name(table: TomlTable, file: Path) -> str:
    """The application's own name, as a part of a file's name."""
    application = table.checked("app", partial(read_application, file))
    return "-".join(re.findall(r"[A-Za-z0-9]+", application.name)) or "app"


# --- searches ---


def _searches(table: TomlTable, place: Path) -> Iterator[CampaignEntry]:
    for key, why in WITHOUT.items():
        if key in table.values:
            raise table.error(key, f"{key}: {why}")
    chosen = table.options(SearchRequest, SEARCH_KEYS)
    if "schedules" not in chosen:
        raise table.error(None, "[[explore]] lacks schedules: its budget")
    for name, lock in _locks(table, place):
        usual_cut = CUT_OF_LIBRARY if hosts_programs(lock) else CUT_OF_LOCK
        request = SearchRequest(lock, **chosen)
        if request.strategy == EXHAUSTIVE:
            raise table.error("strategy", "exhaustive goes from one schedule to the next: it cannot be cut into cases")
        _check_options(table, lock, chosen)
        table.checked(None, partial(plan_search, request))
        yield SearchEntry(name, request, table.number("cut", 1, SCHEDULES_MOST) or usual_cut)


def _check_options(table: TomlTable, lock: str, chosen: Collection[str]) -> None:
    """Raises UsageError, with its line, for an option that a search of programs has no use for."""
    if not hosts_programs(lock):
        return
    allowed = OPTIONS_OF_APPLICATIONS if is_application(lock) else OPTIONS_OF_LIBRARIES
    for name in chosen:
        key = options_of(SearchRequest)[name].key
        if table.values.get(key) is not False and name not in allowed:
            what = "an application" if is_application(lock) else "a library"
            raise table.error(key, f"{key}: a search of {what} draws it, or has none")


# --- the others ---


def _matrix(table: TomlTable) -> MatrixEntry:
    time = table.text("time")
    names = {key: ",".join(table.texts(key)) or None for key in ("lock", "scenario", "store")}
    cells = table.checked(None, lambda: choose_cells(names["lock"], names["scenario"], names["store"], time))
    repeat = table.number("repeat", 1, REPEAT_MOST, 1) or 1
    seed = table.number("seed", 0, SEED_LIMIT - repeat, 1)
    return MatrixEntry(_name(table, "matrix"), tuple(cells), time, repeat, 1 if seed is None else seed)


def _storms(table: TomlTable, place: Path) -> Iterator[StormEntry]:
    for name, lock in _locks(table, place):
        given = table.options(TrialSettings, TRIAL_KEYS)
        time = given.pop("time", None) or usual_time(table.checked(None, partial(lock_named, lock)))
        entry = StormEntry(
            name if "name" in table.values else f"storm-{name}",
            StormRequest(TrialSettings(lock, "storm", time=time, **given), **table.options(StormRequest, STORM_KEYS)),
        )
        table.checked(None, partial(plan_storm, entry.storm))
        yield entry


def _zoo(table: TomlTable) -> ZooEntry:
    known = bugs()
    chosen = table.names("bug", "bug", list(known)) or tuple(known)
    hunt = Hunt(
        seconds=HUNT_SECONDS,
        schedules=table.number("schedules", 1, SCHEDULES_MOST, HUNT_SCHEDULES),
        fixed_schedules=table.number("fixed_schedules", 1, SCHEDULES_MOST, FIXED_SCHEDULES_LEAST) or 1,
    )
    explored = not table.flag("no_explore", False)
    return ZooEntry(_name(table, "zoo"), tuple(known[name] for name in chosen), hunt if explored else None)
