"""Redisson's locks and their relatives, driven by hand on a real redis-server: what their sources promise, and where
they break."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from lockstorm import Inconclusive, Outcome, Trial
from lockstorm.native.library import locks_on
from tests.helpers.support import trial

MS = 1_000_000
NAMES = ("fair", "fenced", "multi", "permit-semaphore", "pubsub", "pubsub-naive", "semaphore", "sharded-spin", "spin")
LOCKS = [lock for lock in locks_on("redis") if lock.name in NAMES]
OWNED = [lock.name for lock in LOCKS if lock.name != "semaphore"]  # a permit of a semaphore has no owner
REENTRANT = [lock.name for lock in LOCKS if lock.reentrant]
RENEWING = [lock.name for lock in LOCKS if lock.renews]
PUSH = [lock.name for lock in LOCKS if lock.waits == "push"]
PERMITS = [lock.name for lock in LOCKS if lock.capacity == -1]
DEAD_WAITER_MS = 300_000
POLL_MS = 200  # longer than the longest sleep of a spinning waiter


def test_every_name_is_in_the_table() -> None:
    assert {lock.name for lock in LOCKS} == set(NAMES)


def server(running: Trial) -> Any:
    """A link to the only node; mypy does not know the types of its replies."""
    return running.server.link


def names(running: Trial) -> set[bytes]:
    return set(server(running).keys())


# --- who holds, and how often ---


@pytest.mark.parametrize("lock", REENTRANT)
def test_it_takes_as_many_releases_as_grants(lock: str) -> None:
    with trial(lock) as running:
        one, two = running.clients(2)
        for _ in range(3):
            assert one.acquire(wait_ms=0).ok
        for _ in range(2):
            assert one.release().ok
            assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED
        assert one.release().ok
        assert two.acquire(wait_ms=0).ok
        assert one.release().outcome is Outcome.REFUSED
        assert two.release().ok
        assert running.judge().properties["mutual_exclusion"].status == "holds"


@pytest.mark.parametrize("lock", REENTRANT)
def test_an_inner_release_leaves_the_lease_and_its_renewals(lock: str) -> None:
    with trial(lock) as running:
        one, two = running.clients(2)
        assert one.acquire().ok and one.acquire().ok
        assert one.release().ok
        running.advance(3 * running.lease_ms)
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED
        assert one.release().ok
        assert two.acquire(wait_ms=0).ok


def test_a_token_rises_on_re_entry_and_the_hold_goes_on_with_the_newest() -> None:
    with trial("fenced", store="fence-reads-and-writes") as running:
        one, two = running.clients(2)
        assert one.acquire().token == 1
        assert one.read().ok
        assert one.acquire().token == 2
        assert one.write(1).ok
        assert one.release().ok
        assert one.write(2).ok, "the outer hold stands"
        assert one.release().ok
        assert two.acquire().token == 3
        assert (two.read().value, two.write(3).ok, two.release().ok) == (2, True, True)
        verdict = running.judge()
        assert verdict.exit == 0, verdict.sentence


@pytest.mark.parametrize("lock", OWNED)
def test_who_does_not_hold_cannot_release(lock: str) -> None:
    with trial(lock) as running:
        one, two, three = running.clients(3)
        assert one.acquire().ok
        assert two.release().outcome is Outcome.REFUSED
        assert three.acquire(wait_ms=0).outcome is Outcome.REFUSED
        assert three.release().outcome is Outcome.REFUSED, "it asked and was refused: it still holds nothing"
        assert one.release().ok
        assert one.release().outcome is Outcome.REFUSED, "released twice"
        assert three.acquire(wait_ms=0).ok


@pytest.mark.parametrize("lock", NAMES)
def test_nothing_is_left_behind(lock: str) -> None:
    kept = {b"account"} if lock in PERMITS else {b"redisson_lock_token:{account}"} if lock == "fenced" else set()
    with trial(lock) as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        two.start_acquire()
        running.advance(100)
        assert one.release().ok
        assert two.finish().ok
        assert one.acquire(wait_ms=1000).outcome is Outcome.REFUSED
        assert two.release().ok
        assert names(running) == kept


# --- waiting ---


@pytest.mark.parametrize("lock", PUSH)
def test_a_waiter_enters_at_the_moment_of_the_release(lock: str) -> None:
    with trial(lock) as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        two.start_acquire()
        running.advance(1234)
        released_ns = running.mono_ns
        assert one.release().ok
        assert two.finish().ok
        assert running.mono_ns == released_ns


@pytest.mark.waits
@pytest.mark.parametrize("lock", PUSH)
def test_a_waiter_in_real_time_does_not_wait_for_the_lease(lock: str) -> None:
    with trial(lock, time="real", lease_ms=20_000) as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        two.start_acquire()
        running.advance(100)
        started = time.monotonic()
        assert one.release().ok
        assert two.finish().ok
        assert time.monotonic() - started < 15, "the lease has 20 s"


@pytest.mark.parametrize("lock", NAMES)
def test_a_limited_wait_ends_exactly_then(lock: str) -> None:
    with trial(lock) as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        for limit_ms in (1, 5000, 29_000):
            before_ns = running.mono_ns
            assert two.acquire(wait_ms=limit_ms).outcome is Outcome.REFUSED
            assert running.mono_ns - before_ns == limit_ms * MS
            assert one.renew().ok
        assert one.release().ok
        assert two.acquire(wait_ms=5000).ok


@pytest.mark.parametrize("lock", sorted(set(PUSH) - {"pubsub-naive"}))
def test_a_release_between_check_and_subscription_is_not_missed(lock: str) -> None:
    with trial(lock) as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        two.start_acquire()
        two.run_to("between-check-and-subscribe")
        released_ns = running.mono_ns
        assert one.release().ok
        assert two.finish().ok
        assert running.mono_ns == released_ns


def test_the_naive_waiter_sleeps_for_ever_beside_a_free_lock() -> None:
    with trial("pubsub-naive") as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        two.start_acquire()
        two.run_to("between-check-and-subscribe")
        assert one.release().ok
        with pytest.raises(Inconclusive, match="nobody can go on"):
            two.finish()
        assert names(running) == set(), "the lock is free"
        assert one.acquire(wait_ms=0).ok, "for everybody else"
        assert one.release().ok
        assert two.finish().ok, "whose release happens to wake it"


@pytest.mark.parametrize("lock", PUSH)
def test_a_subscription_that_was_lost_is_made_anew(lock: str) -> None:
    with trial(lock) as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        two.start_acquire()
        for _ in range(3):
            running.advance(1000)
            assert server(running).execute_command("CLIENT", "KILL", "TYPE", "pubsub") == 1
        running.advance(1000)
        released_ns = running.mono_ns
        assert one.release().ok
        assert two.finish().ok
        assert running.mono_ns == released_ns


@pytest.mark.parametrize("lock", sorted(set(PUSH) - {"semaphore", "pubsub-naive"}))
def test_a_waiter_that_nobody_tells_enters_when_the_lease_is_over(lock: str) -> None:
    with trial(lock) as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        acquired_ns = running.mono_ns
        two.start_acquire()
        running.advance(1)
        running.kill(one)
        assert two.finish().ok
        own_clock = lock == "permit-semaphore"  # a key lives through its last millisecond, a permit does not
        assert running.mono_ns - acquired_ns == (running.lease_ms + (not own_clock)) * MS


# --- the watchdog ---


@pytest.mark.parametrize("lock", RENEWING)
def test_renewals_keep_a_hold_and_stop_with_its_holder(lock: str) -> None:
    with trial(lock) as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        running.advance(3 * running.lease_ms)
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED
        killed_ns = running.mono_ns
        running.kill(one)
        running.advance(running.lease_ms / 3)
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED, "the last renewal was good for a lease"
        two.start_acquire()
        assert two.finish().ok
        assert running.mono_ns - killed_ns <= (running.lease_ms + POLL_MS) * MS


@pytest.mark.parametrize("lock", RENEWING)
def test_a_released_lock_is_not_renewed(lock: str) -> None:
    with trial(lock) as running:
        one, two = running.clients(2)
        for _ in range(3):
            assert one.acquire().ok
            running.advance(running.lease_ms)
            assert one.release().ok
        assert two.acquire().ok
        calls = server(running).info("commandstats")
        running.advance(running.lease_ms / 3 - 1)
        assert server(running).info("commandstats")["cmdstat_evalsha"]["calls"] == calls["cmdstat_evalsha"]["calls"]


@pytest.mark.parametrize("lock", RENEWING)
def test_a_lock_that_was_lost_is_renewed_again_after_the_next_grant(lock: str) -> None:
    """redisson#3712: a renewal that found no lock left an entry behind, and no later hold of that lock was renewed."""
    with trial(lock) as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        server(running).flushall()
        running.advance(running.lease_ms)
        assert one.acquire(wait_ms=0).ok
        running.advance(2 * running.lease_ms)
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED
        assert one.release().ok
        assert two.acquire(wait_ms=0).ok


