"""etcd: leases that end while a client waits, lost answers, a killed server, a lost leader, a lost majority, a holder
in the minority."""

from lockstorm import Client, Trial, scenario

ETCD = ("etcd",)
RECIPES = ("etcd", "etcd-queue")  # etcd-queue-unchecked differs only if a waiter's lease ends
GAP_MS = 100
HEARTBEATS_MS = 300  # some heartbeats are lost, but the leader is not yet missed
CUT_MS = 200  # for a request to arrive, and its answer to be lost
NOTICE_MS = 1_000  # for a granted client to enter
LEASE_LATE_MS = 2_000  # after which etcd has ended every lease that is over
LONG_LEASE_MS = 10_000  # longer than the scenario
QUORUM_LEASE_MS = 3_000  # longer than a leader needs to notice that it lacks a majority and to stop counting leases
BOUND_MS = 5_000  # less than the lease: a lock that stays taken until its lease ends violates liveness


@scenario(
    "waiter-expired",
    kind="client",
    summary="Of two waiters in a queue, the first is paused past its lease; the other is in when the first wakes up.",
    source="etcd-io/etcd#11456; Jepsen: etcd 3.4.3, Locks: a waiter that does not check its own lease",
    control="the pause ends well within the lease",
    needs=("queue",),
    times=("real",),
    services=ETCD,
)
def test_waiter_expired(trial: Trial) -> None:
    one, two, three = trial.clients(3)
    one.start_increment()
    one.run_to("before-write")
    queue_up(trial, two)  # it stands still there, but its watchdog keeps its place until it is paused
    queue_up(trial, three)  # behind two, however slow the machine is
    with trial.pause(two):
        if trial.control:
            three.go_on()
            trial.advance(GAP_MS)
        else:
            if trial.lock.adapter:
                trial.advance(trial.lease_ms + LEASE_LATE_MS)
            else:
                go_on_to(trial, three, "one-before-gone")  # two's key has ended with its lease
            one.finish()
            go_on_to(trial, three, "before-write")
    if not trial.control:
        two.run_for(NOTICE_MS, "after-write")
        three.finish()
    trial.finish(one, two, three)


def queue_up(trial: Trial, client: Client) -> None:
    """A client of a library has its place after a while, and is not held there."""
    client.start_increment()
    if trial.lock.adapter:
        trial.advance(NOTICE_MS)
    else:
        client.run_to("in-queue")


def go_on_to(trial: Trial, client: Client, checkpoint: str) -> None:
    """Lets a client go on to another checkpoint and holds it there."""
    client.hold_at(checkpoint)
    client.go_on()
    trial.run([client])


@scenario(
    "acquire-answer-cut",
    kind="network",
    summary="The transaction that gives a client the lock is carried out, its answer is lost; the client asks again.",
    source="etcd documentation, API guarantees: a request that times out may have been carried out",
    control="the answer arrives",
    real_lease_ms=LONG_LEASE_MS,
    times=("real",),
    stores=("open",),
    services=ETCD,
    locks=RECIPES,
    settings={"parameters": {"bound_ms": BOUND_MS}},
)
def test_acquire_answer_cut(trial: Trial) -> None:
    one, two = trial.clients(2)
    one.start_increment()
    one.run_to("before-transaction")
    with trial.fault_unless_control("partition", one, servers=trial.nodes_pattern, direction="to-client"):
        one.go_on()
        trial.advance(CUT_MS)
    two.start_increment()
    trial.quiet(one, two)


@scenario(
    "release-answer-cut",
    kind="network",
    summary="The lock is freed, the answer is lost; another has the lock when its former holder frees it again.",
    source="etcd documentation, API guarantees; redisson#4871, #5000; matrix of the project, row 14",
    control="the answer arrives",
    real_lease_ms=LONG_LEASE_MS,
    times=("real",),
    stores=("open",),
    services=ETCD,
    locks=RECIPES,
    settings={"parameters": {"bound_ms": BOUND_MS}},
)
def test_release_answer_cut(trial: Trial) -> None:
    one, two, three = trial.clients(3)
    one.acquire()
    two.start_increment()
    trial.advance(GAP_MS)
    one.start_release()
    one.run_to("before-release")
    with trial.fault_unless_control("partition", one, servers=trial.nodes_pattern, direction="to-client"):
        one.go_on()
        two.run_for(trial.lease_ms, "before-write")
    one.finish()
    if not one.result().ok:
        one.release()
    if three.acquire(wait_ms=0).ok:
        three.release()
    trial.quiet(two, three)


