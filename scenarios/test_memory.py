"""A server that lacks memory or replicas, or evicts keys that a lock needs."""

from lockstorm import Trial, scenario

LEASE_MS = 5_000
TROUBLE_LEASES = 2  # longer than any client retries
TURNS = 3  # tokens given before
CACHED = "cached-page"  # a key of the other use of the server


@scenario(
    "evict-leases",
    kind="server",
    summary="The lock's server is also a cache, and evicts keys with an expiry while a client holds the lock.",
    source="langfuse#15509: volatile-lru evicted the locks; matrix of the project, row 18a",
    control="there is enough memory",
    virtual_lease_ms=LEASE_MS,
    needs=("lock",),
    times=("virtual",),
)
def test_evict_leases(trial: Trial) -> None:
    evict(trial, "volatile-lru")


@scenario(
    "evict-all",
    kind="server",
    summary="As evict-leases, but the server may evict any key, including counters.",
    source="RedLock.net#101, redisson#6510; matrix of the project, row 18b",
    control="there is enough memory",
    virtual_lease_ms=LEASE_MS,
    needs=("lock",),
    times=("virtual",),
)
def test_evict_all(trial: Trial) -> None:
    evict(trial, "allkeys-lru")


def evict(trial: Trial, policy: str) -> None:
    """Keys are evicted while client 1 is held before its write; client 2 acquires; later both acquire again."""
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
    kind="server",
    summary="All keys are evicted while the lock is free; then clients want it again.",
    source="matrix of the project, rows 9 and 18b: permits that must be created first",
    control="there is enough memory",
    virtual_lease_ms=LEASE_MS,
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
    kind="server",
    summary="The server refuses commands that need memory while a holder releases and another client wants the lock.",
    source="Redis, Key eviction, noeviction; matrix of the project, row 18c",
    control="there is enough memory",
    virtual_lease_ms=LEASE_MS,
    needs=("lock",),
    times=("virtual",),
)
def test_out_of_memory(trial: Trial) -> None:
    refuse(trial, "evict", policy="noeviction")


@scenario(
    "read-only",
    kind="server",
    summary="The server takes no writes while a holder releases and another client wants the lock.",
    source="Redis, min-replicas-to-write: what bounds the loss of a failover; matrix of the project",
    control="the server takes writes",
    virtual_lease_ms=LEASE_MS,
    needs=("lock", "no replicas"),
    times=("virtual",),
)
def test_read_only(trial: Trial) -> None:
    refuse(trial, "read-only")


def refuse(trial: Trial, fault: str, **options: str) -> None:
    """Client 2 waits when the fault begins; client 1 releases during it; it lasts for two leases."""
    one, two = trial.clients(2)
    one.start_increment()
    one.run_to("before-write")
    two.start_increment()
    trial.advance(trial.lease_ms / 10)
    with trial.fault_unless_control(fault, trial.server, **options):
        one.finish()
        trial.advance(trial.lease_ms / 10 if trial.control else TROUBLE_LEASES * trial.lease_ms)
    trial.quiet(one, two)
