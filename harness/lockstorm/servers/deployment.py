"""How a team runs its servers: what [deployment] of a policy and --config say, as far as a trial can do the same."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from lockstorm.base import paths
from lockstorm.base.errors import UsageError
from lockstorm.base.toml_table import TomlTable, read_toml
from lockstorm.results.lock_entry import Topology
from lockstorm.servers.deployment_tables import (
    FAILOVER_TIMEOUT_MOST_MS,
    KEYS,
    PATIENCE_LEAST_MS,
    PATIENCE_MOST_MS,
    REPLICAS_LIMIT,
    SENTINELS_LIMIT,
)
from lockstorm.servers.ensemble_settings import (
    MEMBERS,
    SCENARIO_COUNTS,
    by_name,
    ensemble_in_virtual_time,
    read_ensemble,
)
from lockstorm.servers.lacking_commands import lacking_commands
from lockstorm.servers.postgres_server import refusal_by_postgres
from lockstorm.servers.redis_config import (
    LAG,
    LAG_OF_TRIAL_S,
    LAG_SETTINGS,
    ChangedSetting,
    RedisSetting,
    check_redis_settings,
    divide,
    read_redis_config,
    replicas_needed,
    settings_in,
)
from lockstorm.servers.topology import TOPOLOGIES, Elections

ENSEMBLES = ("etcd", "zookeeper")
# What decides which commits a failover forgets, and what a transaction sees. The rest of a postgresql.conf does not.
POSTGRES_SETTINGS = ("synchronous_commit", "synchronous_standby_names", "default_transaction_isolation")
ANY_STANDBY = "*"
ONE_STANDBY = "a trial has one standby, whatever its name is"
NO_EFFECT = "it decides neither what a crash forgets nor what a transaction sees"


@dataclass(frozen=True)
class Deployment:
    """The settings of a trial's servers, where they are not the usual ones."""

    settings: Mapping[str, tuple[RedisSetting, ...]] = field(default_factory=dict)  # by service
    changed: tuple[ChangedSetting, ...] = ()  # of the team's, by the trial
    replicas: int = 0  # of each redis-server that is alone
    elections: Elections = field(default_factory=Elections)  # in real time
    topologies: tuple[Topology, ...] = ()  # that the team runs: sentinel, cluster
    server: str | None = None  # the program that the locks on Redis live on; None: the usual one
    without: str | None = None  # commands that it lacks, separated by commas
    is_redis_configured: bool = False  # settings of redis-server are given, though maybe none: its defaults count

    def of(self, service: str) -> tuple[RedisSetting, ...]:
        return self.settings.get(service, ())

    def is_about(self, service: str) -> bool:
        if service == "redis":
            return self.is_redis_configured
        return bool(self.of(service)) or any(each.service == service for each in self.changed)

    def given(self, service: str) -> dict[str, str]:
        """The values of the settings by their names."""
        return by_name(self.of(service))

    def on(self, service: str, time: str, nodes: int) -> "tuple[Deployment, int]":
        """What a trial in this kind of time makes of it, and its number of etcd or ZooKeeper servers. `nodes`: those
        that the scenario needs; 1: as many as the team has."""
        found = self.in_time(time)
        if service not in ENSEMBLES:
            return found, nodes
        members = next((each for each in found.of(service) if each.name == MEMBERS), None)
        if not members or int(members.value) == nodes:
            return found, nodes
        if nodes == 1:
            return found, int(members.value)
        others = tuple(each for each in found.of(service) if each is not members)
        changed = (*found.changed, ChangedSetting(members, SCENARIO_COUNTS, service))
        return replace(found.only(service, others), changed=changed), nodes

    @property
    def waits_for_standby(self) -> bool:
        """Whether a commit on PostgreSQL is answered only when a standby has it."""
        given = self.given("postgres")
        return bool(given.get(POSTGRES_SETTINGS[1])) and given.get(POSTGRES_SETTINGS[0]) not in ("off", "local")

    def in_time(self, time: str) -> "Deployment":
        if time != "virtual":
            return self
        zookeeper, chosen = ensemble_in_virtual_time(self.of("zookeeper"))
        return replace(self.only("zookeeper", zookeeper), changed=(*self.changed, *chosen))._without_lag()

    def _without_lag(self) -> "Deployment":
        lags = tuple(each for each in self.of("redis") if each.name in LAG_SETTINGS)
        others = tuple(each for each in self.of("redis") if each.name not in LAG_SETTINGS)
        if not replicas_needed(others):
            return self
        endless = RedisSetting(LAG_SETTINGS[0], LAG_OF_TRIAL_S, "the trial")
        changed = tuple(ChangedSetting(each, LAG) for each in lags)
        return replace(self.only("redis", (*others, endless)), changed=(*self.changed, *changed))

    def only(self, service: str, settings: Iterable[RedisSetting]) -> "Deployment":
        """The same with these settings of the service's servers alone."""
        kept = {**self.settings, service: tuple(settings)}
        return replace(self, settings={name: each for name, each in kept.items() if each})