# --- fair ---


def grants(running: Trial) -> list[str]:
    return [said.who for said in running.story() if said.kind == "acquire-return" and said.outcome == "ok"]


def order_of_grants(lock: str, seed: int) -> list[str]:
    """Four clients ask one after the other while a fifth holds the lock."""
    with trial(lock, seed=seed) as running:
        holder, *waiters = running.clients(5)
        assert holder.acquire().ok
        for waiter in waiters:
            waiter.start_increment(work_ms=10)
            running.advance(5)
        assert holder.release().ok
        running.finish(*waiters)
        return grants(running)[1:]


@pytest.mark.parametrize("seed", range(4))
def test_a_fair_lock_serves_in_the_order_of_arrival(seed: int) -> None:
    assert order_of_grants("fair", seed) == ["client-2", "client-3", "client-4", "client-5"]


def test_an_unfair_lock_does_not() -> None:
    assert any(order_of_grants("pubsub", seed) != order_of_grants("fair", seed) for seed in range(4))


def test_nobody_passes_a_waiter_of_a_free_fair_lock() -> None:
    with trial("fair") as running:
        one, two, three = running.clients(3)
        assert one.acquire().ok
        two.start_acquire()
        two.run_to("between-check-and-subscribe")
        assert one.release().ok
        assert three.acquire(wait_ms=0).outcome is Outcome.REFUSED, "the lock is free, but it is another's turn"
        assert two.finish().ok


