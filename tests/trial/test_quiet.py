"""The quiet phase of a scenario: each client is served or found not to be, and the phase ends in both cases."""

import pytest

from lockstorm.base.errors import UsageError
from lockstorm.locks.lock_names import lock_named
from lockstorm.locks.waiting import noticed_ms, recovered_ms
from lockstorm.native.library import TaskState
from lockstorm.scenario.play import play
from lockstorm.trial.settings import TrialSettings
from lockstorm.trial.trial import Trial

LEASE_MS = 3_000


def liveness(trial: Trial) -> str:
    return str(trial.judge().properties["liveness"].status)


def holder_and_waiter(trial: Trial) -> None:
    one, two = trial.clients(2)
    one.start_increment()
    one.run_to("before-write")
    two.start_increment()
    trial.advance(100)


def test_without_a_survivor_there_is_no_quiet_phase() -> None:
    with Trial(TrialSettings("set-nx-px", lease_ms=LEASE_MS)) as trial:
        (one,) = trial.clients(1)
        trial.kill(one)
        for clients in ([], [one]):
            with pytest.raises(UsageError, match="needs a client that lives"):
                trial.quiet(*clients)


def test_who_waits_is_served() -> None:
    with Trial(TrialSettings("set-nx-px", lease_ms=LEASE_MS)) as trial:
        holder_and_waiter(trial)
        trial.quiet(*trial.client_processes.every)
        assert all(client.state is TaskState.IDLE for client in trial.client_processes.every)
        assert liveness(trial) == "holds"


def test_who_waits_for_ever_is_a_finding_and_no_error() -> None:
    with Trial(TrialSettings("setnx", lease_ms=LEASE_MS)) as trial:
        holder_and_waiter(trial)
        one, two = trial.client_processes.every
        trial.kill(one)
        began_ns = trial.mono_ns
        trial.quiet(one, two)
        assert two.state is not TaskState.IDLE
        assert (trial.mono_ns - began_ns) / 1e6 < 3 * trial.patience_ms
        assert liveness(trial) == "violated"


def test_the_dead_holders_lease_is_waited_for_first() -> None:
    with Trial(TrialSettings("set-nx-px", lease_ms=LEASE_MS)) as trial:
        holder_and_waiter(trial)
        one, two = trial.client_processes.every
        trial.kill(one)
        trial.quiet(one, two)
        assert two.state is TaskState.IDLE
        assert liveness(trial) == "holds"


def test_an_idle_client_asks_for_the_lock_once_more() -> None:
    with Trial(TrialSettings("set-nx-px", lease_ms=LEASE_MS)) as trial:
        (one,) = trial.clients(1)
        one.increment()
        trial.quiet(one)
        assert liveness(trial) == "holds"
        assert [record.value for record in trial.recorder.read() if record.kind == "write-return"] == [1, 2]


def test_a_bound_that_is_given_counts() -> None:
    """A waiter that is served within the default bound is too late for a shorter one."""
    settings = TrialSettings("set-nx-px", lease_ms=LEASE_MS, parameters={"bound_ms": 10})
    with Trial(settings) as trial:
        holder_and_waiter(trial)
        one, two = trial.client_processes.every
        trial.recorder.phase("quiet")
        one.finish()
        two.finish()
        assert liveness(trial) == "violated"


# --- how long a free lock may stay unclaimed ---

LEASE_S5, REPLY_LIMIT_MS = 5_000, 1_000


@pytest.mark.parametrize(
    ("lock", "promised_ms", "healed_ms"),
    [
        ("set-nx-px", 1_600, 7_600),  # a poller sleeps for 1.5 s at most
        ("redlock", 1_350, 7_350),  # five nodes: five times 250 ms
        ("pubsub", 100, 6_100),  # a release sends a message
        ("blpop", 100, 11_100),  # a pop of one lease may begin when what was lost ends
        ("pg-advisory", 1_600, 7_600),  # with a limit to its wait it polls
        ("none", None, 8_100),  # it says nothing
    ],
)
def test_the_bound_is_what_the_pattern_promises(lock: str, promised_ms: int | None, healed_ms: int) -> None:
    assert noticed_ms(lock_named(lock)) == promised_ms
    assert recovered_ms(lock_named(lock), LEASE_S5, REPLY_LIMIT_MS) == healed_ms


def bounds_of(trial: Trial) -> list[int]:
    return [each.value for each in trial.recorder.read() if each.kind == "parameter" and each.name == "bound_ms"]


def test_without_a_fault_the_bound_is_the_promise() -> None:
    with Trial(TrialSettings("set-nx-px", lease_ms=LEASE_MS)) as trial:
        holder_and_waiter(trial)
        trial.quiet(*trial.client_processes.every)
        assert bounds_of(trial) == [trial.patience_ms, 1_600]


def test_after_a_fault_a_lease_more() -> None:
    with Trial(TrialSettings("set-nx-px", lease_ms=LEASE_MS)) as trial:
        holder_and_waiter(trial)
        one, two = trial.client_processes.every
        trial.kill(one)
        trial.quiet(two)
        assert bounds_of(trial) == [trial.patience_ms, 1_600 + LEASE_MS + REPLY_LIMIT_MS]


def test_a_client_that_was_held_inside_its_lock_counts_as_a_fault() -> None:
    with Trial(TrialSettings("pubsub", lease_ms=LEASE_MS)) as trial:
        one, two = trial.clients(2)
        one.acquire()
        two.start_increment()
        two.run_to("between-check-and-subscribe")
        one.release()
        trial.advance(1_000)
        trial.quiet(one, two)
        assert liveness(trial) == "holds"
        assert bounds_of(trial) == [trial.patience_ms, 100 + LEASE_MS + REPLY_LIMIT_MS]


@pytest.mark.parametrize("lease_ms", [1, 8, 30])
def test_work_in_contention_ends_before_its_lease(lease_ms: int) -> None:
    """A lease that ends during the work would let two clients in, whatever the lock."""
    result = play(TrialSettings("set-nx-px", "contention", lease_ms=lease_ms))
    assert result.exit == 0, result.sentence
