"""How a team configures etcd and ZooKeeper: [deployment.etcd] and [deployment.zookeeper] of a policy."""

import json
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache

from lockstorm.base import paths
from lockstorm.base.errors import Inconclusive, NotInstalled
from lockstorm.base.toml_table import TomlTable
from lockstorm.servers.redis_config import (
    ChangedSetting,
    RedisSetting,
    chosen_by_trial,
    settings_in,
)

MEMBERS = "members"  # of a lock's etcd or ensemble; no setting of the server
MEMBERS_LIMIT = 7
SCENARIO_COUNTS = "the scenario is about a number of servers of its own"
NO_ENSEMBLE = "several ZooKeeper servers are for real time: elections are made of timeouts"
TICK_OF_TRIAL = "in virtual time the server looks for the end of sessions every 4 ms"
SILENCE_LIMIT_MS = 20_000  # a trial waits for an election for 60 s (etcd_server.leader_of)
ASK_LIMIT_S = 30.0
MS_PER_S = 1000

# ZooKeeper takes any name as a property of its Java machine, so it cannot tell which one is wrong.
ZOOKEEPER_SETTINGS = {  # name -> least and largest value
    "tickTime": (1, SILENCE_LIMIT_MS),
    "initLimit": (1, 10_000),
    "syncLimit": (1, 10_000),
    "minSessionTimeout": (1, 24 * 3600 * MS_PER_S),
    "maxSessionTimeout": (1, 24 * 3600 * MS_PER_S),
}
ETCD_DEFAULTS = {"heartbeat-interval": 100, "election-timeout": 1000}  # ms
ZOOKEEPER_SYNC_LIMIT = 5  # of the sample configuration: the server itself has none
LEAST_TICKS, MOST_TICKS = 2, 20  # of a session, by default
UNKNOWN_OPTION = "flag provided but not defined"
REFUSED = re.compile(r'"msg":"failed to verify flags","error":("(?:[^"\\]|\\.)*")')


@dataclass(frozen=True)
class LeaseBounds:
    """What servers make of a lease: the shortest and the longest that they grant. None: whatever a client asks for."""

    least_ms: int = 0
    most_ms: int | None = None
    why: str = ""

    def fit(self, lease_ms: int) -> int:
        lease_ms = max(lease_ms, self.least_ms)
        return lease_ms if self.most_ms is None else min(lease_ms, self.most_ms)

    @property
    def words(self) -> str:
        most = "" if self.most_ms is None else f" and at most {self.most_ms} ms"
        return f"at least {self.least_ms} ms{most} ({self.why})"


def read_ensemble(table: TomlTable, service: str) -> tuple[tuple[RedisSetting, ...], tuple[ChangedSetting, ...]]:
    """The settings that the servers of a trial take, and those that it changes. Raises UsageError with the line."""
    kept, changed = list[RedisSetting](), list[ChangedSetting]()
    for key, setting in settings_in(table, dotted=True):
        name = setting.name
        if name == MEMBERS:
            table.number(MEMBERS, 1, MEMBERS_LIMIT)
        elif why := chosen_by_trial(name, service):
            changed.append(ChangedSetting(setting, why, service))
            continue
        elif service == "zookeeper":
            _check_zookeeper(table, name)
        elif reason := refusal_by_etcd(((name, setting.value),)):
            raise table.error(key, f"etcd refuses {name}: {reason}")
        kept.append(setting)
    _check_together(table, service, kept)
    return tuple(kept), tuple(changed)


def _check_zookeeper(table: TomlTable, name: str) -> None:
    if name not in ZOOKEEPER_SETTINGS:
        known = (MEMBERS, *ZOOKEEPER_SETTINGS)
        near = get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(known)}"
        raise table.error(name, f"unknown key {name!r} in [{table.kind}]: {hint}")
    table.number(name, *ZOOKEEPER_SETTINGS[name])


def _check_together(table: TomlTable, service: str, settings: Iterable[RedisSetting]) -> None:
    """Raises UsageError for settings that are each valid, but not together."""
    given = by_name(settings)
    if service == "etcd":
        if reason := refusal_by_etcd(etcd_options(given)):
            first = next((name for name in ETCD_DEFAULTS if name in given), None)
            raise table.error(first, f"etcd refuses these settings: {reason}")
    elif (bounds := lease_bounds(service, given)).most_ms is not None and bounds.least_ms > bounds.most_ms:
        raise table.error(None, f"no session can be {bounds.words}")
    if (silence_ms := silence_of_leader_ms(service, given)) > SILENCE_LIMIT_MS:
        raise table.error(
            None, f"a leader is missed after {silence_ms} ms, and a trial waits for {SILENCE_LIMIT_MS} ms at most"
        )


