"""Three servers that agree, and one of them is not there."""

from harness.driver import Trial, scenario

LEASE_MS = 8_000  # longer than it takes to miss a leader, to elect another, and to look for a server that answers
MISSED_MS = 4_000


@scenario(
    "leader-alone",
    summary="The leader of three servers is cut off from the other two while a client works; clients still reach it.",
    source="Jepsen on ZooKeeper (2013): a partition that isolates the leader; ZooKeeper's quorums",
    control="nobody is cut off",
    real_lease_ms=LEASE_MS,
    needs=("lock",),
    settings={"nodes": 3},
    times=("real",),
    stores=("open",),
    services=("zookeeper",),
)
def test_leader_alone(trial: Trial) -> None:
    one, two = trial.clients(2)
    one.start_increment()
    one.run_to("before-write")
    two.start_increment()
    assert trial.leader
    with trial.fault_unless_control("partition", trial.leader.peer_links):
        two.run_for(MISSED_MS if not trial.control else 0, "before-write")
        trial.finish(one, two)
