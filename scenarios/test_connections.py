"""What a lock is worth whose connection has ended."""

from harness.driver import ANY_SERVICE, Trial, scenario

NOTICE_MS = 300  # for a lock that has become free, to be somebody else's


@scenario(
    "connection-closed",
    summary="The connections of a working holder to the lock's servers are closed; it only looks when it releases.",
    source="PostgreSQL documentation, 13.3.5: held until explicitly released or the session ends; idle limits of "
    "load balancers and NAT",
    control="nothing is closed",
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
