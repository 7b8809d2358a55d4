"""Failovers on real servers, by hand, by sentinels and in a cluster: injected, proved, healed, and their effect on a
lock."""

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lockstorm import Inconclusive, Outcome, Trial, UsageError
from lockstorm.native.library import Message
from lockstorm.results.lock_entry import Topology
from lockstorm.servers import topology
from lockstorm.servers.redis_server import RedisServer
from lockstorm.trial.fault import Fault
from tests.helpers.support import ENVIRONMENT, processes_below, short_directory, trial
from tests.trial.test_leftovers import assert_clean, wait_until

TIMES = ("virtual", "real")
LEASE_MS = 30_000  # longer than any failover takes
LOST, KEPT = "no", "yes"


def role(server: RedisServer) -> str:
    said: bytes = server.link.role()[0]
    return said.decode()


def heal_again(fault: Fault) -> None:
    """Calls the fault directly, because the driver heals it only once."""
    assert fault._fault.heal(fault.target, Message())


def status(running: Trial, name: str = "mutual_exclusion") -> str:
    found: str = running.judge().properties[name].status
    return found


# --- failover ---


@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("replicated", [LOST, KEPT])
def test_a_lock_that_was_not_replicated_is_anybodys(time: str, direct: bool, replicated: str) -> None:
    with trial("set-nx-px", time=time, lease_ms=LEASE_MS, replicas=1, direct=direct) as running:
        one, two = running.clients(2)
        old, new = running.server, running.replicas[0]
        fault = running.prepare("failover", old, replicated=replicated)
        assert (role(old), role(new)) == ("master", "slave")
        assert one.acquire().ok
        fault.inject()
        assert (role(old), role(new)) == ("master", "master"), "nobody has told the old one"
        assert "is missing" in fault.report if replicated == LOST else "is there" in fault.report
        assert two.acquire(wait_ms=0).ok == (replicated == LOST)
        fault.heal()
        heal_again(fault)
        assert (role(old), role(new)) == ("slave", "master")
        assert running.redis.master(old) is new
        assert old.link.get(running.resource) == new.link.get(running.resource), "what it alone had is lost"
        assert one.is_held().ok == (replicated == KEPT)
        assert status(running) == ("violated" if replicated == LOST else "holds")


def test_the_proof_is_looked_at_not_remembered() -> None:
    with trial("none", replicas=1) as running:
        running.clients(2)
        with running.fault("failover", running.server) as fault:
            running.replicas[0].link.replicaof("127.0.0.1", str(running.server.port))
            assert not fault._fault.prove(fault.target, Message())
            running.replicas[0].link.replicaof("NO", "ONE")


def test_a_preparation_that_comes_to_nothing_is_undone() -> None:
    with trial("replica-wait", replicas=1) as running:
        one, two = running.clients(2)
        fault = running.prepare("failover", running.server)
        assert not one.acquire(wait_ms=0).ok, "its replica hears nothing"
        fault.heal()
        assert two.acquire(wait_ms=0).ok
        assert running.replicas[0].link.get(running.resource)
        assert running.judge().faults == []


@pytest.mark.parametrize("direct", [True, False])
def test_a_new_master_whose_clock_is_ahead_sees_leases_over(direct: bool) -> None:
    """Everything was replicated, but the lock is lost: its expiry is an absolute time."""
    with trial("set-nx-px", replicas=1, direct=direct) as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        with running.fault("failover", running.server, replicated=KEPT, clock_ms=running.lease_ms + 1000):
            new = running.replicas[0]
            assert new.time_us() - running.server.time_us() == (running.lease_ms + 1000) * 1000
            assert running.clock.prove()
            assert two.acquire(wait_ms=0).ok
        assert new.time_us() == running.server.time_us()
        assert status(running) == "violated"


