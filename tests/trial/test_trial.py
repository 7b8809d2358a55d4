"""Trials by hand: locks, virtual time, the pause fault and the history that they leave."""

import contextlib
import ctypes
import os
import time
from pathlib import Path

import pytest

from lockstorm import Inconclusive, Object, Outcome, Trial
from lockstorm.base.errors import UsageError
from lockstorm.locks.lock_names import lock_named
from lockstorm.native.judgement import judge_history, judge_in_process
from lockstorm.native.library import FaultTarget, Message, TaskState, library, locks, locks_on, zoo_locks
from lockstorm.scenario.expected import expected, pairs
from lockstorm.trial.settings import TrialSettings
from tests.helpers.support import trial

EXCLUSIVE = [lock.name for lock in locks_on("redis") if lock.name != "none"]
LEASED = [lock.name for lock in locks_on("redis") if lock.lease]
# A permit's lease is a time in a set, not a key's expiry: tests/locks/test_locks_redisson.py
UNRENEWED = [lock.name for lock in locks_on("redis") if lock.lease and not lock.renews and lock.capacity == 1]
RENEWABLE = [lock.name for lock in locks_on("redis") if lock.name in UNRENEWED and lock.renewable]
OWNED = [name for name in UNRENEWED if name != "set-nx-blind-del"]  # its value names no owner: test_locks_simple.py


# --- locks ---


@pytest.mark.parametrize("lock", EXCLUSIVE)
@pytest.mark.parametrize("time_", ["virtual", "real"])
def test_one_holder_at_a_time(lock: str, time_: str) -> None:
    with trial(lock, time=time_, lease_ms=10_000) as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED
        assert one.release().ok
        assert two.acquire(wait_ms=0).ok


@pytest.mark.parametrize("lock", EXCLUSIVE)
def test_a_wait_ends_when_it_should(lock: str) -> None:
    with trial(lock) as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        before_ns = running.mono_ns
        assert two.acquire(wait_ms=5000).outcome is Outcome.REFUSED
        assert running.mono_ns - before_ns == 5000 * 1_000_000


@pytest.mark.parametrize("lock", OWNED)
def test_the_lease_frees_the_lock_and_its_old_holder_cannot(lock: str) -> None:
    with trial(lock) as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        running.advance(running.lease_ms)
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED, "a key lives through its last millisecond"
        running.advance(1)
        assert two.acquire(wait_ms=0).ok
        assert one.release().outcome is Outcome.REFUSED, "the lock is another's now"
        assert two.release().ok
        assert two.release().outcome is Outcome.REFUSED, "released twice"


@pytest.mark.parametrize("lock", RENEWABLE)
def test_renewing_keeps_a_hold_and_does_not_revive_a_lost_one(lock: str) -> None:
    with trial(lock) as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        for _ in range(3):
            running.advance(running.lease_ms * 2 / 3)
            assert one.renew().ok
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED
        running.advance(running.lease_ms + 1)
        assert one.renew().outcome is Outcome.REFUSED
        assert two.acquire(wait_ms=0).ok


@pytest.mark.parametrize("lock", EXCLUSIVE)
def test_a_server_that_lost_its_scripts_gets_them_again(lock: str) -> None:
    with trial(lock) as running:
        (one,) = running.clients(1)
        for _ in range(2):
            for server in running.servers:
                server.link.script_flush()
            assert one.acquire().ok
            for server in running.servers:
                server.link.script_flush()
            assert one.release().ok


@pytest.mark.parametrize("lock", EXCLUSIVE)
def test_an_answer_that_never_comes_is_unknown_never_success(lock: str) -> None:
    with trial(lock, lease_ms=10_000) as running:
        one, two = running.clients(2)
        with contextlib.ExitStack() as paused:
            for server in running.servers:
                paused.enter_context(running.fault("pause-commands", server, mode="all"))
            assert one.acquire(wait_ms=0).outcome is Outcome.UNKNOWN
        assert two.acquire(wait_ms=0).outcome is not Outcome.UNKNOWN


@pytest.mark.waits
@pytest.mark.parametrize("lock", EXCLUSIVE)
def test_an_answer_that_never_comes_is_unknown_in_real_time_too(lock: str) -> None:
    """The servers are paused for an hour: however long the machine stands still, none of them answers meanwhile."""
    with trial(lock, time="real", lease_ms=10_000) as running:
        (one,) = running.clients(1)
        for server in running.servers:
            server.link.execute_command("CLIENT", "PAUSE", "3600000", "ALL")  # type: ignore[no-untyped-call]
        assert one.acquire(wait_ms=0).outcome is Outcome.UNKNOWN


def test_tokens_rise_with_every_grant() -> None:
    with trial("set-nx-px-fenced") as running:
        one, two = running.clients(2)
        tokens = []
        for client in (one, two, one, one, two):
            tokens.append(client.acquire().token)
            assert client.release().ok
        assert tokens == [1, 2, 3, 4, 5]