def test_a_dead_waiter_is_skipped_when_its_time_is_over() -> None:
    with trial("fair") as running:
        one, two, three, four = running.clients(4)
        assert one.acquire().ok
        acquired_ns = running.mono_ns
        for waiter in (two, three):
            waiter.start_acquire()
            running.advance(1)
        running.kill(two)
        assert one.release().ok
        assert not server(running).exists("account")
        assert four.acquire(wait_ms=0).outcome is Outcome.REFUSED, "it is free, but a dead client's turn"
        with running.fault("pause-client", three):  # otherwise it would ask every millisecond for five minutes
            running.advance(running.lease_ms + DEAD_WAITER_MS - 100)
        assert three.finish().ok
        assert running.mono_ns - acquired_ns == (running.lease_ms + DEAD_WAITER_MS) * MS


def test_who_gives_up_leaves_the_queue() -> None:
    with trial("fair") as running:
        one, two, three = running.clients(3)
        assert one.acquire().ok
        two.start_acquire(wait_ms=1000)
        running.advance(1)
        three.start_acquire()
        running.advance(1)
        assert two.finish().outcome is Outcome.REFUSED
        assert server(running).llen("redisson_lock_queue:{account}") == 1
        ((_, limit_ms),) = server(running).zrange("redisson_lock_timeout:{account}", 0, -1, withscores=True)
        now_ms = running.server.time_us() // 1000
        assert limit_ms - now_ms == running.lease_ms + DEAD_WAITER_MS - 1000, "the limit of the first in the queue"
        released_ns = running.mono_ns
        assert one.release().ok
        assert three.finish().ok
        assert running.mono_ns == released_ns


# --- several at once ---


@contextmanager
def three_permits(lock: str, **requests: Any) -> Iterator[Trial]:
    with trial(lock, permits=3, **requests) as running:
        yield running


def most_at_once(running: Trial) -> int:
    holders = most = 0
    for said in running.story():
        holders += said.kind == "acquire-return" and said.outcome == "ok"
        holders -= said.kind == "release-invoke"
        most = max(most, holders)
    return most


@pytest.mark.parametrize("lock", PERMITS)
@pytest.mark.parametrize("time_", ["virtual", "real"])
def test_never_more_holders_than_permits(lock: str, time_: str) -> None:
    with three_permits(lock, time=time_, lease_ms=20_000) as running:
        clients = running.clients(7)
        for client in clients:
            client.start_workload(1000, work_ms=10, think_ms=5)
        running.finish(*clients)
        assert most_at_once(running) == 3
        assert server(running).get("account") == b"3", "every permit is back"
        assert running.judge().properties["mutual_exclusion"].status == "holds"


