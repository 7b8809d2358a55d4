"""Faults of a database on which a lock lives: it keeps what it has committed, and forgets its sessions."""

from lockstorm import Client, Trial, scenario

POSTGRES = ("postgres",)
FAST = 3  # times as fast
LEASE_MS = 5_000


@scenario(
    "database-crash",
    kind="server",
    summary="The server is killed and comes back at once with all it had committed; a new client wants the lock.",
    source="PostgreSQL documentation, 13.3.5: advisory locks are cleaned up at the end of the session; 30.3, WAL",
    control="the server is not killed",
    virtual_lease_ms=LEASE_MS,
    needs=("lock",),
    times=("virtual",),
    services=POSTGRES,
)
def test_database_crash(trial: Trial) -> None:
    (one,) = trial.clients(1)
    one.start_increment()
    one.run_to("before-write")
    with trial.fault_unless_control("crash-server", trial.database, data="kept"):
        pass
    (two,) = trial.clients(1)
    let_in_first(trial, one, two)


@scenario(
    "database-pause",
    kind="server",
    summary="The server is stopped for two leases while a client holds the lock, cannot renew it, and another waits.",
    source="Kleppmann 2016: any process may be paused; the Jepsen tests of etcd stop servers with SIGSTOP",
    control="it is stopped for a tenth of a lease",
    virtual_lease_ms=LEASE_MS,
    needs=("lock",),
    times=("virtual",),
    services=POSTGRES,
)
def test_database_pause(trial: Trial) -> None:
    one, two = trial.clients(2)
    one.start_increment()
    one.run_to("before-write")
    with trial.fault("pause-server", trial.database):
        two.start_increment()
        trial.advance(trial.lease_ms * (0.1 if trial.control else 2))
    let_in_first(trial, one, two)


@scenario(
    "database-clock-fast",
    kind="clock",
    summary=f"The server's clock runs {FAST} times as fast; a holder works for half a lease by its own.",
    source="Kleppmann 2016, timing assumptions: a lease is only as good as the clock that it is measured by",
    control="the clock is right",
    virtual_lease_ms=LEASE_MS,
    needs=("lock",),
    times=("virtual",),
    services=POSTGRES,
)
def test_database_clock_fast(trial: Trial) -> None:
    one, two = trial.clients(2)
    with trial.fault_unless_control("clock-drift", trial.database, ppm=(FAST - 1) * 1_000_000):
        one.start_increment()
        one.run_to("before-write")
        trial.advance(trial.lease_ms / 2)
        let_in_first(trial, one, two)


@scenario(
    "database-failover",
    kind="replication",
    summary="The replica has not received the last grant when the server is killed and the replica promoted.",
    source="PostgreSQL documentation, 27.2.8: replication is asynchronous, and a crash may lose what was committed",
    control="the replica receives everything, and no server is killed",
    virtual_lease_ms=LEASE_MS,
    needs=("lock",),
    times=("virtual",),
    services=POSTGRES,
    settings={"replicas": 1},
)
def test_database_failover(trial: Trial) -> None:
    (one,) = trial.clients(1)
    one.increment()  # this version of a lease's row is at the replica, too
    trial.postgres.catch_up()
    with trial.fault_unless_control("partition", "postgres-1-replica-1>postgres-1"):
        one.start_increment()
        one.run_for(trial.lease_ms / 10, "before-write")  # not if a commit waits for the replica
        trial.database.write()  # session locks write nothing; this is what the replica lacks
        if not trial.control:
            trial.postgres.fail_over()
    (two,) = trial.clients(1)
    let_in_first(trial, one, two)


@scenario(
    "database-failover-replicated",
    kind="replication",
    summary="The replica has all that was committed when the server is killed and the replica promoted.",
    source="PostgreSQL documentation, 27.2.8, 27.4: a replica has what was committed, not its master's sessions",
    control="no server is killed",
    virtual_lease_ms=LEASE_MS,
    needs=("lock",),
    times=("virtual",),
    services=POSTGRES,
    settings={"replicas": 1},
)
def test_database_failover_replicated(trial: Trial) -> None:
    (one,) = trial.clients(1)
    one.start_increment()
    one.run_to("before-write")
    trial.postgres.catch_up()
    if not trial.control:
        trial.postgres.fail_over()
    (two,) = trial.clients(1)
    let_in_first(trial, one, two)


def let_in_first(trial: Trial, one: Client, two: Client) -> None:
    """The second client gets in and finishes, if the lock lets it, before the first one writes."""
    if two.state.name == "IDLE":
        two.start_increment()
    if two.run_for(trial.lease_ms / 10, "before-write"):
        two.finish()
    trial.quiet(one, two)