def by_name(settings: Iterable[RedisSetting]) -> dict[str, str]:
    return {each.name: each.value for each in settings}


def etcd_options(given: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The options of an etcd with these settings. Where one of its two timeouts is given, the other is its default and
    not the trial's: etcd compares them."""
    timing = {name: str(value) for name, value in ETCD_DEFAULTS.items()} if ETCD_DEFAULTS.keys() & given.keys() else {}
    return tuple((name, value) for name, value in {**timing, **given}.items() if name != MEMBERS)


@cache
def refusal_by_etcd(options: tuple[tuple[str, str], ...]) -> str:
    """Why etcd refuses these options; empty: it takes them, or is not installed. It reads all of them before it looks
    for its data, whose place cannot be a directory. Of a single option its value alone is judged."""
    words = [f"--{name}={value}" for name, value in options]
    try:
        command = ["env", "-i", paths.etcd(), *words, "--logger=zap", "--data-dir=/dev/null/none"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=ASK_LIMIT_S)
    except NotInstalled:
        return ""
    except (OSError, subprocess.SubprocessError) as error:
        raise Inconclusive(f"etcd does not say whether it takes these settings: {error}") from None
    said = done.stdout + done.stderr
    if len(options) > 1 and (found := REFUSED.search(said)):
        return str(json.loads(found[1])).replace("--", "")
    first = said.partition("\n")[0]
    if first.startswith(UNKNOWN_OPTION):
        return "there is no such option"
    return first if first.startswith("invalid ") else ""


def lease_bounds(service: str, given: Mapping[str, str]) -> LeaseBounds:
    if service == "etcd" and ETCD_DEFAULTS.keys() & given.keys():
        own = {**ETCD_DEFAULTS, **{name: int(given[name]) for name in ETCD_DEFAULTS if name in given}}
        beat_ms, election_ms = own["heartbeat-interval"], own["election-timeout"]
        least_ms = 3 * (election_ms // beat_ms) // 2 * beat_ms  # minTTL in etcd's server.go, which rounds it up
        return LeaseBounds(
            -(-least_ms // MS_PER_S) * MS_PER_S, None, f"one and a half times election-timeout {election_ms}"
        )
    if service != "zookeeper":
        return LeaseBounds()
    tick_ms = int(given.get("tickTime", 0))
    least_ms = int(given.get("minSessionTimeout", LEAST_TICKS * tick_ms))
    most = int(given["maxSessionTimeout"]) if "maxSessionTimeout" in given else MOST_TICKS * tick_ms or None
    names = [
        f"{name} {given[name]}" for name in ("tickTime", "minSessionTimeout", "maxSessionTimeout") if name in given
    ]
    return LeaseBounds(least_ms, most, ", ".join(names))


def silence_of_leader_ms(service: str, given: Mapping[str, str]) -> int:
    """How long the others may wait for a silent leader; 0: as long as in any trial."""
    if service == "etcd" and ETCD_DEFAULTS.keys() & given.keys():
        return 2 * int(given.get("election-timeout", ETCD_DEFAULTS["election-timeout"]))  # drawn from one to two
    if service == "zookeeper" and {"tickTime", "syncLimit"} & given.keys():
        return int(given.get("tickTime", 0)) * int(given.get("syncLimit", ZOOKEEPER_SYNC_LIMIT))
    return 0


def lease_late_by_settings_ms(service: str, given: Mapping[str, str]) -> int:
    """How much later than usual the servers end a lease: ZooKeeper looks for it once a tick, and a new leader of etcd
    makes all leases longer by an election."""
    return int(given.get("tickTime", 0)) if service == "zookeeper" else silence_of_leader_ms(service, given)


def ensemble_in_virtual_time(
    settings: tuple[RedisSetting, ...],
) -> tuple[tuple[RedisSetting, ...], tuple[ChangedSetting, ...]]:
    """The settings of a ZooKeeper whose clock the trial moves: one server that looks often. The bounds of sessions are
    those that the team's tick gives."""
    given, changed = by_name(settings), list[ChangedSetting]()
    kept = [each for each in settings if each.name not in (MEMBERS, "tickTime", "initLimit", "syncLimit")]
    for each in settings:
        if each.name == "tickTime":
            changed.append(ChangedSetting(each, TICK_OF_TRIAL, "zookeeper"))
            bounds = lease_bounds("zookeeper", given)
            for name, value in (("minSessionTimeout", bounds.least_ms), ("maxSessionTimeout", bounds.most_ms)):
                if name not in given:
                    kept.append(replace(each, name=name, value=str(value)))
        elif each not in kept:
            changed.append(ChangedSetting(each, NO_ENSEMBLE, "zookeeper"))
    return tuple(kept), tuple(changed)
