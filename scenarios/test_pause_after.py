"""A client that makes sure, and is stopped right after it has."""

from harness.driver import Trial, scenario

NOTICE_MS = 300  # for whoever was woken up, to look at what it has


@scenario(
    "pause-after-check",
    summary="A holder asks whether the lock is still its own, and is paused past its lease before it writes.",
    source="Kleppmann 2016: a check of the expiry just before the write is no fix, since the pause comes after it",
    control="the same pause, but over well within the lease",
    needs=("lock",),
)
def test_pause_after_check(trial: Trial) -> None:
    one, two = trial.clients(2)
    one.acquire()
    value = one.read().value
    one.is_held()
    one.start_write(value + 1)
    with trial.pause(one, at="before-write"):
        trial.approach_lease_end()
        two.start_increment()
        trial.outlast_lease(two)
    one.finish()
    one.release()
    two.finish()


@scenario(
    "pause-after-validity-check",
    summary="A client is granted the lock, makes sure, and is paused past its lease before it reads.",
    source='Kleppmann 2016 against antirez 2016, "Is Redlock safe?": the check after the majority\'s answers comes too '
    "early for a pause after it",
    control="the same pause, but over well within the lease",
)
def test_pause_after_validity_check(trial: Trial) -> None:
    one, two = trial.clients(2)
    one.start_increment()
    with trial.pause(one, at="after-acquire"):
        trial.approach_lease_end()
        two.start_increment()
        trial.outlast_lease(two, "before-write")
    one.finish()
    two.finish()


@scenario(
    "pause-replies-in-flight",
    summary="A client asks for the lock and is paused past the lease with the answers in its hands; another enters.",
    source="Kleppmann 2016, Making Redlock unsafe, the GC pause; antirez: a client that looks at the time that "
    "has passed refuses the grant",
    control="the same pause, but over well within the lease",
    needs=("lock",),
)
def test_pause_replies_in_flight(trial: Trial) -> None:
    one, two = trial.clients(2)
    one.start_increment()
    with trial.pause(one, at="after-acquire-reply"):
        trial.approach_lease_end()
        two.start_increment()
        trial.outlast_lease(two, "before-write")
        one.hold_at("before-write")
    if one.run_for(max(trial.lease_ms / 100, NOTICE_MS), "before-write"):  # it takes the answers for a grant
        one.finish()
    trial.finish(one, two)
