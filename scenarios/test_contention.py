"""Contention without any fault."""

from lockstorm import ANY_SERVICE, Trial, scenario

CLIENTS = 4
DURATION_MS = 2000
WORK_MS = 20
PART_OF_LEASE = 4  # work is no longer than this part: a lease that ends during the work says nothing about the lock


@scenario(
    "contention",
    kind="load",
    summary=f"Clients increment a counter under the lock for a while: {CLIENTS} of them for {DURATION_MS / 1000:g} s "
    "unless --clients and --duration say otherwise.",
    source="the workload of every lock benchmark; row 0 of the fault matrix",
    control="the clients work one after the other",
    real_lease_ms=10_000,
    options=("clients", "duration"),
    services=ANY_SERVICE,
)
def test_contention(trial: Trial) -> None:
    trial.begin_quiet()  # nothing is broken: waiters must notice at once that the lock is free
    wanted = trial.settings.clients or CLIENTS
    clients = trial.clients(min(wanted, CLIENTS) if trial.control else wanted)
    work_ms = min(WORK_MS, trial.lease_ms // PART_OF_LEASE) if trial.lock.lease else WORK_MS
    duration_ms = trial.settings.duration_ms or DURATION_MS
    turns = [[client] for client in clients] if trial.control else [clients]
    for turn in turns:
        for client in turn:
            client.start_workload(max(1, duration_ms // len(turns)), work_ms=work_ms, think_ms=WORK_MS)
        trial.finish(*turn)
