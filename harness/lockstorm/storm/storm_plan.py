"""The plan of a storm: which faults can strike the lock, the schedule, and the settings of the trial. Decision 0055."""

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from lockstorm.base.errors import UsageError, at_place
from lockstorm.base.option_fields import Option, check_range, check_ranges, option, option_words
from lockstorm.locks.lock_names import lock_words
from lockstorm.locks.waiting import noticed_ms, recovered_ms
from lockstorm.native.fault_names import choose_fault
from lockstorm.native.library import Varied
from lockstorm.native.library import faults as fault_table
from lockstorm.results.fault_entry import FaultEntry
from lockstorm.results.lock_entry import LockEntry
from lockstorm.scenario.play import check_settings, deployment_of, lease_on
from lockstorm.servers.deployment import Deployment
from lockstorm.storm.storm_faults import BY_NAME, StormContext, StormFault
from lockstorm.storm.storm_schedule import Schedule, draw_schedule, read_schedule
from lockstorm.trial.settings import (
    CLIENT_LIMIT,
    DURATION_LIMIT_MS,
    REPLY_LIMIT_MS,
    SEED_LIMIT,
    WAIT_FOR_EVER,
    TrialSettings,
    deployed,
    lease_late_in,
)

ALL = "all"
USUAL_CLIENTS = 4
USUAL_DURATION_MS = 10_000
DURATION_LEAST_MS = 10
USUAL_LEASE_MS = 1_000  # short, so that a storm has many leases
LONGEST_LEASES = 2  # the longest duration of a fault, unless the user chooses another
PART_OF_LEASE = 50  # a critical section takes one part before the storm; a pause, one on average
MOST_WORK, MOST_WORK_RENEWED = 0.9, 2.5  # leases: the longest work that is drawn (harness/client/drawn_work.h)
TRIALS_LIMIT = 100_000
RECORDS_LEAST = 1 << 16
RECORDS_MOST = 1 << 24  # 1 GiB
RECORDS_PER_TURN = 16
RECORDS_PER_EVENT = 64

# The quiet phase: how long a free lock may stay unclaimed in real time, and how long the clients' turns may take.
PATIENCE_LEASES = 4
POLL_LIMIT_MS = 2_000  # the longest sleep of a poller is 1.5 s
HAND_OVER_MS = 500  # mean time between two grants when every client polls
CLOCK_FAULTS = ("client-clock-jump", "clock-drift", "clock-jump", "failover")  # a new master's clock may differ, too
TURNS_IN_QUIET = 2  # of each client: the one that had begun, and the last one

SCENARIO = "storm"  # the scenario's name in the result and in the history


@dataclass(frozen=True)
class StormRequest:
    """What the user asked for; None means the default. `request`: the settings that all trials have."""

    request: TrialSettings
    faults: str | None = option(
        "--faults",
        "Faults to draw from; `lockstorm faults` lists them. Default: all that apply to the lock.",
        "names",
        metavar="FAULT",
        is_repeated=True,
    )
    trials: int = option(
        "--trials",
        "Number of storms; each uses the next seed. Default: 1.",
        "number",
        default=1,
        within=(1, TRIALS_LIMIT),
    )
    longest_ms: int | None = option(
        "--longest",
        "Longest duration of a fault, and of a gap. Default: two leases.",
        "duration",
        within=(1, DURATION_LIMIT_MS),
    )
    bound_ms: int | None = option(
        "--bound",
        "Recovery: how long a free lock may stay unclaimed. Default: as long as the lock's pattern promises, and one "
        "lease more for what the faults have lost.",
        "duration",
        within=(1, DURATION_LIMIT_MS),
    )
    work_ms: int | None = option(
        "--work",
        "Work of a client between its read and its write, and the mean pause between two of its turns. Default: "
        "drawn from the seed for each turn, from none to 0.9 of a lease (2.5 where the lock renews it).",
        "duration",
        within=(0, DURATION_LIMIT_MS),
    )
    wait_ms: int | None = option(
        "--wait",
        "Time that a client waits for the lock in one turn, or forever. Default: drawn from the seed for each client: "
        "half of them wait forever, the others up to three leases, or try once.",
        "duration",
        within=(WAIT_FOR_EVER, DURATION_LIMIT_MS),
    )
    schedule: Path | None = option("--schedule", "Play this schedule instead of drawing one.", "path")


