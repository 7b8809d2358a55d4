"""Faults on clients and their hosts: each injected, proved and healed, and its effect on a lock."""

import hashlib
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from lockstorm import Inconclusive, Outcome, Trial, UsageError
from lockstorm.native.library import StepKind, library, locks_on
from lockstorm.results.event import Event
from tests.helpers.support import trial

TIMES = ("virtual", "real")
LEASE_MS = {"virtual": 30_000, "real": 600}
RENEWING = [lock.name for lock in locks_on("redis") if lock.renews]
MS = 1_000_000
EPOCH_NS = 1_767_225_600 * 1_000 * MS  # the virtual wall clock's 0


def status(running: Trial, name: str = "mutual_exclusion") -> str:
    found: str = running.judge().properties[name].status
    return found


def thread_states(pid: int) -> set[str]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return {(task / "stat").read_text().rsplit(")", 1)[1].split()[0] for task in tasks}


def digest(running: Trial, path: Path) -> str:
    running.save(path)
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    path.unlink()
    return found


# --- stall-worker ---


@pytest.mark.parametrize("lock", RENEWING)
def test_a_stalled_worker_keeps_a_lock_that_its_watchdog_renews(lock: str) -> None:
    with trial(lock) as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        with running.fault("stall-worker", one) as fault:
            running.advance(running.lease_ms * 3)
            assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED
        assert "none of 2 threads in state T; its watchdog renewed" in fault.proof
        assert one.release().ok
        assert status(running) == "holds"


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("time", TIMES)
def test_what_a_stalled_worker_had_begun_goes_on_when_it_is_healed(time: str, direct: bool) -> None:
    with trial("set-nx-px-renew", time=time, lease_ms=LEASE_MS[time], direct=direct) as running:
        one, two = running.clients(2)
        one.start_increment(work_ms=50)
        one.run_to("before-read")
        with running.fault("stall-worker", one) as fault:
            one.go_on()
            running.advance(running.lease_ms * 2)
            assert thread_states(one.pid).isdisjoint({"T"})
            assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED
        assert "its watchdog renewed: 1 of 1 leases extended" in fault.proof
        fault.heal()
        assert one.finish().ok
        assert two.increment().ok
        verdict = running.judge().properties
        assert (verdict["mutual_exclusion"].status, verdict["integrity"].status) == ("holds", "holds")


@pytest.mark.parametrize("time", TIMES)
def test_a_worker_is_stalled_in_the_middle_of_a_sleep(time: str) -> None:
    with trial("set-nx-px", time=time, lease_ms=LEASE_MS[time]) as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        one._start(StepKind.SLEEP, work_ms=2 * running.lease_ms)
        running.advance(20)
        with running.fault("stall-worker", one) as fault:
            running.advance(running.lease_ms + 1)
            assert two.increment().ok, "nothing renews"
        assert "nothing was renewed meanwhile" in fault.proof
        one.finish()
        assert status(running) == "violated"


def test_a_stall_that_took_no_time_is_not_proved() -> None:
    with trial("set-nx-px") as running:
        one, two = running.clients(2)
        two.increment()
        fault = running.inject("stall-worker", one)
        with pytest.raises(Inconclusive, match="stall-worker did not take effect on client-1: no time has passed"):
            fault.heal()
        assert running.judge().exit == 3


@pytest.mark.parametrize("time", TIMES)
def test_a_worker_that_goes_on_is_seen(time: str) -> None:
    """The proof examines the worker itself, not what the fault intended."""
    with trial("none", time=time) as running:
        (one,) = running.clients(1)
        fault = running.inject("stall-worker", one)
        library().scheduler_set_task_stopped(running.scheduler, one.task, False)
        one.work(10)
        with pytest.raises(Inconclusive, match="its worker ran"):
            fault.heal()


@pytest.mark.parametrize("time", TIMES)
def test_a_pause_heals_and_the_stall_beside_it_stays(time: str) -> None:
    with trial("set-nx-px-renew", time=time, lease_ms=LEASE_MS[time]) as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        stall = running.inject("stall-worker", one)
        with running.fault("pause-client", one):
            assert thread_states(one.pid) == {"T"}
        running.advance(running.lease_ms * 2)
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED, "its watchdog renews"
        one.start_release()
        running.advance(20)
        assert running.server.link.exists("account")
        stall.heal()
        assert one.finish().ok


@pytest.mark.parametrize("time", TIMES)
def test_a_process_that_two_faults_stop_goes_on_after_both(time: str) -> None:
    with trial("none", time=time) as running:
        (one,) = running.clients(1)
        first = running.inject("pause-client", one)
        second = running.inject("suspend-host", [one])
        running.advance(10)
        first.heal()
        assert thread_states(one.pid) == {"T"}
        second.heal()
        second.heal()
        assert "T" not in thread_states(one.pid)
        assert one.read().ok