def test_every_lock_says_where_it_comes_from() -> None:
    for lock in locks():
        assert lock.source and lock.explanation and lock.summary, lock.name
        assert lock.capacity in (1, -1), "one, or as many as asked for"


# --- the store, through a client ---


@pytest.mark.parametrize("require", [None, "integrity,mutual-exclusion"])
def test_a_trial_is_judged_as_check_judges_its_history(require: str | None, tmp_path: Path) -> None:
    with trial("set-nx-px") as running:
        a, b = running.clients(2)
        a.start_increment()
        with running.pause(a, at="before-write"):
            b.increment()
        a.finish()
        verdict = running.judge(require)
        running.save(tmp_path / "history")
    assert verdict == judge_history(tmp_path / "history", require)
    assert verdict.exit == 1


def test_a_damaged_history_is_refused_as_check_refuses_it(tmp_path: Path) -> None:
    with trial("set-nx-px") as running:
        running.clients(1)[0].increment()
        running.save(tmp_path / "history")
    bytes_ = bytearray((tmp_path / "history").read_bytes())
    bytes_[-1] ^= 1
    (tmp_path / "history").write_bytes(bytes_)
    reasons = []
    for judge in (judge_in_process, judge_history):
        with pytest.raises(UsageError, match="does not match its checksum") as refused:
            judge(tmp_path / "history")
        reasons.append(str(refused.value))
    assert reasons[0] == reasons[1]


def test_a_client_reads_and_writes_what_the_store_holds() -> None:
    with trial("set-nx-px") as running:
        (one,) = running.clients(1)
        one.acquire()
        assert (one.write(5).version, one.read().value) == (1, 5)
        assert one.add(3).value == 8
        assert one.add(77, Object.SET).value == 1
        assert one.read(Object.REGISTER).value == 0


# --- virtual time ---


def test_a_day_passes_at_once_on_a_real_server() -> None:
    with trial("set-nx-px") as running:
        assert running.server
        running.server.link.set("key", "value", px=86_400_000)
        started = time.monotonic()
        running.advance(86_400_000)
        assert running.server.link.pttl("key") == 0, "it is there until the clock is past its expiry"
        running.advance(1)
        assert running.server.link.get("key") is None
        assert time.monotonic() - started < 60, "a day took a minute of real time"


def test_server_clock_is_exact_to_the_microsecond() -> None:
    """No microsecond may be lost on the way."""
    with trial("none") as running:
        assert running.server
        for step_us in (1, 7, 999, 1000, 30_001, 333_333, 999_999, 1_000_000, 59_999_999):
            running.advance(step_us / 1000)
            assert running.clock.prove()


def test_the_clock_moves_only_to_the_next_deadline() -> None:
    with trial("none") as running:
        (one,) = running.clients(1)
        before_ns = running.mono_ns
        one.work(12_345)
        assert running.mono_ns - before_ns == 12_345 * 1_000_000


def test_waiting_for_what_can_never_come_is_said_and_not_waited_for() -> None:
    with trial("none") as running:
        one, two = running.clients(2)
        one.start_increment()
        one.run_to("before-write")
        with pytest.raises(Inconclusive, match="never came to the checkpoint no-such-place"):
            two.run_to("no-such-place")
        with pytest.raises(Inconclusive, match="nobody can go on"):
            running.run([], until_ns=2**63 - 1)


def test_a_held_client_takes_no_other_step() -> None:
    with trial("none") as running:
        (one,) = running.clients(1)
        one.start_increment()
        one.run_to("before-write")
        with pytest.raises(Exception, match="client-1 is held"):
            one.start_acquire()


def test_a_client_is_held_at_the_passage_that_was_asked_for() -> None:
    with trial("none") as running:
        (one,) = running.clients(1)
        one.hold_at("before-write", 3)
        for _ in range(2):
            one.increment()
        one.start_increment()
        running.advance(100)
        assert one.state is TaskState.HELD
        one.finish()
        one.increment()  # only once


# --- the pause ---


@pytest.mark.parametrize("time_", ["virtual", "real"])
def test_pause_stops_the_whole_process_and_heals(time_: str) -> None:
    with trial("none", time=time_) as running:
        (one,) = running.clients(1)
        with running.fault("pause-client", one):
            states = {
                (task / "stat").read_text().rsplit(")", 1)[1].split()[0]
                for task in Path(f"/proc/{one.pid}/task").iterdir()
            }
            assert states == {"T"}
        assert one.read().ok
        records = [(record.kind, record.outcome) for record in running.story() if "fault" in record.kind]
        assert records == [("fault-inject", "ok"), ("fault-prove", "ok"), ("fault-heal", "ok")]


def test_a_pause_now_lets_the_lease_run_out_under_an_idle_client() -> None:
    with trial("set-nx-px") as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        with running.pause(one):
            assert two.acquire().ok, "it polls until the lease is over"
        assert one.release().outcome is Outcome.REFUSED


