"""Messages, signals and answers between a server and its clients that are lost, late or doubled."""

from lockstorm import Client, Trial, scenario

LEASE_MS = 5_000
GAP_MS = 100
PATIENT = 0.8  # part of a lease, after which a client still waits for an answer
SIGNAL_GONE_MS = 1_500  # python-redis-lock's signal lives for 1 s

# The checkpoint right before the command that frees the lock; default: before-release.
LAST_STEP = {"set-nx-get-del": "between-get-and-del", "setnx-expire": "between-get-and-del"}
# The checkpoint of a waiter that has been refused and does not wait yet.
REFUSED = {"push": "between-check-and-subscribe", "blocking-pop": "between-refusal-and-blpop"}


@scenario(
    "lost-wake-up",
    kind="network",
    summary="A client waits for a message; the holder releases, and the message is lost.",
    source="Redis, Pub/Sub: at most once; redisson#763, #5761; matrix of the project, row 16",
    control="the message arrives",
    virtual_lease_ms=LEASE_MS,
    needs=("push",),
    times=("virtual",),
)
def test_lost_wake_up(trial: Trial) -> None:
    one, two = holder_and_waiter(trial)
    with trial.fault_unless_control("drop-message", two):
        one.finish()
        trial.advance(GAP_MS)
    trial.quiet(two)


@scenario(
    "lost-subscription",
    kind="network",
    summary="As lost-wake-up, but the subscriber's connection is reset with the message on its way.",
    source="redisson#6026, #2180: subscriptions after a reconnection; matrix of the project, row 16",
    control="the message arrives",
    virtual_lease_ms=LEASE_MS,
    needs=("push",),
    times=("virtual",),
)
def test_lost_subscription(trial: Trial) -> None:
    one, two = holder_and_waiter(trial)
    with trial.fault_unless_control("kill-subscriber", two):
        one.finish()
        trial.advance(GAP_MS)
    trial.quiet(two)


@scenario(
    "try-then-wait",
    kind="client",
    summary="A client is refused, and the holder releases before the client has begun to wait.",
    source="redisson#5761; python-redis-lock PR#32; the Redis articles the project starts from",
    control="the holder releases when the client already waits",
    virtual_lease_ms=LEASE_MS,
    needs=("told",),
    times=("virtual",),
    inside=True,
)
def test_try_then_wait(trial: Trial) -> None:
    one, two = trial.clients(2)
    one.start_increment()
    one.run_to("before-write")
    two.start_increment()
    if trial.control:
        trial.advance(GAP_MS)
        one.finish()
    else:
        two.run_to("after-refusal" if trial.lock.adapter else REFUSED[trial.lock.waits])
        one.finish()
        trial.advance(SIGNAL_GONE_MS)
    trial.quiet(two)


def holder_and_waiter(trial: Trial) -> tuple[Client, Client]:
    """The first client is held before its write, the second waits."""
    one, two = trial.clients(2)
    one.start_increment()
    one.run_to("before-write")
    two.start_increment()
    trial.advance(GAP_MS)
    return one, two


@scenario(
    "release-race",
    kind="client",
    summary="A holder is paused past its lease right before the command that frees the lock; another has it by then.",
    source="redis-py PR#1031, laravel/framework#26213: between GET and DEL; matrix of the project, row 15",
    control="the pause ends well within the lease",
    virtual_lease_ms=LEASE_MS,
    needs=("lock",),
    times=("virtual",),
)
def test_release_race(trial: Trial) -> None:
    one, two, three = trial.clients(3)
    freeing = freeing_step(trial, one)
    one.acquire()
    one.start_release()
    one.run_to(*freeing)
    with trial.pause(one):
        two.start_increment()
        trial.outlast_lease(two, "before-write")
    one.finish()
    let_third_in(trial, three)
    trial.quiet(one, two, three)


@scenario(
    "release-delayed",
    kind="network",
    summary="The command that frees the lock stays in the network past the lease, until another has the lock.",
    source="redisson#4871, #5066; matrix of the project, row 15: a late release lands after the lock was given again",
    control="the command is late, but its sender still waits for the answer",
    virtual_lease_ms=LEASE_MS,
    needs=("lock",),
    times=("virtual",),
)
def test_release_delayed(trial: Trial) -> None:
    one, two, three = trial.clients(3)
    freeing = freeing_step(trial, one)
    one.acquire()
    one.start_release()
    one.run_to(*freeing)
    with trial.rule("late-release", f"{one.host}>redis-*", "to-server", "hold", "COUNT", len(trial.servers)):
        one.go_on()
        two.start_increment()
        if trial.control:
            trial.advance(trial.reply_limit_ms / 4)
        else:
            trial.outlast_lease(two, "before-write")
    trial.settle()
    one.finish()
    let_third_in(trial, three)
    trial.quiet(one, two, three)


@scenario(
    "release-reply-lost",
    kind="network",
    summary="The lock is freed, the answer is lost; another has the lock when its former holder frees it again.",
    source="redisson#4871, #5000, #5066; matrix of the project, row 14",
    control="the answer arrives",
    virtual_lease_ms=LEASE_MS,
    needs=("lock",),
    times=("virtual",),
)
def test_release_reply_lost(trial: Trial) -> None:
    one, two, three = trial.clients(3)
    freeing = freeing_step(trial, one)
    one.acquire()
    two.start_increment()
    trial.advance(GAP_MS)
    one.start_release()
    one.run_to(*freeing)
    with trial.fault_unless_control("lose-reply", one, count=len(trial.servers)):  # the next one of every server
        one.go_on()
        two.run_for(trial.lease_ms, "before-write")
        if not one.ends_within(trial.lease_ms * PATIENT):  # so that it is not the trial that outlasts a lease
            two.finish()
            one.finish()
            two.start_increment()
            two.run_for(trial.lease_ms, "before-write")
    if not one.result().ok:
        one.release()
    let_third_in(trial, three)
    trial.quiet(one, two, three)


@scenario(
    "acquire-reply-lost",
    kind="network",
    summary="A client is granted the lock, but the answer is lost; it tries again, as others do.",
    source="redisson#1966, #1626, #4178, #5019; matrix of the project, row 13",
    control="the answer arrives",
    virtual_lease_ms=LEASE_MS,
    needs=("lock",),
    times=("virtual",),
)
def test_acquire_reply_lost(trial: Trial) -> None:
    one, two = trial.clients(2)
    two.increment()
    with trial.fault_unless_control("lose-reply", one, count=len(trial.servers)):  # the next one of every server
        one.acquire(wait_ms=0)
    if one.result().ok:
        one.release()
    one.start_increment()
    trial.advance(GAP_MS)
    two.start_increment()
    trial.quiet(one, two)


def freeing_step(trial: Trial, client: Client) -> tuple[str, int]:
    """The checkpoint right before the command that frees the lock, and how often a release comes to it until then.
    Which command of a library that is, a release without a fault tells. The one before it has connected and loaded
    scripts."""
    if not trial.lock.adapter:
        return LAST_STEP.get(trial.settings.lock, "before-release"), 1
    client.acquire()
    client.release()
    client.acquire()
    return "before-freeing", client.news_before_freeing()


def let_third_in(trial: Trial, three: Client) -> None:
    """A third client gets in, if the lock lets it, well within the lease."""
    three.start_increment()
    three.run_for(trial.lease_ms / 10, "before-write")