# --- kill-client ---


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("time", TIMES)
def test_a_killed_holder_blocks_the_others_for_its_lease(time: str, direct: bool) -> None:
    with trial("set-nx-px", time=time, lease_ms=LEASE_MS[time], direct=direct) as running:
        one, two = running.clients(2)
        one.start_increment()
        running.kill(one, at="before-write")
        assert thread_states(one.pid) == {"Z"}  # a thread closes its descriptors before it is one
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED
        assert two.increment().ok
        story = running.story()
        ends = [event for event in story if event.kind == "actor-exit"]
        assert [(event.name, event.value) for event in ends] == [("client-1", signal.SIGKILL)]
        assert status(running) == "holds", "the dead believe nothing"


def test_the_next_life_is_somebody_else_on_the_same_host() -> None:
    with trial("set-nx-px") as running:
        (one,) = running.clients(1)
        assert one.acquire().ok
        first = running.server.link.get("account")
        jump = running.inject("clock-jump", one, offset_ms=5000)
        running.kill(one)
        again = running.restart(one)
        assert (again.name, again.host, again.task) == ("client-1.2", "client-1", one.task)
        assert again.release().outcome is Outcome.REFUSED, "it knows nothing of the lock"
        running.advance(running.lease_ms + 1)
        assert again.acquire().ok
        assert running.server.link.get("account") != first, "its random value is its own"
        lead = {event.wall_ns - event.mono_ns - EPOCH_NS for event in running.story() if event.actor == "client-1.2"}
        assert lead == {5000 * MS}, "the host's clock is off as before"
        jump.heal()
        with pytest.raises(UsageError, match="client-1 was not killed, or lives again already"):
            running.restart(one)


def test_killing_and_restarting_more_often_than_the_stage_has_places() -> None:
    with trial("setnx", direct=True) as running:
        (client,) = running.clients(1)
        for _ in range(100):
            fault = running.inject("kill-client", client, restart=True)
            fault.heal()
            fault.heal()
            assert client.next_life
            client = client.next_life
        assert client.name == "client-1.101"
        assert client.acquire().ok


def test_a_waiter_that_was_killed_takes_no_signal_with_it() -> None:
    """Its connection is closed before any other process acts: the pushed signal wakes the next waiter."""
    with trial("blpop") as running:
        one, two, three = running.clients(3)
        assert one.acquire().ok
        two.start_acquire()
        three.start_acquire()
        running.advance(100)
        running.kill(two)
        before_ns = running.mono_ns
        assert one.release().ok
        assert three.finish().ok
        assert running.mono_ns == before_ns


@pytest.mark.parametrize("time", TIMES)
def test_who_is_dead_cannot_be_killed(time: str) -> None:
    with trial("none", time=time) as running:
        one, two = running.clients(2)
        two.increment()
        running.kill(one)
        for fault in ("kill-client", "pause-client", "stall-worker", "clock-jump"):
            options: dict[str, Any] = {"offset_ms": 1000} if fault == "clock-jump" else {}
            with pytest.raises(Inconclusive, match=f"{fault} did not take effect on client-1"):
                running.inject(fault, one, **options)
        verdict = running.judge()
        assert verdict.exit == 3
        assert "kill-client" in (verdict.properties["integrity"].reason or "")


