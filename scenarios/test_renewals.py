"""Holds that are longer than the lease, and their renewal."""

from lockstorm import Client, Trial, scenario

LEASE_MS = 9_000
BUSY_MS = 1_000
GAP_MS = 100
LONG_LEASES = 3
STEPS = 30  # of a lease, until its watchdog renews


@scenario(
    "work-longer-than-lease",
    kind="client",
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
    kind="server",
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
    kind="network",
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
    kind="client",
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


@scenario(
    "renewal-overtaken",
    kind="network",
    summary="A renewal stays in the network until its sender has released the lock, and another has it for a while.",
    source="redlock-rb#36, RedLock.net#48: a late extension; redis-py PR#1031: a read and a write in two commands",
    control="the renewal arrives at once",
    virtual_lease_ms=LEASE_MS,
    needs=("lock", "renewable"),
    times=("virtual",),
    stores=("open",),
)
def test_renewal_overtaken(trial: Trial) -> None:
    one, two = trial.clients(2)
    one.acquire()
    with trial.rule("renewal", f"{one.host}>redis-1", "to-server", "delay", 0) as proxy:
        one.renew()
        last = proxy.fired("renewal")  # of the requests of a renewal, the one that extends
    held = ("NTH", last, "COUNT", 1) if len(trial.servers) == 1 else ("COUNT", len(trial.servers))
    if trial.control:
        one.renew()
        one.release()
        before = into_the_hold(trial, two)
    else:
        with trial.rule("late-renewal", f"{one.host}>redis-*", "to-server", "hold", *held):
            one.renew()
            one.release()
            before = into_the_hold(trial, two)
    trial.settle()
    trial.residue.compare_expiries(before)
    two.release()
    trial.quiet(one, two)


def into_the_hold(trial: Trial, client: Client) -> dict[bytes, int]:
    """The client acquires the lock, and a quarter of its lease passes. When do the keys expire then?"""
    client.acquire()
    trial.advance(trial.lease_ms / 4)  # its own watchdog has not run yet
    return trial.residue.expiries()


@scenario(
    "renewal-after-release",
    kind="network",
    summary="A holder releases the lock while the answer to its watchdog's renewal is late; then it must be silent.",
    source="redisson#1966: a watchdog that goes on after the last release",
    control="the answer is not late",
    virtual_lease_ms=LEASE_MS,
    needs=("watchdog",),
    times=("virtual",),
    stores=("open",),
)
def test_renewal_after_release(trial: Trial) -> None:
    one, two = trial.clients(2)
    one.acquire()
    if trial.control:
        trial.advance(trial.lease_ms * 0.7)
        one.release()
    else:
        late = ("late-answer", f"{one.host}>redis-*", "to-client", "hold", "COUNT", len(trial.servers))
        with trial.rule(*late) as proxy:
            for _ in range(STEPS):
                if not proxy.fired(late[0]):
                    trial.advance(trial.lease_ms / STEPS)
            one.release()
    trial.settle()
    heard = trial.commands()
    trial.advance(2 * trial.lease_ms)
    trial.residue.commands(trial.commands() - heard)
    trial.quiet(one, two)
