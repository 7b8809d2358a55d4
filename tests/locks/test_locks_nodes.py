"""Locks on several servers: Redlock on five nodes, and a lock that waits for a replica."""

import signal
import threading
from collections.abc import Iterator

import pytest

from lockstorm import Client, Outcome, Trial
from lockstorm.servers.redis_server import RedisServer
from lockstorm.trial.settings import RESOURCE
from tests.helpers.support import lockstorm, trial

REDLOCKS = ["redlock", "redlock-naive", "redlock-renew", "redlock-wall"]
DRIFT_MS = 30_000 // 100 + 2


@pytest.fixture
def redlock() -> Iterator[Trial]:
    with trial("redlock") as running:
        yield running


def holds(server: RedisServer) -> bool:
    return bool(server.link.exists(RESOURCE))


def taken_by_another(server: RedisServer) -> None:
    server.link.set(RESOURCE, "another")


# --- majority ---


@pytest.mark.parametrize("lock", REDLOCKS)
def test_two_of_five_nodes_may_be_lost(lock: str) -> None:
    with trial(lock) as running:
        one, two = running.clients(2)
        for server in running.servers[1:3]:
            running.redis.kill(server)
        assert one.acquire().ok
        assert [holds(server) for server in running.servers if not server.gone] == [True] * 3
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED
        assert one.release().ok
        assert two.acquire(wait_ms=0).ok


@pytest.mark.parametrize("lock", REDLOCKS)
def test_with_fewer_than_a_majority_it_refuses_and_frees_what_it_took(lock: str) -> None:
    with trial(lock) as running:
        (one,) = running.clients(1)
        for server in running.servers[:3]:
            running.redis.kill(server)
        assert one.acquire(wait_ms=2000).outcome is Outcome.REFUSED
        assert not any(holds(server) for server in running.servers[3:])
        sets = [server.link.info("commandstats")["cmdstat_set"]["calls"] for server in running.servers[3:]]
        assert min(sets) > 5, "it had them, more than once"


@pytest.mark.parametrize("lock", REDLOCKS)
def test_a_minority_taken_by_another_is_left_alone_and_the_rest_freed(lock: str) -> None:
    with trial(lock) as running:
        one, two = running.clients(2)
        for server in running.servers[:3]:
            taken_by_another(server)
        assert one.acquire(wait_ms=0).outcome is Outcome.REFUSED
        assert [server.link.get(RESOURCE) for server in running.servers] == [b"another"] * 3 + [None] * 2
        running.servers[0].link.delete(RESOURCE)
        assert two.acquire(wait_ms=0).ok, "three of five"
        assert two.release().ok
        assert [server.link.get(RESOURCE) for server in running.servers] == [None, b"another", b"another", None, None]


def test_without_any_answer_the_outcome_is_unknown(redlock: Trial) -> None:
    (one,) = redlock.clients(1)
    for server in redlock.servers:
        redlock.redis.kill(server)
    assert one.acquire(wait_ms=0).outcome is Outcome.UNKNOWN


def test_a_release_that_a_majority_may_not_have_seen_is_unknown(redlock: Trial) -> None:
    (one,) = redlock.clients(1)
    assert one.acquire().ok
    for server in redlock.servers[:3]:
        redlock.redis.kill(server)
    assert one.release().outcome is Outcome.UNKNOWN
    assert not any(holds(server) for server in redlock.servers[3:])


# --- validity ---


def stated_ns(running: Trial) -> list[int]:
    """The ends of the validity that the lock stated, in order, from grants and extensions."""
    kinds = ("acquire-return", "validity")
    return [record.value for record in running.story() if record.kind in kinds and record.value]


def test_a_grant_says_until_when_it_is_valid(redlock: Trial) -> None:
    (one,) = redlock.clients(1)
    redlock.advance(1234)
    began_ns = redlock.mono_ns
    assert one.acquire().ok
    assert stated_ns(redlock) == [began_ns + (redlock.lease_ms - DRIFT_MS) * 1_000_000]


@pytest.mark.parametrize(("late_ms", "granted"), [(-1, True), (0, False), (1000, False)])
def test_replies_that_came_too_late_are_no_grant(redlock: Trial, late_ms: int, granted: bool) -> None:
    one, two = redlock.clients(2)
    come_late(redlock, one, redlock.lease_ms - DRIFT_MS + late_ms)
    assert one.finish().outcome is (Outcome.OK if granted else Outcome.REFUSED)
    assert any(holds(server) for server in redlock.servers) == granted, "what it had set, it takes back"
    assert two.acquire(wait_ms=0).ok != granted


def test_the_naive_variant_takes_replies_however_late_they_came() -> None:
    with trial("redlock-naive") as running:
        one, two = running.clients(2)
        come_late(running, one, running.lease_ms + 1)
        assert two.acquire(wait_ms=0).ok
        assert one.finish().ok, "beside client 2"
        assert running.judge().properties["mutual_exclusion"].status == "violated"


def come_late(running: Trial, client: Client, after_ms: int) -> None:
    """Every node has granted the lock, and the client reads the answers after_ms later."""
    client.start_acquire(wait_ms=0)
    client.run_to("after-acquire-reply")
    running.advance(after_ms)


# --- extension ---


def test_an_extension_works_only_while_the_grant_is_valid(redlock: Trial) -> None:
    (one,) = redlock.clients(1)
    assert one.acquire().ok
    redlock.advance(redlock.lease_ms - DRIFT_MS - 1)
    assert one.renew().ok
    redlock.advance(redlock.lease_ms - DRIFT_MS)
    assert all(holds(server) for server in redlock.servers), "the keys are there, the validity is over"
    assert one.renew().outcome is Outcome.REFUSED
    first_ns, second_ns = stated_ns(redlock)
    assert second_ns - first_ns == (redlock.lease_ms - DRIFT_MS - 1) * 1_000_000


