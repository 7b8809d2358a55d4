"""Resources that compare random values instead of fencing tokens."""

from lockstorm import Trial, scenario

SMALL, LARGE = 0x1C0FFEE5, 0x7E57AB1E  # two draws of 31 bits; that one is larger means nothing


@scenario(
    "random-token-order",
    kind="client",
    summary="The random values of a lock serve as fencing tokens: the paused holder's happens to be the larger one.",
    source="Kleppmann 2016: the random value that Redlock uses is not monotonic; a unique value does not fence",
    control="the pause is over well within the lease, and the draws happen to rise",
    needs=("majority",),
    times=("virtual",),
    stores=("fence-writes", "fence-reads-and-writes"),
    gives_tokens=True,
)
def test_random_token_order(trial: Trial) -> None:
    first, second = (SMALL, LARGE) if trial.control else (LARGE, SMALL)
    one, two = trial.clients(2)
    one.start_increment(token=first)
    with trial.pause(one, at="before-write"):
        trial.approach_lease_end()
        two.start_increment(token=second)
        trial.outlast_lease(two)
    trial.finish(one, two)


@scenario(
    "random-token-cas",
    kind="client",
    summary="As gc-pause-read, but only the last reader may write: unique values are compared, not their order.",
    source='antirez 2016, "Is Redlock safe?": a random token and compare-and-set at the resource do as well',
    control="the pause is over well within the lease",
    needs=("majority",),
    times=("virtual",),
    stores=("compare-owner",),
)
def test_random_token_cas(trial: Trial) -> None:
    one, two = trial.clients(2)
    one.start_increment()
    with trial.pause(one, at="before-write"):
        trial.approach_lease_end()
        two.start_increment()
        trial.outlast_lease(two, "before-write")
    one.finish()
    two.finish()