def test_a_clock_ahead_by_less_than_the_lease_is_no_harm() -> None:
    with trial("set-nx-px", replicas=1) as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        with running.fault("failover", running.server, replicated=KEPT, clock_ms=running.lease_ms - 1000):
            assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED
        assert status(running) == "holds"


def test_a_clock_that_cannot_be_set_is_inconclusive() -> None:
    with trial("none", time="real", replicas=1) as running:
        one, _ = running.clients(2)
        with pytest.raises(Inconclusive, match="settable clocks are needed"):
            running.inject("failover", running.server, replicated=KEPT, clock_ms=1000)
        one.increment()
        assert running.judge().exit == 3


@pytest.mark.parametrize("time", TIMES)
def test_a_lock_that_waits_for_its_replica_refuses_or_survives(time: str) -> None:
    with trial("replica-wait", time=time, lease_ms=LEASE_MS, replicas=1) as running:
        one, two = running.clients(2)
        cut = running.prepare("failover", running.server)
        assert one.acquire(wait_ms=0).outcome is Outcome.REFUSED
        cut.heal()
        assert one.acquire(wait_ms=0).ok, "the replica is back"
        with running.fault("failover", running.server, replicated=KEPT):
            assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED
        assert one.release().ok
        assert two.acquire(wait_ms=0).ok, "the old master acknowledges what the new one writes"
        assert status(running) == "holds"


@pytest.mark.parametrize("direct", [True, False])
def test_of_two_replicas_the_one_that_did_not_acknowledge_is_promoted(direct: bool) -> None:
    """redisson#5256: one replica acknowledged the write for WAIT, and the other became the master."""
    with trial("replica-wait", replicas=2, direct=direct) as running:
        one, two = running.clients(2)
        heard, deaf = running.replicas
        fault = running.prepare("failover", running.server, deaf)
        assert one.acquire(wait_ms=0).ok
        assert heard.link.get(running.resource)
        fault.inject()
        assert deaf.link.get(running.resource) is None
        assert not two.acquire(wait_ms=0).ok, "nobody follows the new master yet"
        fault.heal()
        assert {role(server) for server in (running.server, heard)} == {"slave"}
        assert two.acquire(wait_ms=0).ok
        assert status(running) == "violated"


def test_a_fencing_counter_that_was_not_replicated_gives_its_token_twice() -> None:
    with trial("fenced", replicas=1, store="fence-reads-and-writes") as running:
        one, two = running.clients(2)
        assert one.acquire().token == 1
        assert one.release().ok
        fault = running.prepare("failover", running.server)
        first = one.acquire()
        fault.inject()
        second = two.acquire(wait_ms=0)
        assert (first.token, second.token) == (2, 2)
        assert one.write(7).ok and two.write(8).ok, "the resource cannot tell them apart"
        fault.heal()
        verdict = running.judge().properties
        assert verdict["fencing"].status == "violated"
        assert verdict["mutual_exclusion"].status == "violated"


def test_there_and_back_again() -> None:
    with trial("set-nx-px", replicas=1) as running:
        one, _ = running.clients(2)
        first, second = running.server, running.replicas[0]
        for old, new in ((first, second), (second, first)) * 2:
            assert running.redis.master(first) is old
            with running.fault("failover", old, replicated=KEPT):
                assert running.redis.master(first) is new
            assert one.acquire(wait_ms=0).ok
            assert new.link.get(running.resource) and one.release().ok
        (three,) = running.clients(1)
        assert three.acquire(wait_ms=0).ok
        assert first.link.get(running.resource)


@pytest.mark.parametrize("direct", [True, False])
def test_a_client_that_comes_afterwards_finds_the_new_master(direct: bool) -> None:
    with trial("set-nx-px", replicas=1, direct=direct) as running:
        fault = running.inject("failover", running.server, replicated=KEPT)
        (one,) = running.clients(1)
        assert one.acquire(wait_ms=0).ok
        assert running.redis.master(running.server).link.get(running.resource)
        assert running.server.link.get(running.resource) is None
        fault.heal()