def test_an_end_that_nobody_meant_is_no_kill() -> None:
    with trial("none") as running:
        (one,) = running.clients(1)
        os.kill(one.pid, signal.SIGTERM)
        os.waitid(os.P_PID, one.pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises(Inconclusive, match="had ended before"):
            running.kill(one)


def test_a_stopped_client_can_be_killed_and_both_faults_heal() -> None:
    with trial("set-nx-px") as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        with running.pause(one):
            running.kill(one)
            again = running.restart(one)
            assert again.renew().outcome is Outcome.REFUSED, "what stopped the dead does not stop the living"
        assert two.acquire().ok
        assert again.acquire(wait_ms=0).outcome is Outcome.REFUSED


# --- suspend-host ---


def validities(running: Trial) -> list[Event]:
    return [event for event in running.story() if event.kind == "validity" and event.extra == 1]


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("time", TIMES)
def test_a_validity_outlives_the_lease_while_the_host_is_suspended(time: str, direct: bool) -> None:
    """The lock is safe in a pause, where the client's clock goes on, but not in a suspension, where it stops."""
    with trial("redlock", time=time, lease_ms=LEASE_MS[time], direct=direct) as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        with running.fault("suspend-host", [one]) as fault:
            assert thread_states(one.pid) == {"T"}
            assert two.acquire().ok
        assert "1 monotonic clock behind the trial's by" in fault.proof
        asleep, awake = validities(running)
        assert (asleep.actor, asleep.value) == ("client-1", 2**63 - 1)
        assert running.mono_ns < awake.value < running.mono_ns + running.lease_ms * MS
        verdict = running.judge().properties["mutual_exclusion"]
        assert (verdict.status, verdict.count) == ("violated", 1)


def test_after_waking_a_validity_ends_by_the_hosts_own_clock() -> None:
    with trial("redlock") as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        running.advance(10_000)
        with running.fault("suspend-host", [one]):
            running.advance(running.lease_ms)
        (_, awake) = validities(running)
        validity_ms = running.lease_ms * 0.99 - 2
        assert awake.value - running.mono_ns == (validity_ms - 10_000) * MS
        running.advance(validity_ms - 10_000)
        assert two.acquire().ok
        assert status(running) == "holds"


def test_a_suspension_defeats_the_check_that_a_pause_does_not() -> None:
    """Kleppmann's pause with the replies in flight: the monotonic clock stopped, so it shows little time."""
    outcomes = {}
    for fault in ("pause-client", "suspend-host"):
        with trial("redlock") as running:
            one, two = running.clients(2)
            one.start_acquire(wait_ms=0)
            one.run_to("after-acquire-reply")
            with running.fault(fault, one):
                running.advance(running.lease_ms + 1)
                assert two.acquire(wait_ms=0).ok
            outcomes[fault] = (one.finish().outcome, status(running))
    assert outcomes == {"pause-client": (Outcome.REFUSED, "holds"), "suspend-host": (Outcome.OK, "violated")}


def test_a_renewal_in_flight_states_no_validity_after_the_release() -> None:
    """The watchdog's extension succeeds after its holder has asked for the release; then the host is suspended."""
    with trial("redlock-renew") as running:
        (one,) = running.clients(1)
        assert one.acquire().ok
        with running.rule("slow", "client-1>redis-*", "to-client", "delay", 100):
            running.advance(running.lease_ms / 3 + 50)
            one.start_release()
            running.advance(1500)
        assert one.finish().ok
        kinds = [event.kind for event in running.story()]
        assert kinds.index("release-invoke") < kinds.index("validity") < kinds.index("release-return"), kinds
        with running.fault("suspend-host", [one]):
            running.advance(100)
        lease = running.judge().properties["lease"]
        assert (lease.status, lease.count) == ("holds", 0), lease
        assert validities(running) == [], "it holds nothing whose validity its clock could prolong"


def test_a_validity_of_an_earlier_grant_ends_with_the_release() -> None:
    """What was announced before the release is neither shown after it nor before the next grant."""
    with trial("redlock-renew") as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        assert one.release().ok
        assert two.acquire().ok
        assert one.acquire(wait_ms=0).outcome is Outcome.REFUSED
        with running.fault("suspend-host", [one]):
            running.advance(100)
        assert validities(running) == []
        with running.fault("suspend-host", [two]):
            running.advance(100)
        assert [event.actor for event in validities(running)] == ["client-2", "client-2"], "asleep, awake"


@pytest.mark.parametrize("time", TIMES)
def test_all_clients_sleep_on_as_long_as_they_had_left(time: str) -> None:
    with trial("none", time=time) as running:
        one, two = running.clients(2)
        before_ns = running.mono_ns
        for client in (one, two):
            client._start(StepKind.SLEEP, work_ms=300)
        running.advance(100)
        with running.fault("suspend-host") as fault:
            running.advance(1000)
        assert fault.where == "client-1, client-2"
        assert "2 monotonic clocks behind the trial's by" in fault.proof
        running.finish(one, two)
        passed_ms = (running.mono_ns - before_ns) / MS
        assert passed_ms == 1300 if time == "virtual" else passed_ms >= 1290


def test_a_watchdog_renews_again_after_waking() -> None:
    with trial("set-nx-px-renew") as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        with running.fault("suspend-host", one):
            running.advance(running.lease_ms / 2)
        running.advance(running.lease_ms * 2)
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED


def test_a_suspension_of_no_time_is_not_proved() -> None:
    with trial("none") as running:
        one, _ = running.clients(2)
        one.increment()
        fault = running.inject("suspend-host")
        with pytest.raises(Inconclusive, match=r"suspend-host .*no time has passed while client-1 was suspended"):
            fault.heal()
        assert running.judge().exit == 3


def test_nobody_to_suspend() -> None:
    with trial("none") as running, pytest.raises(Inconclusive, match="suspend-host did not take effect"):
        running.inject("suspend-host")


# --- determinism ---


def eventful(running: Trial) -> None:
    """Three clients at work while faults come and go."""
    one, two, three = clients = running.clients(3)
    for client in clients:
        client.start_workload(20_000, work_ms=50, think_ms=400)
    running.advance(500)
    with running.fault("stall-worker", one):
        running.advance(4000)
    with running.fault("suspend-host", [two, three]):
        running.advance(4000)
    running.kill(two)
    two = running.restart(two)
    two.start_workload(5000, work_ms=50, think_ms=400)
    with running.fault("pause-client", one), running.fault("stall-worker", three):
        running.advance(4000)
    running.finish(one, two, three)


@pytest.mark.parametrize("lock", ["set-nx-px-renew", "blpop", "pubsub", "redlock-renew"])
@pytest.mark.parametrize("direct", [True, False])
def test_the_same_seed_gives_the_same_history(lock: str, direct: bool, tmp_path: Path) -> None:
    histories = set()
    for _ in range(2):
        with trial(lock, seed=5, lease_ms=3000, direct=direct) as running:
            eventful(running)
            histories.add(digest(running, tmp_path / "history"))
    assert len(histories) == 1