def test_healing_twice_is_harmless() -> None:
    with trial("none") as running:
        (one,) = running.clients(1)
        fault = library().fault_find(b"pause-client").contents
        driver = ctypes.pointer(running.faults.driver.raw)
        target, message = FaultTarget(pid=one.pid, server=-1, task=-1, driver=driver), Message()
        assert fault.inject(target, message) and fault.prove(target, message)
        assert fault.heal(target, message) and fault.heal(target, message)
        assert not fault.prove(target, message), "it is not stopped any more, and the proof looks"
        assert one.read().ok


def test_a_pause_that_cannot_bite_is_inconclusive() -> None:
    """The client is gone before it can be stopped."""
    with trial("none") as running:
        one, two = running.clients(2)
        two.increment()
        assert one.process
        one.process.kill()
        one.process.wait()
        with pytest.raises(Inconclusive, match="pause-client did not take effect"), running.fault("pause-client", one):
            pass
        verdict = running.judge()
        assert verdict.exit == 3
        assert {said.status for said in verdict.properties.values()} == {"inconclusive"}
        assert "pause-client" in (verdict.properties["integrity"].reason or "")


def test_the_proof_is_looked_at_not_remembered() -> None:
    fault = library().fault_find(b"pause-client").contents
    message = Message()
    assert not fault.prove(FaultTarget(pid=os.getpid()), message)
    assert "in state T" in str(message)


# --- the table of expectations ---


def test_every_pair_that_can_be_run_has_its_expectation() -> None:
    assert set(expected()) == set(pairs())


# --- is_held, and a lease without renewal ---

RENEWING = [lock.name for lock in locks_on("redis") if lock.renews]
ASKABLE = [
    "fair",
    "fenced",
    "pubsub",
    "sharded-spin",
    "spin",
    "set-nx-px",
    "set-nx-px-fenced",
    "set-nx-px-renew",
    "setnx",
]


@pytest.mark.parametrize("lock", ASKABLE)
def test_a_client_can_ask_whether_the_lock_is_its_own(lock: str) -> None:
    with trial(lock) as running:
        one, two = running.clients(2)
        assert one.is_held().outcome is Outcome.REFUSED
        assert one.acquire().ok
        assert one.is_held().ok
        assert two.is_held().outcome is Outcome.REFUSED
        assert one.release().ok
        assert one.is_held().outcome is Outcome.REFUSED


def test_a_pattern_that_cannot_say_does_not_guess() -> None:
    with trial("semaphore") as running:
        (one,) = running.clients(1)
        assert one.acquire().ok
        assert one.is_held().outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("lock", RENEWING)
def test_a_fixed_lease_is_not_renewed(lock: str) -> None:
    with trial(lock, fixed_lease=True) as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        running.advance(running.lease_ms + 1)
        assert two.acquire(wait_ms=0).ok, "the lease was over"


def test_a_wait_for_what_never_comes_has_an_end() -> None:
    """One client is held in its critical section while its watchdog renews, so the other waits without end."""
    with trial("pubsub") as running:
        one, two = running.clients(2)
        one.start_increment()
        one.run_to("before-write")
        two.start_acquire()
        with pytest.raises(Inconclusive, match="client-2 did not come back within 6600 s of the trial's time"):
            running.run([two])


def test_who_does_not_answer_is_named() -> None:
    with trial("none") as running:
        running.clients(1)
        running.server.process.kill()
        running.server.process.wait()
        with pytest.raises(Inconclusive, match=r"no answer to a PING at .*/redis-1\.sock"):
            running.settle()


def cores_of(processes: list[int]) -> set[int]:
    return {core for process in processes for core in os.sched_getaffinity(process)}


@pytest.mark.parametrize("time_", ["virtual", "real"])
def test_in_virtual_time_all_of_a_trial_stays_on_one_core(time_: str) -> None:
    everywhere = os.sched_getaffinity(0)
    with trial("set-nx-px", time=time_) as running:
        running.clients(2)
        cores = cores_of([process.pid for process in running.sandbox.processes])
    assert len(running.sandbox.processes) >= 4  # a server, the store, the clients
    assert len(cores) == (1 if time_ == "virtual" else len(everywhere))
    assert os.sched_getaffinity(0) == everywhere


def test_locks_of_the_zoo_are_found_by_name_only() -> None:
    known = {lock.name for lock in locks()}
    for lock in zoo_locks():
        assert lock.name not in known
        assert lock.fixed in known
        assert lock.source and lock.summary
        assert lock_named(lock.name) == lock


def test_a_proxy_that_has_ended_makes_the_trial_inconclusive() -> None:
    """Its socket breaks; that is not the reader of the command's output that has gone."""
    with trial("set-nx-px") as running:
        assert running.links.proxy
        running.links.proxy.process.kill()
        running.links.proxy.process.wait()
        with pytest.raises(Inconclusive, match="the proxy does not answer"):
            running.links.proxy.ask("PING")


def test_a_trial_of_an_unknown_lock_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="there is no lock called 'set-nx-pz': did you mean set-nx-px"):
        Trial(TrialSettings("set-nx-pz"))
