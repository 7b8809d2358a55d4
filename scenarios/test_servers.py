"""The server is not what it was when it granted the lock."""

from collections.abc import Callable

from harness.driver import Client, Trial, scenario

SINGLE = ("lock", "one node")


@scenario(
    "failover-unreplicated",
    summary="The master fails before the grant has reached its replica; the replica takes over and grants it again.",
    source="redis.io, Distributed Locks with Redis, Why failover-based implementations are not enough",
    control="the grant is replicated before the master fails",
    needs=SINGLE,
    times=("virtual",),
    settings={"replicas": 1},
)
def test_failover_unreplicated(trial: Trial) -> None:
    fail_over(trial, replicated="yes" if trial.control else "no")


@scenario(
    "failover-half-replicated",
    summary="Of two replicas one has the grant, and said so to WAIT; the other one takes over and grants it again.",
    source="redisson#5256; Redis documentation of WAIT: no strong consistency; matrix of the project, row 10",
    control="the replica that takes over has the grant, too",
    needs=SINGLE,
    times=("virtual",),
    settings={"replicas": 2},
)
def test_failover_half_replicated(trial: Trial) -> None:
    fail_over(trial, replicated="yes" if trial.control else "no")


@scenario(
    "failover-clock-ahead",
    summary="The grant is replicated, but the clock of the replica that takes over is more than a lease ahead.",
    source="matrix of the project, row 11: expiry is replicated as an absolute time",
    control="the clock of the replica is right",
    needs=SINGLE,
    times=("virtual",),
    settings={"replicas": 1},
)
def test_failover_clock_ahead(trial: Trial) -> None:
    fail_over(trial, replicated="yes", clock_ms=0 if trial.control else trial.lease_ms + 1000)


def fail_over(trial: Trial, **how: str | int) -> None:
    """Client 1 stands before its write, if it was granted the lock, while the first replica takes over; client 2 then
    wants the lock."""
    one, two = trial.clients(2)
    fault = trial.prepare("failover", trial.server, None, **how)
    one.start_increment()
    one.run_for(trial.lease_ms / 10, "before-write")
    fault.inject()
    wants(trial, two)
    fault.heal()
    two.run_for(trial.lease_ms / 10, "before-write")  # who waits for a replica has one again
    trial.quiet(one, two)


def wants(trial: Trial, two: Client) -> None:
    """Time for a second client to get in if anything lets it, well within the lease."""
    two.start_increment()
    two.run_for(trial.lease_ms / 10, "before-write")


@scenario(
    "restart-data-lost",
    summary="The server crashes, comes back at once without its data, and grants the lock again.",
    source="Kleppmann 2016; matrix of the project, row 9",
    control="the server keeps an append-only file that it syncs before it answers",
    needs=SINGLE,
    times=("virtual",),
    settings={"persistence": "aof"},
)
def test_restart_data_lost(trial: Trial) -> None:
    forget(trial, lambda: trial.inject("crash-server", trial.server, data="kept" if trial.control else "none").heal())


@scenario(
    "flush",
    summary="Somebody flushes the server while a client holds the lock; another gets it.",
    source="an operator's mistake; matrix of the project, row 18: keys that go before their time",
    control="nobody flushes",
    needs=SINGLE,
    times=("virtual",),
)
def test_flush(trial: Trial) -> None:
    forget(trial, lambda: None if trial.control else trial.inject("flush", trial.server).heal())


def forget(trial: Trial, lose: Callable[[], object]) -> None:
    """Client 1 stands before its write while the server loses what it knew; client 2 then wants the lock."""
    one, two = trial.clients(2)
    one.start_increment()
    one.run_to("before-write")
    lose()
    wants(trial, two)
    trial.quiet(one, two)


@scenario(
    "partition-holder",
    summary="The holder is cut off from the lock's server for longer than the lease, and still reaches the resource.",
    source="redisson#3636, consul#18271; matrix of the project, row 12",
    control="the cut is healed well within the lease",
    needs=("lock",),
)
def test_partition_holder(trial: Trial) -> None:
    one, two = trial.clients(2)
    one.acquire()
    value = one.read().value
    with trial.fault("partition", one):
        trial.touch_links(one)
        trial.approach_lease_end()
        two.start_increment()
        trial.outlast_lease(two)
        one.write(value + 1)
    one.release()
    two.finish()
