"""Locks whose connections are shared or end."""

from lockstorm import ANY_SERVICE, Trial, scenario

LEASE_MS = 5_000
NOTICE_MS = 300  # for a waiter to be granted a lock that has become free


@scenario(
    "pooled-sessions",
    kind="network",
    summary="Clients reach the database through PgBouncer in transaction mode: a client has no session of its own.",
    source="PgBouncer, Features, SQL feature map for pooling modes: session-level advisory locks do not work",
    control="PgBouncer is in session mode",
    virtual_lease_ms=LEASE_MS,
    needs=("lock",),
    times=("virtual",),
    settings={"pooled": True},
    services=("postgres",),
)
def test_pooled_sessions(trial: Trial) -> None:
    one, two, three = trial.clients(3)
    one.start_increment()
    one.run_to("before-write")
    two.start_increment()
    if two.run_for(trial.lease_ms / 10, "before-write"):
        two.finish()
    trial.quiet(one, two, three)


@scenario(
    "connection-closed",
    kind="network",
    summary="The connections of a working holder to the lock's servers are closed; it notices only when it releases.",
    source="PostgreSQL documentation, 13.3.5: held until explicitly released or the session ends; idle limits of "
    "load balancers and NAT",
    control="nothing is closed",
    real_lease_ms=2_000,  # long enough that the holder may be slow besides
    needs=("lock",),
    stores=("open",),
    services=ANY_SERVICE,
)
def test_connection_closed(trial: Trial) -> None:
    one, two = trial.clients(2)
    one.start_increment()
    one.run_to("before-write")
    two.start_increment()
    with trial.fault_unless_control("close-links", one, servers=trial.nodes_pattern):
        two.run_for(NOTICE_MS, "before-write")
    one.finish()
    two.finish()