@dataclass(frozen=True)
class StormPlan:
    """One storm, ready to be run."""

    settings: TrialSettings
    schedule: Schedule
    replay: str  # the command that repeats it
    require: str | None
    bound_ms: int  # in the quiet phase: how long a lock may stay free while a client waits for it
    promised_ms: int  # the same, before the first fault
    patience_ms: int  # by which the quiet phase is longer than the clients' turns
    work_ms: int  # how long a critical section takes, and the mean pause between two, where nothing is drawn
    most_work_ms: int  # how long a critical section may take
    wait_ms: int  # how long a client waits for the lock in one turn, where nothing is drawn; -1: until it is granted
    varied: Varied  # what is drawn for each client and turn

    @property
    def quiet_ms(self) -> int:
        """How long the quiet phase lasts at most: a client that still waits then has waited too long in any case."""
        turns_ms = TURNS_IN_QUIET * self.schedule.clients * (self.most_work_ms + HAND_OVER_MS)
        pause_ms = self.schedule.lease_ms if Varied.WORK in self.varied else 2 * self.work_ms
        # one bound more for the lease of a dead holder
        return 2 * max(self.bound_ms, self.patience_ms) + turns_ms + pause_ms


# --- planning ---


@cache
def known_faults() -> dict[str, FaultEntry]:
    """The faults that a storm can use: those of the table of faults that have an entry in STORM_FAULTS."""
    return {fault.name: fault for fault in fault_table() if fault.name in BY_NAME}


def fault_inapplicable_reason(entry: StormFault, lock: LockEntry, time: str) -> str:
    """Why a fault cannot be part of a storm over this lock in this kind of time; "" if it can."""
    if time not in known_faults()[entry.name].times:
        return f"{entry.name} has no effect in {time} time"
    if lock.service not in entry.services:
        servers = " or ".join("redis-servers" if service == "redis" else service for service in entry.services)
        return f"{entry.name} applies to {servers}, and {lock.name} lives on {lock.service}"
    if lock.service != "redis" and time == "real" and "settable_clocks" in entry.required_settings:
        return f"{entry.name} has no effect: in real time nothing sets the clock of {lock.service}"
    if lock.adapter and time == "real" and entry.clocks_only:
        return f"{entry.name} has no effect: in real time {lock.name} reads the machine's clock, which goes on"
    reason = entry.inapplicable_reason(lock)
    return f"{entry.name} has no effect: {reason}" if reason else ""


def choose_faults(names: str, lock: LockEntry, time: str) -> tuple[str, ...]:
    """The faults of these names, sorted; "all": those that apply to the lock."""
    known = known_faults()
    if names == ALL:
        return tuple(
            name
            for name in sorted(known)
            if lock.service not in BY_NAME[name].explicit_on
            and not fault_inapplicable_reason(BY_NAME[name], lock, time)
        )
    chosen = tuple(sorted({choose_fault(name.strip(), "trial", known) for name in names.split(",")}))
    for name in chosen:
        reason = fault_inapplicable_reason(BY_NAME[name], lock, time)
        if reason:
            raise UsageError(reason)
    _required_settings(chosen)
    return chosen


def _required_settings(faults: Iterable[str]) -> dict[str, Any]:
    """The fields of the trial's settings that these faults require."""
    required: dict[str, Any] = {}  # values of fields of TrialSettings, each of its own type
    required_by: dict[str, str] = {}
    for name in faults:
        for key, value in BY_NAME[name].required_settings.items():
            if required.setdefault(key, value) != value:
                raise UsageError(f"{required_by[key]} and {name} cannot be in one storm: each needs a {key} of its own")
            required_by[key] = name
    return required


