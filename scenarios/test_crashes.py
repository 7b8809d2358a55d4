"""Clients that die at the worst moments."""

from lockstorm import ANY_SERVICE, Client, Trial, scenario

# The checkpoint right after the first answer that grants the lock.
AFTER_GRANT = {"setnx-expire": "between-setnx-and-expire", "replica-wait": "between-set-and-wait"}
GAP_MS = 100
CUT_MS = 500  # long enough for a poll of the waiter to be lost
LEASE_MS = 5_000
RESTART_LEASES = 4  # for the rest of the old lease, and the work of two clients
SHORT_LEASE_MS, SHORT_BOUND_MS = 500, 1_000  # `fair` polls every millisecond behind a dead head of its queue


@scenario(
    "crash-holder",
    kind="client",
    summary="A holder dies before its write; another one wants the lock.",
    source="redisson#2045, #4462 (permits); matrix of the project, row 8: the purpose of the lease",
    control="the holder does not die",
    virtual_lease_ms=LEASE_MS,
    needs=("lock",),
    services=ANY_SERVICE,
    real_on=("etcd",),
)
def test_crash_holder(trial: Trial) -> None:
    one, two = trial.clients(2)
    one.start_increment()
    one.run_to("before-write")
    two.start_increment()
    if not trial.control:
        trial.kill(one)
    one.go_on()
    trial.quiet(two)


@scenario(
    "crash-before-expire",
    kind="client",
    summary="A client dies right after the first answer that gives it the lock, before it sends anything else.",
    source="redis-py#818, laravel/horizon#1738, ShedLock#65: between SETNX and EXPIRE",
    control="the client does not die",
    virtual_lease_ms=LEASE_MS,
    needs=("lock",),
    times=("virtual",),
    inside=True,
)
def test_crash_before_expire(trial: Trial) -> None:
    one, two = trial.clients(2)
    two.increment()
    one.start_increment()
    one.run_to(AFTER_GRANT.get(trial.settings.lock, "after-acquire-reply"))
    two.start_increment()
    if not trial.control:
        trial.kill(one)
    one.go_on()
    trial.quiet(one, two)  # of a library the first answer may be another one, and its grant comes later


@scenario(
    "dead-waiters",
    kind="client",
    summary="Of two waiters, the first dies; then the holder releases.",
    source="the Redis articles the project starts from: dead waiters in the fair queue; redisson#1104, #6150",
    control="the waiter does not die",
    virtual_lease_ms=SHORT_LEASE_MS,
    needs=("lock",),
    settings={"parameters": {"bound_ms": SHORT_BOUND_MS}},
    times=("virtual",),
    services=ANY_SERVICE,
)
def test_dead_waiters(trial: Trial) -> None:
    one, two, three = trial.clients(3)
    queue_up(trial, one, two, three)
    if not trial.control:
        trial.kill(two)
    one.finish()
    trial.quiet(two, three)


@scenario(
    "dead-waiter-woken",
    kind="client",
    summary="Of two waiters, the first is cut off; the holder releases, and the wake-up dies with the first waiter.",
    source="matrix of the project, row 17: an element that BLPOP has taken exists only in the client",
    control="the waiter is not cut off and does not die",
    virtual_lease_ms=LEASE_MS,
    needs=("lock", "no queue"),
    times=("virtual",),
    services=ANY_SERVICE,
)
def test_dead_waiter_woken(trial: Trial) -> None:
    one, two, three = trial.clients(3)
    queue_up(trial, one, two, three)
    if trial.control:
        one.finish()
    else:
        with trial.fault("partition", two, servers=trial.nodes_pattern):
            one.finish()
            trial.advance(CUT_MS)
            trial.kill(two)
    trial.quiet(two, three)


def queue_up(trial: Trial, holder: Client, *waiters: Client) -> None:
    """The holder is held before its write; the others acquire one after the other."""
    holder.start_increment()
    holder.run_to("before-write")
    for waiter in waiters:
        waiter.start_increment()
        trial.advance(GAP_MS)


@scenario(
    "holder-restarts",
    kind="client",
    summary="A holder dies and starts again, before its lease or session is over, and acquires; another waits.",
    source="ZooKeeper documentation, Ephemeral Nodes, and etcd documentation, Lease: what a dead client has made lives "
    "until its session or lease ends, also when the client is back",
    control="it has released the lock before it dies",
    virtual_lease_ms=LEASE_MS,
    real_lease_ms=LEASE_MS,
    needs=("lock",),
    times=("virtual",),
    stores=("open",),
    services=ANY_SERVICE,
    real_on=("etcd",),
)
def test_holder_restarts(trial: Trial) -> None:
    one, two = trial.clients(2)
    one.acquire()
    one.write(one.read().value + 1)
    if trial.control:
        one.release()
    trial.kill(one)
    trial.advance(trial.lease_ms * 0.7)
    again = trial.restart(one)
    again.start_increment(work_ms=int(trial.lease_ms * 0.6))  # longer than what is left, shorter than a lease
    trial.advance(GAP_MS)
    two.start_increment()
    trial.run([again, two], trial.mono_ns + RESTART_LEASES * trial.lease_ms * 1_000_000)
    trial.quiet(again, two)