@pytest.mark.parametrize("lock", ["blpop", "pubsub", "set-nx-px"])
def test_whoever_waits_during_a_failover_does_not_wait_for_ever(lock: str) -> None:
    with trial(lock, replicas=1) as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        two.start_acquire()
        running.advance(100)
        with running.fault("failover", running.server, replicated=KEPT):
            running.advance(100)
            assert one.release().ok
        got = two.finish()
        cut_off = lock == "blpop"  # it loses its connection; pubsub subscribes again, and set-nx-px reconnects
        assert got.outcome is (Outcome.UNKNOWN if cut_off else Outcome.OK)


def test_a_failover_while_the_holder_is_paused() -> None:
    with trial("set-nx-px", replicas=1) as running:
        one, two = running.clients(2)
        one.start_increment()
        fault = running.prepare("failover", running.server)
        with running.pause(one, at="before-write"):
            fault.inject()
            two.increment()
        one.finish()
        fault.heal()
        assert status(running, "integrity") == "violated"


def history_of(path: Path, direct: bool, replicated: str) -> bytes:
    with trial("set-nx-px-renew", seed=5, replicas=1, direct=direct) as running:
        clients = running.clients(3)
        for client in clients:
            client.start_workload(duration_ms=600, work_ms=20, think_ms=5)
        running.advance(200)
        fault = running.prepare("failover", running.server, replicated=replicated)
        running.advance(100)
        fault.inject()
        running.advance(100)
        fault.heal()
        running.finish(*clients)
        running.judge()
        running.save(path)
    found = path.read_bytes()
    path.unlink()
    assert running.verdict and running.verdict.grants > 9
    return found


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("replicated", [LOST, KEPT])
def test_the_same_seed_gives_the_same_history(direct: bool, replicated: str, tmp_path: Path) -> None:
    assert len({history_of(tmp_path / "history", direct, replicated) for _ in range(2)}) == 1


# --- what cannot bite ---


def test_without_a_replica_there_is_no_failover() -> None:
    with trial("none") as running:
        one, _ = running.clients(2)
        with pytest.raises(Inconclusive, match="failover did not take effect on redis-1: redis-1 has no replica"):
            running.inject("failover", running.server)
        one.increment()
        verdict = running.judge()
        assert verdict.exit == 3
        assert "failover" in (verdict.properties["integrity"].reason or "")


def test_anothers_replica_is_not_promoted() -> None:
    with trial("none", nodes=2, replicas=1) as running:
        first, second = running.servers
        with pytest.raises(Inconclusive, match="no replica follows redis-1"):
            running.inject("failover", first, second.replicas[0])
        assert role(second.replicas[0]) == "slave"


@pytest.mark.waits
def test_a_replica_that_hears_nothing_cannot_have_the_last_writes() -> None:
    with trial("none", replicas=1) as running:
        running.clients(2)
        link = "redis-1-replica-1>redis-1"
        with running.fault("partition", link) as cut:
            with pytest.raises(Inconclusive, match=r"stays .* bytes behind redis-1"):
                running.inject("failover", running.server, replicated=KEPT)
            assert role(running.replicas[0]) == "slave"
            assert cut.injected


@pytest.mark.parametrize(("name", "why"), [("sentinel", "no sentinel watches redis-1"), ("cluster", "cluster support")])
def test_elections_need_somebody_to_vote(name: str, why: str) -> None:
    with trial("none", time="real", replicas=1) as running:
        one, _ = running.clients(2)
        with pytest.raises(Inconclusive, match=why):
            running.inject(f"failover-{name}", running.server)
        assert running.server.process.poll() is None
        one.increment()
        assert running.judge().exit == 3


@pytest.mark.parametrize("options", [{"replicated": "maybe"}, {"clock_ms": "soon"}])
def test_options_that_mean_nothing_are_refused(options: dict[str, Any]) -> None:
    with (
        trial("none", replicas=1) as running,
        pytest.raises(Inconclusive, match=r"maybe is not no or yes|soon is not a number"),
    ):
        running.inject("failover", running.server, **options)