def plan_storm(storm: StormRequest, seed: int | None = None) -> StormPlan:
    """Draws the schedule, or reads it, and checks all that can be checked before a process starts."""
    request = replace(storm.request, seed=storm.request.seed if seed is None else seed)
    lock, _, time = check_settings(request)
    if lock.once:
        raise UsageError(f"a storm asks for its lock again and again, and what {lock.name} gives out is done once")
    check_ranges(storm)
    check_range("--clients", request.clients, 1, CLIENT_LIMIT)
    Option("--duration", "", "duration", within=(DURATION_LEAST_MS, DURATION_LIMIT_MS)).check(request.duration_ms)
    check_range("--seed plus --trials", request.seed + storm.trials - 1, 0, SEED_LIMIT)
    if storm.schedule:
        schedule = read_schedule(storm.schedule)
        with at_place(storm.schedule):
            _check_schedule(schedule, lock, time, deployment_of(request))
    else:
        schedule = _draw(storm, request, lock, time)
    work_ms = schedule.lease_ms // PART_OF_LEASE if storm.work_ms is None else storm.work_ms
    settings = _settings(request, schedule, lock, work_ms)
    patience_ms = PATIENCE_LEASES * schedule.lease_ms + lease_late_in(settings, lock) + POLL_LIMIT_MS + work_ms
    most = MOST_WORK_RENEWED if lock.renews and not request.fixed_lease else MOST_WORK
    bounds = (storm.bound_ms, storm.bound_ms) if storm.bound_ms else _bounds_ms(lock, time, schedule, patience_ms)
    return StormPlan(
        settings,
        schedule,
        storm_replay_command(storm, schedule.seed),
        request.require,
        *bounds,
        patience_ms,
        work_ms,
        most_work_ms=round(schedule.lease_ms * most) if storm.work_ms is None else work_ms,
        wait_ms=WAIT_FOR_EVER if storm.wait_ms is None else storm.wait_ms,
        varied=_varied(storm, lock),
    )


def _varied(storm: StormRequest, lock: LockEntry) -> Varied:
    """What is drawn for each client and turn: all that the user has not fixed, and the lock offers."""
    return (
        (Varied.WORK if storm.work_ms is None else Varied.NOTHING)
        | (Varied.PATIENCE if storm.wait_ms is None else Varied.NOTHING)
        | (Varied.RENEWAL if lock.renewable else Varied.NOTHING)
        | (Varied.REENTRY if lock.reentrant else Varied.NOTHING)
    )


def _bounds_ms(lock: LockEntry, time: str, schedule: Schedule, patience_ms: int) -> tuple[int, int]:
    """How long a free lock may stay unclaimed after the faults, and before the first one."""
    if time == "real":
        return patience_ms, patience_ms
    recovered = recovered_ms(lock, schedule.lease_ms, REPLY_LIMIT_MS)
    if any(event.fault in CLOCK_FAULTS for event in schedule.events):  # a lease that began by a clock that was wrong
        recovered += schedule.longest_ms
    promised_ms = noticed_ms(lock)
    return min(recovered, patience_ms), patience_ms if promised_ms is None else promised_ms


def _draw(storm: StormRequest, request: TrialSettings, lock: LockEntry, time: str) -> Schedule:
    deployment = deployment_of(request)
    lease_ms = lease_on(deployment, lock, request.lease_ms, USUAL_LEASE_MS)
    longest_ms = storm.longest_ms or LONGEST_LEASES * lease_ms
    duration_ms = request.duration_ms or USUAL_DURATION_MS
    faults = choose_faults(storm.faults or ALL, lock, time)
    context = storm_context(lock, time, lease_ms, longest_ms, request.clients or USUAL_CLIENTS, faults, deployment)
    return draw_schedule(request.seed, faults, context, duration_ms)