def deployment_named(config: str) -> Deployment:
    """What --config names: a redis.conf, or a policy (its name ends with .toml), whose table [deployment] counts.
    Raises UsageError."""
    file = Path(config)
    if file.suffix != ".toml":
        return _deployment_of(read_redis_config(file), 0, None, config)
    _, top = read_toml(file, {}, "--config names a redis.conf, or a policy with a table [deployment]")
    if "deployment" not in top.values:
        raise UsageError(f"{file} has no table [deployment]")
    inside = TomlTable(top.file, KEYS, top.lines, ("deployment",), top.values["deployment"])
    return read_deployment(inside, file.parent)


def read_deployment(table: TomlTable, home: Path) -> Deployment:
    """The table [deployment] of a policy; the paths in it are relative to `home`. Raises UsageError with the line."""
    server, config = table.text("server"), table.text("config")
    if server:
        server = str((home / server).absolute()) if "/" in server else server
        table.checked("server", lambda: paths.redis_server(server, "server"))
    without = table.text("without")
    table.checked("without", lambda: lacking_commands(without, server, "without"))
    settings = table.checked("config", lambda: read_redis_config(home / config)) if config else ()
    given = table.table("redis")
    own = [setting for _, setting in settings_in(given)]
    replicas = table.number("replicas", 0, REPLICAS_LIMIT, 0) or 0
    topologies = tuple(each for each in TOPOLOGIES if each in table.values)
    found = _deployment_of((*settings, *own), replicas, server, f"{table.file}:{table.line()}")
    is_configured, elections = bool(config or given.values), read_elections(table)
    found = replace(
        found, is_redis_configured=is_configured, elections=elections, topologies=topologies, without=without
    )
    found = with_postgresql(found, table.table("postgresql"))
    for service in ENSEMBLES:
        kept, changed = read_ensemble(table.table(service), service)
        found = replace(found.only(service, kept), changed=(*found.changed, *changed))
    return found


def with_postgresql(deployment: Deployment, table: TomlTable) -> Deployment:
    """The deployment with the settings of PostgreSQL that count; its server checks them."""
    kept, changed = list[RedisSetting](), list[ChangedSetting]()
    for name, setting in settings_in(table):
        if setting.name not in POSTGRES_SETTINGS:
            changed.append(ChangedSetting(setting, NO_EFFECT, "postgres"))
            continue
        if reason := refusal_by_postgres(setting.name, setting.value):
            raise table.error(name, f"PostgreSQL refuses it: {reason}")
        if setting.name == POSTGRES_SETTINGS[1] and setting.value != ANY_STANDBY:
            changed.append(ChangedSetting(setting, ONE_STANDBY, "postgres"))
            setting = replace(setting, value=ANY_STANDBY)
        kept.append(setting)
    return replace(deployment.only("postgres", kept), changed=(*deployment.changed, *changed))


def read_elections(table: TomlTable) -> Elections:
    sentinel, cluster, usual = table.table("sentinel"), table.table("cluster"), Elections()
    bounds = (PATIENCE_LEAST_MS, PATIENCE_MOST_MS)
    count = sentinel.number("sentinels", 1, SENTINELS_LIMIT, usual.sentinels) or usual.sentinels
    quorum = sentinel.number("quorum", 1, count, min(usual.quorum, count)) or 1
    return Elections(
        sentinels=count,
        quorum=quorum,
        down_after_ms=sentinel.number("down-after-milliseconds", *bounds),
        failover_timeout_ms=sentinel.number("failover-timeout", PATIENCE_LEAST_MS, FAILOVER_TIMEOUT_MOST_MS)
        or usual.failover_timeout_ms,
        node_timeout_ms=cluster.number("node-timeout", *bounds),
    )


def _deployment_of(settings: Iterable[RedisSetting], replicas: int, server: str | None, place: str) -> Deployment:
    kept, changed = divide(settings)
    needed = max(replicas, replicas_needed(kept))
    if needed > REPLICAS_LIMIT:
        raise UsageError(
            f"{place}: {needed} replicas are asked for, and a master of a trial has {REPLICAS_LIMIT} at most"
        )
    if kept:
        check_redis_settings(paths.redis_server(server), kept)
    found = Deployment(changed=changed, replicas=needed, server=server, is_redis_configured=True)
    return found.only("redis", kept)
