"""A server that is short of something: of memory, of replicas, of keys that somebody thought it could spare."""

from harness.driver import Trial, scenario

LEASE_MS = 5_000
TROUBLE_LEASES = 2  # longer than anybody tries again
TURNS = 3  # so many tokens were given before
CACHED = "cached-page"  # what else the server is used for


@scenario(
    "evict-leases",
    summary="The lock's server is also a cache, and throws out what has an expiry while a client holds the lock.",
    source="langfuse#15509: volatile-lru evicted the locks; matrix of the project, row 18a",
    control="there is memory enough",
    lease_ms=LEASE_MS,
    needs=("lock",),
    times=("virtual",),
)
def test_evict_leases(trial: Trial) -> None:
    evict(trial, "volatile-lru")


@scenario(
    "evict-all",
    summary="As evict-leases, but whatever is there may be thrown out: counters too.",
    source="RedLock.net#101, redisson#6510; matrix of the project, row 18b",
    control="there is memory enough",
    lease_ms=LEASE_MS,
    needs=("lock",),
    times=("virtual",),
)
def test_evict_all(trial: Trial) -> None:
    evict(trial, "allkeys-lru")


def evict(trial: Trial, policy: str) -> None:
    """Client 1 stands before its write while keys go; client 2 wants the lock; later both want it once more."""
    one, two = trial.clients(2)
    one.start_increment()
    one.run_to("before-write")
    if not trial.control:
        trial.server.link.set(CACHED, "bytes", px=trial.lease_ms)
        trial.inject("evict", trial.server, policy=policy).heal()
    two.start_increment()
    two.run_for(trial.lease_ms / 2, "before-write")
    trial.finish(one)
    trial.quiet(one, two)


@scenario(
    "evict-idle",
    summary="Everything is thrown out while nobody holds the lock; then it is wanted again.",
    source="matrix of the project, rows 9 and 18b: permits that somebody has to hand out first",
    control="there is memory enough",
    lease_ms=LEASE_MS,
    needs=("lock",),
    times=("virtual",),
)
def test_evict_idle(trial: Trial) -> None:
    one, two = trial.clients(2)
    for _ in range(TURNS):
        one.increment()
    if not trial.control:
        trial.server.link.set(CACHED, "bytes", px=trial.lease_ms)
        trial.inject("evict", trial.server, policy="allkeys-lru").heal()
    trial.quiet(one, two)


@scenario(
    "out-of-memory",
    summary="The server refuses whatever needs memory while a holder releases and another client wants the lock.",
    source="Redis, Key eviction, noeviction; matrix of the project, row 18c",
    control="there is memory enough",
    lease_ms=LEASE_MS,
    needs=("lock",),
    times=("virtual",),
)
def test_out_of_memory(trial: Trial) -> None:
    refuse(trial, "evict", policy="noeviction")


@scenario(
    "read-only",
    summary="The server takes no writes while a holder releases and another client wants the lock.",
    source="Redis, min-replicas-to-write: what bounds the loss of a failover; matrix of the project",
    control="the server takes writes",
    lease_ms=LEASE_MS,
    needs=("lock", "no replicas"),
    times=("virtual",),
)
def test_read_only(trial: Trial) -> None:
    refuse(trial, "read-only")


def refuse(trial: Trial, fault: str, **options: str) -> None:
    """Client 2 waits when the trouble begins, client 1 releases in it; it lasts for two leases."""
    one, two = trial.clients(2)
    one.start_increment()
    one.run_to("before-write")
    two.start_increment()
    trial.advance(trial.lease_ms / 10)
    with trial.fault_unless_control(fault, trial.server, **options):
        one.finish()
        trial.advance(trial.lease_ms / 10 if trial.control else TROUBLE_LEASES * trial.lease_ms)
    trial.quiet(one, two)