@scenario(
    "server-killed",
    kind="server",
    summary="The server is killed while a client holds the lock, and is started again with its data.",
    source="Jepsen: etcd 3.4.3 (kill); matrix of the project, row 9: a restart that remembers",
    control="no server is killed",
    real_lease_ms=LONG_LEASE_MS,
    stores=("open",),
    services=("etcd", "zookeeper"),
    locks=(*RECIPES, "zookeeper", "zookeeper-write-lock"),
)
def test_server_killed(trial: Trial) -> None:
    one, two = trial.clients(2)
    one.start_increment()
    one.run_to("before-write")
    two.start_increment()
    trial.advance(GAP_MS)
    with trial.fault_unless_control("kill-server", trial.nodes.known[0]):
        trial.advance(GAP_MS)
    two.run_for(NOTICE_MS, "before-write")
    one.finish()
    two.finish()


@scenario(
    "leader-cut-off",
    kind="network",
    summary="Of three nodes the leader is cut off from the others and from clients while a client holds the lock.",
    source="Jepsen: etcd 3.4.3 (partitions); Kleppmann 2016: for correctness a consensus system",
    control="the leader is not cut off",
    real_lease_ms=LONG_LEASE_MS,
    times=("real",),
    stores=("open",),
    services=ETCD,
    locks=RECIPES,
    settings={"nodes": 3},
)
def test_leader_cut_off(trial: Trial) -> None:
    one, two = trial.clients(2)
    leader = trial.etcd.leader()
    one.start_increment()
    one.run_to("before-write")
    two.start_increment()
    with trial.fault_unless_control("partition", f"*{leader.name}*"):
        if not trial.control:
            trial.etcd.leader(without=leader)
        two.run_for(NOTICE_MS, "before-write")
        one.finish()
    two.finish()


@scenario(
    "leader-restarted",
    kind="server",
    summary="Of three nodes the leader is killed while a client holds the lock, and is started again with its data.",
    source="Jepsen: etcd 3.4.3 (kill); etcd documentation, Failure modes: leader failure",
    control="no server is killed",
    real_lease_ms=LONG_LEASE_MS,
    times=("real",),
    stores=("open",),
    services=ETCD,
    locks=RECIPES,
    settings={"nodes": 3},
)
def test_leader_restarted(trial: Trial) -> None:
    without_leader(trial, "kill-server")


@scenario(
    "leader-paused",
    kind="server",
    summary="Of three nodes the leader is stopped while a client holds the lock, until there is another leader.",
    source="Jepsen: etcd 3.4.3 (pause); Kleppmann 2016: any process may be paused",
    control="the leader is not paused",
    real_lease_ms=LONG_LEASE_MS,
    times=("real",),
    stores=("open",),
    services=ETCD,
    locks=RECIPES,
    settings={"nodes": 3},
)
def test_leader_paused(trial: Trial) -> None:
    without_leader(trial, "pause-server")


def without_leader(trial: Trial, fault: str) -> None:
    one, two = trial.clients(2)
    leader = trial.etcd.leader()
    one.start_increment()
    one.run_to("before-write")
    two.start_increment()
    with trial.fault_unless_control(fault, leader):
        if not trial.control:
            trial.etcd.leader(without=leader)
        two.run_for(NOTICE_MS, "before-write")
    one.finish()
    two.finish()


@scenario(
    "majority-paused",
    kind="server",
    summary="Of three nodes the two followers are stopped for longer than the lease of a working client.",
    source="etcd documentation, Failure modes: majority failure; a lease ends only by a decision of the majority",
    control="no node is stopped",
    real_lease_ms=QUORUM_LEASE_MS,
    times=("real",),
    stores=("open",),
    services=ETCD,
    locks=RECIPES,
    settings={"nodes": 3},
)
def test_majority_paused(trial: Trial) -> None:
    one, two = trial.clients(2)
    leader = trial.etcd.leader()
    one.start_increment()
    one.run_to("before-write")
    two.start_increment()
    first, second = (node for node in trial.etcd.known if node is not leader)
    with trial.fault_unless_control("pause-server", first), trial.fault_unless_control("pause-server", second):
        two.run_for(GAP_MS if trial.control else trial.lease_ms + NOTICE_MS, "before-write")
    one.finish()
    two.finish()


@scenario(
    "holder-in-minority",
    kind="network",
    summary="A holder and its node are cut off from the other two; another client gets in, and the holder writes late.",
    source="Kleppmann 2016; etcd documentation, Failure modes: network partition, the minority side",
    control="the cut is over well within the lease",
    times=("real",),
    services=ETCD,
    needs=("watchdog",),
    settings={"nodes": 3},
)
def test_holder_in_minority(trial: Trial) -> None:
    one, two = trial.clients(2)
    near = trial.etcd.known[0].name[-1]
    one.start_increment()
    one.run_to("before-write")
    two.start_increment()
    with trial.fault("partition", f"etcd-*{near}*"):  # the links from the node to the others and back
        if trial.control:
            trial.advance(HEARTBEATS_MS)
        else:
            with trial.fault("partition", one, servers=f"etcd-[!{near}]"):
                trial.outlast_lease(two)
    trial.finish(one, two)