def storm_context(
    lock: LockEntry,
    time: str,
    lease_ms: int,
    longest_ms: int,
    clients: int,
    faults: Sequence[str],
    deployment: Deployment | None = None,
) -> StormContext:
    """What a storm can strike: the names that a trial gives to its clients, servers and links."""
    replicas = max(
        lock.replicas, _required_settings(faults).get("replicas", 0), deployment.replicas if deployment else 0
    )
    nodes = deployment.on(lock.service, time, lock.nodes)[1] if deployment else lock.nodes
    servers = tuple(f"{lock.service}-{each + 1}" for each in range(nodes))
    links = tuple(f"{server}-replica-{each + 1}>{server}" for server in servers for each in range(replicas))
    names = tuple(f"client-{each + 1}" for each in range(clients))
    is_configured = deployment is not None and deployment.is_redis_configured
    return StormContext(lock, time, lease_ms, longest_ms, names, servers, links, is_configured)


def _check_schedule(schedule: Schedule, lock: LockEntry, time: str, deployment: Deployment | None) -> None:
    """Raises UsageError if a fault of a schedule does not apply to the trial, or has a target that is not there."""
    known = known_faults()
    used = sorted({event.fault for event in schedule.events})
    for name in (*schedule.faults, *used):
        choose_fault(name, "trial", known)
    context = storm_context(lock, time, schedule.lease_ms, schedule.longest_ms, schedule.clients, used, deployment)
    for name in used:
        if reason := fault_inapplicable_reason(BY_NAME[name], lock, time):
            raise UsageError(reason)
    for number, event in enumerate(schedule.events, 1):
        targets = BY_NAME[event.fault].targets(context)
        if event.target not in targets:
            raise UsageError(
                f"event {number}: {event.fault} cannot strike {event.target}; there are {', '.join(targets)}"
            )
        options = [each.name for each in known[event.fault].options]
        for name in event.options:
            if name not in options:
                there = ", ".join(options) or "none"
                raise UsageError(f'event {number}: {event.fault} has no option "{name}"; there are: {there}')
        if event.passage and not BY_NAME[event.fault].lands:
            raise UsageError(f"event {number}: {event.fault} cannot land at a checkpoint: passage must be 0")


def _settings(request: TrialSettings, schedule: Schedule, lock: LockEntry, work_ms: int) -> TrialSettings:
    _, store, time = check_settings(request)
    required = _required_settings(sorted({event.fault for event in schedule.events})) if lock.service == "redis" else {}
    required["replicas"] = max(lock.replicas, required.get("replicas", 0))
    usual = replace(
        request,
        lock=lock.name,
        scenario=SCENARIO,
        store=store,
        time=time,
        seed=schedule.seed,
        lease_ms=schedule.lease_ms,
        nodes=lock.nodes,
        permits=request.permits or 1,
        deployment=deployment_of(request),
        clients=schedule.clients,
        duration_ms=schedule.duration_ms,
        history_records=_history_records(schedule, work_ms),
    )
    return deployed(replace(usual, **required), lock.service)


def _history_records(schedule: Schedule, work_ms: int) -> int:
    """Records to reserve: for the turns of each client at full speed, and for the consequences of each fault."""
    records = schedule.clients * schedule.duration_ms // max(1, work_ms) * RECORDS_PER_TURN
    records += len(schedule.events) * RECORDS_PER_EVENT + RECORDS_LEAST
    if records > RECORDS_MOST:
        raise UsageError(
            f"a storm of {schedule.duration_ms / 1000:g} s with {schedule.clients} clients and a lease of "
            f"{schedule.lease_ms} ms may leave {records:,} records, more than {RECORDS_MOST:,}: make it shorter, the "
            "lease longer or the clients fewer, and take more --trials"
        )
    return records


def storm_replay_command(storm: StormRequest, seed: int) -> str:
    request = replace(storm.request, seed=seed)
    words = ["lockstorm", "storm", *lock_words(request.lock)]
    if storm.schedule:
        words += option_words(storm, "schedule")
    else:
        words += option_words(replace(storm, faults=storm.faults or ALL), "faults") + option_words(request, "seed")
    if request.time != "virtual":
        words += option_words(request, "time")
    words += option_words(request, "store", "lease_ms", "clients", "duration_ms")
    words += option_words(storm, "longest_ms", "bound_ms", "work_ms", "wait_ms")
    names = ("require", "permits", "server", "without", "config", "fixed_lease", "checks_validity")
    return shlex.join(words + option_words(request, *names))