@pytest.mark.parametrize("kind", ["sentinel", "cluster"])
def test_elections_are_for_real_time(kind: Topology) -> None:
    with pytest.raises(UsageError, match=f"the topology {kind} is for real time"), trial("none", topology=kind):
        pass


# --- sentinels and clusters ---


def election(kind: Topology, how: str, replicated: str, more: Callable[[Trial], None]) -> None:
    with trial("set-nx-px", time="real", lease_ms=LEASE_MS, topology=kind) as running:
        one, two = running.clients(2)
        old, new = running.server, running.replicas[0]
        fault = running.prepare(f"failover-{kind}", old, how=how, replicated=replicated)
        assert one.acquire().ok
        fault.inject()
        assert running.redis.master(old) is new and role(new) == "master"
        assert f"last is {'missing' if replicated == LOST else 'there'}" in fault.report
        assert two.acquire(wait_ms=0).ok == (replicated == LOST)
        fault.heal()
        heal_again(fault)
        assert (role(old), role(new)) == ("slave", "master")
        if kind == "cluster":
            old.link.readonly()
        assert old.link.get(running.resource) == new.link.get(running.resource), "what it alone had is lost"
        assert one.is_held().ok == (replicated == KEPT)
        more(running)
        assert status(running) == ("violated" if replicated == LOST else "holds")


@pytest.mark.waits
@pytest.mark.parametrize(("how", "replicated"), [("kill", LOST), ("pause", KEPT)])
def test_sentinels_promote_a_replica(how: str, replicated: str) -> None:
    def more(running: Trial) -> None:
        new = running.replicas[0]
        for sentinel in running.redis.sentinels:
            said: Any = sentinel.link.sentinel_get_master_addr_by_name("redis-1")
            assert said[1] == new.announced != new.port, "they reach it through the proxy"
            known: Any = sentinel.link.sentinel_master("redis-1")
            assert known["down-after-milliseconds"] == topology.PATIENCE_MS

    election("sentinel", how, replicated, more)


@pytest.mark.waits
@pytest.mark.parametrize(("how", "replicated"), [("kill", KEPT), ("pause", LOST)])
def test_a_cluster_elects_a_replica(how: str, replicated: str) -> None:
    def more(running: Trial) -> None:
        assert len(running.redis.cluster) == 4
        assert running.server.link.config_get("cluster-node-timeout") == {
            "cluster-node-timeout": str(topology.PATIENCE_MS)
        }

    election("cluster", how, replicated, more)


@pytest.mark.waits
def test_the_second_replica_follows_whom_the_sentinels_chose() -> None:
    with trial("replica-wait", time="real", lease_ms=LEASE_MS, topology="sentinel", replicas=2) as running:
        one, two = running.clients(2)
        assert one.acquire(wait_ms=0).ok
        with running.fault("failover-sentinel", running.server, replicated=KEPT):
            new = running.redis.master(running.server)
            assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED
        assert {server.name for server in new.replicas} == {
            server.name for server in (running.server, *running.replicas) if server is not new
        }
        assert one.release().ok
        assert two.acquire(wait_ms=0).ok
        with pytest.raises(Inconclusive, match="sentinels watch"):
            running.inject("failover", new)


@pytest.mark.waits
def test_links_without_a_proxy_follow_too() -> None:
    with trial("set-nx-px", time="real", lease_ms=LEASE_MS, topology="sentinel", direct=True) as running:
        one, two = running.clients(2)
        fault = running.prepare("failover-sentinel", running.server)
        assert one.acquire().ok
        fault.inject()
        assert two.acquire(wait_ms=0).ok
        fault.heal()
        assert role(running.server) == "slave"


