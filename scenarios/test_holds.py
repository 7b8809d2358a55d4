"""A holder that acquires its lock again, waiters that give up, and what a refused acquire leaves."""

from lockstorm import ANY_SERVICE, Trial, scenario

LEASE_MS = 9_000
GAP_MS = 100
SHORT_LEASE_MS, SHORT_BOUND_MS = 500, 1_000  # `fair` polls every millisecond behind a dead head of its queue
PATIENCE_MS = 200
WORK_MS = 2_000


@scenario(
    "held-again",
    kind="server",
    summary="A holder's key is lost, no other client waits yet, and the holder acquires again, for three leases.",
    source="redisson#3712: no renewal for a lock that is acquired again after it was lost",
    control="the key stays",
    virtual_lease_ms=LEASE_MS,
    needs=("watchdog", "re-entrant"),
    times=("virtual",),
    stores=("open",),
)
def test_held_again(trial: Trial) -> None:
    one, two = trial.clients(2)
    one.acquire()
    if not trial.control:
        trial.inject("flush", trial.server).heal()
    trial.advance(trial.lease_ms / 2)  # the watchdog has run
    one.acquire()
    value = one.read().value
    two.start_acquire(wait_ms=2 * trial.lease_ms)
    trial.finish(two)
    if two.result().ok:
        two.write(two.read().value + 1)
    one.write(value + 1)


@scenario(
    "release-inner-reply-lost",
    kind="network",
    summary="A client that holds the lock twice releases it once; the answer is lost, and the release is sent again.",
    source="redisson#4871, #5000: an unlock that ran twice",
    control="the answer arrives",
    virtual_lease_ms=LEASE_MS,
    needs=("watchdog", "re-entrant"),  # the server counts the holds
    times=("virtual",),
    stores=("open",),
)
def test_release_inner_reply_lost(trial: Trial) -> None:
    one, two = trial.clients(2)
    one.acquire()
    value = one.read().value
    one.acquire()
    two.start_increment()
    trial.advance(GAP_MS)
    one.start_release()
    one.run_to("before-release")
    with trial.fault_unless_control("lose-reply", one):
        one.finish()
    trial.advance(GAP_MS)
    one.write(value + 1)
    one.release()
    trial.quiet(two)


@scenario(
    "waiter-gives-up",
    kind="client",
    summary="Of two waiters, the first gives up; then the holder releases.",
    source="redisson#5019: a tryLock that timed out stays in the queue",
    control="the first waiter does not give up",
    virtual_lease_ms=SHORT_LEASE_MS,
    needs=("queue",),
    settings={"parameters": {"bound_ms": SHORT_BOUND_MS}},
    times=("virtual",),
    stores=("open",),
)
def test_waiter_gives_up(trial: Trial) -> None:
    one, two, three = trial.clients(3)
    one.start_increment()
    one.run_to("before-write")
    if trial.control:
        two.start_increment()
    else:
        two.start_acquire(wait_ms=PATIENCE_MS)
    trial.advance(GAP_MS)
    three.start_increment()
    trial.advance(PATIENCE_MS)
    one.finish()
    trial.quiet(three, *([two] if trial.control else []))


@scenario(
    "waiter-behind-gives-up",
    kind="client",
    summary="Of three waiters, the second gives up while the lock is held; the other two are served in their order.",
    source="redisson#5019: a waiter that gives up and its place; the order that a queue promises",
    control="the second waiter does not give up",
    virtual_lease_ms=LEASE_MS,
    needs=("queue",),
    settings={"also_require": ("fairness",)},
    times=("virtual",),
    stores=("open",),
    services=ANY_SERVICE,
)
def test_waiter_behind_gives_up(trial: Trial) -> None:
    one, two, three, four = trial.clients(4)
    one.start_increment(work_ms=WORK_MS)
    for waiter in (two, three, four):
        trial.advance(GAP_MS)
        if waiter is three and not trial.control:
            waiter.start_acquire(wait_ms=PATIENCE_MS)
        else:
            waiter.start_increment()
    trial.advance(PATIENCE_MS)
    trial.quiet(two, four, *([three] if trial.control else []))


@scenario(
    "refused-acquire",
    kind="client",
    summary="While another holds the lock, a client tries once, and waits and gives up; nothing of it may be left.",
    source="redisson#5019, #1104: places of clients that gave up; redis.io, Distributed Locks: a client that failed "
    "unlocks all instances",
    control="the client asks only when the lock is free",
    virtual_lease_ms=LEASE_MS,
    needs=("lock",),
    times=("virtual",),
    stores=("open",),
    services=ANY_SERVICE,
)
def test_refused_acquire(trial: Trial) -> None:
    one, two = trial.clients(2)
    one.acquire()
    before = trial.residue.traces()
    for wait_ms in () if trial.control else (0, PATIENCE_MS):
        two.acquire(wait_ms=wait_ms)
        trial.residue.compare(before)
    one.release()
    trial.quiet(two)
