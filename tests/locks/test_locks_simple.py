"""What is particular to each lock on one node: its own promises, and the races of its source."""

import pytest

from lockstorm import Outcome
from lockstorm.native.library import TaskState, library
from lockstorm.trial.settings import RESOURCE
from tests.helpers.support import trial

# --- releases ---


def test_a_blind_delete_frees_the_successors_lock() -> None:
    with trial("set-nx-blind-del") as running:
        one, two, three = running.clients(3)
        assert one.acquire().ok
        assert running.server.link.get(RESOURCE) == b""
        running.advance(running.lease_ms + 1)
        assert two.acquire().ok
        assert one.release().ok, "something was deleted, that is all it asks"
        assert three.acquire(wait_ms=0).ok, "beside client 2"
        assert two.release().ok, "and so on"
        assert three.release().outcome is Outcome.REFUSED, "nothing left to delete"


@pytest.mark.parametrize("lock", ["set-nx-get-del", "setnx-expire"])
def test_a_lease_that_ends_between_get_and_del_costs_the_next_holder_its_lock(lock: str) -> None:
    with trial(lock) as running:
        one, two, three = running.clients(3)
        assert one.acquire().ok
        one.start_release()
        one.run_to("between-get-and-del")
        running.advance(running.lease_ms + 1)
        assert two.acquire(wait_ms=0).ok
        assert one.finish().ok
        assert three.acquire(wait_ms=0).ok, "beside client 2"
        assert two.release().outcome is Outcome.REFUSED


def test_compare_and_delete_in_one_script_leaves_no_place_between() -> None:
    with trial("set-nx-px") as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        running.advance(running.lease_ms + 1)
        assert two.acquire(wait_ms=0).ok
        assert one.release().outcome is Outcome.REFUSED
        assert running.server.link.exists(RESOURCE)


# --- crashes ---


def test_a_crash_between_setnx_and_expire_locks_for_ever() -> None:
    with trial("setnx-expire") as running:
        one, two = running.clients(2)
        one.start_acquire()
        one.run_to("between-setnx-and-expire")
        running.kill(one)
        assert running.server.link.pttl(RESOURCE) == -1, "no expiry"
        assert two.acquire(wait_ms=10 * running.lease_ms).outcome is Outcome.REFUSED


def test_a_crash_after_the_expiry_was_set_locks_for_one_lease() -> None:
    with trial("setnx-expire") as running:
        one, two = running.clients(2)
        one.start_acquire()
        one.run_to("after-acquire-reply")
        running.kill(one)
        assert two.acquire(wait_ms=running.lease_ms + 101).ok


# --- waiting in BLPOP ---

BLPOP = ["blpop", "blpop-default", "blpop-renew"]
SIGNALS = {
    "blpop": b"signal:" + RESOURCE,
    "blpop-default": b"lock-signal:" + RESOURCE,
    "blpop-renew": b"lock-signal:" + RESOURCE,
}
LOCK_KEY = b"lock:" + RESOURCE  # of python-redis-lock


@pytest.mark.parametrize("lock", BLPOP)
def test_a_popping_waiter_wakes_at_the_moment_of_the_release(lock: str) -> None:
    with trial(lock) as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        two.start_acquire()
        running.advance(12_345.678)
        released_ns = running.mono_ns
        assert one.release().ok
        assert two.finish().ok
        assert running.mono_ns == released_ns, "in no time at all, so not by polling"


@pytest.mark.parametrize("lock", BLPOP)
def test_a_release_that_nobody_waits_for_leaves_its_signal(lock: str) -> None:
    with trial(lock) as running:
        (one,) = running.clients(1)
        for _ in range(20):
            assert one.acquire().ok
            assert one.release().ok
        left = running.server.link.llen(SIGNALS[lock])
        assert left == (20 if lock == "blpop" else 1)
        running.advance(1001)
        assert running.server.link.llen(SIGNALS[lock]) == (20 if lock == "blpop" else 0), "it expires, or it does not"


def test_stale_signals_wake_a_waiter_for_nothing() -> None:
    with trial("blpop") as running:
        one, two = running.clients(2)
        for _ in range(20):
            assert one.acquire().ok
            assert one.release().ok
        assert one.acquire().ok
        refusals = running.server.link.info("commandstats")["cmdstat_set"]["calls"]
        assert two.acquire(wait_ms=5000).outcome is Outcome.REFUSED
        tries = running.server.link.info("commandstats")["cmdstat_set"]["calls"] - refusals
        assert tries == 22, "one, one after each stale signal, and one when the wait was over"


def test_a_crashed_holder_costs_a_popping_waiter_up_to_two_leases() -> None:
    with trial("blpop") as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        running.advance(running.lease_ms - 1)
        two.start_acquire()
        running.kill(one)
        before_ns = running.mono_ns
        assert two.finish().ok
        assert running.mono_ns - before_ns == (running.lease_ms + 1) * 1_000_000, "its BLPOP takes a whole lease"


