"""Measures the cost of each lock on real servers in real time, one trial per cell. docs/compare.md explains the numbers
and what not to conclude from them."""

import contextlib
import os
import signal
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from msgspec import structs

from lockstorm.base.errors import Inconclusive
from lockstorm.compare.benchmark import KEY, Pair, measure_pair
from lockstorm.compare.comparison import Comparison, CostCell, HandOverSpread, Reference, Spread
from lockstorm.compare.measure import (
    LockEvent,
    events_from,
    gaps_ns,
    grant_times,
    hand_overs,
    last_grant_ns,
    most_holders,
    overtakings,
    percentile,
    read_events,
    waiting_at_the_end,
    waits_ns,
)
from lockstorm.process.machine import machine
from lockstorm.results.lock_entry import LockEntry
from lockstorm.servers.redis_server import RedisServer
from lockstorm.trial.client import Client
from lockstorm.trial.client_groups import group_count, grouped
from lockstorm.trial.settings import CLIENT_LIMIT, RESOURCE, TrialSettings
from lockstorm.trial.stall_sentinel import play_unstalled
from lockstorm.trial.trial import Trial

LEASE_MS = 30_000  # longer than any measurement: nothing expires
PACED_CLIENTS = 4  # clients that share a rate, each with a resource of its own
SUSTAINED = 0.95  # of the requested rate
REFERENCE_REQUESTS, REFERENCE_RUNS = 1000, 3
RECORDS_PER_S, RECORDS_MOST = 400_000, 2_000_000
ARRIVAL_US = 2000  # for each of many clients, before the window begins: to connect, and to begin to wait
LIBRARY_ARRIVAL_US = 500_000  # of an adapter's clients: many libraries connect at their first call
STALLED = 0.5  # of the window, without a grant although a client waits


@dataclass(frozen=True)
class Load:
    """The load of a cell. Without a rate, the clients contend for one lock without a pause, and hold it for `work_ms`.
    With a rate, each client has a lock of its own, and together they request `rate` grants per second."""

    clients: int
    rate: int | None = None
    work_ms: int = 0


@dataclass(frozen=True)
class Counters:
    """The servers' own counters since their start, summed over all nodes."""

    requests: int
    bytes: int
    commands: dict[str, int]

    def minus(self, other: "Counters") -> "Counters":
        names = {*self.commands, *other.commands}
        left = {name: self.commands.get(name, 0) - other.commands.get(name, 0) for name in names}
        return Counters(self.requests - other.requests, self.bytes - other.bytes, {n: c for n, c in left.items() if c})


@dataclass(frozen=True)
class Observed:
    """A window of a trial, as observed by the history, the servers and the kernel."""

    events: list[LockEvent]
    window_ns: int
    end_ns: int
    counters: Counters
    client_cpu_ns: int
    server_cpu_ns: int
    full: bool


def loads(clients: tuple[int, ...], rates: tuple[int, ...], work_ms: int = 0) -> list[Load]:
    return [Load(each, work_ms=work_ms) for each in clients] + [Load(PACED_CLIENTS, rate) for rate in rates]


def check_loads(lock: LockEntry, loads: list[Load]) -> None:
    """Raises UsageError if the clients of a load cannot share processes, and would have to."""
    for load in loads:
        if load.clients > CLIENT_LIMIT:
            grouped(TrialSettings(lock.name), lock, load.clients, stored=False)


def compare_locks(
    locks: list[LockEntry], loads: list[Load], duration_ms: int, report: Callable[[str], object]
) -> Comparison:
    """Measures every lock under every load. Calls `report` before each cell with its description."""
    cells, pairs = [], []
    for lock in locks:
        for load in loads:
            report(f"{lock.name}, {f'{load.rate:,} grants/s' if load.rate else f'clients: {load.clients}'}")
            cell, pair = measure_cell(lock, load, duration_ms)
            cells.append(cell)
            pairs += [pair] if pair else []
    return Comparison(cells, machine(), _reference(pairs), duration_ms)


