"""A write, and answers, that the network delays."""

from lockstorm import Inconclusive, Outcome, Trial, scenario

WITHIN_MS = 100


@scenario(
    "packet-delay",
    kind="network",
    summary="A holder's write stays in the network until it has given up, released, and another client has written.",
    source="Kleppmann 2016, Protecting a resource with a lock: packets that GitHub's network kept for 90 seconds",
    control="the write is late, but the holder still waits for its answer",
    real_lease_ms=10_000,  # longer than the holder waits: it gives up while it holds the lock
)
def test_packet_delay(trial: Trial) -> None:
    one, two = trial.clients(2)
    one.start_increment()
    one.run_to("before-write")  # in real time a library may take a while to be granted the lock
    with trial.fault("delay-write", one):
        one.go_on()
        if trial.control:
            trial.advance(trial.reply_limit_ms / 4)
        else:
            one.finish()  # no answer: it gives up and releases
            two.increment()
    one.finish()
    if trial.control:
        two.increment()


@scenario(
    "slow-network-replies",
    kind="network",
    summary="The answers to an acquiring client take longer than the lease, and the client still waits for them.",
    source="Kleppmann 2016, Making Redlock unsafe: long network delay instead of the pause",
    control="the answers are late, but arrive well within the lease",
    needs=("lock",),
    times=("virtual",),
    virtual_lease_ms=500,  # shorter than a client waits for an answer
)
def test_slow_network_replies(trial: Trial) -> None:
    one, two = trial.clients(2)
    if trial.lock.adapter:  # it connects and loads its scripts: only answers to acquire are to be late
        one.acquire()
        one.release()
        trial.advance(trial.lease_ms)  # nothing of that is left
    late_ms = WITHIN_MS if trial.control else round(trial.lease_ms * 1.5)
    with trial.rule("slow", f"{one.name}>redis-*", "to-client", "delay", late_ms):
        one.start_increment()
        if trial.control:
            trial.advance(late_ms / 2)
            two.start_increment()
            one.finish()
        else:
            trial.advance(trial.lease_ms * 1.1)
            two.start_increment()
            two.hold_at("before-write")
            granted = one.run_for(trial.lease_ms * 2, "before-write")  # it accepts the late answers as a grant
            if not granted and trial.lock.adapter and one.ends_within(1) and one.result().outcome is Outcome.UNKNOWN:
                raise Inconclusive(f"{one.name} did not wait for the answers: it gave up before {late_ms} ms were over")
            two.run_for(WITHIN_MS, "before-write")
            if granted:
                one.finish()
    trial.finish(one, two)
