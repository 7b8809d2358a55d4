"""A client that is paused right after it has checked its lock."""

from lockstorm import ANY_SERVICE, ANYWHERE, TABLE_STORES, USUAL_STORES, Client, Trial, scenario

NOTICE_MS = 300  # for a client that was resumed to read its answers


@scenario(
    "pause-after-check",
    kind="client",
    summary="A holder checks that the lock is still its own, and is paused past its lease before it writes.",
    source="Kleppmann 2016: a check of the expiry just before the write is no fix, since the pause comes after it",
    control="the pause ends well within the lease",
    needs=("lock",),
    stores=(*USUAL_STORES, *TABLE_STORES),
    services=ANY_SERVICE,
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
    kind="client",
    summary="A client is granted the lock, checks its validity, and is paused past its lease before it reads.",
    source='Kleppmann 2016 against antirez 2016, "Is Redlock safe?": the check after the majority\'s answers comes too '
    "early for a pause after it",
    control="the pause ends well within the lease",
    services=ANY_SERVICE,
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
    kind="client",
    summary="A client acquires and is paused past the lease before it reads the answers; another enters.",
    source="Kleppmann 2016, Making Redlock unsafe, the GC pause; antirez: a client that measures the elapsed "
    "time refuses the grant",
    control="the pause ends well within the lease",
    real_lease_ms=1_000,  # the other client holds the lock while this one reads its answers
    needs=("lock",),
    inside=True,
)
def test_pause_replies_in_flight(trial: Trial) -> None:
    one, two = trial.clients(2)
    one.start_increment()
    with trial.pause(one, at="after-acquire-reply"):
        trial.approach_lease_end()
        two.start_increment()
        trial.outlast_lease(two, "before-write")
        one.hold_at("before-write")
    read_answers(trial, one)
    trial.finish(one, two)


def read_answers(trial: Trial, one: Client) -> None:
    """A client that was paused accepts its answers as a grant, or not; if it does, it finishes its work."""
    if one.run_for(max(trial.lease_ms / 100, NOTICE_MS), "before-write"):
        one.finish()


def accept_or_retry(trial: Trial, one: Client) -> None:
    """A client that was paused accepts its answers as a grant and finishes its work; or it refuses them and is held
    with the answers of its next attempt, so that it does nothing while the other client finishes."""
    if trial.lock.adapter:  # nothing holds it in its next attempt, during which the other client finishes, too
        read_answers(trial, one)
        return
    one.run_to(ANYWHERE)
    if one.held_at == "after-acquire":
        one.finish()


@scenario(
    "pause-replies-clock-back",
    kind="clock",
    summary="As pause-replies-in-flight, and the client's wall clock is stepped back by as much as the pause took.",
    source="Kleppmann 2016: Redlock needs a clock that does not jump; node-redlock 4 takes Date.now()",
    control="the pause and the step of the clock end well within the lease",
    needs=("majority",),
    inside=True,
)
def test_pause_replies_clock_back(trial: Trial) -> None:
    one, two = trial.clients(2)
    one.start_increment()
    with trial.pause(one, at="after-acquire-reply"):
        trial.approach_lease_end()
        two.start_increment()
        trial.outlast_lease(two, "before-write")
        one.hold_at(ANYWHERE)
        trial.inject("clock-jump", one, offset_ms=-trial.lease_ms)
    accept_or_retry(trial, one)
    two.finish()
    one.finish()


@scenario(
    "delay-before-check",
    kind="network",
    summary="All messages of an acquiring client are late; it is paused past the lease before its check.",
    source='antirez 2016, "Is Redlock safe?": a delay before the check after the majority\'s answers is harmless',
    control="every message is late, but there is no pause",
    needs=("majority",),
    times=("virtual",),
    inside=True,
)
def test_delay_before_check(trial: Trial) -> None:
    one, two = trial.clients(2)
    with trial.rule("slow", f"{one.name}>redis-*", "both", "delay", round(trial.reply_limit_ms / 3)):
        one.start_increment()
        one.run_to("after-acquire-reply")
        if not trial.control:
            with trial.fault("pause-client", one):
                trial.approach_lease_end()
                two.start_increment()
                trial.outlast_lease(two, "before-write")
        one.hold_at("before-write")
        one.go_on()
        read_answers(trial, one)
    if trial.control:
        two.start_increment()
    trial.finish(one, two)
