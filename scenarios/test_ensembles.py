"""ZooKeeper: an ensemble of three that loses its leader; and a server whose clock is fast."""

from lockstorm import Trial, scenario

FAST = 4  # times as fast: heartbeats come after a third of a session, too late
LEASE_MS = 8_000  # longer than a failed leader's detection, an election, and a client's reconnection
MISSED_MS = 4_000  # for the others to miss the leader


@scenario(
    "leader-alone",
    kind="network",
    summary="The leader of three servers is cut off from the other two while a client works; clients still reach it.",
    source="Jepsen on ZooKeeper (2013): a partition that isolates the leader; ZooKeeper's quorums",
    control="the leader is not cut off",
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
    with trial.fault_unless_control("partition", trial.zookeeper.leader.peer_links):
        two.run_for(MISSED_MS + trial.silence_ms if not trial.control else 0, "before-write")
        trial.finish(one, two)


@scenario(
    "leader-killed",
    kind="server",
    summary="The leader of three servers is killed while a client works, and is started again when the work is done.",
    source="Jepsen's kills of a leader; Zab (Junqueira, Reed, Serafini 2011): what a majority has is never lost",
    control="no server is killed",
    real_lease_ms=LEASE_MS,
    needs=("lock",),
    settings={"nodes": 3},
    times=("real",),
    stores=("open",),
    services=("zookeeper",),
    locks=("zookeeper",),
)
def test_leader_killed(trial: Trial) -> None:
    one, two = trial.clients(2)
    one.start_increment()
    one.run_to("before-write")
    two.start_increment()
    with trial.fault_unless_control("kill-server", trial.zookeeper.leader):
        two.run_for(MISSED_MS + trial.silence_ms if not trial.control else 0, "before-write")
        trial.finish(one, two)


@scenario(
    "session-clock-fast",
    kind="clock",
    summary=f"The server's clock runs {FAST} times as fast as its clients'; a holder works for a session by its own.",
    source="Kleppmann 2016, timing assumptions: a session is only as good as the clock that it is measured by",
    control="the server's clock is right",
    needs=("lock",),
    times=("virtual",),
    services=("zookeeper",),
)
def test_session_clock_fast(trial: Trial) -> None:
    one, two = trial.clients(2)
    with trial.fault_unless_control("clock-drift", trial.nodes.known[0], ppm=(FAST - 1) * 1_000_000, keep="yes"):
        one.start_increment()
        one.run_to("before-write")
        two.start_increment()
        if two.run_for(trial.lease_ms, "before-write"):
            two.finish()
        one.finish()
    trial.finish(one, two)
