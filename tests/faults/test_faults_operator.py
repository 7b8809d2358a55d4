"""Faults of a server and of its operators: each injected, proved and healed on real servers, and its effect on a
lock."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lockstorm import Client, Inconclusive, Outcome, Trial
from lockstorm.servers.redis_server import RedisServer
from tests.helpers.support import short_directory, trial

MS = 1_000_000
TIMES = ("virtual", "real")
LEASE_MS = {"virtual": 30_000, "real": 500}

# Every fault of this part, with options with which it takes effect on a server on which one client has the lock.
ALL: dict[str, dict[str, Any]] = {
    "pause-commands": {"mode": "all"},
    "crash-server": {"data": "none"},
    "evict": {"key": "account"},
    "flush": {},
    "kill-connections": {},
    "max-clients": {},
    "read-only": {},
    "script-flush": {},
}


def ask(server: RedisServer, *words: str | int) -> Any:
    return server.link.execute_command(*words)  # type: ignore[no-untyped-call]


def setting(server: RedisServer, name: str) -> str:
    return str(server.link.config_get(name)[name])


def status(running: Trial, name: str = "mutual_exclusion") -> str:
    found: str = running.judge().properties[name].status
    return found


def heal_again(running: Trial, name: str) -> None:
    """The driver heals once; healing the fault a second time must succeed as well."""
    fault = running.faults.every[-1]
    assert fault.name == name and fault.healed
    assert fault._call(fault._fault.heal), fault.report


@contextmanager
def held(lock: str = "set-nx-px", **requests: Any) -> Iterator[tuple[Trial, Client, Client]]:
    """A trial in which the first of two clients has the lock."""
    requests.setdefault("lease_ms", LEASE_MS[requests.get("time", "virtual")])
    with trial(lock, **requests) as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        yield running, one, two


@contextmanager
def forbidden(server: RedisServer, *commands: str) -> Iterator[None]:
    """These commands are denied, as on a managed server."""
    ask(server, "ACL", "SETUSER", "default", *(f"-{command}" for command in commands))
    yield
    ask(server, "ACL", "SETUSER", "default", *(f"+{command}" for command in commands))


def cannot(running: Trial, name: str, why: str, target: RedisServer | None = None, **options: Any) -> None:
    """The fault cannot take effect here: it says why, and the trial is inconclusive and names it."""
    where = target or running.server
    with (
        pytest.raises(Inconclusive, match=f"{name} did not take effect on {where.name}: .*{why}"),
        running.fault(name, where, **options),
    ):
        pass
    verdict = running.judge()
    assert verdict.exit == 3
    assert name in (verdict.properties["mutual_exclusion"].reason or "")


# --- all of them ---


@pytest.mark.parametrize(("time", "direct"), [("virtual", False), ("virtual", True), ("real", False)])
@pytest.mark.parametrize("name", sorted(ALL))
def test_it_is_injected_proved_and_healed_twice(name: str, time: str, direct: bool) -> None:
    with held(time=time, direct=direct, lease_ms=20_000) as (running, _, two):
        with running.fault(name, running.server, **ALL[name]) as fault:
            assert fault.report or name == "crash-server", "it says what it has seen"
            running.advance(5)
        heal_again(running, name)
        kinds = [record.kind for record in running.story() if record.kind.startswith("fault-")]
        after = ["fault-inject", "fault-heal", "fault-prove"]
        assert kinds == (after if name == "crash-server" else ["fault-inject", "fault-prove", "fault-heal"])
        assert {record.outcome for record in running.story() if record.kind.startswith("fault-")} == {"ok"}
        lost = name in ("crash-server", "evict", "flush")
        assert two.acquire(wait_ms=0).outcome is (Outcome.OK if lost else Outcome.REFUSED)
        keys = [key for key in running.server.link.scan_iter() if b"lockstorm" in key]
        assert keys == [], "nothing of the fault's own is left"


@pytest.mark.parametrize("name", sorted(ALL))
def test_the_same_seed_gives_the_same_history(name: str, tmp_path: Path) -> None:
    def history() -> str:
        with trial("pubsub", seed=3) as running:
            clients = running.clients(3)
            for client in clients:
                client.start_workload(1500, work_ms=30, think_ms=20)
            running.advance(400.3)
            options = {key: value for key, value in ALL[name].items() if key != "key"}
            with running.fault(name, running.server, **options):
                running.advance(300)
            running.finish(*clients)
            running.judge()
            running.save(tmp_path / "history")
        digest = hashlib.sha256((tmp_path / "history").read_bytes()).hexdigest()
        (tmp_path / "history").unlink()
        return digest

    assert history() == history()


# --- crash-server ---


@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize(
    ("data", "persistence", "granted"),
    [("none", "none", True), ("none", "aof", True), ("tail", "aof", True), ("kept", "aof", False)],
)
def test_a_server_that_forgot_the_lock_grants_it_again(data: str, persistence: str, granted: bool, time: str) -> None:
    with held(time=time, persistence=persistence, lease_ms=20_000) as (running, one, two):
        before = running.server.link.info("server")["run_id"]
        with running.fault("crash-server", running.server, data=data):
            assert two.acquire(wait_ms=0).outcome is Outcome.UNKNOWN, "nobody is there"
        assert running.server.link.info("server")["run_id"] != before
        running.advance(1)  # reads the server's clock back
        assert two.acquire(wait_ms=0).ok == granted
        assert one.release().ok != granted
        assert status(running) == ("violated" if granted else "holds")


def test_the_tail_is_as_long_as_it_is_said_to_be() -> None:
    with trial("none", persistence="aof") as running:
        link = running.server.link
        for each in range(1, 6):
            link.set(f"key-{each}", each)
        with link.pipeline() as both:
            both.set("first", 1)
            both.set("second", 2)
            both.execute()
        with running.fault("crash-server", running.server, data="tail", lost=2):
            pass
        assert sorted(link.keys()) == [b"key-1", b"key-2", b"key-3", b"key-4"], "a transaction counts as one"
        link.set("later", 1)
        with running.fault("crash-server", running.server, data="kept"):
            pass
        assert link.exists("key-4", "later") == 2, "the file is whole, and goes on"


def test_no_more_can_be_lost_than_there_is() -> None:
    with trial("none", persistence="aof") as running:
        running.server.link.set("key", 1)
        cannot(running, "crash-server", "has 1 writes, 3 were to be lost", data="tail", lost=3)
        assert running.server.link.get("key") == b"1", "it runs again, with all it had"


def test_without_an_append_only_file_nothing_can_be_kept() -> None:
    with held() as (running, _, two):
        before = running.server.link.info("server")["run_id"]
        cannot(running, "crash-server", "has no append-only file", data="kept")
        assert running.server.link.info("server")["run_id"] == before, "it was left alone"
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED


def test_a_server_that_remembers_what_it_was_to_forget_proves_nothing() -> None:
    """The data is not where the fault looks for it."""
    with short_directory() as elsewhere, trial("none", server_options=("--dir", str(elsewhere))) as running:
        ask(running.server, "CONFIG", "SET", "appendonly", "yes")
        assert running.server.link.info("persistence")["aof_enabled"] == 1
        while running.server.link.info("persistence")["aof_rewrite_in_progress"]:
            pass
        running.server._command += ["--appendonly", "yes"]
        cannot(running, "crash-server", "what was written last is lockstorm:last-write", data="none")


def test_a_server_that_does_not_start_again_is_said_to() -> None:
    with trial("none") as running:
        fault = running.inject("crash-server", running.server)
        running.server._command = ["/bin/false"]
        with pytest.raises(Inconclusive, match=r"could not be healed on redis-1: .*did not start"):
            fault.heal()


def test_redlock_survives_the_restart_of_a_node_that_comes_late_enough() -> None:
    """Kleppmann's and antirez' case: a client has three of five nodes, and one of these forgets."""
    for data, persistence, delayed, expected in [
        ("none", "none", False, "violated"),
        ("none", "none", True, "holds"),
        ("tail", "aof", False, "violated"),
        ("kept", "aof", False, "holds"),
    ]:
        with trial("redlock", persistence=persistence) as running:
            one, two = running.clients(2)
            with running.fault("partition", one, servers="redis-[45]"):
                assert one.acquire().ok
            with running.fault("crash-server", running.servers[2], data=data):
                if delayed:
                    running.advance(running.lease_ms + 1)
            assert two.acquire(wait_ms=0).ok == (delayed or expected == "violated")
            assert status(running) == expected, (data, delayed)


@pytest.mark.parametrize(("data", "kept"), [("none", False), ("kept", True)])
def test_replicas_follow_a_master_that_was_started_again(data: str, kept: bool) -> None:
    with held("replica-wait", persistence="aof" if kept else "none") as (running, _, two):
        with running.fault("crash-server", running.server, data=data):
            assert running.replicas[0].link.exists("account"), "it has what its master will have lost"
        assert running.replicas[0].link.exists("account") == kept, "it takes over what the master has"
        assert two.acquire(wait_ms=0).ok != kept
        assert running.replicas[0].link.exists("account")


def test_a_replica_is_not_crashed() -> None:
    with trial("replica-wait") as running:
        cannot(running, "crash-server", "is no master", running.replicas[0])
        assert running.replicas[0].link.ping()


@pytest.mark.waits
def test_a_node_of_a_cluster_comes_back_to_it() -> None:
    with trial("set-nx-px", time="real", topology="cluster") as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        with running.fault("crash-server", running.server):
            pass
        assert two.acquire(wait_ms=0).ok


# --- evict ---


@pytest.mark.parametrize(
    ("policy", "granted", "plain_stays"),
    [("volatile-ttl", True, True), ("allkeys-lru", True, False), ("allkeys-random", True, False)],
)
@pytest.mark.parametrize("time", TIMES)
def test_an_evicted_lock_is_granted_again(policy: str, granted: bool, plain_stays: bool, time: str) -> None:
    with held(time=time, lease_ms=20_000) as (running, one, two):
        running.server.link.set("without expiry", 1)
        with running.fault("evict", running.server, policy=policy, key="account"):
            assert bool(running.server.link.exists("without expiry")) == plain_stays
            assert two.acquire(wait_ms=0).ok == granted, "there is room again"
        assert one.release().outcome is Outcome.REFUSED
        assert (setting(running.server, "maxmemory"), setting(running.server, "maxmemory-policy")) == (
            "0",
            "noeviction",
        )
        assert status(running) == "violated"


def test_a_counter_of_tokens_survives_volatile_policies_only() -> None:
    for policy, expected in (("volatile-lru", 2), ("allkeys-lru", 1)):
        with held("set-nx-px-fenced") as (running, _, two):
            with running.fault("evict", running.server, policy=policy):
                pass
            assert two.acquire(wait_ms=0).token == expected
            assert status(running, "fencing") == ("holds" if expected == 2 else "violated"), policy


@pytest.mark.parametrize("time", TIMES)
def test_without_memory_a_lock_can_be_released_but_not_acquired(time: str) -> None:
    with held(time=time, lease_ms=20_000) as (running, one, two):
        with running.fault("evict", running.server, policy="noeviction") as fault:
            assert "OOM" in fault.report
            assert one.renew().ok
            assert two.acquire(wait_ms=0).outcome is Outcome.UNKNOWN
            assert one.release().ok
            assert two.acquire(wait_ms=0).outcome is Outcome.UNKNOWN
        assert two.acquire(wait_ms=0).ok
        assert status(running) == "holds"


def test_without_memory_redissons_lock_cannot_even_be_released() -> None:
    with held("pubsub") as (running, one, two):
        with running.fault("evict", running.server, policy="noeviction"):
            assert one.release().outcome is Outcome.UNKNOWN
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED


def test_what_cannot_go_is_not_evicted() -> None:
    with held("setnx") as (running, _, two):
        assert running.server.link.ttl("account") == -1
        cannot(running, "evict", "0 keys evicted")
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED
    with trial("none") as running:
        cannot(running, "evict", "there is no key account", key="account")
    with held() as (running, _, _), forbidden(running.server, "config"):
        cannot(running, "evict", "NOPERM")


# --- flush, script-flush ---


@pytest.mark.parametrize("time", TIMES)
def test_after_a_flush_the_lock_is_free_while_its_holder_believes(time: str) -> None:
    with held(time=time, lease_ms=20_000) as (running, one, two):
        with running.fault("flush", running.server):
            assert running.server.link.dbsize() == 0
        assert two.acquire(wait_ms=0).ok
        assert one.write(1).ok
        assert status(running) == "violated"


def test_a_flush_begins_the_tokens_again() -> None:
    with held("set-nx-px-fenced", store="fence-writes") as (running, one, two):
        assert one.write(5).ok
        with running.fault("flush", running.server):
            pass
        assert two.acquire(wait_ms=0).token == 1
        assert status(running, "fencing") == "violated"


def test_redlock_survives_the_flush_of_two_of_five() -> None:
    for flushed, expected in ((2, "holds"), (3, "violated")):
        with held("redlock") as (running, _, two):
            for server in running.servers[:flushed]:
                with running.fault("flush", server):
                    pass
            assert two.acquire(wait_ms=0).ok == (flushed == 3)
            assert status(running) == expected


def test_what_may_not_be_flushed_is_not() -> None:
    with held() as (running, _, two), forbidden(running.server, "flushall"):
        cannot(running, "flush", "NOPERM")
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED


@pytest.mark.parametrize("lock", ["set-nx-px", "pubsub", "blpop-renew"])
@pytest.mark.parametrize("time", TIMES)
def test_locks_get_on_without_their_scripts(lock: str, time: str) -> None:
    with held(lock, time=time, lease_ms=20_000) as (running, one, two):
        with running.fault("script-flush", running.server):
            pass
        assert one.renew().ok
        with running.fault("script-flush", running.server):
            assert one.release().ok
        assert int(running.server.link.info("errorstats")["errorstat_NOSCRIPT"]["count"]) >= 2, "it was missed"
        assert two.acquire(wait_ms=0).ok
        assert status(running) == "holds"


def test_scripts_that_may_not_be_flushed_are_not() -> None:
    with held() as (running, _, _), forbidden(running.server, "script|flush"):
        cannot(running, "script-flush", "NOPERM")


# --- kill-connections ---


@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize(
    ("lock", "kind", "killed"), [("pubsub", "pubsub", 1), ("pubsub", "normal", 2), ("pubsub-naive", "all", 3)]
)
def test_a_waiter_subscribes_again(lock: str, kind: str, killed: int, time: str) -> None:
    """It also checks the lock before it waits: messages published meanwhile are lost."""
    with held(lock, time=time, lease_ms=20_000) as (running, one, two):
        two.start_acquire()
        running.advance(50)
        own = ask(running.server, "CLIENT", "ID")
        with running.fault("kill-connections", running.server, type=kind) as fault:
            assert f"{killed} of {killed} connections" in fault.report
        assert ask(running.server, "CLIENT", "ID") == own, "the trial's own are spared"
        before_ns = running.mono_ns
        assert one.release().ok
        assert two.finish().ok
        assert running.mono_ns - before_ns < running.lease_ms * MS / 4, "the message came, or was not needed"
        assert status(running) == "holds"


@pytest.mark.parametrize("time", TIMES)
def test_a_blocking_pop_that_is_cut_off_has_no_outcome(time: str) -> None:
    with held("blpop", time=time, lease_ms=20_000) as (running, one, two):
        two.start_acquire()
        running.advance(50)
        with running.fault("kill-connections", running.server, type="normal"):
            pass
        assert two.finish().outcome is Outcome.UNKNOWN
        assert one.release().ok
        assert two.acquire(wait_ms=0).ok, "it connects again"


def test_where_nobody_is_connected_nothing_is_closed() -> None:
    with held("set-nx-px") as (running, _, _):
        cannot(running, "kill-connections", "there was no such connection", type="pubsub")
    with trial("none") as running:
        cannot(running, "kill-connections", "there was no such connection")


# --- pause-commands ---


@pytest.mark.parametrize("mode", ["write", "all"])
@pytest.mark.parametrize("time", TIMES)
def test_a_watchdog_that_is_made_to_wait_loses_the_lock(mode: str, time: str) -> None:
    with held("set-nx-px-renew", time=time, lease_ms=2 * LEASE_MS[time]) as (running, one, two):
        with running.fault("pause-commands", running.server, mode=mode):
            assert one.renew().outcome is Outcome.UNKNOWN
            running.advance(running.lease_ms + 10)
        assert two.acquire(wait_ms=0).ok
        assert one.release().outcome is Outcome.REFUSED
        assert status(running) == "violated"


@pytest.mark.parametrize("mode", ["write", "all"])
@pytest.mark.parametrize("direct", [False, True], ids=["proxy", "direct"])
def test_a_command_waits_as_long_as_the_pause_and_its_client(mode: str, direct: bool) -> None:
    with trial("set-nx-px", direct=direct) as running:
        one, two = running.clients(2)
        with running.fault("pause-commands", running.server, mode=mode):
            assert one.acquire(wait_ms=0).outcome is Outcome.UNKNOWN
            two.start_acquire(wait_ms=0)
            running.advance(500)
        before_ns = running.mono_ns
        assert two.finish().ok, "who gave up has taken the command with it"
        assert running.mono_ns == before_ns, "it is answered when the pause ends, not before and not after"


@pytest.mark.parametrize(("mode", "answered"), [("write", True), ("all", False)])
def test_reads_wait_in_a_pause_of_all_only(mode: str, answered: bool) -> None:
    with held() as (running, one, _), running.fault("pause-commands", running.server, mode=mode):
        assert one.is_held().ok == answered


def test_replicas_are_not_waited_for_in_a_pause() -> None:
    with trial("replica-wait") as running:
        one, two = running.clients(2)
        with running.fault("pause-commands", running.server):
            assert not one.acquire(wait_ms=0).ok
            running.advance(5_000)
        assert two.acquire(wait_ms=0).ok
        assert running.replicas[0].link.exists("account")


def test_a_server_that_may_not_be_paused_is_not() -> None:
    for mode in ("write", "all"):
        with held() as (running, _, two), forbidden(running.server, "client|pause"):
            cannot(running, "pause-commands", "NOPERM", mode=mode)
            assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED


# --- read-only ---


@pytest.mark.parametrize("how", ["min-replicas", "replica"])
@pytest.mark.parametrize("time", TIMES)
def test_a_lease_that_cannot_be_renewed_runs_out_under_its_holder(how: str, time: str) -> None:
    with held("set-nx-px-renew", time=time) as (running, one, two):
        with running.fault("read-only", running.server, how=how):
            assert two.acquire(wait_ms=0).outcome is Outcome.UNKNOWN
            assert one.is_held().ok, "reads are answered"
            running.advance(running.lease_ms + 10)
        assert two.acquire(wait_ms=0).ok
        assert status(running) == "violated"
        assert running.server.link.info("replication")["role"] == "master"
        assert setting(running.server, "min-replicas-to-write") == "0"


@pytest.mark.parametrize("how", ["min-replicas", "replica"])
def test_a_read_only_master_keeps_its_replicas_or_finds_them_again(how: str) -> None:
    with trial("replica-wait") as running:
        one, two = running.clients(2)
        with running.fault("read-only", running.server, how=how):
            assert one.acquire(wait_ms=0).outcome is Outcome.UNKNOWN
            running.advance(100)
        assert two.acquire(wait_ms=0).ok
        assert running.replicas[0].link.exists("account")


def test_a_server_that_stays_writable_proves_nothing() -> None:
    with held() as (running, _, _), forbidden(running.server, "config"):
        cannot(running, "read-only", "NOPERM")
    with trial("replica-wait") as running:
        cannot(running, "read-only", "is a replica already", running.replicas[0], how="replica")


# --- max-clients ---


@pytest.mark.parametrize("direct", [False, True], ids=["proxy", "direct"])
@pytest.mark.parametrize("time", TIMES)
def test_a_watchdog_that_finds_no_place_loses_the_lock(time: str, direct: bool) -> None:
    """The watchdog connects late: the lock already has a connection, the watchdog's own is refused."""
    with trial("set-nx-px-renew", time=time, direct=direct, lease_ms=LEASE_MS[time]) as running:
        one, two = running.clients(2)
        with running.fault("max-clients", running.server):
            assert one.acquire(wait_ms=0).ok, "who is connected goes on"
            running.advance(running.lease_ms + 10)
            assert two.acquire(wait_ms=0).ok
        assert setting(running.server, "maxclients") == "10000"
        assert status(running) == "violated"


