"""The policy (`lockstorm.toml`, docs/gate.md): the properties that each lock must keep, and the faults to play."""

import datetime
import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from lockstorm.attach.server_address import ServerAddress, TlsFiles, parse_address, tls_files
from lockstorm.base.durations import UNITS_MS
from lockstorm.base.errors import UsageError, at_place
from lockstorm.base.toml_table import TomlTable, read_toml
from lockstorm.gate.app_policy import AppChoice, check_has_locks, check_names_something, read_apps
from lockstorm.gate.policy_file import CLIENTS_LIMIT, KEYS, NAME, REPEAT_LIMIT
from lockstorm.locks import adapter, plugin
from lockstorm.locks.lock_names import lock_named
from lockstorm.native.library import locks
from lockstorm.results.lock_entry import Topology
from lockstorm.results.properties import JUDGED, with_capacity
from lockstorm.scenario.attached_play import attached_scenarios
from lockstorm.scenario.play import check_settings, usual_time
from lockstorm.scenario.scenario import USUAL_STORES, Scenario, scenarios
from lockstorm.servers.deployment import Deployment, read_deployment
from lockstorm.storm.storm_plan import ALL, DURATION_LEAST_MS, TRIALS_LIMIT, known_faults
from lockstorm.trial.attached_nodes import check_service
from lockstorm.trial.settings import LEASE_LIMIT_MS, PERMIT_LIMIT, SEED_LIMIT, TIMES, TrialSettings

# Mutual exclusion is not required where the resource refuses old tokens: the fence makes two holders harmless. Of a
# lock with several permits, capacity is required instead of integrity (with_capacity).
USUAL_REQUIRE = {
    "open": ("mutual_exclusion", "integrity", "liveness"),
    "fence-writes": ("integrity", "fencing", "liveness"),
    "fence-reads-and-writes": ("integrity", "fencing", "liveness"),
}
# The keys of [[lock]] that name a user-supplied lock instead of `name`, and the prefix of such a lock's name.
USER_SUPPLIED = {"adapter": adapter.PREFIX, "plugin": plugin.PREFIX}


@dataclass(frozen=True)
class LockChoice:
    """A lock, the store mode of the resource that it protects, and the properties that must hold."""

    request: TrialSettings  # of each trial, which has its own scenario, kind of time and seed
    require: tuple[str, ...]
    line: int
    used: str | None = None  # the place in the project that chooses the lock: path or path:line
    written_name: str = ""  # the name in the policy; of a user-supplied lock without its prefix
    topologies: tuple[Topology, ...] = ()  # sentinel, cluster: those of [deployment]

    @property
    def name(self) -> str:
        return self.request.lock

    @property
    def store(self) -> str:
        return self.request.store or "open"

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
class AttachChoice:
    """[attach]: servers that are there already (docs/attach.md). `yes`: play although they are not empty."""

    address: ServerAddress
    files: TlsFiles
    yes: bool
    line: int


def used_place(used: str) -> tuple[str, int]:
    """The file that chooses a lock, relative to the policy, and the line in it."""
    path, colon, line = used.rpartition(":")
    return (path, int(line)) if colon and line.isdigit() and int(line) > 0 else (used, 1)


@dataclass(frozen=True)
class Policy:
    """All settings of a policy file, checked."""

    file: Path
    text: str
    locks: tuple[LockChoice, ...]
    require: dict[str, tuple[str, ...]]  # by store mode
    play: tuple[str, ...]  # scenarios; each lock gets those that apply to it
    named: bool = False  # `play` names them: one that is played with no lock is inconclusive
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
    attach: AttachChoice | None = None  # servers that are there already; None: trials start their own
    apps: tuple[AppChoice, ...] = ()  # of a kept run empty: run.json has its searches

    @property
    def scenarios(self) -> dict[str, Scenario]:
        """Those that can be played, by name."""
        return playable_scenarios(self.attach)


def read_policy(file: Path, home: Path | None = None) -> Policy:
    """Raises UsageError, with the line, for the first mistake. `home`: of a kept run, the directory of its adapters and
    plug-ins; default: the directory of the file."""
    text, top = read_toml(file, KEYS, "`lockstorm init` writes one, -f names another")
    check_names_something(top)
    require = read_require(top.table("require"))
    deployment = read_deployment(top.table("deployment"), home or file.parent)
    config = config_of(deployment, file, is_kept=home is not None)
    apps = read_apps(top, file.parent) if home is None else ()
    home = home or file.parent
    chosen = tuple(deployed_on(read_lock(table, require, home), deployment, config) for table in top.tables("lock"))
    if not chosen:
        check_has_locks(top)
    check_distinct(file, chosen)
    attach = read_attach(top.table("attach"), home)
    play = read_scenarios(top.table("scenarios"), attach)
    storms = read_storms(top.tables("storm"))
    if attach:
        check_attached(top, chosen, attach)
    if chosen and not play and not storms:
        raise UsageError(f"{file} leaves nothing to play: it has neither scenarios nor storms")
    played, budget, runs = top.table("scenarios"), top.table("budget"), top.table("runs")
    return Policy(
        file=file,
        text=text,
        locks=chosen,
        require={**USUAL_REQUIRE, **require},
        play=play,
        named=top.table("scenarios").values.get("play", "all") != "all",
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
        attach=attach,
        apps=apps,
    )


