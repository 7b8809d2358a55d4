"""--server: the program that locks on Redis live on."""

import shutil
from pathlib import Path

import pytest

from lockstorm.base import paths
from lockstorm.gate.gate_plan import plan_gate
from lockstorm.gate.gate_policy import read_policy
from lockstorm.locks.lock_names import lock_named
from lockstorm.search.explorer import Explorer
from tests.helpers.support import lockstorm, trial

POLICY = """[[lock]]
name = "set-nx-px"
[[lock]]
name = "pg-advisory"
[deployment]
server = "{server}"
[scenarios]
play = "gc-pause"
"""


CLUSTER = """#!/bin/sh
case "$*" in *--version*) exec {redis} "$@" ;; esac
exec {redis} "$@" --cluster-enabled yes
"""


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A server of its own: a copy of the usual one, under another name."""
    return Path(shutil.copy(paths.redis_server(), tmp_path / "other-server"))


def program_of(pid: int) -> Path:
    return Path(f"/proc/{pid}/exe").readlink()


def test_a_trial_starts_the_chosen_server(other: Path) -> None:
    with trial("redlock", server=str(other)) as running:
        assert [program_of(server.process.pid) for server in running.servers] == [other] * 5
    with trial("set-nx-px") as running:
        assert program_of(running.server.process.pid) == Path(paths.redis_server()).resolve()


@pytest.mark.waits
def test_sentinels_are_of_the_same_program(other: Path) -> None:
    with trial("set-nx-px", time="real", server=str(other), topology="sentinel", replicas=1) as running:
        watching = [sentinel.process.pid for sentinel in running.redis.sentinels]
        assert watching and {program_of(pid) for pid in watching} == {other}


def test_the_explorer_searches_on_the_chosen_server(other: Path) -> None:
    with Explorer(lock_named("set-nx-px"), 1, server=str(other)) as explorer:
        (process,) = explorer.jobs[0].servers.values()
        assert program_of(process.pid) == other


@pytest.mark.parametrize("command", ["run gc-pause --lock set-nx-px", "explore --lock fair --schedules 1"])
def test_the_command_that_repeats_it_names_the_server(other: Path, command: str) -> None:
    done = lockstorm(*command.split(), "-q", "--server", str(other))
    assert f"--server {other}" in done.stdout.splitlines()[-1], done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("run gc-pause --lock set-nx-px --server nope", "--server nope: there is no such program"),
        ("storm --lock set-nx-px --server nope", "--server nope: there is no such program"),
        ("explore --lock fair --server nope", "--server nope: there is no such program"),
        ("matrix --lock set-nx-px --server nope", "--server nope: there is no such program"),
        ("doctor --server nope", "--server nope: there is no such program"),
        ("run gc-pause --lock fair --server README.md", "--server README.md: it is no program"),
        (
            "run gc-pause --lock fair --server sh",
            "--server sh: it is not redis-server or one of its kind: its answer to --version is "
            "'/usr/bin/sh: 0: Illegal option --'",
        ),
        ("run gc-pause --lock etcd --server redis-server", "--server is for locks on Redis, and etcd lives on etcd"),
        ("matrix --lock etcd --server redis-server", "--server is for locks on Redis, and none is chosen"),
    ],
)
def test_a_server_that_cannot_be(words: str, message: str) -> None:
    done = lockstorm(*words.split())
    assert (done.returncode, done.stderr) == (2, f"lockstorm: {message}\n")


def test_a_policy_names_the_server_of_its_locks_on_redis(other: Path) -> None:
    file = other.parent / "lockstorm.toml"
    file.write_text(POLICY.format(server="./other-server"))
    plan = plan_gate(read_policy(file))
    servers = {job.request.lock: job.request.server for case in plan.cases for job in case.jobs}
    assert servers == {"set-nx-px": str(other), "pg-advisory": None}


def test_a_policy_with_a_server_that_does_not_exist(tmp_path: Path) -> None:
    (tmp_path / "lockstorm.toml").write_text(POLICY.format(server="./none"))
    done = lockstorm("gate", "-f", str(tmp_path / "lockstorm.toml"))
    assert done.returncode == 2
    assert f"lockstorm.toml:6: server {tmp_path}/none: there is no such program" in done.stderr


@pytest.mark.parametrize("command", ["run contention", "explore --schedules 1 --workers 1"])
def test_a_cluster_that_refuses_every_command_is_no_lost_wake_up(tmp_path: Path, command: str) -> None:
    """Redisson's contention on a cluster of one node had 13 lost wake-ups: the server refused for 2 s of its clock."""
    cluster = tmp_path / "cluster-server"
    cluster.write_text(CLUSTER.format(redis=paths.redis_server()))
    cluster.chmod(0o755)
    done = lockstorm(*command.split(), "--lock", "pubsub", "--server", str(cluster))
    assert done.returncode == 3, done.stdout
    assert "CLUSTERDOWN" in done.stdout + done.stderr and "--one-node-cluster" in done.stdout + done.stderr
