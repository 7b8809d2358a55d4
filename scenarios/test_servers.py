"""Servers that forget a grant: they fail over, restart or are flushed; and a holder that is cut off."""

from lockstorm import ANY_SERVICE, Client, Trial, scenario

SINGLE = ("lock", "one node")
TURNS = 33
SOON_MOST_MS = 1_000
ELECTION_LEASE_MS = 10_000  # longer than an election, even on a busy machine


@scenario(
    "failover-unreplicated",
    kind="replication",
    summary="The master fails before the grant has reached its replica; the replica takes over and grants it again.",
    source="redis.io, Distributed Locks with Redis, Why failover-based implementations are not enough",
    control="the grant is replicated before the master fails",
    needs=SINGLE,
    settings={"replicas": 1},
)
def test_failover_unreplicated(trial: Trial) -> None:
    fail_over(trial, replicated="yes" if trial.control else "no")


@scenario(
    "failover-half-replicated",
    kind="replication",
    summary="One of two replicas has acknowledged the grant to WAIT; the other takes over and grants it again.",
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
    kind="replication",
    summary="The grant is replicated, but the clock of the replica that takes over is more than a lease ahead.",
    source="matrix of the project, row 11: expiry is replicated as an absolute time",
    control="the clock of the replica is right",
    needs=SINGLE,
    times=("virtual",),
    settings={"replicas": 1},
)
def test_failover_clock_ahead(trial: Trial) -> None:
    fail_over(trial, replicated="yes", clock_ms=0 if trial.control else trial.lease_ms + 1000)


@scenario(
    "token-counter-failover",
    kind="replication",
    summary=f"As failover-unreplicated, after {TURNS} turns: the counter loses a step, and two grants have one token.",
    source="Kleppmann 2016: a counter on one node is not enough to give fencing tokens; redis.io, failover",
    control="the grant is replicated before the master fails",
    needs=("token", "one node"),
    times=("virtual",),
    settings={"replicas": 1},
)
def test_token_counter_failover(trial: Trial) -> None:
    fail_over(trial, TURNS, replicated="yes" if trial.control else "no")


@scenario(
    "failover-sentinel",
    kind="replication",
    summary="As failover-unreplicated, with three real sentinels that find the master dead and elect a replica.",
    source="Redis documentation of Sentinel: a write that was acknowledged can be lost; redbeat#163, infrahub#9450",
    control="the grant is replicated before the master dies",
    needs=SINGLE,
    times=("real",),
    real_lease_ms=ELECTION_LEASE_MS,
    stores=("open", "fence-reads-and-writes"),
    settings={"topology": "sentinel"},
    locks=("pubsub", "set-nx-px-fenced"),
)
def test_failover_sentinel(trial: Trial) -> None:
    fail_over(trial, fault="failover-sentinel", replicated="yes" if trial.control else "no")


@scenario(
    "failover-cluster",
    kind="replication",
    summary="As failover-unreplicated, in a real cluster of three masters, which elect the dead one's replica.",
    source="Redis Cluster specification, Write safety: there is a window in which acknowledged writes are lost",
    control="the grant is replicated before the master dies",
    needs=SINGLE,
    times=("real",),
    real_lease_ms=ELECTION_LEASE_MS,
    stores=("open", "fence-reads-and-writes"),
    settings={"topology": "cluster"},
    locks=("pubsub", "set-nx-px-fenced"),
)
def test_failover_cluster(trial: Trial) -> None:
    fail_over(trial, fault="failover-cluster", replicated="yes" if trial.control else "no")


def soon_ms(trial: Trial) -> float:
    """Well within the lease, for two such waits. A busy machine takes its time in real time, but an election, too, has
    to be over within the lease."""
    return trial.lease_ms / 10 if trial.settings.time == "virtual" else min(trial.lease_ms / 4, SOON_MOST_MS)


