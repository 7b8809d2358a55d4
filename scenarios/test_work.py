"""Uses of locks: work that must be done once, and many clients that compete for it."""

from lockstorm import ANY_SERVICE, Client, Object, Trial, scenario

WORKERS = 4
DELIVERIES = 8  # at most
HERD = 10
PUBLISHERS, MESSAGES = 3, 5
LEASE_MS = 5_000


@scenario(
    "double-processing",
    kind="load",
    summary=f"One item of a queue reaches {WORKERS} workers at once; the lock's holder processes it unless it is done.",
    source="the Redis articles the project starts from: several workers process one job",
    control="the item reaches them one after the other",
    virtual_lease_ms=LEASE_MS,
    real_lease_ms=10_000,
    services=ANY_SERVICE,
    outbox=True,
)
def test_double_processing(trial: Trial) -> None:
    workers = trial.clients(WORKERS)
    for group in [[worker] for worker in workers] if trial.control else [workers]:
        inside: list[Client] = []
        for _ in range(DELIVERIES):
            for worker in group:
                worker.start_acquire(wait_ms=0)
            trial.finish(*group)
            inside = [worker for worker in group if worker.result().ok]
            if inside:  # the votes of a majority lock may split: the queue delivers the item again
                break
        undone = [worker for worker in inside if worker.read().value == 0]
        for worker in undone:
            worker.write(1)
        for worker in inside:
            worker.release()


@scenario(
    "outbox-crash",
    kind="client",
    summary=f"{PUBLISHERS} publishers dispatch the messages of an outbox; one dies between dispatch and mark.",
    source="Richardson, Transactional outbox: the relay might publish a message more than once",
    control="it dies after its mark",
    needs=("outbox",),
    stores=("open",),
    settings={"permits": MESSAGES},
    services=ANY_SERVICE,
    outbox=True,
)
def test_outbox_crash(trial: Trial) -> None:
    doomed, *others = trial.clients(PUBLISHERS)
    dispatch(doomed)
    for other in others:
        dispatch(other)  # claims another message: this one is skipped
    if trial.control:
        doomed.release()
    trial.kill(doomed)
    while others:
        for other in others:
            other.release()
        others = [other for other in others if dispatch(other)]


def dispatch(publisher: Client) -> bool:
    """Claims a message, if there is one, and dispatches it; the receiver keeps a set of the messages that arrived."""
    claimed = publisher.acquire(wait_ms=0)
    if claimed.ok:
        publisher.add(claimed.value, Object.SET)
    return claimed.ok


@scenario(
    "thundering-herd",
    kind="load",
    summary=f"One of {HERD} clients (--clients for another number) holds the lock, all others wait; each must get it.",
    source="the Redis articles the project starts from: 100 waiters, and the commands that one release costs",
    control="one client waits",
    virtual_lease_ms=LEASE_MS,
    needs=("lock",),
    times=("virtual",),
    options=("clients",),
)
def test_thundering_herd(trial: Trial) -> None:
    holder, *waiters = trial.clients(2 if trial.control else trial.settings.clients or HERD)
    holder.start_increment()
    holder.run_to("before-write")
    for waiter in waiters:
        waiter.start_increment()
    trial.advance(trial.lease_ms / 4)
    before = trial.commands()
    holder.go_on()
    trial.quiet(holder, *waiters)
    count = (trial.commands() - before) / len(waiters)
    waited = f"{len(waiters)} waiters" if len(waiters) > 1 else "1 waiter"
    trial.note(f"{waited}: {count:.1f} commands at the servers for each that is served")
