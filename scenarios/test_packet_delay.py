"""The write that the network kept too long."""

from harness.driver import Trial, scenario


@scenario(
    "packet-delay",
    summary="A holder's write stays in the network until it has given up, released, and another client has written.",
    source="Kleppmann 2016, Protecting a resource with a lock: packets that GitHub's network kept for 90 seconds",
    control="the write is late, but the holder still waits for its answer",
    real_lease_ms=10_000,  # longer than the holder waits: it is to give up while the lock is its own
)
def test_packet_delay(trial: Trial) -> None:
    one, two = trial.clients(2)
    one.start_increment()
    with trial.fault("delay-write", one):
        if trial.control:
            trial.advance(trial.reply_limit_ms / 4)
        else:
            one.finish()  # no answer: it gives up, and releases
            two.increment()
    one.finish()
    if trial.control:
        two.increment()
