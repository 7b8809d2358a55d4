"""Wall clocks that are set wrong, read back from outside, and the effect on a lock."""

import ctypes
import time as real_time
from pathlib import Path
from typing import Any

import pytest

from lockstorm import Client, Inconclusive, Outcome, Trial, UsageError
from lockstorm.native.library import library
from lockstorm.servers.redis_server import RedisServer
from tests.faults.test_faults_clients import digest, status
from tests.helpers.support import trial

TIMES = ("virtual", "real")
LEASE_MS = {"virtual": 30_000, "real": 20_000}
US_PER_MS = 1000
READ_AT_ONCE_NS, READ_TRIES = 10_000_000, 20


def ahead_us(running: Trial, server: RedisServer, right: bool = True) -> int:
    """By how much a server's TIME is ahead; in real time a little less, because the request takes time."""
    if running.settings.time == "virtual":
        return server.time_us() - (1_767_225_600_000_000 + running.mono_ns // 1000)
    for _ in range(READ_TRIES):
        before_ns, told_us, after_ns = real_time.time_ns(), server.time_us(), real_time.time_ns()
        if after_ns - before_ns < READ_AT_ONCE_NS:
            break
    return told_us - after_ns // 1000


def late_us(running: Trial, since_ns: int, meant_ms: int) -> int:
    """In real time: how much more than meant has passed on a busy machine since then."""
    passed_us = (real_time.monotonic_ns() - since_ns) // 1000
    return 0 if running.settings.time == "virtual" else passed_us - meant_ms * US_PER_MS


def near_us(running: Trial, found: int, meant: int, late: int = 0) -> bool:
    """`late`: late_us of what was measured. A clock that runs half as fast again is wrong by half of that."""
    return found == meant if running.settings.time == "virtual" else abs(found - meant) < 50_000 + 2 * late


# --- servers ---


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("time", TIMES)
def test_a_jump_past_the_lease_lets_another_in(time: str, direct: bool) -> None:
    with trial("set-nx-px", time=time, lease_ms=LEASE_MS[time], settable_clocks=True, direct=direct) as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED
        with running.fault("clock-jump", running.server, offset_ms=running.lease_ms + 1) as fault:
            assert near_us(running, ahead_us(running, running.server), (running.lease_ms + 1) * US_PER_MS)
            assert two.acquire(wait_ms=0).ok
        assert fault.proof == f"its clock reads +{running.lease_ms / 1000 + 0.001:.6f} s, and so do its keys"
        fault.heal()
        assert near_us(running, ahead_us(running, running.server), 0)
        assert running.server.link.keys("lockstorm:*") == []
        assert one.release().outcome is Outcome.REFUSED
        assert status(running) == "violated"


@pytest.mark.parametrize("time", TIMES)
def test_a_jump_backwards_makes_the_lease_longer_by_as_much(time: str) -> None:
    with trial("set-nx-px", time=time, lease_ms=LEASE_MS[time], settable_clocks=True) as running:
        (one,) = running.clients(1)
        assert one.acquire().ok
        since_ns, before_ms = real_time.monotonic_ns(), running.server.link.pttl("account")
        with running.fault("clock-jump", running.server, offset_ms=-3_600_000, keep=True):
            pass
        assert near_us(running, ahead_us(running, running.server), -3_600_000_000)
        after_ms = running.server.link.pttl("account")
        late = late_us(running, since_ns, 0)
        assert near_us(running, (after_ms - before_ms) * US_PER_MS, 3_600_000_000, late)


@pytest.mark.parametrize("lock", ["blpop", "set-nx-px-renew", "pubsub", "fair", "multi", "spin", "setnx-expire"])
def test_every_lock_with_a_lease_by_the_servers_clock_is_lost_to_a_jump(lock: str) -> None:
    with trial(lock) as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        jumps = [running.inject("clock-jump", server, offset_ms=running.lease_ms + 1) for server in running.servers]
        assert two.acquire(wait_ms=0).ok
        for jump in jumps:
            jump.heal()
        assert status(running) == "violated"


@pytest.mark.parametrize("lock", ["setnx", "semaphore", "permit-semaphore", "blpop-default"])
def test_a_lock_without_such_a_lease_does_not_mind(lock: str) -> None:
    with trial(lock) as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        with running.fault("clock-jump", running.server, offset_ms=365 * 86_400_000):
            assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED
        assert status(running) == "holds"


@pytest.mark.parametrize(("jumped", "verdict"), [(2, "holds"), (3, "violated")])
def test_redlock_minds_when_a_majority_jumps(jumped: int, verdict: str) -> None:
    with trial("redlock") as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        for server in running.servers[:jumped]:
            running.inject("clock-jump", server, offset_ms=running.lease_ms + 1)
        assert two.acquire(wait_ms=0).ok == (jumped >= 3)
        assert status(running) == verdict


def test_a_blocking_pop_sits_longer_by_a_jump_backwards() -> None:
    """The server should end the BLPOP after one lease; the client has to give up instead, and has no outcome."""
    with trial("blpop") as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        two.start_acquire()
        running.advance(100)
        with running.fault("clock-jump", running.server, offset_ms=-20_000):
            running.advance(running.lease_ms + 5000)
            assert running.server.link.exists("account"), "the lease is longer by the step"
            assert two.result().outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize("ppm", [500_000, -500_000])
def test_a_drift_ends_a_lease_earlier_or_later(time: str, ppm: int) -> None:
    with trial("set-nx-px", time=time, lease_ms=LEASE_MS[time], settable_clocks=True) as running:
        (one,) = running.clients(1)
        with running.fault("clock-drift", running.server, ppm=ppm) as fault:
            since_ns = real_time.monotonic_ns()
            assert one.acquire().ok
            before_us = ahead_us(running, running.server)
            running.advance(200)
            ahead, left_ms = ahead_us(running, running.server), running.server.link.pttl("account")
            late = late_us(running, since_ns, 200)
            assert near_us(running, ahead - before_us, ppm // 5, late)
            assert near_us(running, (LEASE_MS[time] - left_ms) * US_PER_MS, 200_000 + ppm // 5, late)
        assert "and so do its keys" in fault.proof
        assert near_us(running, ahead_us(running, running.server), 0), "healed: stepped to the right time"


@pytest.mark.parametrize("time", TIMES)
def test_faults_of_one_clock_add_up_and_each_takes_back_its_own(time: str) -> None:
    with trial("none", time=time, settable_clocks=True) as running:
        server, since_ns = running.server, real_time.monotonic_ns()

        def is_ahead(meant_us: int, meant_ms: int) -> bool:
            return near_us(running, ahead_us(running, server), meant_us, late_us(running, since_ns, meant_ms))

        drift = running.inject("clock-drift", server, ppm=500_000)
        running.advance(100)
        jump = running.inject("clock-jump", server, offset_ms=10_000)
        running.advance(100)
        assert is_ahead(10_000_000 + 100_000, 200)
        jump.heal()
        assert is_ahead(100_000, 200)
        kept = running.inject("clock-drift", server, ppm=-500_000, keep=True)
        running.advance(100)
        assert is_ahead(100_000, 300), "the two rates are one right rate"
        drift.heal()
        assert is_ahead(-50_000, 300)
        kept.heal()
        running.advance(100)
        assert is_ahead(-50_000, 400), "healed in rate, kept in place"


@pytest.mark.waits
@pytest.mark.parametrize("topology", ["sentinel", "cluster"])
def test_the_clocks_of_a_topology_can_be_set(topology: str) -> None:
    with trial("set-nx-px", time="real", topology=topology, replicas=1, settable_clocks=True) as running:
        with running.fault("clock-jump", running.server, offset_ms=5000):
            assert near_us(running, ahead_us(running, running.server), 5_000_000)
            assert near_us(running, ahead_us(running, running.replicas[0]), 0)
        assert near_us(running, ahead_us(running, running.server), 0)


@pytest.mark.waits
def test_a_server_that_is_restarted_keeps_its_wrong_clock() -> None:
    with trial("none", time="real", settable_clocks=True) as running:
        with running.fault("clock-jump", running.server, offset_ms=-3_600_000):
            with running.fault("crash-server", running.server, data="none"):
                pass
            assert near_us(running, ahead_us(running, running.server), -3_600_000_000)
        assert near_us(running, ahead_us(running, running.server), 0)


def error_of(running: Trial, target: Client | RedisServer) -> tuple[int, int]:
    """By how many ns a clock is ahead, and its rate error, as the scheduler counts them."""
    offset_ns, drift_ppm = ctypes.c_int64(), ctypes.c_int64()
    found = (ctypes.byref(offset_ns), ctypes.byref(drift_ppm))
    if isinstance(target, Client):
        assert library().scheduler_host_clock_error(running.scheduler, target.task, *found)
    else:
        assert library().scheduler_server_clock_error(running.scheduler, target.number, *found)
    return offset_ns.value, drift_ppm.value


@pytest.mark.parametrize("ppm", [9_000_000, 123_457, -899_999])
@pytest.mark.parametrize("whose", ["server", "client"])
def test_a_drift_that_is_healed_leaves_nothing_of_it(whose: str, ppm: int) -> None:
    """Also after a time that is no whole number of milliseconds."""
    with trial("none") as running:
        (one,) = running.clients(1)
        target = running.server if whose == "server" else one
        for step_us in (999, 1_000, 30_001, 333_333, 7_654_321):
            with running.fault("clock-drift", target, ppm=ppm):
                running.advance(step_us / 1000 + 0.000007)
                assert error_of(running, target) != (0, 0)
            assert error_of(running, target) == (0, 0), step_us


def test_the_trial_goes_on_reading_a_clock_that_is_wrong_on_purpose() -> None:
    with trial("none") as running, running.fault("clock-drift", running.server, ppm=-123_457):
        for step_us in (1, 7, 999, 30_001, 333_333, 59_999_999):
            running.advance(step_us / 1000)
            assert running.clock.prove()


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("whose", ["server", "client"])
def test_jumps_add_up_to_fifty_years_and_no_further(whose: str, sign: int) -> None:
    with trial("none") as running:
        (one,) = running.clients(1)
        target, ten_years_ms = running.server if whose == "server" else one, sign * 10 * 365 * 86_400_000
        faults = [running.inject("clock-jump", target, offset_ms=ten_years_ms) for _ in range(5)]
        with pytest.raises(Inconclusive, match="its clock would be more than 50 years wrong"):
            running.inject("clock-jump", target, offset_ms=sign)
        assert error_of(running, target) == (5 * ten_years_ms * 1_000_000, 0)
        for fault in faults:
            fault.heal()
        assert error_of(running, target) == (0, 0)


@pytest.mark.parametrize("ppm", ["fast", "-900001", "9000001"])
def test_a_rate_that_no_clock_has(ppm: str) -> None:
    with trial("none") as running, pytest.raises(Inconclusive, match="is not a number from -900000 to 9000000"):
        running.inject("clock-drift", running.server, ppm=ppm)


def test_a_jump_says_how_far() -> None:
    with trial("none") as running, pytest.raises(UsageError, match="clock-jump needs the option offset-ms"):
        running.inject("clock-jump", running.server)


def test_a_replica_shows_its_time_and_keeps_no_key() -> None:
    with trial("replica-wait") as running:
        with running.fault("clock-jump", running.replicas[0], offset_ms=5000) as fault:
            assert ahead_us(running, running.replicas[0]) == 5_000_000
        assert fault.proof == "its clock reads +5.000000 s"


# --- clients ---


@pytest.mark.parametrize("time", TIMES)
def test_a_client_reads_the_clock_of_its_host(time: str) -> None:
    with trial("none", time=time) as running:
        one, two = running.clients(2)
        with running.fault("clock-jump", one, offset_ms=-86_400_000) as fault:
            one.read()
            two.read()
        assert fault.proof == "its clock reads -86400.000000 s"
        one.write(1)
        said = [event for event in running.story() if event.kind in ("read-invoke", "write-invoke")]
        first_ns, second_ns, third_ns = (event.wall_ns for event in said)
        day_ns = 86_400 * 10**9
        assert abs(second_ns - first_ns - day_ns) < 10**9
        assert abs(third_ns - second_ns) < 10**9, "healed"


def test_a_client_that_is_ahead_takes_a_permit_that_is_still_held() -> None:
    with trial("permit-semaphore") as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED
        with running.fault("clock-jump", two, offset_ms=running.lease_ms + 1):
            assert two.acquire(wait_ms=0).ok
        assert status(running) == "violated"


def test_a_client_that_is_ahead_ends_the_queue_of_the_fair_lock() -> None:
    """Mutual exclusion stays, the order is lost: the waiters are removed as dead."""
    with trial("fair") as running:
        one, two, three = running.clients(3)
        assert one.acquire().ok
        two.start_acquire()
        running.advance(10)
        assert running.server.link.llen("redisson_lock_queue:{account}") == 1
        with running.fault("clock-jump", three, offset_ms=600_000):
            assert three.acquire(wait_ms=0).outcome is Outcome.REFUSED
            assert running.server.link.llen("redisson_lock_queue:{account}") == 0
        assert status(running) == "holds"


def test_a_clients_drift_is_seen_in_its_stamps() -> None:
    with trial("none") as running:
        (one,) = running.clients(1)
        with running.fault("clock-drift", one, ppm=100):
            running.advance(10_000)
            one.read()
        stamp = next(event for event in running.story() if event.kind == "read-invoke")
        assert stamp.wall_ns - stamp.mono_ns - 1_767_225_600 * 10**9 == 1_000_000


# --- where it cannot bite ---


@pytest.mark.parametrize(("fault", "option"), [("clock-jump", {"offset_ms": 1000}), ("clock-drift", {"ppm": 1000})])
def test_the_machines_clock_cannot_be_set(fault: str, option: dict[str, Any]) -> None:
    with trial("none", time="real") as running:
        one, _ = running.clients(2)
        one.increment()
        with pytest.raises(Inconclusive, match=f"{fault} did not take effect on redis-1.*settable_clocks"):
            running.inject(fault, running.server, **option)
        verdict = running.judge()
        assert verdict.exit == 3
        assert fault in (verdict.properties["integrity"].reason or "")


@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize("whose", ["server", "client"])
def test_a_drift_needs_time_to_be_seen(time: str, whose: str) -> None:
    with trial("none", time=time, settable_clocks=True, lease_ms=3000) as running:
        (one,) = running.clients(1)
        one.increment()
        fault = running.inject("clock-drift", running.server if whose == "server" else one, ppm=1)
        with pytest.raises(Inconclusive, match="too little to be seen"):
            fault.heal()
        assert running.judge().exit == 3


def test_a_jump_of_nothing_is_none() -> None:
    with trial("none") as running, pytest.raises(Inconclusive, match="too little to be seen"):
        running.inject("clock-jump", running.server, offset_ms=0)


def test_a_server_that_cannot_answer_proves_nothing() -> None:
    with trial("none") as running:
        running.redis.kill(running.server)
        with pytest.raises(Inconclusive, match="clock-jump did not take effect on redis-1"):
            running.inject("clock-jump", running.server, offset_ms=1000)


# --- determinism ---


@pytest.mark.parametrize("lock", ["set-nx-px", "blpop", "fair", "redlock"])
def test_the_same_seed_gives_the_same_history(lock: str, tmp_path: Path) -> None:
    histories = set()
    for _ in range(2):
        with trial(lock, seed=5, lease_ms=3000) as running:
            clients = running.clients(3)
            for client in clients:
                client.start_workload(10_000, work_ms=50, think_ms=400)
            with running.fault("clock-drift", running.server, ppm=250_000):
                running.advance(2000)
                with running.fault("clock-jump", running.server, offset_ms=3001):
                    running.advance(2000)
            with running.fault("clock-jump", clients[0], offset_ms=600_000):
                running.advance(1000)
            running.finish(*clients)
            histories.add(digest(running, tmp_path / "history"))
    assert len(histories) == 1
