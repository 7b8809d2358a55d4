"""Concurrent requests that spend from one account."""

from lockstorm import Trial, scenario

CREDITS = 10
WORK_MS = 100


@scenario(
    "lost-credits",
    kind="load",
    summary=f"An account with {CREDITS} credits is spent by {CREDITS} concurrent requests that each work {WORK_MS} ms.",
    source="the articles on Redis locks that the project starts from: the experiment without and with a lock",
    control="the requests come one after another",
    counter=CREDITS,
    real_lease_ms=10_000,
    services=("redis", "etcd"),
)
def test_lost_credits(trial: Trial) -> None:
    requests = trial.clients(CREDITS)
    for request in requests:
        request.start_increment(by=-1, work_ms=WORK_MS)
        if trial.control:
            request.finish()
    trial.finish(*requests)
