"""A store of keys that keeps every revision: leases that end while a client waits, answers that are lost, a server that
is killed, a leader that is cut off."""

from harness.driver import Client, Trial, scenario

ETCD = ("etcd",)
RECIPES = ("etcd", "etcd-queue")  # the third differs from the second where a lease ends while its client waits
GAP_MS = 100
CUT_MS = 200  # for a request to arrive, and its answer to be lost
NOTICE_MS = 1_000  # for whoever is let in, to be in
LONG_LEASE_MS = 10_000  # where no lease is to end
BOUND_MS = 5_000  # far less: a lock that is held by nobody's grant is not free before its lease ends


@scenario(
    "waiter-expired",
    summary="Of two who wait in a queue, the first is paused past its lease; the other is in when the first wakes up.",
    source="etcd-io/etcd#11456; Jepsen: etcd 3.4.3, Locks: a waiter that does not look at its own lease",
    control="the same pause, but over well within the lease",
    needs=("queue",),
    times=("real",),
    services=ETCD,
)
def test_waiter_expired(trial: Trial) -> None:
    one, two, three = trial.clients(3)
    one.start_increment()
    one.run_to("before-write")
    two.start_increment()
    with trial.pause(two, at="in-queue"):
        three.start_increment()
        three.run_to("in-queue")
        if trial.control:
            three.go_on()
            trial.advance(GAP_MS)
        else:
            go_on_to(trial, three, "one-before-gone")  # two's place has gone with its lease
            one.finish()
            go_on_to(trial, three, "before-write")
    if not trial.control:
        two.run_for(NOTICE_MS, "after-write")
        three.finish()
    trial.finish(one, two, three)


def go_on_to(trial: Trial, client: Client, checkpoint: str) -> None:
    """Lets a client that is held go on until it is held there."""
    client.hold_at(checkpoint)
    client.go_on()
    trial.run([client])


@scenario(
    "acquire-answer-cut",
    summary="The transaction that gives a client the lock is carried out, its answer is lost; the client asks again.",
    source="etcd documentation, API guarantees: a request that ends in a time limit may have been carried out",
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
    summary="The server is killed while a client holds the lock, and is started again with its data.",
    source="Jepsen: etcd 3.4.3 (kill); matrix of the project, row 9: a restart that remembers",
    control="nobody is killed",
    real_lease_ms=LONG_LEASE_MS,
    times=("real",),
    stores=("open",),
    services=ETCD,
    locks=RECIPES,
)
def test_server_killed(trial: Trial) -> None:
    one, two = trial.clients(2)
    one.start_increment()
    one.run_to("before-write")
    two.start_increment()
    trial.advance(GAP_MS)
    with trial.fault_unless_control("kill-server", trial.etcd[0]):
        trial.advance(GAP_MS)
    two.run_for(NOTICE_MS, "before-write")
    one.finish()
    two.finish()


@scenario(
    "leader-cut-off",
    summary="Of three nodes the leader is cut off from the others and from clients while a client holds the lock.",
    source="Jepsen: etcd 3.4.3 (partitions); Kleppmann 2016: for correctness a consensus system",
    control="nobody is cut off",
    real_lease_ms=LONG_LEASE_MS,
    times=("real",),
    stores=("open",),
    services=ETCD,
    locks=RECIPES,
    settings={"nodes": 3},
)
def test_leader_cut_off(trial: Trial) -> None:
    one, two = trial.clients(2)
    leader = trial.etcd_leader()
    one.start_increment()
    one.run_to("before-write")
    two.start_increment()
    with trial.fault_unless_control("partition", f"*{leader.name}*"):
        if not trial.control:
            trial.etcd_leader(without=leader)
        two.run_for(NOTICE_MS, "before-write")
        one.finish()
    two.finish()