def test_a_subscriber_that_finds_no_place_has_no_outcome() -> None:
    with held("pubsub") as (running, _, two):
        with running.fault("max-clients", running.server):
            assert two.acquire().outcome is Outcome.UNKNOWN
        two.start_acquire()
        running.advance(100)
        assert running.server.link.info("clients")["connected_clients"] > 3


def test_connections_without_a_limit_prove_nothing() -> None:
    with held() as (running, _, _), forbidden(running.server, "config|set"):
        cannot(running, "max-clients", "NOPERM")


# --- several at once ---


def test_faults_overlap_on_one_server() -> None:
    """A crash undoes the settings of the running server; healing such a fault afterwards is harmless."""
    changes: dict[str, dict[str, str]] = {"read-only": {}, "max-clients": {}, "evict": {"policy": "noeviction"}}
    for name, options in changes.items():
        with held() as (running, _, two):
            first = running.inject("kill-connections", running.server)
            other = running.inject("flush", running.server)
            last = running.inject(name, running.server, None, **options)
            os.kill(running.server.process.pid, 9)
            running.server.restart()
            for fault in (first, last, other):
                fault.heal()
            assert two.acquire(wait_ms=0).ok, name


@pytest.mark.waits
def test_a_server_that_takes_no_writes_cannot_prove_what_it_forgets() -> None:
    for name, why in (("read-only", "refuses writes: NOREPLICAS"), ("pause-commands", "no reply")):
        with held() as (running, _, _):
            first = running.inject(name, running.server)
            with (
                pytest.raises(Inconclusive, match=f"crash-server did not take effect.*{why}"),
                running.fault("crash-server", running.server),
            ):
                pass
            first.heal()
            assert running.server.link.exists("account")


def test_a_crash_ends_a_pause_of_the_clients() -> None:
    with held() as (running, _, two):
        pause = running.inject("pause-commands", running.server, mode="all")
        os.kill(running.server.process.pid, 9)
        running.server.restart()
        pause.heal()
        running.advance(10)
        assert two.acquire(wait_ms=0).ok


# --- options ---


@pytest.mark.parametrize(
    ("name", "options", "why"),
    [
        ("crash-server", {"data": "half"}, "data=half is not kept, tail, none or configured"),
        ("crash-server", {"data": "none", "lost": "few"}, "is not a number"),
        ("evict", {"policy": "oldest"}, "maxmemory-policy"),
        ("kill-connections", {"type": "replica"}, "type=replica is not normal, pubsub or all"),
        ("pause-commands", {"mode": "read"}, "mode=read is not write or all"),
        ("read-only", {"how": "chmod"}, "how=chmod is not min-replicas or replica"),
    ],
)
def test_an_option_that_it_does_not_know_is_named(name: str, options: dict[str, Any], why: str) -> None:
    with held() as (running, _, two):
        cannot(running, name, why, **options)
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED
