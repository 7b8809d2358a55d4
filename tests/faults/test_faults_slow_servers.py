"""Servers that stand still or are busy: injected, proved, healed, and the effect on a lock."""

import itertools
import time as real_time
from pathlib import Path

import pytest

from lockstorm import Inconclusive, Outcome, Trial, UsageError
from tests.faults.test_faults_clients import digest, status, thread_states
from tests.helpers.daily import daily
from tests.helpers.stalls import beside_no_stall
from tests.helpers.support import trial

TIMES = ("virtual", "real")
LEASE_MS = {"virtual": 30_000, "real": 2000}
REPLY_LIMIT_MS = 1000  # the environment's
MS = 1_000_000


# --- pause-server ---


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("time", TIMES)
def test_what_was_sent_to_a_paused_server_runs_when_it_goes_on(time: str, direct: bool) -> None:
    """The client has given up and does not know the outcome; the server grants it the lock nevertheless."""
    with trial("set-nx-px", time=time, lease_ms=LEASE_MS[time], direct=direct) as running:
        one, two = running.clients(2)
        with running.fault("pause-server", running.server) as fault:
            assert thread_states(running.server.process.pid) == {"T"}
            before_ns = running.mono_ns
            assert one.acquire(wait_ms=0).outcome is Outcome.UNKNOWN
            passed_ms = (running.mono_ns - before_ns) / MS
            assert passed_ms == REPLY_LIMIT_MS if time == "virtual" else passed_ms >= REPLY_LIMIT_MS
            running.advance(100)
        assert fault.proof.endswith("threads in state T, no answer to a PING within 50 ms")
        fault.heal()
        assert "T" not in thread_states(running.server.process.pid)
        assert running.server.link.exists("account")
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED
        assert two.acquire().ok, "a ghost's lock ends with its lease"


@pytest.mark.parametrize("time", TIMES)
def test_renewals_that_get_no_answer_lose_the_lock(time: str) -> None:
    """The key's lease runs on while its server is stopped: the server runs the watchdog's renewals too late."""
    with trial("set-nx-px-renew", time=time, lease_ms=LEASE_MS[time]) as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        with running.fault("pause-server", running.server):
            running.advance(running.lease_ms + 100)
        assert two.acquire(wait_ms=0).ok
        assert status(running) == "violated"


def test_redlock_does_without_two_servers_that_stand_still() -> None:
    with trial("redlock") as running:
        one, two = running.clients(2)
        paused = [running.inject("pause-server", server) for server in running.servers[:2]]
        assert one.acquire().ok
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED
        for fault in paused:
            fault.heal()
        assert one.release().ok
        assert status(running) == "holds"


def test_who_waits_in_a_paused_server_is_served_when_it_goes_on() -> None:
    with trial("blpop") as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        two.start_acquire()
        running.advance(100)
        with running.fault("pause-server", running.server):
            one.start_release()
            running.advance(500)
        one.finish()
        two.finish()
        assert two.result().ok
        assert status(running) == "holds"


def test_a_server_that_two_faults_stop_goes_on_after_both() -> None:
    with trial("set-nx-px") as running:
        (one,) = running.clients(1)
        first = running.inject("pause-server", running.server)
        second = running.inject("pause-server", running.server)
        running.advance(10)
        first.heal()
        assert thread_states(running.server.process.pid) == {"T"}
        running.advance(10)
        second.heal()
        assert one.acquire(wait_ms=0).ok


def test_a_clock_jumps_while_the_server_stands_still() -> None:
    with trial("set-nx-px") as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        jump = running.inject("clock-drift", running.server, ppm=1_000_000, keep=True)
        with running.fault("pause-server", running.server):
            running.advance(running.lease_ms / 2 + 1)
        assert two.acquire(wait_ms=0).ok, "half a lease has passed, by a clock twice as fast"
        jump.heal()


@pytest.mark.parametrize("fault", ["pause-server", "slow-server"])
@pytest.mark.parametrize("time", TIMES)
def test_a_server_that_has_ended_cannot_be_slowed_down(time: str, fault: str) -> None:
    with trial("none", time=time) as running:
        one, _ = running.clients(2)
        one.increment()
        running.redis.kill(running.server)
        with pytest.raises(Inconclusive, match=f"{fault} did not take effect on redis-1"):
            running.inject(fault, running.server)
        verdict = running.judge()
        assert verdict.exit == 3
        assert fault in (verdict.properties["integrity"].reason or "")


# --- slow-server ---


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("time", TIMES)
def test_a_busy_server_refuses_everybody(time: str, direct: bool) -> None:
    with trial("set-nx-px", time=time, lease_ms=LEASE_MS[time], direct=direct) as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        before = running.server.link.config_get("busy-reply-threshold")
        before_ns = running.mono_ns
        with running.fault("slow-server", running.server) as fault:
            assert two.acquire(wait_ms=0).outcome is Outcome.UNKNOWN
            assert one.release().outcome is Outcome.UNKNOWN
            if time == "virtual":
                assert running.mono_ns == before_ns, "an answer that comes at once takes no time"
        assert fault.proof.startswith("a PING is answered: BUSY")
        fault.heal()
        assert running.server.link.config_get("busy-reply-threshold") == before
        assert running.server.link.exists("account")
        assert two.acquire().ok


@pytest.mark.parametrize("time", TIMES)
def test_a_watchdog_that_is_told_busy_loses_the_lock(time: str) -> None:
    """As redisson#3332: the renewals fail for a lease."""
    with trial("set-nx-px-renew", time=time, lease_ms=LEASE_MS[time]) as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        with running.fault("slow-server", running.server):
            running.advance(running.lease_ms + 100)
        assert two.acquire(wait_ms=0).ok
        assert status(running) == "violated"


def test_a_busy_master_has_replicas_all_the_same() -> None:
    with trial("replica-wait") as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        with running.fault("slow-server", running.server):
            two.start_acquire(wait_ms=5000)
            running.advance(2000)
            running.settle()  # no process waits for an acknowledgement that a busy server cannot request
        two.finish()
        running.advance(running.lease_ms)
        assert two.acquire().ok


def test_busy_and_paused_at_once() -> None:
    with trial("set-nx-px") as running:
        (one,) = running.clients(1)
        with running.fault("slow-server", running.server):
            with running.fault("pause-server", running.server):
                assert one.acquire(wait_ms=0).outcome is Outcome.UNKNOWN
            assert one.acquire(wait_ms=0).outcome is Outcome.UNKNOWN
        assert one.acquire(wait_ms=0).ok, "what was sent meanwhile was told -BUSY"


@pytest.mark.waits
def test_a_server_sleeps_and_answers_afterwards() -> None:
    with trial("set-nx-px", time="real", lease_ms=10_000) as running:
        one, two = running.clients(2)
        # The request may be sent late, and nobody answers it within its limit all the same.
        started, slept_ms = real_time.monotonic(), 4 * running.reply_limit_ms
        with running.fault("slow-server", running.server, how="sleep", duration_ms=slept_ms) as fault:
            assert one.acquire(wait_ms=0).outcome is Outcome.UNKNOWN
        assert real_time.monotonic() - started >= slept_ms / 1000
        assert fault.proof == "a PING is answered: not at all"
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED


@pytest.mark.waits
@beside_no_stall(50)  # the silence that proves it
def test_a_server_that_slept_too_short_is_not_proved() -> None:
    with trial("none", time="real") as running:
        one, _ = running.clients(2)
        one.increment()
        with pytest.raises(Inconclusive, match="slow-server did not take effect"):
            running.inject("slow-server", running.server, how="sleep", duration_ms=1)
        assert running.judge().exit == 3


@pytest.mark.waits
@beside_no_stall(50)  # the silence in which the server refuses
def test_a_server_that_may_not_sleep() -> None:
    refused = pytest.raises(Inconclusive, match="it does not sleep: ERR DEBUG command not allowed")
    with trial("none", time="real", server_options=("--enable-debug-command", "no")) as running, refused:
        running.inject("slow-server", running.server, how="sleep")


def test_a_server_does_not_sleep_in_virtual_time() -> None:
    with trial("none") as running, pytest.raises(Inconclusive, match="use how=script or pause-server"):
        running.inject("slow-server", running.server, how="sleep")


def test_a_server_that_may_run_no_scripts() -> None:
    with trial("none") as running:
        before = running.server.link.config_get("busy-reply-threshold")
        running.server.link.acl_setuser("default", enabled=True, nopass=True, keys="*", commands=["+@all", "-eval"])
        with pytest.raises(Inconclusive, match="it ran no script: NOPERM"):
            running.inject("slow-server", running.server)
        assert running.server.link.config_get("busy-reply-threshold") == before


def test_options_that_mean_nothing() -> None:
    with trial("none") as running:
        with pytest.raises(Inconclusive, match="how=nap is not script or sleep"):
            running.inject("slow-server", running.server, how="nap")
        with pytest.raises(UsageError, match="pause-server has no option how"):
            running.inject("pause-server", running.server, how="sleep")


# --- determinism ---


def eventful(running: Trial) -> None:
    clients = running.clients(3)
    for client in clients:
        client.start_workload(6000, work_ms=50, think_ms=600)
    running.advance(300)
    for fault in ("slow-server", "pause-server"):
        with running.fault(fault, running.server):
            running.advance(1500)
        running.advance(500)
    running.finish(*clients)


@pytest.mark.parametrize(
    ("lock", "direct"),
    daily(
        itertools.product(["set-nx-px-renew", "blpop", "pubsub", "redlock", "replica-wait"], [True, False]),
        [("set-nx-px-renew", False), ("blpop", True), ("redlock", False), ("replica-wait", True)],
        "two trials of one more lock",
        1,
    ),
)
def test_the_same_seed_gives_the_same_history(lock: str, direct: bool, tmp_path: Path) -> None:
    histories = set()
    for _ in range(2):
        with trial(lock, seed=5, lease_ms=3000, direct=direct) as running:
            eventful(running)
            histories.add(digest(running, tmp_path / "history"))
    assert len(histories) == 1
