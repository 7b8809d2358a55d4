"""Clocks that are set: the server's, which decides when a lease ends, and the clients'."""

from lockstorm import ANY_SERVICE, Trial, scenario

LEASE_MS = 5_000
JUMP_LEASES = 2
BACK_LEASES = 6  # longer than the bound within which a free lock must be granted


@scenario(
    "clock-jump-server",
    kind="clock",
    summary="The server's wall clock jumps two leases ahead while a client holds the lock; another wants it.",
    source="antirez 2016: Redis reads the wall clock; matrix of the project, row 5",
    control="the clock stays",
    virtual_lease_ms=LEASE_MS,
    needs=("lock", "wall clock"),
    times=("virtual",),
    services=ANY_SERVICE,
)
def test_clock_jump_server(trial: Trial) -> None:
    one, two = trial.clients(2)
    one.start_increment()
    one.run_to("before-write")
    with trial.fault_unless_control("clock-jump", trial.nodes.known[0], offset_ms=ahead_ms(trial)):
        two.start_increment()
        two.run_for(trial.lease_ms / 2, "before-write")
        trial.finish(one)
        trial.finish(two)


@scenario(
    "clock-back-server",
    kind="clock",
    summary="The server's wall clock is set back six leases while a client holds the lock, and the client dies.",
    source="matrix of the project, row 6: a key lives as much longer as the clock went back",
    control="the clock stays; the client dies",
    virtual_lease_ms=LEASE_MS,
    needs=("lease", "wall clock"),
    times=("virtual",),
    services=ANY_SERVICE,
)
def test_clock_back_server(trial: Trial) -> None:
    one, two = trial.clients(2)
    one.start_increment()
    one.run_to("before-write")
    if not trial.control:
        trial.inject("clock-jump", trial.nodes.known[0], offset_ms=-BACK_LEASES * trial.lease_ms, keep="yes")
    two.start_increment()
    trial.kill(one)
    trial.quiet(two)


@scenario(
    "client-clock-ahead",
    kind="clock",
    summary="A client whose wall clock is two leases ahead wants a lock that another holds.",
    source="ShedLock#231, #132: clients' clocks decide; matrix of the project, row 7",
    control="the client's clock is right",
    virtual_lease_ms=LEASE_MS,
    needs=("lock",),
    times=("virtual",),
    services=ANY_SERVICE,
)
def test_client_clock_ahead(trial: Trial) -> None:
    one, two = trial.clients(2)
    with trial.fault_unless_control("clock-jump", two, offset_ms=ahead_ms(trial)):
        one.start_increment()
        one.run_to("before-write")
        two.start_increment()
        two.run_for(trial.lease_ms / 2, "before-write")
        trial.finish(one)
        trial.finish(two)
    trial.quiet(one, two)


def ahead_ms(trial: Trial) -> int:
    return JUMP_LEASES * trial.lease_ms
