"""A client that makes sure, and is stopped right after it has."""

from harness.driver import ANY_SERVICE, ANYWHERE, TABLE_STORES, USUAL_STORES, Client, Trial, scenario

NOTICE_MS = 300  # for whoever was woken up, to look at what it has


@scenario(
    "pause-after-check",
    summary="A holder asks whether the lock is still its own, and is paused past its lease before it writes.",
    source="Kleppmann 2016: a check of the expiry just before the write is no fix, since the pause comes after it",
    control="the same pause, but over well within the lease",
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
    summary="A client is granted the lock, makes sure, and is paused past its lease before it reads.",
    source='Kleppmann 2016 against antirez 2016, "Is Redlock safe?": the check after the majority\'s answers comes too '
    "early for a pause after it",
    control="the same pause, but over well within the lease",
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
    summary="A client asks for the lock and is paused past the lease with the answers in its hands; another enters.",
    source="Kleppmann 2016, Making Redlock unsafe, the GC pause; antirez: a client that looks at the time that "
    "has passed refuses the grant",
    control="the same pause, but over well within the lease",
    needs=("lock", "steps"),
)
def test_pause_replies_in_flight(trial: Trial) -> None:
    one, two = trial.clients(2)
    one.start_increment()
    with trial.pause(one, at="after-acquire-reply"):
        trial.approach_lease_end()
        two.start_increment()
        trial.outlast_lease(two, "before-write")
        one.hold_at("before-write")
    look_at_the_answers(trial, one)
    trial.finish(one, two)


def look_at_the_answers(trial: Trial, one: Client) -> None:
    """Time for a client that was paused to take them for a grant, or not; if so, it works to its end."""
    if one.run_for(max(trial.lease_ms / 100, NOTICE_MS), "before-write"):
        one.finish()


def decide_on_the_answers(trial: Trial, one: Client) -> None:
    """Lets a client that was paused take them for a grant, and work to its end, or not: then it stands with the answers
    of its next attempt in its hands. However long that took, it does nothing while the other is at its end."""
    one.run_to(ANYWHERE)
    if one.held_at == "after-acquire":
        one.finish()


@scenario(
    "pause-replies-clock-back",
    summary="As pause-replies-in-flight, and the client's wall clock is stepped back by as much as the pause took.",
    source="Kleppmann 2016: Redlock needs a clock that does not jump; node-redlock 4 takes Date.now()",
    control="the same pause and the same step, but well within the lease",
    needs=("majority", "steps"),
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
    decide_on_the_answers(trial, one)
    two.finish()
    one.finish()


@scenario(
    "delay-before-check",
    summary="All messages of a client that asks for the lock are late; it is paused past the lease before its check.",
    source='antirez 2016, "Is Redlock safe?": a delay before the check after the majority\'s answers is harmless',
    control="every message is late, but there is no pause",
    needs=("majority",),
    times=("virtual",),
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
        look_at_the_answers(trial, one)
    if trial.control:
        two.start_increment()
    trial.finish(one, two)
