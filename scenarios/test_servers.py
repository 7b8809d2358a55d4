"""The server is not what it was when it granted the lock."""

from harness.driver import Client, Trial, scenario

SINGLE = ("lock", "one node", "no replicas")


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
    """Client 1 stands before its write while the replica takes over; client 2 then wants the lock."""
    one, two = trial.clients(2)
    one.start_increment()
    one.run_to("before-write")
    with trial.fault("failover", trial.server, **how):
        wants(trial, two)
        trial.finish(one, two)


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
    one, two = trial.clients(2)
    one.start_increment()
    one.run_to("before-write")
    trial.inject("crash-server", trial.server, data="kept" if trial.control else "none").heal()
    wants(trial, two)
    trial.finish(one, two)


@scenario(
    "flush",
    summary="Somebody flushes the server while a client holds the lock; another gets it.",
    source="an operator's mistake; matrix of the project, row 18: keys that go before their time",
    control="nobody flushes",
    needs=SINGLE,
    times=("virtual",),
)
def test_flush(trial: Trial) -> None:
    one, two = trial.clients(2)
    one.start_increment()
    one.run_to("before-write")
    if not trial.control:
        trial.inject("flush", trial.server).heal()
    wants(trial, two)
    trial.finish(one, two)


@scenario(
    "partition-holder",
    summary="The holder is cut off from the lock's server for longer than the lease, and still reaches the resource.",
    source="redisson#3636, consul#18271; matrix of the project, row 12",
    control="the cut is healed well within the lease",
    needs=("lock",),
    times=("virtual",),
)
def test_partition_holder(trial: Trial) -> None:
    one, two = trial.clients(2)
    one.acquire()
    value = one.read().value
    with trial.fault("partition", one):
        one.renew()
        two.start_increment()
        trial.outlast_lease(two)
        one.write(value + 1)
    one.release()
    two.finish()
