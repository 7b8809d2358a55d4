"""A client that is paused in its critical section and does not notice that time has passed."""

from lockstorm import ANY_SERVICE, TABLE_STORES, USUAL_STORES, Trial, scenario


@scenario(
    "gc-pause",
    kind="client",
    summary="A holder is paused past its lease, before its write; another client enters; the first one then writes.",
    source="Kleppmann 2016, How to do distributed locking, the figure of the unsafe lock",
    control="the pause ends well within the lease",
    stores=(*USUAL_STORES, "compare-and-set", *TABLE_STORES),
    services=ANY_SERVICE,
)
def test_gc_pause(trial: Trial) -> None:
    one, two = trial.clients(2)
    one.start_increment()  # acquire, read, write, release
    with trial.pause(one, at="before-write"):
        trial.approach_lease_end()
        two.start_increment()
        trial.outlast_lease(two)  # client 2 gets in when the lease of client 1 has run out
    trial.finish(one, two)


@scenario(
    "gc-pause-read",
    kind="client",
    summary="As gc-pause, but client 2 has only read when client 1 wakes up and writes: the late write comes first.",
    source="Junqueira 2015, Note on fencing and distributed locks: mark before acting",
    control="the pause ends well within the lease",
    services=ANY_SERVICE,
)
def test_gc_pause_read(trial: Trial) -> None:
    one, two = trial.clients(2)
    one.start_increment()
    with trial.pause(one, at="before-write"):
        trial.approach_lease_end()
        two.start_increment()
        trial.outlast_lease(two, "before-write")
    one.finish()
    two.finish()