def fail_over(trial: Trial, turns: int = 0, fault: str = "failover", **how: str | int) -> None:
    """Client 1 increments `turns` times. It then acquires and is held before its write, if it was granted the lock,
    while the first replica takes over; then client 2 acquires."""
    one, two = trial.clients(2)
    for _ in range(turns):
        one.increment()
    change = trial.prepare(fault, trial.server, None, **how, **trial.election_options)
    one.start_increment()
    one.run_for(soon_ms(trial), "before-write")
    change.inject()
    two.start_increment()
    two.run_for(soon_ms(trial), "before-write")
    change.heal()
    outside = let_in(trial, two)  # locks that wait for a replica have one again
    trial.quiet(one, *outside)


def let_in(trial: Trial, two: Client) -> list[Client]:
    """A second client gets in, if the lock lets it, well within the lease, and finishes, so that the first client's
    write is the late one. Returns the second client if it did not get in."""
    if not two.run_for(soon_ms(trial), "before-write"):
        return [two]
    two.finish()
    return []


def enter(trial: Trial, turns: int = 0) -> tuple[Client, Client]:
    """Two clients. The first has incremented `turns` times, has the lock again and is held before its write."""
    one, two = trial.clients(2)
    for _ in range(turns):
        one.increment()
    one.start_increment()
    one.run_to("before-write")
    return one, two


@scenario(
    "restart-data-lost",
    kind="server",
    summary="The server crashes, comes back at once without its data, and grants the lock again.",
    source="Kleppmann 2016; matrix of the project, row 9",
    control="the server keeps an append-only file that it syncs before it answers",
    needs=SINGLE,
    settings={"persistence": "deployed"},
)
def test_restart_data_lost(trial: Trial) -> None:
    one, two = enter(trial)
    trial.inject("crash-server", trial.server, data=trial.data_after_crash).heal()
    two.start_increment()
    trial.quiet(one, *let_in(trial, two))


@scenario(
    "token-counter-restart",
    kind="server",
    summary=f"After {TURNS} turns the server loses its data: the counter begins again, and the newer token is older.",
    source="matrix of the project, row 9; redisson#6510: only eviction removes the counters",
    control="the server keeps an append-only file that it syncs before it answers",
    needs=("token", "one node"),
    times=("virtual",),
    settings={"persistence": "deployed"},
)
def test_token_counter_restart(trial: Trial) -> None:
    one, two = enter(trial, TURNS)
    trial.inject("crash-server", trial.server, data=trial.data_after_crash).heal()
    two.start_increment()
    trial.quiet(one, *let_in(trial, two))


@scenario(
    "flush",
    kind="server",
    summary="An operator flushes the server while a client holds the lock; another client is granted it.",
    source="an operator's mistake; matrix of the project, row 18: keys that vanish early",
    control="the server is not flushed",
    needs=SINGLE,
    times=("virtual",),
)
def test_flush(trial: Trial) -> None:
    one, two = enter(trial)
    if not trial.control:
        trial.inject("flush", trial.server).heal()
    two.start_increment()
    trial.quiet(one, *let_in(trial, two))


@scenario(
    "partition-holder",
    kind="network",
    summary="The holder is cut off from the lock's server for longer than the lease, and still reaches the resource.",
    source="redisson#3636, consul#18271; matrix of the project, row 12",
    control="the cut is healed well within the lease",
    needs=("lock",),
    services=ANY_SERVICE,
)
def test_partition_holder(trial: Trial) -> None:
    one, two = trial.clients(2)
    one.acquire()
    value = one.read().value
    with trial.fault("partition", one, servers=trial.nodes_pattern):
        trial.touch_links(one)
        trial.approach_lease_end()
        two.start_increment()
        trial.outlast_lease(two)
        one.write(value + 1)
    one.release()
    two.go_on()
    # Where the release got no answer, a permit without a lease may stay taken for good.
    trial.run([two], trial.mono_ns + (trial.lease_ms + trial.bound_ms) * 1_000_000)
