"""[deployment.etcd] and [deployment.zookeeper]: how a team runs them, and what that changes."""

import json
from pathlib import Path

import pytest

from lockstorm.base.errors import UsageError
from lockstorm.gate.gate_plan import plan_gate
from lockstorm.gate.gate_policy import read_policy
from lockstorm.scenario.deployment_effects import play_deployed
from lockstorm.scenario.play import deployment_result, play, prepare_trial
from lockstorm.servers.deployment import deployment_named
from lockstorm.servers.ensemble_settings import lease_bounds
from lockstorm.storm.storm_plan import StormRequest, plan_storm
from lockstorm.trial.settings import TrialSettings, lease_late_in
from tests.helpers.support import ENVIRONMENT, lockstorm, trial

ETCD = """[deployment.etcd]
members = 3
heartbeat-interval = 50
election-timeout = 1500
quota-backend-bytes = 20000000
pre-vote = true
listen-client-urls = "http://0.0.0.0:2379"
"""
ZOOKEEPER = """[deployment.zookeeper]
members = 3
tickTime = 100
syncLimit = 10
maxSessionTimeout = 3000
admin.enableServer = true
"""


def policy(directory: Path, text: str) -> str:
    file = directory / "lockstorm.toml"
    file.write_text(text)
    return str(file)


# --- what the servers take ---


@pytest.mark.waits
def test_etcd_has_the_members_and_the_options_of_the_team(tmp_path: Path) -> None:
    with trial("etcd", time="real", config=policy(tmp_path, ETCD)) as running:
        assert len(running.etcd.known) == 3
        for server in running.etcd.known:
            words = Path(f"/proc/{server.process.pid}/cmdline").read_text().split("\0")
            for option in ("election-timeout=1500", "heartbeat-interval=50", "quota-backend-bytes=20000000"):
                assert f"--{option}" in words
            assert "--pre-vote=true" in words and "--listen-client-urls=http://0.0.0.0:2379" not in words
        (one,) = running.clients(1)
        assert running.lease_ms == 3_000, "one and a half election timeouts, rounded up"
        assert one.acquire().ok and one.release().ok


@pytest.mark.waits
def test_zookeeper_has_the_members_and_the_settings_of_the_team(tmp_path: Path) -> None:
    with trial("zookeeper", time="real", config=policy(tmp_path, ZOOKEEPER), lease_ms=2_000) as running:
        assert len(running.zookeeper.known) == 3 and running.silence_ms == 1_000
        text = running.zookeeper.known[0].configuration.read_text()
        assert "tickTime=100\n" in text and "syncLimit=10\n" in text and "maxSessionTimeout=3000\n" in text
        assert "admin.enableServer=false\n" in text
        (one,) = running.clients(1)
        assert one.acquire().ok and one.release().ok


@pytest.mark.lengthy("plays on ZooKeeper with the settings, without them, and step by step")
def test_in_virtual_time_a_tick_gives_the_bounds_of_sessions(tmp_path: Path) -> None:
    file = policy(tmp_path, "[deployment.zookeeper]\nmembers = 3\ntickTime = 1000\n")
    request = TrialSettings("zookeeper", "gc-pause", config=file)
    told = play_deployed(request, play(request)).deployment
    assert told is not None and told.effects == []
    assert told.settings == ["minSessionTimeout 2000", "maxSessionTimeout 20000"]
    assert [(each.setting, each.place, each.why) for each in told.changed] == [
        ("members 3", f"{file}:2", "several ZooKeeper servers are for real time: elections are made of timeouts"),
        ("tickTime 1000", f"{file}:3", "in virtual time the server looks for the end of sessions every 4 ms"),
    ]
    with trial("zookeeper", config=file) as running:
        assert running.lease_ms == 20_000, "the usual lease is longer than any session"
        text = running.zookeeper.known[0].configuration.read_text()
        assert "tickTime=4\n" in text and "minSessionTimeout=2000\n" in text and "maxSessionTimeout=20000\n" in text


def test_a_scenario_that_counts_servers_keeps_its_number(tmp_path: Path) -> None:
    request = TrialSettings("etcd", "majority-paused", time="real", config=policy(tmp_path, ETCD.replace("3", "5", 1)))
    _, settings = prepare_trial(request)
    assert settings.nodes == 3 and settings.lease_ms == 3_000 + 2 * 3_000
    result = deployment_result(settings)
    assert result is not None and ("members 5", "the scenario is about a number of servers of its own") in [
        (each.setting, each.why) for each in result.changed
    ]
    _, settings = prepare_trial(TrialSettings("etcd", "gc-pause", time="real", config=request.config))
    assert (settings.nodes, settings.lease_ms) == (5, 3_000)


def test_a_trial_of_another_service_does_not_list_them(tmp_path: Path) -> None:
    _, settings = prepare_trial(TrialSettings("set-nx-px", "gc-pause", config=policy(tmp_path, ETCD + ZOOKEEPER)))
    result = deployment_result(settings)
    assert result is not None and result.settings == [] and result.changed == []


def test_a_storm_has_the_members_and_the_lease_that_they_grant(tmp_path: Path) -> None:
    file = policy(tmp_path, ETCD)
    request = TrialSettings("etcd", "", time="real", config=file, duration_ms=60_000)
    plan = plan_storm(StormRequest(request, faults="kill-server"))
    assert {event.target for event in plan.schedule.events} == {"etcd-1", "etcd-2", "etcd-3"}
    assert (plan.settings.nodes, plan.settings.lease_ms) == (3, 3_000)