@pytest.mark.parametrize("lock", PERMITS)
def test_a_permit_can_be_had_as_long_as_there_is_one(lock: str) -> None:
    with three_permits(lock) as running:
        *three, four = running.clients(4)
        assert all(client.acquire(wait_ms=0).ok for client in three)
        assert four.acquire(wait_ms=0).outcome is Outcome.REFUSED
        assert three[1].release().ok
        assert four.acquire(wait_ms=0).ok


def test_a_semaphore_gives_a_permit_back_as_often_as_it_is_told() -> None:
    with trial("semaphore") as running:
        one, two, three = running.clients(3)
        assert one.acquire().ok
        assert one.release().ok and one.release().ok, "nobody looks whose it is, or whether it is out"
        assert two.acquire(wait_ms=0).ok and three.acquire(wait_ms=0).ok
        assert running.judge().properties["mutual_exclusion"].status == "violated"


def test_a_permit_expires_by_its_own_lease() -> None:
    with trial("permit-semaphore", permits=2) as running:
        one, two, three = running.clients(3)
        assert one.acquire().ok
        running.advance(1000)
        assert two.acquire().ok
        running.advance(running.lease_ms - 1001)
        assert three.acquire(wait_ms=0).outcome is Outcome.REFUSED
        running.advance(1)
        assert three.acquire(wait_ms=0).ok
        assert one.release().outcome is Outcome.REFUSED
        assert one.renew().outcome is Outcome.REFUSED
        assert two.renew().ok and two.release().ok and three.release().ok
        assert server(running).get("account") == b"2"
        assert server(running).zcard("{account}:timeout") == 0


def test_an_expired_permit_is_not_released_even_if_nobody_took_it() -> None:
    """redisson#4086: the release of a permit that had expired was answered by true."""
    with trial("permit-semaphore") as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        running.advance(running.lease_ms)
        assert one.release().outcome is Outcome.REFUSED
        assert two.acquire(wait_ms=0).ok


def test_renewing_keeps_a_permit() -> None:
    with trial("permit-semaphore") as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        for _ in range(3):
            running.advance(running.lease_ms - 1)
            assert one.renew().ok
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED
        assert one.release().ok


# --- multi ---


def test_a_multi_lock_gives_back_what_it_took() -> None:
    parts = [b"{account}:%d" % part for part in (1, 2, 3)]
    with trial("multi") as running:
        one, two = running.clients(2)
        server(running).hset(parts[1], "somebody else", 1)
        assert one.acquire(wait_ms=0).outcome is Outcome.REFUSED
        assert names(running) == {parts[1]}
        before_ns = running.mono_ns
        one.start_acquire(wait_ms=2 * running.lease_ms)
        running.advance(1.5 * running.lease_ms)
        assert names(running) == set(parts[:2]), "what it has while it waits is renewed"
        assert one.finish().outcome is Outcome.REFUSED
        assert running.mono_ns - before_ns == 2 * running.lease_ms * MS
        assert names(running) == {parts[1]}
        server(running).delete(parts[1])
        assert one.acquire(wait_ms=0).ok
        assert names(running) == set(parts)
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED
        assert one.release().ok
        assert names(running) == set()


def test_a_multi_lock_that_lost_a_part_says_so() -> None:
    with trial("multi") as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        server(running).delete("{account}:3")
        assert one.renew().outcome is Outcome.REFUSED
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED, "the other parts are held"
        assert one.release().outcome is Outcome.REFUSED
        assert two.acquire(wait_ms=0).ok


# --- shards ---


def test_resources_of_one_shard_share_a_lock() -> None:
    shards = set()
    for number in range(8):
        with trial("sharded-spin", resource=b"account-%d" % number) as running:
            (one,) = running.clients(1)
            assert one.acquire().ok
            (shard,) = names(running)
            assert shard.startswith(b"lock-shard:")
            shards.add(shard)
    assert 1 < len(shards) <= 16


# --- servers that forget, refuse, or do not answer ---


