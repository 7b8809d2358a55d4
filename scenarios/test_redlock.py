"""Redlock's majority of five, when the node in the middle votes for two clients."""

from lockstorm import Client, Trial, scenario

MAJORITY = ("majority",)
FAST_PPM = 2_000_000  # three times as fast
LONG_LEASE_MS, LONG_LEASES = 9_000, 3


@scenario(
    "clock-jump-node",
    kind="clock",
    summary="The holder has a majority of nodes 1 to 3; the clock of node 3 jumps, and 3 to 5 are another's majority.",
    source="Kleppmann 2016, The dangers of timing assumptions: Redlock's first bad example",
    control="the clock of node 3 stays",
    needs=MAJORITY,
    times=("virtual",),
)
def test_clock_jump_node(trial: Trial) -> None:
    one, two = first_majority(trial)
    if not trial.control:
        trial.inject("clock-jump", trial.servers[2], offset_ms=2 * trial.lease_ms)
    second_majority(trial, one, two)


@scenario(
    "drift-split-brain",
    kind="clock",
    summary="As clock-jump-node, but the clock of node 3 runs three times as fast.",
    source="the Redis articles the project starts from: clock drift lets 1-2-3 and 3-4-5 both win",
    control="the clock of node 3 runs as the others",
    needs=MAJORITY,
    times=("virtual",),
)
def test_drift_split_brain(trial: Trial) -> None:
    one, two = first_majority(trial)
    if not trial.control:
        trial.inject("clock-drift", trial.servers[2], ppm=FAST_PPM)
    trial.advance(trial.lease_ms * 0.6)
    second_majority(trial, one, two)


@scenario(
    "crash-restart-node",
    kind="server",
    summary="As clock-jump-node, but node 3 crashes, forgets the lock and is back at once.",
    source="redis.io, Distributed Locks with Redis, Performance, crash recovery and fsync; Kleppmann 2016",
    control="node 3 does not crash",
    needs=MAJORITY,
    times=("virtual",),
)
def test_crash_restart_node(trial: Trial) -> None:
    one, two = first_majority(trial)
    if not trial.control:
        trial.inject("crash-server", trial.servers[2], data=trial.data_after_crash).heal()
    second_majority(trial, one, two)


@scenario(
    "restart-fsync-always",
    kind="server",
    summary="As crash-restart-node, but every node syncs its append-only file before it answers.",
    source='antirez 2016, "Is Redlock safe?", and redis.io: fsync always, or a delayed restart',
    control="node 3 does not crash",
    needs=MAJORITY,
    times=("virtual",),
    settings={"persistence": "aof"},
)
def test_restart_fsync_always(trial: Trial) -> None:
    one, two = first_majority(trial)
    if not trial.control:
        trial.inject("crash-server", trial.servers[2], data="kept").heal()
    second_majority(trial, one, two)


def first_majority(trial: Trial) -> tuple[Client, Client]:
    """Client 1 has the lock on nodes 1 to 3 and is held before its write."""
    one, two = trial.clients(2)
    one.start_increment()
    with trial.fault("partition", one, servers="redis-[45]"):
        one.run_to("before-write")
    return one, two


def second_majority(trial: Trial, one: Client, two: Client) -> None:
    """Client 2 reaches nodes 3 to 5 only and acquires well within the lease; then both go on."""
    two.start_increment()
    with trial.fault("partition", two, servers="redis-[12]"):
        two.run_for(trial.lease_ms / 10, "before-write")
    trial.finish(one, two)


@scenario(
    "delayed-restart",
    kind="server",
    summary="As crash-restart-node, but node 3 is kept down for a lease.",
    source="redis.io, Distributed Locks with Redis: a node that has crashed stays away for the longest lease",
    control="node 3 does not crash",
    needs=MAJORITY,
    times=("virtual",),
)
def test_delayed_restart(trial: Trial) -> None:
    one, two, keeper = half_a_lease_of_work(trial)
    back_ms = trial.wall_ms(keeper) + trial.lease_ms
    crash = None if trial.control else trial.inject("crash-server", trial.servers[2], data=trial.data_after_crash)
    trial.advance(back_ms - trial.wall_ms(keeper))
    if crash:
        crash.heal()
    works_on_the_others(trial, one, two)


@scenario(
    "delayed-restart-defeated",
    kind="server",
    summary="As delayed-restart, but the delay of a lease is measured by a wall clock, and that is stepped.",
    source="Kleppmann 2016: the delay, too, relies on a reasonably accurate measurement of time",
    control="that clock is right",
    needs=MAJORITY,
    times=("virtual",),
)
def test_delayed_restart_defeated(trial: Trial) -> None:
    one, two, keeper = half_a_lease_of_work(trial)
    back_ms = trial.wall_ms(keeper) + trial.lease_ms
    crash = trial.inject("crash-server", trial.servers[2], data=trial.data_after_crash)
    if not trial.control:
        trial.inject("clock-jump", keeper, offset_ms=trial.lease_ms)
    trial.advance(back_ms - trial.wall_ms(keeper))
    crash.heal()
    works_on_the_others(trial, one, two)


def half_a_lease_of_work(trial: Trial) -> tuple[Client, Client, Client]:
    """Client 1 has the lock on nodes 1 to 3 and works for half a lease. The third client only supplies the clock by
    which node 3 is kept down."""
    one, two, keeper = trial.clients(3)
    one.start_increment(work_ms=trial.lease_ms // 2)
    with trial.fault("partition", one, servers="redis-[45]"):
        one.run_to("before-read")
    one.go_on()
    return one, two, keeper


def works_on_the_others(trial: Trial, one: Client, two: Client) -> None:
    """Client 2 reaches nodes 3 to 5 only, and also works for half a lease."""
    two.start_increment(work_ms=trial.lease_ms // 2)
    with trial.fault("partition", two, servers="redis-[12]"):
        two.run_for(trial.lease_ms / 10, "before-read")
    trial.finish(one, two)


@scenario(
    "extensions-cut",
    kind="network",
    summary="The work takes three leases; no extension arrives until another client has been in and out.",
    source="RedLock.net#48: an extension that finds another client's lock, and is retried",
    control="the holder is not cut off",
    virtual_lease_ms=LONG_LEASE_MS,
    needs=(*MAJORITY, "watchdog"),
    times=("virtual",),
)
def test_extensions_cut(trial: Trial) -> None:
    one, two = trial.clients(2)
    one.start_increment(work_ms=LONG_LEASES * trial.lease_ms)
    one.run_to("before-read")
    with trial.fault_unless_control("partition", one, servers=trial.nodes_pattern):
        one.go_on()
        two.start_increment()
        trial.outlast_lease(two)
    trial.finish(one, two)


@scenario(
    "late-answers",
    kind="network",
    summary="A client that tries once gets no answer from three of five nodes in time; all five have carried it out.",
    source="redis.io, Distributed Locks: unlock all instances, even those that it believes it was not able to lock",
    control="the answers arrive",
    virtual_lease_ms=LONG_LEASE_MS,
    needs=MAJORITY,
    times=("virtual",),
    stores=("open",),
)
def test_late_answers(trial: Trial) -> None:
    one, two = trial.clients(2)
    before = trial.residue.traces()
    if trial.control:
        one.acquire(wait_ms=0)
        one.release()
    else:
        with trial.rule("late-answers", f"{one.host}>redis-[345]", "to-client", "hold"):
            one.acquire(wait_ms=0)
        trial.settle()
    trial.residue.compare(before)
    trial.quiet(two)