def test_the_resource_chooses_the_master_of_its_slot() -> None:
    names = [b"account", b"b", b"c", b"{d}e"]
    masters = [
        each
        for name in names
        for each, slots in enumerate(topology.cluster_ranges())
        if topology.slot_of(name) in slots
    ]
    assert [
        topology.slot_of(name) for name in (b"123456789", b"{user1000}.following", b"foo{}{bar}", b"foo{{bar}}zap")
    ] == [
        12739,
        topology.slot_of(b"user1000"),
        8363,
        topology.slot_of(b"{bar"),
    ], "the specification's own examples"
    assert len(set(masters)) > 1


@pytest.mark.waits
@pytest.mark.parametrize(
    ("lock", "why"),
    [
        ("redlock", "redlock needs 5 servers that know nothing of each other"),
        ("sharded-spin", "sharded-spin cannot work in a cluster: MOVED"),
    ],
)
def test_a_lock_that_cannot_work_in_a_cluster_is_inconclusive(lock: str, why: str) -> None:
    """A server or a proxy that stands still for the second that a command may take has not answered the first one."""
    with pytest.raises(Inconclusive, match=why), trial(lock, time="real", topology="cluster") as running:
        client, link = running.clients(1)[0], running.server.link

        def has_answered() -> bool:
            client.acquire(wait_ms=0)
            return "errorstat_MOVED" in link.info("errorstats")

        wait_until(has_answered, 60, why)


@pytest.mark.waits
def test_locks_of_several_keys_work_in_a_cluster() -> None:
    """All keys of a lock contain the resource's name in braces, so they share a slot."""
    with trial("fair", time="real", lease_ms=LEASE_MS, topology="cluster") as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        two.start_acquire()
        assert one.release().ok
        assert two.finish().ok
        assert running.resource == b"{account}"


def test_a_name_with_braces_gets_no_others() -> None:
    with trial("fenced", resource=b"{account}:1") as running:
        (one,) = running.clients(1)
        assert one.acquire().ok
        assert running.server.link.exists("{account}:1", "redisson_lock_token:{account}:1") == 2


@pytest.mark.waits
def test_a_topology_that_is_not_ready_in_time_ends_the_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topology, "START_LIMIT_S", 0.05)
    with (
        pytest.raises(Inconclusive, match=r"the cluster|the sentinels"),
        trial("none", time="real", topology="cluster"),
    ):
        pass


@pytest.mark.waits
def test_nodes_of_a_cluster_that_have_not_met_are_made_to_meet_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node forgets one that is not heard of for a second, which is what a machine that stands still looks like."""
    meetings, meet = [], topology._meet

    def meet_from_the_second_time_on(nodes: list[RedisServer]) -> None:
        meetings.append(len(nodes))
        if len(meetings) > 1:
            meet(nodes)

    monkeypatch.setattr(topology, "_meet", meet_from_the_second_time_on)
    monkeypatch.setattr(topology, "MEET_AGAIN_S", 2.0)
    with trial("none", time="real", topology="cluster"):
        assert len(meetings) >= 2


LONG = """
import time
from tests.helpers.support import trial
with trial("none", time="real", topology="{topology}") as running:
    running.clients(2)
    print("ready", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize(("kind", "processes"), [("sentinel", 9), ("cluster", 10)])
def test_a_driver_that_is_killed_leaves_no_sentinel_and_no_cluster(kind: Topology, processes: int) -> None:
    with short_directory() as directory:
        environment = {**ENVIRONMENT, "TMPDIR": str(directory)}
        command = [sys.executable, "-c", LONG.format(topology=kind)]
        driver = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        assert driver.stdout
        assert driver.stdout.readline() == "ready\n"
        pids = processes_below(directory)
        assert len(pids) >= processes, "servers, sentinels, proxy, store, reaper, clients"
        driver.send_signal(signal.SIGKILL)
        driver.communicate(timeout=600)
        wait_until(lambda: not processes_below(directory), 10, "processes gone")
        assert_clean(directory, pids)