def check_distinct(file: Path, chosen: tuple[LockChoice, ...]) -> None:
    titles = [lock.title for lock in chosen]
    for lock in chosen:
        if titles.count(lock.title) > 1:
            raise UsageError(f"{file}:{lock.line}: {lock.title} is there more than once")


def read_attach(table: TomlTable, home: Path) -> AttachChoice | None:
    """None without the table. Files are relative to `home`."""
    if not table.values:
        return None
    url, names = table.required_text("url"), ("ca", "client_cert", "client_key")
    ca, certificate, key = (table.text(name) for name in names)
    address = table.checked("url", lambda: parse_address(url))
    files = tls_files(ca, certificate, key, home)
    chosen = next((name for name in names if name in table.values), "url")
    table.checked(chosen, lambda: files.check(address))
    return AttachChoice(address, files, table.flag("yes", False), table.line())


def check_attached(top: TomlTable, chosen: tuple[LockChoice, ...], attach: AttachChoice) -> None:
    """Raises UsageError for what cannot be played on servers that are there already."""
    for storm in top.tables("storm"):
        raise storm.error(None, "a storm breaks servers of its own: leave it out, or leave out [attach]")
    if top.table("deployment").values:
        raise top.error("deployment", "[attach] has the servers as they are: leave out [deployment], or [attach]")
    if top.table("scenarios").values.get("time") == "virtual":
        raise top.table("scenarios").error("time", "the servers of [attach] know real time only: leave it out")
    for lock in chosen:
        with at_place(f"{top.file}:{lock.line}"):
            check_service(attach.address, lock_named(lock.name))


def playable_scenarios(attach: AttachChoice | None) -> dict[str, Scenario]:
    return attached_scenarios() if attach else dict(scenarios())


def read_require(table: TomlTable) -> dict[str, tuple[str, ...]]:
    """The properties that the policy requires, by store mode; without those that it does not mention."""
    chosen = {store: table.names(store, "property", JUDGED) for store in USUAL_REQUIRE}
    return {store: names for store, names in chosen.items() if names}


def read_name(table: TomlTable, home: Path) -> tuple[str, str]:
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


def config_of(deployment: Deployment, file: Path, is_kept: bool) -> str | None:
    """The file that says how the servers are configured: the policy, if it does. Of a kept run nothing is played again,
    and the files that its policy names may be gone."""
    has_more = replace(deployment, server=None) != Deployment()
    return str(file) if has_more and not is_kept else None


def deployed_on(lock: LockChoice, deployment: Deployment, config: str | None) -> LockChoice:
    service = lock_named(lock.name).service
    if service != "redis":
        return replace(lock, request=replace(lock.request, config=config)) if deployment.is_about(service) else lock
    request = replace(lock.request, server=deployment.server, config=config)
    return replace(lock, request=request, topologies=deployment.topologies)


def read_lock(table: TomlTable, require: dict[str, tuple[str, ...]], home: Path) -> LockChoice:
    key, name = read_name(table, home)
    store = table.name("store", "store mode", USUAL_STORES, "open")
    request = TrialSettings(
        name,
        store=store,
        time=usual_time(lock_named(name)),
        lease_ms=table.duration_ms("lease", 1, LEASE_LIMIT_MS),
        permits=table.number("permits", 1, PERMIT_LIMIT),
        fixed_lease=table.flag("fixed_lease", False),
        checks_validity=table.flag("checks_validity", False),
    )
    lock, *_ = table.checked("store" if store != "open" else key, lambda: check_settings(request))
    own = table.names("require", "property", JUDGED)
    if own and "fencing" in own and not lock.token:
        raise table.error("require", f"{name} gives no fencing token, so fencing cannot be judged")
    usual = require.get(store) or with_capacity(USUAL_REQUIRE[store], request.permits)
    required = own or tuple(each for each in usual if each != "fencing" or lock.token)
    return LockChoice(request, required, table.line(), table.text("used"), str(table.values[key]))


def read_scenarios(table: TomlTable, attach: AttachChoice | None) -> tuple[str, ...]:
    """The scenarios to play, in the order of their names; all of them if `play` is missing or "all"."""
    known = list(playable_scenarios(attach))
    wanted = table.values.get("play")
    for name in wanted if isinstance(wanted, list) else ():
        if attach and name in scenarios() and name not in known:
            raise table.error("play", f"{name} breaks a server or needs one of its own, so [attach] cannot play it")
    play = known if wanted in (None, "all") else table.names("play", "scenario", known) if wanted != [] else ()
    skippable = list({**scenarios(), **dict.fromkeys(known)})
    skip = table.names("skip", "scenario", skippable) if table.values.get("skip") != [] else ()
    return tuple(name for name in known if name in (play or ()) and name not in (skip or ()))


def read_storms(tables: list[TomlTable]) -> tuple[StormChoice, ...]:
    storms: list[StormChoice] = []
    for table in tables:
        name = table.required_text("name")
        if not re.fullmatch(NAME, name):
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
    table: TomlTable, chosen: tuple[LockChoice, ...], play: tuple[str, ...], storms: tuple[StormChoice, ...]
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