@pytest.mark.parametrize("lock", BLPOP)
def test_a_signal_that_comes_before_the_waiter_sits_down_may_be_lost(lock: str) -> None:
    with trial(lock) as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        two.start_acquire()
        two.run_to("between-refusal-and-blpop")
        assert one.release().ok
        running.advance(1001)
        two.go_on()
        running.advance(running.lease_ms - 1)
        waits = library().scheduler_state(running.scheduler, two.task) == TaskState.WAITING
        assert waits == (lock != "blpop"), "the signal of blpop never expires"
        running.advance(10 * running.lease_ms)
        waits = library().scheduler_state(running.scheduler, two.task) == TaskState.WAITING
        assert waits == (lock == "blpop-default"), "the lock is free, and it sleeps"
        if waits:
            assert not running.server.link.exists(LOCK_KEY)


def test_without_expiry_a_dead_holder_keeps_the_lock() -> None:
    with trial("blpop-default") as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        running.kill(one)
        assert two.acquire(wait_ms=10 * running.lease_ms).outcome is Outcome.REFUSED


# --- renewal ---

RENEWING = {"blpop-renew": LOCK_KEY, "set-nx-px-renew": RESOURCE}


@pytest.mark.parametrize("lock", RENEWING)
def test_renewal_keeps_a_hold_of_three_leases(lock: str) -> None:
    with trial(lock) as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        running.advance(3 * running.lease_ms)
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED
        assert one.release().ok
        assert two.acquire(wait_ms=0).ok
        assert two.release().ok
        running.advance(running.lease_ms)
        assert not running.server.link.exists(RENEWING[lock]), "nothing renews what is released"


def test_a_renewal_whose_answer_was_lost_is_the_last_one_although_it_was_done() -> None:
    with trial("blpop-renew") as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        renewal_ms = running.lease_ms * 2 / 3
        running.advance(renewal_ms)
        assert running.server.link.pttl(LOCK_KEY) == running.lease_ms
        with running.fault("lose-reply", one):
            running.advance(renewal_ms + running.reply_limit_ms)
        assert running.server.link.pttl(LOCK_KEY) == running.lease_ms - running.reply_limit_ms
        watchdog = library().scheduler_state(running.scheduler, one.task + 1)
        assert watchdog == TaskState.GONE, "one that went on would come in time"
        running.advance(running.lease_ms + 1)
        assert two.acquire(wait_ms=0).ok


@pytest.mark.parametrize("lock", RENEWING)
def test_renewal_ends_with_its_process(lock: str) -> None:
    with trial(lock) as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        running.advance(2 * running.lease_ms)
        running.kill(one)
        assert two.acquire(wait_ms=2 * running.lease_ms + 2).ok


@pytest.mark.parametrize("lock", RENEWING)
def test_what_one_unanswered_renewal_does(lock: str) -> None:
    """The answer to a renewal is lost: python-redis-lock's thread ends, a better watchdog goes on."""
    with trial(lock) as running:
        (one,) = running.clients(1)
        assert one.acquire().ok
        with running.fault("lose-reply", one):
            running.advance(running.lease_ms - 1)
        (two,) = running.clients(1)
        running.advance(2 * running.lease_ms)
        kept = lock == "set-nx-px-renew"
        watchdog = library().scheduler_state(running.scheduler, one.task + 1)
        assert (watchdog != TaskState.GONE) == kept
        assert two.acquire(wait_ms=0).outcome is (Outcome.REFUSED if kept else Outcome.OK)
        assert [record for record in running.story() if record.kind.startswith("renew")] == [], "nobody was told"


# --- singleflight ---


def test_calls_of_one_client_share_a_grant_and_the_last_one_releases() -> None:
    with trial("singleflight") as running:
        one, two = running.clients(2)
        for _ in range(3):
            assert one.acquire().ok
        assert running.server.link.info("commandstats")["cmdstat_set"]["calls"] == 1, "the server was asked once"
        for _ in range(2):
            assert one.release().ok
            assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED
        assert one.release().ok
        assert one.release().outcome is Outcome.REFUSED, "once too often"
        assert two.acquire(wait_ms=0).ok


def test_a_call_that_joins_late_shares_a_lease_that_is_over() -> None:
    with trial("singleflight") as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        running.advance(running.lease_ms + 1)
        assert two.acquire(wait_ms=0).ok
        assert one.acquire(wait_ms=0).ok, "nobody asked the server"
        assert one.release().ok
        assert one.release().outcome is Outcome.REFUSED, "the lock is client 2's"


def test_the_blind_locks_waiters_poll_every_0_to_25_ms() -> None:
    with trial("set-nx-blind-del") as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        assert two.acquire(wait_ms=10_000).outcome is Outcome.REFUSED
        tries = running.server.link.info("commandstats")["cmdstat_set"]["calls"] - 1
        assert 700 < tries < 900, "800 on average"