@pytest.mark.parametrize("lock", NAMES)
def test_scripts_that_the_server_lost_are_sent_again(lock: str) -> None:
    with trial(lock) as running:
        one, two = running.clients(2)

        def flushed() -> Trial:
            server(running).script_flush()
            return running

        assert flushed() and one.acquire().ok
        assert flushed() and two.acquire(wait_ms=1000).outcome is Outcome.REFUSED
        assert flushed() and one.renew().ok
        if lock in RENEWING:
            flushed().advance(2 * running.lease_ms)
        assert flushed() and one.release().ok
        assert flushed() and two.acquire(wait_ms=0).ok


@contextmanager
def refusing(running: Trial) -> Iterator[None]:
    """The server becomes a replica of a master that does not exist: it answers every write with an error."""
    server(running).replicaof("127.0.0.1", 1)
    yield
    server(running).replicaof("NO", "ONE")


@pytest.mark.parametrize("lock", NAMES)
def test_an_error_of_the_server_is_unknown_never_success(lock: str) -> None:
    with trial(lock) as running:
        one, two = running.clients(2)
        with refusing(running):
            assert one.acquire(wait_ms=0).outcome is Outcome.UNKNOWN
            assert one.acquire(wait_ms=5000).outcome is Outcome.UNKNOWN
        assert two.acquire(wait_ms=0).ok
        with refusing(running):
            assert two.release().outcome is Outcome.UNKNOWN
        assert two.release().ok, "it had not happened"
        assert one.acquire(wait_ms=0).ok


def test_a_lock_that_could_not_be_released_for_want_of_memory_is_free_after_its_lease() -> None:
    with trial("pubsub") as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        server(running).config_set("maxmemory", 1)
        assert one.release().outcome is Outcome.UNKNOWN
        server(running).config_set("maxmemory", 0)
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED
        running.advance(running.lease_ms + 1)
        assert two.acquire(wait_ms=0).ok


@pytest.mark.waits
@pytest.mark.parametrize("lock", NAMES)
def test_no_answer_is_unknown_never_success(lock: str) -> None:
    with trial(lock, time="real", lease_ms=20_000) as running:
        one, two = running.clients(2)
        server(running).execute_command("CLIENT", "PAUSE", str(int(3 * running.reply_limit_ms)), "ALL")
        assert one.acquire(wait_ms=0).outcome is Outcome.UNKNOWN
        server(running).execute_command("CLIENT", "UNPAUSE")
        assert two.acquire(wait_ms=0).outcome is not Outcome.UNKNOWN


@contextmanager
def standing_still(running: Trial) -> Iterator[None]:
    """The server receives every command, but runs it only after the block."""
    os.kill(running.server.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(running.server.process.pid, signal.SIGCONT)


@pytest.mark.waits
@pytest.mark.parametrize("lock", REENTRANT)
def test_a_release_whose_answer_was_lost_counts_once(lock: str) -> None:
    with trial(lock, time="real", lease_ms=20_000) as running:
        one, two = running.clients(2)
        for _ in range(3):
            assert one.acquire(wait_ms=0).ok
        with standing_still(running):
            one.start_release()
            running.advance(2 * running.reply_limit_ms)
        assert one.finish().ok
        assert one.release().ok
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED, "two of three"
        assert one.release().ok
        assert two.acquire(wait_ms=0).ok
        assert one.release().outcome is Outcome.REFUSED


@pytest.mark.waits
def test_a_release_of_a_semaphore_whose_answer_was_lost_counts_twice() -> None:
    """redisson#5066: the server cannot tell a repeated release from another one."""
    with trial("semaphore", time="real") as running:
        one, two, three = running.clients(3)
        assert one.acquire().ok
        with standing_still(running):
            one.start_release()
            running.advance(2 * running.reply_limit_ms)
        assert one.finish().ok
        assert two.acquire(wait_ms=0).ok
        assert three.acquire(wait_ms=0).ok, "there is only one permit"


# --- names ---


@pytest.mark.parametrize("lock", NAMES)
@pytest.mark.parametrize("resource", [bytes(range(256)), b"x" * 10_240, b"", b"%s {a} $\r\n* 'b'"], ids=len)
def test_any_bytes_are_a_name(lock: str, resource: bytes) -> None:
    with trial(lock, resource=resource) as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        assert lock == "sharded-spin" or all(resource in name for name in names(running))
        two.start_acquire()
        running.advance(1000)
        assert one.renew().ok
        assert one.release().ok
        assert two.finish().ok
        assert two.release().ok
        assert running.judge().properties["mutual_exclusion"].status == "holds"
