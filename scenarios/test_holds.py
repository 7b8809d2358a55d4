"""A holder that acquires its lock again, and a waiter that gives up."""

from lockstorm import Trial, scenario

LEASE_MS = 9_000
GAP_MS = 100
SHORT_LEASE_MS, SHORT_BOUND_MS = 500, 1_000  # `fair` polls every millisecond behind a dead head of its queue
PATIENCE_MS = 200


@scenario(
    "held-again",
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
