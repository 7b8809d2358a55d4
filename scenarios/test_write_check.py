"""A holder that keeps to its validity: it looks at its clock right before each write (`--checks-validity`).

Not for ZooKeeper: its locks state no time, but announce the end of a session, and whether a holder hears of that before
its write is chance.
"""

from lockstorm import Trial, scenario

SERVICES = ("redis", "postgres", "etcd")


@scenario(
    "pause-before-write-check",
    kind="client",
    summary="A holder is paused past its lease, another client enters; the holder looks at its clock before its write.",
    source="redis.io, Distributed Locks with Redis: mutual exclusion is guaranteed only as long as the client ends its "
    "work within the lock validity time; redsync, Mutex.Until",
    control="the pause ends well within the lease",
    needs=("lease",),
    stores=("open",),
    services=SERVICES,
    settings={"checks_validity": True},
)
def test_pause_before_write_check(trial: Trial) -> None:
    one, two = trial.clients(2)
    one.acquire()
    value = one.read().value
    with trial.pause(one):
        trial.approach_lease_end()
        two.start_increment()
        trial.outlast_lease(two)
    one.write(value + 1)
    one.release()
    two.finish()


@scenario(
    "pause-after-write-check",
    kind="client",
    summary="A holder looks at its clock, and is paused past its lease between that and its write; another enters.",
    source="Kleppmann 2016: you cannot fix this problem by inserting a check on the lock expiry just before writing "
    "back to storage",
    control="the pause ends well within the lease",
    needs=("lease",),
    stores=("open", "compare-and-set"),
    services=SERVICES,
    settings={"checks_validity": True},
    real_lease_ms=2_000,  # client 2 has to look at its clock and write within its own lease, also on a busy machine
)
def test_pause_after_write_check(trial: Trial) -> None:
    one, two = trial.clients(2)
    one.acquire()
    value = one.read().value
    one.start_write(value + 1)
    with trial.pause(one, at="after-validity-check"):
        trial.approach_lease_end()
        two.start_increment()
        trial.outlast_lease(two)
    one.finish()
    one.release()
    two.finish()