@pytest.mark.parametrize(
    ("lock", "text", "late_ms"), [("etcd", ETCD, 4_000 + 3_000), ("zookeeper", ZOOKEEPER, 100), ("etcd", "", 4_000)]
)
def test_a_lease_may_end_later(tmp_path: Path, lock: str, text: str, late_ms: int) -> None:
    file = policy(tmp_path, text or "[deployment]\n")
    chosen, settings = prepare_trial(TrialSettings(lock, "gc-pause", time="real", config=file))
    with trial(lock, time="real", config=file) as running:
        assert lease_late_in(settings, running.lock) == late_ms
    assert chosen.name == "gc-pause"


# --- the policy ---


def test_the_gate_plays_each_lock_on_the_servers_of_its_policy(tmp_path: Path) -> None:
    locks = "".join(f'[[lock]]\nname = "{name}"\n' for name in ("etcd", "pg-lease", "set-nx-px", "zookeeper"))
    text = f'{locks}{ETCD}[deployment.postgresql]\nsynchronous_commit = "local"\n[scenarios]\nplay = "gc-pause"\n'
    file = policy(tmp_path, text)
    plan = plan_gate(read_policy(Path(file)))
    configs = {job.request.lock: job.request.config for case in plan.cases for job in case.jobs}
    assert configs == {"etcd": file, "pg-lease": file, "set-nx-px": file, "zookeeper": None}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[deployment.etcd]\nheartbeat = 3", "2: etcd refuses heartbeat: there is no such option"),
        (
            '[deployment.etcd]\nheartbeat-interval = "soon"',
            '2: etcd refuses heartbeat-interval: invalid value "soon" for flag -heartbeat-interval: parse error',
        ),
        (
            "[deployment.etcd]\nheartbeat-interval = 300",
            "2: etcd refuses these settings: election-timeout[1000ms] should be at least as 5 times as "
            "heartbeat-interval[300ms]",
        ),
        (
            "[deployment.etcd]\nelection-timeout = 15000",
            "1: a leader is missed after 30000 ms, and a trial waits for 20000 ms at most",
        ),
        ("[deployment.etcd]\nmembers = 9", "2: members has to be a whole number from 1 to 7"),
        ("[deployment.etcd]\npre-vote = [1]", "2: pre-vote has to be a text, a number, or true or false"),
        ("[deployment]\netcd = 3", "2: [deployment.etcd] has to be a table"),
        (
            "[deployment.zookeeper]\nticktime = 9",
            "2: unknown key 'ticktime' in [deployment.zookeeper]: did you mean tickTime?",
        ),
        (
            "[deployment.zookeeper]\nfoo = 9",
            "2: unknown key 'foo' in [deployment.zookeeper]: there are: members, tickTime, initLimit, syncLimit, "
            "minSessionTimeout, maxSessionTimeout",
        ),
        ("[deployment.zookeeper]\ntickTime = 0", "2: tickTime has to be a whole number from 1 to 20000"),
        (
            "[deployment.zookeeper]\nminSessionTimeout = 9000\nmaxSessionTimeout = 5000",
            "1: no session can be at least 9000 ms and at most 5000 ms "
            "(minSessionTimeout 9000, maxSessionTimeout 5000)",
        ),
        (
            "[deployment.zookeeper]\ntickTime = 2000\nsyncLimit = 50",
            "1: a leader is missed after 100000 ms, and a trial waits for 20000 ms at most",
        ),
    ],
)
def test_settings_that_cannot_be(tmp_path: Path, text: str, message: str) -> None:
    file = policy(tmp_path, f"{text}\n")
    with pytest.raises(UsageError) as error:
        deployment_named(file)
    assert str(error.value) == f"{file}:{message}"


def test_timeouts_that_fit_each_other_are_taken_in_any_order(tmp_path: Path) -> None:
    for text in (
        "heartbeat-interval = 300\nelection-timeout = 5000",
        "election-timeout = 5000\nheartbeat-interval = 300",
    ):
        found = deployment_named(policy(tmp_path, f"[deployment.etcd]\n{text}\n"))
        assert lease_bounds("etcd", found.given("etcd")).least_ms == 8_000


@pytest.mark.parametrize(
    ("lock", "text", "lease_ms", "message"),
    [
        ("etcd", ETCD, 1_000, "etcd grants at least 3000 ms (one and a half times election-timeout 1500)"),
        (
            "zookeeper",
            ZOOKEEPER,
            4_000,
            "zookeeper grants at least 200 ms and at most 3000 ms (tickTime 100, maxSessionTimeout 3000)",
        ),
    ],
)
def test_a_lease_that_the_servers_would_change(
    tmp_path: Path, lock: str, text: str, lease_ms: int, message: str
) -> None:
    file = policy(tmp_path, text)
    words = ("--lock", lock, "--config", file, "--lease", f"{lease_ms}ms")
    done = lockstorm("run", "gc-pause", *words)
    assert (done.returncode, done.stderr) == (2, f"lockstorm: a lease of {lease_ms} ms: {message}\n")
    with pytest.raises(UsageError, match="a lease of"):
        plan_storm(StormRequest(TrialSettings(lock, "", time="real", config=file, lease_ms=lease_ms)))


def test_without_etcd_its_settings_are_not_checked(tmp_path: Path) -> None:
    file = policy(tmp_path, "[deployment.etcd]\nheartbeat = 3\n")
    nowhere = {**ENVIRONMENT, "LOCKSTORM_ETCD": "/nowhere"}
    done = lockstorm("run", "gc-pause", "--lock", "set-nx-px", "--config", file, "--json", env=nowhere)
    assert done.returncode == 1 and json.loads(done.stdout)["deployment"]["settings"] == []
    done = lockstorm("run", "gc-pause", "--lock", "etcd", "--config", file, "-q", env=nowhere)
    assert done.returncode == 3 and "etcd is not installed" in " ".join(done.stdout.split())
