"""--config and [deployment]: the servers of a trial as a team has configured them, and what that changes."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from lockstorm.base.errors import UsageError
from lockstorm.gate.gate_plan import plan_gate
from lockstorm.gate.gate_policy import read_policy
from lockstorm.scenario.deployment_effects import fewest, play_deployed
from lockstorm.scenario.play import play, prepare_trial
from lockstorm.servers.deployment import deployment_named
from lockstorm.servers.redis_config import RedisSetting, check_redis_settings
from lockstorm.storm.storm_plan import StormRequest, plan_storm
from lockstorm.trial.settings import TrialSettings
from tests.helpers.support import ENVIRONMENT, lockstorm, trial

ALWAYS = "appendonly yes\nappendfsync always\n"
EVERY_SECOND = "appendonly yes\nappendfsync everysec\n"
POLICY = """[[lock]]
name = "set-nx-px"
[deployment]
config = "redis.conf"
replicas = 1
[deployment.redis]
appendfsync = "always"
maxclients = 200
[scenarios]
play = "restart-data-lost"
"""


def config(directory: Path, text: str, name: str = "redis.conf") -> str:
    file = directory / name
    file.write_text(text)
    return str(file)


def statuses(request: TrialSettings) -> dict[str, str]:
    return {name: each.status for name, each in play(request).properties.items()}


# --- what the servers take ---


def test_every_server_has_the_settings_and_its_own_place(tmp_path: Path) -> None:
    file = config(tmp_path, f"{ALWAYS}port 6379\nrequirepass secret\nmaxclients 77\nsave 1 1\n")
    with trial("redlock", config=file) as running:
        for server in running.servers:
            said = {name: server.link.config_get(name)[name] for name in ("appendfsync", "maxclients", "port", "save")}
            assert said == {"appendfsync": "always", "maxclients": "77", "port": "0", "save": ""}


@pytest.mark.parametrize("kind", ["virtual", pytest.param("real", marks=pytest.mark.waits)])
def test_a_master_has_the_replicas_that_it_needs_to_write(tmp_path: Path, kind: str) -> None:
    file = config(tmp_path, "min-replicas-to-write 2\nmin-replicas-max-lag 10\n")
    with trial("set-nx-px", config=file, time=kind) as running:
        assert len(running.replicas) == 2
        (one,) = running.clients(1)
        running.advance(60_000 if kind == "virtual" else 100)
        assert one.acquire().ok and one.release().ok


def test_a_setting_is_of_no_use_to_other_services(tmp_path: Path) -> None:
    file = config(tmp_path, ALWAYS)
    for lock, service, table in (("etcd", "etcd", "etcd"), ("pg-lease", "postgres", "postgresql")):
        with pytest.raises(UsageError) as error:
            prepare_trial(TrialSettings(lock, "gc-pause", config=file))
        assert str(error.value) == (
            f"--config {file} is for locks on Redis, and {lock} lives on {service}: name a policy (.toml) with a table "
            f"[deployment.{table}]"
        )


# --- what a crash leaves ---


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("", "violated"),
        (ALWAYS, "holds"),
        (EVERY_SECOND, "violated"),
        ("appendonly yes\nappendfsync no\n", "violated"),
        ("appendonly no\nappendfsync always\n", "violated"),
        ("save 60 1\n", "violated"),
    ],
    ids=["defaults", "always", "every second", "no", "no file", "snapshots"],
)
@pytest.mark.parametrize(("lock", "scenario"), [("set-nx-px", "restart-data-lost"), ("redlock", "crash-restart-node")])
def test_a_grant_survives_a_crash_if_it_was_on_the_disk(
    tmp_path: Path, lock: str, scenario: str, text: str, status: str
) -> None:
    request = TrialSettings(lock, scenario, config=config(tmp_path, text))
    assert statuses(request)["mutual_exclusion"] == status
    assert statuses(TrialSettings(lock, scenario, config=request.config, control=True))["mutual_exclusion"] == "holds"


@pytest.mark.parametrize(("syncs", "kept_s"), [("everysec", 2), ("no", 35)])
def test_what_is_older_than_a_sync_is_there_after_a_crash(tmp_path: Path, syncs: str, kept_s: int) -> None:
    file = config(tmp_path, f"appendonly yes\nappendfsync {syncs}\n")
    with trial("none", config=file) as running:
        link = running.server.link
        for each in range(6):
            link.set(f"key-{each}", each)
            running.advance(kept_s * 1000 // 4)
        with running.fault("crash-server", running.server, data="configured"):
            pass
        found = sorted(int(key[4:]) for key in link.keys("key-*"))
        assert found in ([0], [0, 1]), "the last four are younger; the fifth last is at most a second older"
        link.set("later", 1)
        with running.fault("crash-server", running.server, data="kept"):
            pass
        assert link.exists("key-0", "later") == 2, "the file is whole, and goes on"


def test_a_storm_crashes_servers_as_they_are_configured(tmp_path: Path) -> None:
    request = TrialSettings("set-nx-px", "", config=config(tmp_path, ALWAYS), clients=2, duration_ms=20_000)
    plan = plan_storm(StormRequest(request, faults="crash-server"))
    assert plan.schedule.events and {str(each.options) for each in plan.schedule.events} == {"{'data': 'configured'}"}
    assert plan.settings.persistence == "none" and f"--config {request.config}" in plan.replay


# --- what the settings change ---


def test_the_result_says_which_settings_make_the_difference(tmp_path: Path) -> None:
    file = config(tmp_path, f"maxclients 100\n{ALWAYS}hz 20\nport 1\ntimeout 300\n")
    request = TrialSettings("set-nx-px", "restart-data-lost", config=file)
    told = play_deployed(request, play(request)).deployment
    assert told is not None and told.effects is not None
    assert [(each.property, each.status, each.usual) for each in told.effects] == [
        ("mutual_exclusion", "holds", "violated"),
        ("integrity", "holds", "violated"),
        ("lease", "holds", "violated"),  # a server that forgets the lock grants it while a lease runs
    ]
    assert told.effects[0].because == ["appendonly yes", "appendfsync always"]
    assert told.settings == ["maxclients 100", "appendonly yes", "appendfsync always", "hz 20", "timeout 300"]
    assert [(each.setting, each.place) for each in told.changed] == [("port 1", f"{file}:5")]


def test_settings_that_change_nothing_are_said_to(tmp_path: Path) -> None:
    file = config(tmp_path, EVERY_SECOND)
    done = lockstorm("run", "restart-data-lost", "--lock", "set-nx-px", "--config", file, "-q")
    assert done.returncode == 1
    assert "with the defaults of the server the verdict is the same" in done.stdout
    assert done.stdout.splitlines()[-1].endswith(f"--config {file}")


def test_the_command_says_what_has_changed(tmp_path: Path) -> None:
    file = config(tmp_path, ALWAYS + "requirepass secret\n")
    done = lockstorm("run", "restart-data-lost", "--lock", "set-nx-px", "--config", file, "-q")
    text = " ".join(done.stdout.split())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "with appendonly yes, appendfsync always: mutual exclusion and integrity" in text
    assert "with the defaults they are violated" in text
    assert "not taken: requirepass secret: the trial's clients and links have no password and no certificate" in text


@pytest.mark.parametrize(
    ("enough", "found"),
    [({3}, [3]), ({0, 7}, [0, 7]), (set(), []), ({0, 1, 2, 3, 4, 5, 6, 7}, [0, 1, 2, 3, 4, 5, 6, 7])],
)
def test_the_fewest_that_are_enough(enough: set[int], found: list[int]) -> None:
    assert fewest(range(8), lambda some: enough <= set(some)) == found


# --- the other commands ---


@pytest.mark.lengthy("starts the command twice, with a worker for each core")
def test_the_matrix_shows_the_cells_that_the_settings_change(tmp_path: Path) -> None:
    file = config(tmp_path, ALWAYS)
    words = ("--scenario", "restart-data-lost,gc-pause", "--lock", "set-nx-px,etcd", "--store", "open")
    done = lockstorm("matrix", "--config", file, *words, "--json")
    result = json.loads(done.stdout)
    assert (done.returncode, result["config"]) == (1, file)
    assert {(each["scenario"], each["lock"]): each["difference"] for each in result["cells"]} == {
        ("gc-pause", "set-nx-px"): "",
        (
            "restart-data-lost",
            "set-nx-px",
        ): "fault: integrity holds instead of violated, mutual exclusion holds instead of violated",
    }
    assert all(f"--config {file}" in each["replay"] for each in result["cells"])
    done = lockstorm("matrix", "--config", file, "--scenario", "gc-pause", "--lock", "set-nx-px", "--store", "open")
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "1 cell, all as with the defaults"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("matrix --lock etcd --config {}", "--config {} configures the servers of none of the chosen locks"),
        (
            "explore --lock fair --config {}",
            "--config: the explorer sets its servers back between schedules, and chooses itself whether a restart "
            "keeps the data (restart-empty in --faults); run, storm and matrix have it",
        ),
        (
            "compare --lock fair --config {}",
            "--config: what is measured would be the cost of this machine's disk and not of yours; run, storm and "
            "matrix have it",
        ),
    ],
)
def test_where_a_configuration_says_nothing(tmp_path: Path, words: str, message: str) -> None:
    file = config(tmp_path, ALWAYS)
    done = lockstorm(*words.format(file).split())
    assert (done.returncode, done.stderr) == (2, f"lockstorm: {message.format(file)}\n")


# --- sentinels and clusters ---


def test_a_replica_that_hears_nothing_counts_until_its_lag_is_too_large(tmp_path: Path) -> None:
    """The promise of min-replicas-to-write: it bounds what a failover loses, and does not end it."""
    request = TrialSettings("set-nx-px", "failover-unreplicated", config=config(tmp_path, "min-replicas-to-write 1\n"))
    result = play_deployed(request, play(request))
    assert result.properties["mutual_exclusion"].status == "violated"
    assert result.deployment is not None and result.deployment.replicas == 1 and result.deployment.effects is not None
    assert "mutual_exclusion" not in [each.property for each in result.deployment.effects]


@pytest.mark.waits
@pytest.mark.lengthy("waits for an election with timeouts of its own")
def test_sentinels_are_as_a_team_has_them(tmp_path: Path) -> None:
    text = "[deployment.sentinel]\nsentinels = 1\nquorum = 1\ndown-after-milliseconds = 2500\nfailover-timeout = 3000\n"
    file = config(tmp_path, text, "lockstorm.toml")
    with trial("set-nx-px", time="real", config=file, topology="sentinel", lease_ms=20_000) as running:
        (sentinel,) = running.redis.sentinels
        master: Any = sentinel.link.sentinel_master(running.server.name)
        assert (master["down-after-milliseconds"], master["failover-timeout"], master["quorum"]) == (2500, 3000, 1)
        begun = time.monotonic()
        running.inject("failover-sentinel", running.server, None, **running.election_options)
        assert time.monotonic() - begun > 2.5, "not with the patience of the fault"


def test_a_cluster_is_as_a_team_has_it(tmp_path: Path) -> None:
    file = config(tmp_path, "[deployment.cluster]\nnode-timeout = 7000\n", "lockstorm.toml")
    _, settings = prepare_trial(TrialSettings("fair", "failover-cluster", time="real", config=file))
    assert (settings.elections.node_timeout_ms, settings.lease_ms) == (7000, 24_000)
    assert settings.elections.fault_options("cluster") == {"node-timeout-ms": 7000}
    with pytest.raises(UsageError, match="failover-sentinel does not apply to fair: it takes long"):
        prepare_trial(TrialSettings("fair", "failover-sentinel", time="real", config=file))


def test_the_gate_plays_an_election_with_every_lock_of_a_team_that_has_them(tmp_path: Path) -> None:
    text = '[[lock]]\nname = "fair"\n[[lock]]\nname = "redlock"\n[deployment.sentinel]\nquorum = 2\n'
    file = config(tmp_path, text + '[scenarios]\nplay = ["failover-sentinel", "gc-pause"]\n', "lockstorm.toml")
    plan = plan_gate(read_policy(Path(file)))
    assert [(case.lock.name, case.scenario) for case in plan.cases] == [
        ("fair", "failover-sentinel"),
        ("fair", "gc-pause"),
        ("redlock", "gc-pause"),
    ]


# --- PostgreSQL ---

SYNCHRONOUS = '[deployment.postgresql]\nsynchronous_standby_names = "FIRST 2 (a, b)"\nsynchronous_commit = "on"\n'


def test_a_commit_that_waits_for_a_standby_is_not_forgotten(tmp_path: Path) -> None:
    file = config(tmp_path, SYNCHRONOUS + "work_mem = 64\n", "lockstorm.toml")
    request = TrialSettings("pg-lease", "database-failover", config=file)
    told = play_deployed(request, play(request)).deployment
    assert told is not None and told.effects is not None
    assert [(each.property, each.status, each.usual) for each in told.effects][:1] == [
        ("mutual_exclusion", "holds", "violated")
    ]
    assert told.effects[0].because == ["synchronous_standby_names *"]
    assert [(each.setting, each.why) for each in told.changed] == [
        ("synchronous_standby_names FIRST 2 (a, b)", "a trial has one standby, whatever its name is"),
        ("work_mem 64", "it decides neither what a crash forgets nor what a transaction sees"),
    ]


@pytest.mark.parametrize("commit", ["off", "local"])
def test_a_commit_that_waits_for_nobody_is_forgotten(tmp_path: Path, commit: str) -> None:
    file = config(tmp_path, SYNCHRONOUS.replace('"on"', f'"{commit}"'), "lockstorm.toml")
    request = TrialSettings("pg-lease", "database-failover", config=file)
    assert statuses(request)["mutual_exclusion"] == "violated"


@pytest.mark.parametrize("lock", ["pg-lease", "pg-advisory"])
def test_with_a_standby_that_hears_everything_nothing_changes(tmp_path: Path, lock: str) -> None:
    file = config(tmp_path, SYNCHRONOUS, "lockstorm.toml")
    found = statuses(TrialSettings(lock, "gc-pause", config=file))
    assert found == statuses(TrialSettings(lock, "gc-pause"))
    with trial(lock, config=file) as running:
        assert (
            running.database.session.value("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == "1"
        )


# --- the policy ---


@pytest.mark.lengthy("a gate plays its trials")
def test_a_policy_describes_the_deployment(tmp_path: Path) -> None:
    config(tmp_path, "appendonly yes\nmaxclients 50\n")
    file = config(tmp_path, POLICY, "lockstorm.toml")
    found = deployment_named(file)
    assert [each.line for each in found.of("redis")] == ["appendonly yes", "maxclients 200", "appendfsync always"]
    assert found.of("redis")[1].place == f"{file}:8" and found.replicas == 1
    done = lockstorm("gate", "-f", file, "--json")
    (cell,) = json.loads(done.stdout)["cells"]
    assert cell["outcome"] == "passed" and cell["in_short"] == (
        "every required property held; with appendonly yes, appendfsync always: mutual exclusion and integrity "
        "and lease hold, with the defaults they are violated"
    )
    assert f"--config {file}" in cell["replay"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[deployment]\nconfig = "nope.conf"', "lockstorm.toml:4: there is no {home}/nope.conf"),
        ('[deployment]\nconfg = "redis.conf"', "unknown key 'confg' in [deployment]: did you mean config?"),
        ("[deployment.redis]\nappendonly = [1]", "lockstorm.toml:4: appendonly has to be a text, a number, or true or"),
        ('[deployment.redis]\nappendfsync = "never"', "lockstorm.toml:4: the server refuses 'appendfsync never'"),
        ("[deployment.redis]\nmin-replicas-to-write = 9", "9 replicas are asked for, and a master of a trial has 5"),
        ("[deployment.sentinel]\nquorum = 4", "lockstorm.toml:4: quorum has to be a whole number from 1 to 3"),
        ("[deployment.sentinel]\nquorm = 2", "unknown key 'quorm' in [deployment.sentinel]: did you mean quorum?"),
        ("[deployment.cluster]\nnode-timeout = 1", "node-timeout has to be a whole number from 100 to 30000"),
        ("[deployment]\nsentinel = 3", "[deployment.sentinel] has to be a table"),
        (
            '[deployment.postgresql]\nsynchronous_commit = "sometimes"',
            'lockstorm.toml:4: PostgreSQL refuses it: invalid value for parameter "synchronous_commit": "sometimes"',
        ),
        ("[deployment]\nreplicas = 9", "lockstorm.toml:4: replicas has to be a whole number from 0 to 5"),
    ],
)
def test_a_deployment_that_cannot_be(tmp_path: Path, text: str, message: str) -> None:
    file = config(tmp_path, f'[[lock]]\nname = "set-nx-px"\n{text}\n', "lockstorm.toml")
    done = lockstorm("gate", "-f", file)
    assert done.returncode == 2 and message.format(home=tmp_path) in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1


# What redis-server 8.0.2 writes about a directive that it does not know, and 7.0.15 about one with a dot in its name.
OF_8 = """1:M 23 Nov 2026 13:42:23.906 # Unresolved Configuration(s) Detected:
1:M 23 Nov 2026 13:42:23.906 # >>> 'lockstorm-end-of-settings yes'
{others}"""
FOR_MODULES = (
    "1:M 23 Nov 2026 # Module Configuration detected without loadmodule directive or no ApplyConfig call: aborting\n"
)


@pytest.mark.parametrize(
    ("said", "directive", "is_refused"),
    [
        (OF_8.format(others="1:M 23 Nov 2026 13:42:23.906 # >>> 'apendonly yes'\n") + FOR_MODULES, "apendonly", True),
        (OF_8.format(others="") + FOR_MODULES, "appendonly", False),
        (FOR_MODULES, "bf.error-rate", True),
        (FOR_MODULES, "appendonly", False),
    ],
)
def test_a_directive_that_the_server_keeps_for_modules(
    tmp_path: Path, said: str, directive: str, is_refused: bool
) -> None:
    program = tmp_path / "redis-server"
    (tmp_path / "said").write_text(said)
    program.write_text(f"#!/bin/sh\ncat {tmp_path}/said; exit 1\n")
    program.chmod(0o755)
    settings = (RedisSetting("maxclients", "100", "redis.conf:1"), RedisSetting(directive, "yes", "redis.conf:2"))
    if not is_refused:
        check_redis_settings(str(program), settings)
        return
    with pytest.raises(UsageError) as error:
        check_redis_settings(str(program), settings)
    assert str(error.value) == f"redis.conf:2: the server refuses '{directive} yes': there is no such directive"


def test_settings_of_a_server_that_is_not_installed_are_not_checked(tmp_path: Path) -> None:
    file = config(tmp_path, '[deployment.postgresql]\nsynchronous_commit = "sometimes"\n', "lockstorm.toml")
    nowhere = {**ENVIRONMENT, "LOCKSTORM_POSTGRES": "/nowhere"}
    for lock, status in (("set-nx-px", 1), ("pg-lease", 3)):
        assert lockstorm("run", "gc-pause", "--lock", lock, "--config", file, env=nowhere).returncode == status


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("appendfsync never\n", "redis.conf", "redis.conf:1: the server refuses 'appendfsync never': "),
        ("appendonly\n", "redis.conf", "redis.conf:1: 'appendonly' has no value"),
        ('[[lock]]\nname = "fair"\n', "lockstorm.toml", "lockstorm.toml has no table [deployment]"),
        ("[deployment\n", "lockstorm.toml", "lockstorm.toml: "),
    ],
)
@pytest.mark.parametrize("command", ["run gc-pause", "storm"])
def test_a_config_that_cannot_be(tmp_path: Path, command: str, text: str, name: str, message: str) -> None:
    done = lockstorm(*command.split(), "--lock", "set-nx-px", "--config", config(tmp_path, text, name))
    assert done.returncode == 2 and message in done.stderr and done.stderr.count("\n") == 1, done.stderr