def measure_cell(
    lock: LockEntry, load: Load, duration_ms: int, *, share_processes: bool | None = None
) -> tuple[CostCell, Pair | None]:
    """One cell, and the time that redis-benchmark needed on the same server right before (None: not measured).
    `share_processes`: whether clients share a few processes; None: if there are many."""
    shared = load.clients > CLIENT_LIMIT if share_processes is None else share_processes
    processes = group_count(load.clients) if shared else load.clients
    cell = CostCell(lock=lock.name, clients=load.clients, rate=load.rate, work_ms=load.work_ms, processes=processes)
    pair: Pair | None = None
    records = min(RECORDS_MOST, max(1 << 16, RECORDS_PER_S * duration_ms // 1000))
    settings = TrialSettings(
        lock.name,
        "compare",
        time="real",
        lease_ms=LEASE_MS,
        nodes=lock.nodes,
        history_records=records,
        direct=True,
    )
    if shared:
        settings = grouped(settings, lock, load.clients, stored=False)

    arrival_us = load.clients * ARRIVAL_US if shared else LIBRARY_ARRIVAL_US if lock.adapter else 0

    def observe_once(_: int) -> Observed:
        nonlocal pair
        with Trial(settings) as trial:
            pair = _reference_pair(trial) if load.rate is None else None
            clients = _clients(trial, load)
            observed = observe(trial, clients, duration_ms, arrival_us=arrival_us)
            trial.must_not_stall()
            return observed

    try:
        observed, cell.played_again = play_unstalled(observe_once)
    except Inconclusive as reason:
        cell.reason, cell.played_again = str(reason), reason.played_again
        return cell, pair
    _fill(cell, load, observed)
    if cell.grants_per_s and pair:
        cell.reference_us = round(pair.us, 1)
        cell.cost_ratio = round(1e6 / cell.grants_per_s / pair.us, 3)
    return cell, pair


def observe(trial: Trial, clients: list[Client], duration_ms: int, arrival_us: int = 0) -> Observed:
    """Runs the clients' pending steps for arrival_us and then for `duration_ms`, the window; stops the clients with
    SIGSTOP, and reads the counters. Subtracts what reading the counters itself costs the servers."""
    counters_of(trial.servers)  # the first reply is shorter than the next one
    idle = counters_of(trial.servers)
    before = counters_of(trial.servers)
    reading = before.minus(idle)
    if arrival_us:
        trial.run(clients, until_ns=trial.mono_ns + arrival_us * 1000)
        _signal(clients, signal.SIGSTOP)  # nothing happens between the counters and the window's begin
        before = counters_of(trial.servers)
    client_ns, server_ns = _cpu_ns(clients), _cpu_ns(trial.servers)
    begun_ns = trial.mono_ns
    if arrival_us:
        _signal(clients, signal.SIGCONT)
    trial.run(clients, until_ns=begun_ns + duration_ms * 1_000_000)
    _signal(clients, signal.SIGSTOP)
    end_ns = trial.mono_ns
    client_ns, server_ns = _cpu_ns(clients) - client_ns, _cpu_ns(trial.servers) - server_ns
    counters = counters_of(trial.servers).minus(before).minus(reading)
    events, full = read_events(trial.recorder.path)
    if full and events:
        end_ns = events[-1].mono_ns
    return Observed(events_from(events, begun_ns), end_ns - begun_ns, end_ns, counters, client_ns, server_ns, full)


def _signal(clients: list[Client], number: int) -> None:
    for pid in with_descendants({client.pid for client in clients}):
        os.kill(pid, number)


def with_descendants(pids: set[int]) -> set[int]:
    """These processes, and those that they have started: the program of an adapter belongs to its client."""
    found: set[int] = set()
    ahead = list(pids)
    while ahead:
        pid = ahead.pop()
        found.add(pid)
        with contextlib.suppress(OSError):  # it has just ended
            for task in os.listdir(f"/proc/{pid}/task"):
                ahead += map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split())
    return found


def counters_of(servers: list[RedisServer]) -> Counters:
    """Requests are the servers' reads from connections: commands that a client sends together count as one. Commands
    include those that a script calls."""
    requests = volume = 0
    commands: dict[str, int] = {}
    for server in servers:
        info = server.link.info("all")
        requests += info["total_reads_processed"]
        volume += info["total_net_input_bytes"] + info["total_net_output_bytes"]
        for key, counted in info.items():
            if key.startswith("cmdstat_"):
                name = key.removeprefix("cmdstat_")
                commands[name] = commands.get(name, 0) + counted["calls"]
    return Counters(requests, volume, commands)


def _clients(trial: Trial, load: Load) -> list[Client]:
    """Started clients, each with a pending step that begins when the trial runs."""
    if load.rate is None:
        clients = trial.clients(load.clients)
        for client in clients:
            client.start_hold(work_ms=load.work_ms)
        return clients
    clients = [trial.clients(1, b"%s-%d" % (RESOURCE, each + 1))[0] for each in range(load.clients)]
    for client in clients:
        client.start_hold(pace_us=load.clients * 1_000_000 // load.rate)
    return clients


def _cpu_ns(owners: list[Client] | list[RedisServer]) -> int:
    """User and system time of processes, including threads that have ended (the clock of clock_getcpuclockid), and of
    the programs that clients have started."""
    pids = {owner.pid if isinstance(owner, Client) else owner.process.pid for owner in owners}
    pids = with_descendants(pids)
    return sum(time.clock_gettime_ns((~pid << 3) | 2) for pid in pids)


def _reference_pair(trial: Trial) -> Pair | None:
    """The median of REFERENCE_RUNS runs; None if redis-benchmark is not installed or fails."""
    try:
        pairs = [measure_pair(trial.server, REFERENCE_REQUESTS) for _ in range(REFERENCE_RUNS)]
    except Inconclusive:
        return None
    return Pair(statistics.median(p.set_us for p in pairs), statistics.median(p.evalsha_us for p in pairs))


def _fill(cell: CostCell, load: Load, observed: Observed) -> None:
    granted = grant_times(observed.events)
    cell.grants = granted
    cell.window_s = round(observed.window_ns / 1e9, 4)
    if granted == 0 or observed.window_ns <= 0:
        cell.reason = f"nothing was granted in {observed.window_ns / 1e9:.1f} s"
        return
    cell.measured = True
    cell.grants_per_s = round(granted * 1e9 / observed.window_ns, 1)
    cell.requests_per_grant = round(observed.counters.requests / granted, 3)
    cell.commands_per_grant = round(sum(observed.counters.commands.values()) / granted, 3)
    cell.bytes_per_grant = round(max(0, observed.counters.bytes) / granted, 1)
    cell.commands = {name: round(calls / granted, 3) for name, calls in sorted(observed.counters.commands.items())}
    cell.client_cpu_us_per_grant = round(observed.client_cpu_ns / granted / 1000, 2)
    cell.server_cpu_us_per_grant = round(observed.server_cpu_ns / granted / 1000, 2)
    cell.wait_us = _spread(waits_ns(observed.events))
    if load.rate is not None:
        cell.sustained = cell.grants_per_s >= SUSTAINED * load.rate
    elif load.clients > 1:
        _fill_contended(cell, observed, granted)
    cell.reason = "; ".join(_remarks(cell, observed))


def _fill_contended(cell: CostCell, observed: Observed, granted: int) -> None:
    cell.holders_most = most_holders(observed.events)
    passed = overtakings(observed.events)
    cell.overtakings_per_grant = round(sum(passed) / granted, 3)
    cell.overtaken_most = max(passed)
    if cell.holders_most > 1:
        return  # clients did not have to wait for a release
    took = hand_overs(observed.events)
    cell.hand_over_us = HandOverSpread(**structs.asdict(_spread(took.took_ns)), unserved=took.unserved)
    cell.next_grant_us = _spread(gaps_ns(observed.events))


def _remarks(cell: CostCell, observed: Observed) -> Iterator[str]:
    """Remarks that a reader needs to interpret the numbers of a cell."""
    if cell.holders_most and cell.holders_most > 1:
        yield f"up to {cell.holders_most} held it at once: no hand-over to measure"
    waiting, last_ns = waiting_at_the_end(observed.events), last_grant_ns(observed.events) or observed.end_ns
    if waiting and observed.end_ns - last_ns > STALLED * observed.window_ns:
        yield f"no grant in the last {(observed.end_ns - last_ns) / 1e9:.2f} s although {waiting} waited"
    if observed.full:
        yield f"the history was full after {observed.window_ns / 1e9:.2f} s"


def _spread(took_ns: list[int]) -> Spread:
    p50, p99 = (ns if ns is None else round(ns / 1000, 1) for ns in map(partial(percentile, took_ns), (50, 99)))
    return Spread(p50, p99, len(took_ns))


def _reference(pairs: list[Pair]) -> Reference:
    def median(times_us: list[float]) -> float | None:
        return round(statistics.median(times_us), 2) if times_us else None

    return Reference(
        commands=[f"SET {KEY} … NX PX …", f"EVALSHA … 1 {KEY} …"],
        connections=1,
        runs=len(pairs),
        set_us=median([pair.set_us for pair in pairs]),
        evalsha_us=median([pair.evalsha_us for pair in pairs]),
        us=median([pair.us for pair in pairs]),
        reason="" if pairs else "redis-benchmark is not installed (package redis-tools) or failed",
    )
