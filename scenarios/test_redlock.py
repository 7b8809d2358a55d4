"""Redlock's majority of five, when one node in the middle tells two stories."""

from collections.abc import Callable
from contextlib import ExitStack

from harness.driver import Trial, scenario


@scenario(
    "clock-jump-node",
    summary="The holder's majority are nodes 1 to 3; the clock of node 3 jumps, and 3 to 5 are another's majority.",
    source="Kleppmann 2016, The dangers of timing assumptions: Redlock's first bad example",
    control="the clock of node 3 stays",
    needs=("majority",),
    times=("virtual",),
)
def test_clock_jump_node(trial: Trial) -> None:
    with ExitStack() as faults:
        jump = trial.fault("clock-jump", trial.servers[2], offset_ms=2 * trial.lease_ms)
        story(trial, lambda: faults.enter_context(jump))


@scenario(
    "drift-split-brain",
    summary="As clock-jump-node, but the clock of node 3 runs three times as fast.",
    source="the Redis articles the project starts from: clock drift lets 1-2-3 and 3-4-5 both win",
    control="the clock of node 3 runs as the others",
    needs=("majority",),
    times=("virtual",),
)
def test_drift_split_brain(trial: Trial) -> None:
    def drift() -> None:
        faults.enter_context(trial.fault("clock-drift", trial.servers[2], ppm=2_000_000))
        trial.advance(trial.lease_ms * 0.6)

    with ExitStack() as faults:
        story(trial, drift)


@scenario(
    "crash-restart-node",
    summary="As clock-jump-node, but node 3 crashes, forgets the lock and is back at once.",
    source="redis.io, Distributed Locks with Redis, Performance, crash recovery and fsync; Kleppmann 2016",
    control="node 3 does not crash",
    needs=("majority",),
    times=("virtual",),
)
def test_crash_restart_node(trial: Trial) -> None:
    story(trial, lambda: trial.inject("crash-server", trial.servers[2], data="none").heal())


def story(trial: Trial, forget: Callable[[], object]) -> None:
    """Both clients increment; node 3 is made to forget in between, unless this is the control."""
    one, two = trial.clients(2)
    one.start_increment()
    with trial.fault("partition", one, servers="redis-[45]"):
        one.run_to("before-write")
    if not trial.control:
        forget()
    two.start_increment()
    with trial.fault("partition", two, servers="redis-[12]"):
        if trial.control:
            trial.advance(trial.lease_ms / 10)
        else:
            two.run_to("before-write")
    trial.finish(one, two)
