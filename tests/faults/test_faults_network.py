"""Faults on links: each injected, proved and healed on real servers, and its effect on a lock."""

import os
import signal
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from lockstorm import Inconclusive, Outcome, Trial, UsageError
from tests.helpers.support import trial
from tests.trial.test_leftovers import wait_until

MS = 1_000_000
TIMES = ("virtual", "real")
LEASE_MS = {"virtual": 30_000, "real": 500}
REPLY_LIMIT_MS = 1000  # the environment's


def value(running: Trial, key: str = "account") -> Any:
    return running.server.link.get(key)


def status(running: Trial, name: str) -> str:
    found: str = running.judge().properties[name].status
    return found


# --- partition ---


@pytest.mark.parametrize("time", TIMES)
def test_a_holder_cut_off_from_the_lock_still_reaches_the_resource(time: str) -> None:
    with trial("set-nx-px", time=time, lease_ms=LEASE_MS[time]) as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        with running.fault("partition", one):
            assert one.renew().outcome is Outcome.UNKNOWN
            running.advance(running.lease_ms + 1)
            assert two.acquire().ok
            assert one.write(7).ok, "the store is on the other side of no cut"
        assert one.release().outcome is Outcome.REFUSED, "healed: it hears that the lock is not its own any more"
        assert status(running, "mutual_exclusion") == "violated"


@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize(("direction", "arrives"), [("to-server", False), ("to-client", True), ("both", False)])
def test_one_way_or_both(time: str, direction: str, arrives: bool) -> None:
    """A request whose answer is lost has run; a lost request has not."""
    with trial("set-nx-px", time=time, lease_ms=30_000) as running:
        (one,) = running.clients(1)
        with running.fault("partition", one, direction=direction):
            assert one.acquire(wait_ms=0).outcome is Outcome.UNKNOWN
        assert (value(running) is not None) == arrives


def test_a_server_cut_off_from_everybody() -> None:
    with trial("redlock") as running:
        one, two = running.clients(2)
        cut = [running.inject("partition", server) for server in running.servers[:3]]
        assert not one.acquire(wait_ms=0).ok, "two of five are no majority"
        for fault in cut:
            fault.heal()
        assert two.acquire(wait_ms=0).ok


def test_replicas_behind_a_cut_are_not_waited_for_and_come_back() -> None:
    with trial("replica-wait") as running:
        one, two = running.clients(2)
        with running.fault("partition", "redis-1-replica-1>redis-1"):
            assert not one.acquire(wait_ms=0).ok, "nobody has acknowledged it"
        running.advance(running.lease_ms + 1)
        assert two.acquire(wait_ms=0).ok
        assert running.replicas[0].link.get("account") == value(running) is not None


@pytest.mark.parametrize("time", TIMES)
def test_a_partition_that_nobody_notices_proves_nothing(time: str) -> None:
    with trial("set-nx-px", time=time) as running:
        one, _ = running.clients(2)
        with (
            pytest.raises(Inconclusive, match="partition did not take effect on client-1"),
            running.fault("partition", one),
        ):
            pass
        assert running.judge().exit == 3


# --- messages ---


def wait_after_release(running: Trial, fault: str, **options: Any) -> float:
    """How long the second client still waits, in ms, after the first has released under the fault."""
    one, two = running.clients(2)
    assert one.acquire().ok
    two.start_acquire()
    running.advance(running.lease_ms / 30)
    if running.settings.lock == "pubsub":  # in real time it may stand still before its two tries
        wait_until(lambda: running.server.calls()["evalsha"] >= 3, 60, "the second client waits")
    with running.fault(fault, two, **options):
        before_ns = running.mono_ns
        assert one.release().ok
        assert two.finish().ok
        waited_ms = (running.mono_ns - before_ns) / MS
    two.release()
    return waited_ms


def test_without_a_fault_the_message_wakes_the_waiter_at_once() -> None:
    with trial("pubsub") as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        two.start_acquire()
        running.advance(1000)
        before_ns = running.mono_ns
        assert one.release().ok
        assert two.finish().ok
        assert running.mono_ns == before_ns


