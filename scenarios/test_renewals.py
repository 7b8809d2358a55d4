"""Holds that are longer than the lease, and their renewal."""

from lockstorm import Trial, scenario

LEASE_MS = 9_000
BUSY_MS = 1_000
GAP_MS = 100
LONG_LEASES = 3


@scenario(
    "work-longer-than-lease",
    summary="The work under the lock takes three leases, nothing is paused, and another client wants the lock.",
    source="the Redis articles the project starts from: why the watchdog; redisson#4698; matrix of the project, row 2",
    control="the work is done well within the lease",
    virtual_lease_ms=LEASE_MS,
    needs=("lock",),
    times=("virtual",),
)
def test_work_longer_than_lease(trial: Trial) -> None:
    one, two = trial.clients(2)
    one.start_increment(work_ms=trial.lease_ms // 10 if trial.control else LONG_LEASES * trial.lease_ms)
    trial.advance(GAP_MS)
    two.start_increment()
    trial.finish(one, two)


@scenario(
    "renewal-fails",
    summary="The work takes three leases; when the first is two thirds over, the server is busy for a second.",
    source="redisson#2515, #3194, #3332: BUSY stopped the renewal; python-redis-lock's thread; matrix of the project, "
    "row 19",
    control="the server is never busy",
    virtual_lease_ms=LEASE_MS,
    needs=("watchdog",),
    times=("virtual",),
)
def test_renewal_fails(trial: Trial) -> None:
    one, two = trial.clients(2)
    one.start_increment(work_ms=LONG_LEASES * trial.lease_ms)
    trial.advance(GAP_MS)
    two.start_increment()
    trial.advance(trial.lease_ms * 2 / 3 - GAP_MS - BUSY_MS / 2)
    with trial.fault_unless_control("slow-server", trial.server, how="script"):
        trial.advance(BUSY_MS)
    trial.finish(one, two)


@scenario(
    "renewal-cut",
    summary="The work takes three leases; half-way through the first, the server closes its clients' connections.",
    source="redisson#2515, #3194: renewal after a reconnection; matrix of the project, row 19",
    control="the connections stay",
    virtual_lease_ms=LEASE_MS,
    needs=("watchdog",),
    times=("virtual",),
)
def test_renewal_cut(trial: Trial) -> None:
    one, two = trial.clients(2)
    one.start_increment(work_ms=LONG_LEASES * trial.lease_ms)
    trial.advance(GAP_MS)
    two.start_increment()
    trial.advance(trial.lease_ms / 2)
    if not trial.control:
        trial.inject("kill-connections", trial.server).heal()
    trial.finish(one, two)


@scenario(
    "extend-lost-lock",
    summary="A holder is paused past its lease; another has been in and out when it extends the lock, and works on.",
    source="redlock-rb#36, redsync PR#149, RedLock.net#48: an extension that makes a lost lock again; matrix of the "
    "project, row 20",
    control="the same time passes well within the lease, without another client",
    virtual_lease_ms=LEASE_MS,
    needs=("lock",),
    times=("virtual",),
)
def test_extend_lost_lock(trial: Trial) -> None:
    one, two = trial.clients(2)
    one.acquire()
    value = one.read().value
    if trial.control:
        trial.advance(trial.lease_ms / 3)
    else:
        with trial.pause(one):
            two.start_increment()
            trial.outlast_lease(two)
    if one.renew().ok:
        one.write(value + 1)
    one.release()
    trial.quiet(one, two)
