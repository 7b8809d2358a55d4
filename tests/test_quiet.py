"""The quiet phase of a scenario: everybody is served, or is seen not to be, and it ends either way."""

from harness.driver.library import StrandState
from harness.driver.trial import Trial, TrialSettings

LEASE_MS = 3_000


def liveness(trial: Trial) -> str:
    return str(trial.judge()["verdict"]["liveness"]["status"])


def holder_and_waiter(trial: Trial) -> None:
    one, two = trial.clients(2)
    one.start_increment()
    one.run_to("before-write")
    two.start_increment()
    trial.advance(100)


def test_who_waits_is_served() -> None:
    with Trial(TrialSettings("set-nx-px", lease_ms=LEASE_MS)) as trial:
        holder_and_waiter(trial)
        trial.quiet(*trial.every_client)
        assert all(client.state is StrandState.IDLE for client in trial.every_client)
        assert liveness(trial) == "holds"


def test_who_waits_for_ever_is_a_finding_and_no_error() -> None:
    with Trial(TrialSettings("setnx", lease_ms=LEASE_MS)) as trial:
        holder_and_waiter(trial)
        one, two = trial.every_client
        trial.kill(one)
        began_ns = trial.mono_ns
        trial.quiet(one, two)
        assert two.state is not StrandState.IDLE
        assert (trial.mono_ns - began_ns) / 1e6 < 3 * trial.bound_ms
        assert liveness(trial) == "violated"


def test_the_dead_holders_lease_is_waited_for_first() -> None:
    with Trial(TrialSettings("set-nx-px", lease_ms=LEASE_MS)) as trial:
        holder_and_waiter(trial)
        one, two = trial.every_client
        trial.kill(one)
        trial.quiet(one, two)
        assert two.state is StrandState.IDLE
        assert liveness(trial) == "holds"


def test_whoever_does_nothing_wants_the_lock_once_more() -> None:
    with Trial(TrialSettings("set-nx-px", lease_ms=LEASE_MS)) as trial:
        (one,) = trial.clients(1)
        one.increment()
        trial.quiet(one)
        assert liveness(trial) == "holds"
        assert [record["value"] for record in trial.story() if record["kind"] == "write-return"] == [1, 2]


def test_a_bound_that_is_given_counts() -> None:
    """A waiter that is served within the usual bound is late by a shorter one."""
    settings = TrialSettings("set-nx-px", lease_ms=LEASE_MS, parameters={"bound_ms": 10})
    with Trial(settings) as trial:
        holder_and_waiter(trial)
        one, two = trial.every_client
        trial.phase("quiet")
        one.finish()
        two.finish()
        assert liveness(trial) == "violated"