def test_a_lost_message_costs_a_waiter_the_rest_of_the_lease() -> None:
    with trial("pubsub") as running:
        waited_ms = wait_after_release(running, "drop-message")
        assert running.lease_ms / 2 < waited_ms <= running.lease_ms


@pytest.mark.waits
def test_a_lost_message_in_real_time() -> None:
    with trial("pubsub", time="real", lease_ms=600) as running:
        assert wait_after_release(running, "drop-message") > 100


def test_only_messages_of_the_channel_are_lost() -> None:
    with trial("pubsub") as running, pytest.raises(Inconclusive, match="drop-message did not take effect"):
        wait_after_release(running, "drop-message", channel="another")


def test_a_late_message_wakes_the_waiter_late() -> None:
    with trial("pubsub") as running:
        assert wait_after_release(running, "delay-message", ms=5000) == 5000


@pytest.mark.waits
def test_a_late_message_in_real_time() -> None:
    with trial("pubsub", time="real", lease_ms=10_000) as running:
        assert wait_after_release(running, "delay-message", ms=200) >= 200


@pytest.mark.parametrize("time", TIMES)
def test_a_subscriber_whose_connection_breaks_looks_again(time: str) -> None:
    with trial("pubsub", time=time, lease_ms=LEASE_MS[time] * 4) as running:
        assert wait_after_release(running, "kill-subscriber") < running.lease_ms / 2


@pytest.mark.parametrize("fault", ["drop-message", "delay-message", "kill-subscriber"])
def test_a_lock_that_publishes_nothing_cannot_lose_it(fault: str) -> None:
    with trial("set-nx-px") as running, pytest.raises(Inconclusive, match=f"{fault} did not take effect on client-2"):
        wait_after_release(running, fault)


# --- requests and replies ---


@pytest.mark.parametrize("time", TIMES)
def test_the_command_ran_and_its_answer_is_lost(time: str) -> None:
    with trial("set-nx-px", time=time, lease_ms=LEASE_MS[time] * 10) as running:
        one, _ = running.clients(2)
        with running.fault("lose-reply", one, command="SET", key="account"):
            assert one.acquire(wait_ms=0).outcome is Outcome.UNKNOWN
            assert value(running) is not None, "nobody knows that it holds the lock"
            assert one.acquire(wait_ms=0).outcome is Outcome.REFUSED


@pytest.mark.parametrize("time", TIMES)
def test_a_release_that_arrives_twice_makes_a_permit(time: str) -> None:
    with trial("semaphore", time=time, permits=1) as running:
        one, two, three = running.clients(3)
        assert one.acquire(wait_ms=0).ok
        with running.fault("duplicate-request", one):
            assert one.release().ok
        assert two.acquire(wait_ms=0).ok
        assert three.acquire(wait_ms=0).ok, "one permit was given back twice"


@pytest.mark.parametrize("fault", ["lose-reply", "duplicate-request"])
def test_a_command_that_never_comes(fault: str) -> None:
    with trial("set-nx-px") as running:
        (one,) = running.clients(1)
        with (
            pytest.raises(Inconclusive, match=f"{fault} did not take effect"),
            running.fault(fault, one, command="LPUSH"),
        ):
            assert one.acquire().ok


# --- the write that stays in the network ---


@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize(("store", "damaged"), [("open", True), ("fence-writes", False)])
def test_a_write_that_arrives_when_another_has_written(time: str, store: str, damaged: bool) -> None:
    """Kleppmann's delayed packet: only the fence stops it."""
    with trial("set-nx-px-fenced", store=store, time=time, lease_ms=LEASE_MS[time]) as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        assert one.read().ok
        with running.fault("delay-write", one):
            assert one.write(1).outcome is Outcome.UNKNOWN, "it gave up waiting for the answer"
            running.advance(running.lease_ms + 1)
            assert two.increment().ok
        verdict = running.judge().properties
        assert verdict["integrity"].status == ("violated" if damaged else "holds")


@pytest.mark.parametrize("time", TIMES)
def test_a_write_arrives_when_its_client_is_long_gone(time: str) -> None:
    with trial("none", time=time) as running:
        one, two = running.clients(2)
        with running.fault("delay-write", one):
            assert one.write(41).outcome is Outcome.UNKNOWN
            assert one.process
            assert two.read().value == 0
        assert two.read().value == 41