def test_extensions_are_bounded(redlock: Trial) -> None:
    one, two = redlock.clients(2)
    assert one.acquire().ok
    extended = 0
    while one.renew().ok:
        extended += 1
        redlock.advance(redlock.lease_ms / 2)
    assert extended == 10
    assert two.acquire().ok, "others get in"
    assert two.release().ok
    assert one.acquire().ok
    assert one.renew().ok, "every grant counts anew"


def test_an_extension_needs_a_majority_that_is_still_ones_own(redlock: Trial) -> None:
    (one,) = redlock.clients(1)
    assert one.acquire().ok
    for server in redlock.servers[:2]:
        taken_by_another(server)
    assert one.renew().ok
    taken_by_another(redlock.servers[2])
    assert one.renew().outcome is Outcome.REFUSED


def test_a_belief_lasts_as_long_as_it_was_extended(redlock: Trial) -> None:
    """The keys vanish and another client is granted the lock: within the extended validity, both hold it."""
    one, two = redlock.clients(2)
    assert one.acquire().ok
    redlock.advance(redlock.lease_ms / 2)
    assert one.renew().ok
    redlock.advance(redlock.lease_ms - DRIFT_MS - 1)
    for server in redlock.servers:
        server.link.delete(RESOURCE)
    assert two.acquire(wait_ms=0).ok
    assert redlock.judge().properties["mutual_exclusion"].status == "violated"


def test_in_the_background_it_is_extended_as_long_as_it_is_held() -> None:
    with trial("redlock-renew") as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        running.advance(20 * running.lease_ms)
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED
        assert max(stated_ns(running)) > running.mono_ns
        assert one.release().ok
        assert two.acquire(wait_ms=0).ok


def test_a_holder_is_told_at_once_that_others_have_the_majority() -> None:
    with trial("redlock-renew") as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        for server in running.servers[:3]:
            server.link.delete(RESOURCE)
        running.advance(running.lease_ms / 3)
        told = [record for record in running.story() if record.kind == "validity"]
        assert [(record.outcome, record.actor) for record in told] == [("refused", one.name)]
        assert told[0].value == running.mono_ns
        assert two.acquire(wait_ms=0).ok
        assert running.judge().properties["mutual_exclusion"].status == "holds", "it believes no longer"


def test_a_holder_is_told_that_its_validity_ended_without_an_answer() -> None:
    """With three nodes gone, no extension is known to have failed, but none has succeeded either."""
    with trial("redlock-renew") as running:
        (one,) = running.clients(1)
        assert one.acquire().ok
        for server in running.servers[:3]:
            running.redis.kill(server)
        (valid_until_ns,) = stated_ns(running)
        running.advance(running.lease_ms)
        told = [record for record in running.story() if record.kind == "validity"]
        assert [(record.outcome, record.value) for record in told] == [("refused", valid_until_ns)]


# --- replicas ---


def test_a_grant_has_been_acknowledged_by_the_replica() -> None:
    with trial("replica-wait") as running:
        (one,) = running.clients(1)
        assert one.acquire().ok
        (replica,) = running.replicas
        assert replica.link.get(RESOURCE) == running.server.link.get(RESOURCE)
        assert replica.link.info("replication")["role"] == "slave"
        assert replica.link.pttl(RESOURCE) == running.lease_ms


@pytest.mark.parametrize("time_", ["virtual", "real"])
def test_without_its_replica_the_lock_is_refused_and_given_back(time_: str) -> None:
    with trial("replica-wait", time=time_, lease_ms=4000) as running:
        (one,) = running.clients(1)
        assert one.acquire().ok
        assert one.release().ok
        running.redis.kill(running.replicas[0])
        before_ns = running.mono_ns
        assert one.acquire(wait_ms=0).outcome is Outcome.REFUSED
        assert not running.server.link.exists(RESOURCE)
        waited_ms = (running.mono_ns - before_ns) // 1_000_000
        assert waited_ms == 1001 if time_ == "virtual" else waited_ms >= 1000


@pytest.mark.waits
def test_a_replica_that_stands_still_acknowledges_nothing_in_real_time() -> None:
    with trial("replica-wait", time="real", lease_ms=400) as running:
        (one,) = running.clients(1)
        running.replicas[0].process.send_signal(signal.SIGSTOP)
        assert one.acquire(wait_ms=0).outcome is Outcome.REFUSED
        running.replicas[0].process.send_signal(signal.SIGCONT)
        assert one.acquire().ok


def test_virtual_time_waits_for_a_replica_that_is_only_slow() -> None:
    """While the acknowledgement is in flight the virtual clock stands still, however long the machine takes."""
    with trial("replica-wait") as running:
        (one,) = running.clients(1)
        running.replicas[0].process.send_signal(signal.SIGSTOP)
        goes_on = threading.Timer(0.5, running.replicas[0].process.send_signal, [signal.SIGCONT])
        goes_on.start()
        before_ns = running.mono_ns
        assert one.acquire(wait_ms=0).ok
        assert running.mono_ns == before_ns
        goes_on.join()


def test_two_masters_ask_for_different_ports() -> None:
    with trial("replica-wait") as first, trial("replica-wait") as second:
        assert first.server.port != second.server.port
        assert first.server.port and second.server.port


def test_the_story_says_that_a_holder_believes_only_while_its_grant_is_valid() -> None:
    assert "client-1 still believes" in lockstorm("run", "gc-pause", "--lock", "redlock-naive").stdout
    told = lockstorm("run", "gc-pause", "--lock", "redlock").stdout
    assert "client-2  is granted the lock" in told
    assert "believes" not in told