def test_what_is_let_go_is_recorded_before_the_healing() -> None:
    """The order of the records must not depend on how long the store takes."""
    with trial("none") as running:
        (one,) = running.clients(1)
        pids = [each.pid for each in running.sandbox.processes]
        (store,) = (pid for pid in pids if Path(f"/proc/{pid}/comm").read_text() == "store\n")
        later = Timer(0.2, os.kill, (store, signal.SIGCONT))
        with running.fault("delay-write", one):
            assert one.write(41).outcome is Outcome.UNKNOWN
            os.kill(store, signal.SIGSTOP)
            later.start()
        later.join()
        kinds = [event.kind for event in running.story()]
        assert kinds.index("store-write") < kinds.index("fault-heal")


def test_no_write_no_proof() -> None:
    with trial("none") as running:
        (one,) = running.clients(1)
        with pytest.raises(Inconclusive, match="delay-write did not take effect"), running.fault("delay-write", one):
            assert one.read().ok


# --- rules, and all of it ---


def test_a_rule_that_matches_nothing_is_an_error_that_names_it() -> None:
    with trial("none") as running:
        running.clients(1)
        with running.rule("no-such-thing", "client-1>redis-*", "to-server", "drop", "COMMAND", "LPOP"):
            pass
        with pytest.raises(Inconclusive, match="no-such-thing"):
            running.judge()


def test_without_the_proxy_no_fault_on_a_link_can_bite() -> None:
    with trial("none", direct=True) as running:
        (one,) = running.clients(1)
        with pytest.raises(Inconclusive, match="do not lead through the proxy"), running.fault("partition", one):
            pass
        with pytest.raises(UsageError, match="do not lead through the proxy"):
            running.rule("any", "*", "both", "drop").__enter__()


def test_healing_twice_is_harmless() -> None:
    with trial("set-nx-px") as running:
        one, two = running.clients(2)
        fault = running.inject("partition", one)
        assert one.acquire(wait_ms=0).outcome is Outcome.UNKNOWN
        fault.heal()
        fault.heal()
        assert two.acquire(wait_ms=0).ok


def test_faults_compose() -> None:
    """A paused holder whose renewal answer is lost, and a waiter that does not receive the message of the release."""
    with trial("pubsub") as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        two.start_acquire()
        running.advance(100)
        with running.fault("lose-reply", one), running.fault("drop-message", two):
            with running.pause(one):
                running.advance(1000)
            one.release()
            assert two.finish().ok
        assert status(running, "mutual_exclusion") in ("holds", "violated")


def story(lock: str, path: Path) -> bytes:
    with trial(lock, seed=11) as running:
        one, two = running.clients(2)
        for client in (one, two):
            client.start_workload(20_000, work_ms=50, think_ms=50)
        with running.fault("partition", one):
            running.advance(3000)
        with running.rule("slow", "*>redis-1", "to-client", "delay", 20, "JITTER", 30):
            running.advance(3000)
        with running.rule("late-writes", "client-2>store", "to-server", "delay", 700, "COMMAND", "SET"):
            running.advance(9000)
        running.finish(one, two)
        running.judge()
        running.save(path)
    return path.read_bytes()


@pytest.mark.parametrize("lock", ["set-nx-px", "pubsub", "blpop-renew", "fair"])
def test_the_same_seed_gives_the_same_history(lock: str, tmp_path: Path) -> None:
    assert story(lock, tmp_path / "one") == story(lock, tmp_path / "two")


# --- close-links ---


@pytest.mark.parametrize("time", TIMES)
def test_closed_links_are_made_anew_and_a_key_stays_its_owners(time: str) -> None:
    with trial("set-nx-px", time=time, lease_ms=LEASE_MS["virtual"]) as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        with running.fault("close-links", one) as fault:
            assert fault.proved and "1 connections were closed" in fault.proof
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED
        assert one.release().ok, "on a new connection"


def test_links_without_a_connection_cannot_be_closed() -> None:
    with trial("set-nx-px") as running:
        (one,) = running.clients(1)
        with pytest.raises(Inconclusive, match="there was no such connection to close"):
            running.inject("close-links", one, servers="nobody-*")
