"""A storm: clients work under a lock while a schedule of faults passes over them; then everything is healed, and in the
quiet that follows everybody has to be served once more.

    lockstorm storm --lock set-nx-px --faults pause-client,partition --seed 7
"""

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from harness.driver.errors import Inconclusive, UsageError
from harness.driver.library import faults as fault_table
from harness.driver.lock_names import lock_words
from harness.driver.play import (
    DURATION_LIMIT_MS,
    SEED_LIMIT,
    Wish,
    check_range,
    checked,
    choose,
    inconclusive,
    result_of,
)
from harness.driver.schedule import Schedule, draw_schedule, read_schedule
from harness.driver.services import lease_late_ms
from harness.driver.storm_faults import BY_NAME, Ground, Lock, StormFault
from harness.driver.trial import Trial, TrialSettings
from harness.driver.weather import Course, Weather, count_faults

ALL = "all"
USUAL_CLIENTS = 4
USUAL_DURATION_MS = 10_000
DURATION_LEAST_MS = 10
USUAL_LEASE_MS = 1_000  # short, so that a storm has many leases
LONGEST_LEASES = 2  # a fault lasts so many leases at most, unless the user says otherwise
PART_OF_LEASE = 50
TRIALS_LIMIT = 100_000
RECORDS_LEAST = 1 << 16
RECORDS_MOST = 1 << 24  # 1 GiB
RECORDS_PER_TURN = 16
RECORDS_PER_EVENT = 64

# The quiet phase: how long a free lock may go unnoticed, and how long everybody's turns may take.
PATIENCE_LEASES = 4
NAP_MS = 2_000  # the longest sleep of a poller is 1.5 s
HAND_OVER_MS = 500  # of a turn in the mean, when everybody polls
TURNS_IN_QUIET = 2  # of each client: the one that it was at, and the last

SCENARIO = "storm"  # stands where the name of a scenario would


@dataclass(frozen=True)
class StormWish:
    """What the user asked for; None: what is usual. `wish` has what a storm has in common with other trials."""

    wish: Wish
    faults: str | None = None
    longest_ms: int | None = None
    trials: int = 1
    schedule: Path | None = None
    bound_ms: int | None = None


@dataclass(frozen=True)
class Plan:
    """One storm, ready to be played."""

    settings: TrialSettings
    schedule: Schedule
    again: str  # the command that repeats it
    require: str | None
    bound_ms: int  # in the quiet phase, how long a lock that somebody wants may be free

    @property
    def work_ms(self) -> int:
        return work_ms(self.schedule.lease_ms)

    @property
    def quiet_ms(self) -> int:
        """After so long whoever still waits has waited too long, whatever came before."""
        turns_ms = TURNS_IN_QUIET * self.schedule.clients * (self.work_ms + HAND_OVER_MS)
        return 2 * self.bound_ms + turns_ms  # the first may be that of a dead holder


# --- planning ---


def work_ms(lease_ms: int) -> int:
    """How long a critical section takes, and a client's time between two of them in the mean."""
    return max(1, lease_ms // PART_OF_LEASE)


@cache
def known_faults() -> dict[str, dict[str, Any]]:
    """The faults that a storm can use: in the table of faults, and with an entry here."""
    return {fault["name"]: fault for fault in fault_table() if fault["name"] in BY_NAME}


def why_unfit(entry: StormFault, lock: Lock, time: str) -> str:
    """Why a fault cannot be in a storm over this lock in this kind of time; empty: it can."""
    if time not in known_faults()[entry.name]["times"]:
        return f"{entry.name} cannot bite in {time} time"
    if lock["service"] not in entry.services:
        return f"{entry.name} happens to {told_services(entry)}, and {lock['name']} lives on {lock['service']}"
    if lock["service"] != "redis" and time == "real" and "settable_clocks" in entry.needs:
        return f"{entry.name} cannot bite: in real time nothing sets the clock of {lock['service']}"
    reason = entry.unfit(lock)
    return f"{entry.name} cannot bite: {reason}" if reason else ""


def told_services(entry: StormFault) -> str:
    return " or ".join("redis-servers" if service == "redis" else service for service in entry.services)


def choose_faults(names: str, lock: Lock, time: str) -> tuple[str, ...]:
    """The faults that are meant; "all": those that fit."""
    known = known_faults()
    if names == ALL:
        return tuple(
            name
            for name in sorted(known)
            if lock["service"] not in BY_NAME[name].apart_on and not why_unfit(BY_NAME[name], lock, time)
        )
    chosen = tuple(sorted({choose("fault", name.strip(), sorted(known)) for name in names.split(",")}))
    for name in chosen:
        reason = why_unfit(BY_NAME[name], lock, time)
        if reason:
            raise UsageError(reason)
    _needs_of(chosen)
    return chosen


def _needs_of(faults: Iterable[str]) -> dict[str, Any]:
    """Fields of the trial's settings that these faults need."""
    needs: dict[str, Any] = {}
    by: dict[str, str] = {}
    for name in faults:
        for key, value in BY_NAME[name].needs.items():
            if needs.setdefault(key, value) != value:
                raise UsageError(f"{by[key]} and {name} cannot be in one storm: each needs a {key} of its own")
            by[key] = name
    return needs


def plan(storm: StormWish, seed: int | None = None) -> Plan:
    """Checks everything that can be checked before anything is started, and draws the schedule or reads it."""
    wish = replace(storm.wish, seed=storm.wish.seed if seed is None else seed)
    lock, _, time = checked(wish)
    if lock["once"]:
        raise UsageError(f"a storm asks for its lock again and again, and what {lock['name']} gives out is done once")
    check_range("--trials", storm.trials, 1, TRIALS_LIMIT)
    check_range("--duration", wish.duration_ms, DURATION_LEAST_MS, DURATION_LIMIT_MS)
    check_range("--longest", storm.longest_ms, 1, DURATION_LIMIT_MS)
    check_range("--bound", storm.bound_ms, 1, DURATION_LIMIT_MS)
    check_range("--seed plus --trials", wish.seed + storm.trials - 1, 0, SEED_LIMIT)
    if storm.schedule:
        schedule = read_schedule(storm.schedule)
        try:
            _check_schedule(schedule, lock, time)
        except UsageError as error:
            raise UsageError(f"{storm.schedule}: {error}") from None
    else:
        schedule = _draw(storm, wish, lock, time)
    settings = _settings(wish, schedule, lock)
    bound_ms = storm.bound_ms or usual_bound_ms(lock, schedule.lease_ms)
    return Plan(settings, schedule, replay_command(storm, schedule.seed), wish.require, bound_ms)


def usual_bound_ms(lock: Lock, lease_ms: int) -> int:
    return PATIENCE_LEASES * lease_ms + lease_late_ms(lock) + NAP_MS + work_ms(lease_ms)


def _draw(storm: StormWish, wish: Wish, lock: Lock, time: str) -> Schedule:
    lease_ms = wish.lease_ms or USUAL_LEASE_MS
    longest_ms = storm.longest_ms or LONGEST_LEASES * lease_ms
    duration_ms = wish.duration_ms or USUAL_DURATION_MS
    faults = choose_faults(storm.faults or ALL, lock, time)
    ground = ground_of(lock, time, lease_ms, longest_ms, wish.clients or USUAL_CLIENTS, faults)
    return draw_schedule(wish.seed, faults, ground, duration_ms)


def ground_of(lock: Lock, time: str, lease_ms: int, longest_ms: int, clients: int, faults: Sequence[str]) -> Ground:
    """Whom a storm finds: the names that a trial gives to its clients, servers and links."""
    replicas = max(lock["replicas"], _needs_of(faults).get("replicas", 0))
    servers = tuple(f"{lock['service']}-{each + 1}" for each in range(lock["nodes"]))
    links = tuple(f"{server}-replica-{each + 1}>{server}" for server in servers for each in range(replicas))
    names = tuple(f"client-{each + 1}" for each in range(clients))
    return Ground(lock, time, lease_ms, longest_ms, names, servers, links)


def _check_schedule(schedule: Schedule, lock: Lock, time: str) -> None:
    """Every fault of a schedule that was read fits the trial, and strikes somebody who is there."""
    known = known_faults()
    used = sorted({event.fault for event in schedule.events})
    for name in (*schedule.faults, *used):
        choose("fault", name, sorted(known))
    ground = ground_of(lock, time, schedule.lease_ms, schedule.longest_ms, schedule.clients, used)
    for name in used:
        if why_unfit(BY_NAME[name], lock, time):
            raise UsageError(why_unfit(BY_NAME[name], lock, time))
    for number, event in enumerate(schedule.events, 1):
        targets = BY_NAME[event.fault].targets(ground)
        if event.target not in targets:
            raise UsageError(
                f"event {number}: {event.fault} cannot strike {event.target}; there are {', '.join(targets)}"
            )
        options = [option["name"] for option in known[event.fault]["options"]]
        for option in event.options:
            if option not in options:
                there = ", ".join(options) or "none"
                raise UsageError(f'event {number}: {event.fault} has no option "{option}"; there are: {there}')
        if event.passage and not BY_NAME[event.fault].lands:
            raise UsageError(f"event {number}: {event.fault} cannot land at a checkpoint: passage must be 0")


def _settings(wish: Wish, schedule: Schedule, lock: Lock) -> TrialSettings:
    _, store, time = checked(wish)
    needs = _needs_of(sorted({event.fault for event in schedule.events})) if lock["service"] == "redis" else {}
    needs["replicas"] = max(lock["replicas"], needs.get("replicas", 0))
    usual = TrialSettings(
        lock=lock["name"],
        scenario=SCENARIO,
        store=store,
        time=time,
        seed=schedule.seed,
        lease_ms=schedule.lease_ms,
        nodes=lock["nodes"],
        permits=wish.permits or 1,
        fixed_lease=wish.fixed_lease,
        clients=schedule.clients,
        duration_ms=schedule.duration_ms,
        history_records=_room(schedule),
    )
    return replace(usual, **needs)


def _room(schedule: Schedule) -> int:
    """Records to reserve: for a turn of each client as fast as its pauses allow, and for what each fault may cause."""
    records = schedule.clients * schedule.duration_ms // work_ms(schedule.lease_ms) * RECORDS_PER_TURN
    records += len(schedule.events) * RECORDS_PER_EVENT + RECORDS_LEAST
    if records > RECORDS_MOST:
        raise UsageError(
            f"a storm of {schedule.duration_ms / 1000:g} s with {schedule.clients} clients and a lease of "
            f"{schedule.lease_ms} ms may leave {records:,} records, more than {RECORDS_MOST:,}: make it shorter, the "
            "lease longer or the clients fewer, and take more --trials"
        )
    return records


def replay_command(storm: StormWish, seed: int) -> str:
    """The command that repeats one storm."""
    wish = storm.wish
    words = ["lockstorm", "storm", *lock_words(wish.lock)]
    if storm.schedule:
        words += ["--schedule", str(storm.schedule)]
    else:
        words += ["--faults", storm.faults or ALL, "--seed", str(seed)]
    if wish.time != "virtual":
        words += ["--time", wish.time]
    options = {
        "--store": wish.store,
        "--lease-ms": wish.lease_ms,
        "--clients": wish.clients,
        "--duration": f"{wish.duration_ms}ms" if wish.duration_ms else None,
        "--longest": f"{storm.longest_ms}ms" if storm.longest_ms else None,
        "--bound": f"{storm.bound_ms}ms" if storm.bound_ms else None,
        "--require": wish.require,
        "--permits": wish.permits,
    }
    for option, value in options.items():
        if value is not None:
            words += [option, str(value)]
    return shlex.join(words + (["--fixed-lease"] if wish.fixed_lease else []))


# --- results ---


def blow(
    plan: Plan,
    *,
    save: Path | None = None,
    story_to: list[dict[str, Any]] | None = None,
    save_logs: Path | None = None,
    watch: Callable[[Trial], None] | None = None,
) -> dict[str, Any]:
    """Plays one storm and returns its result as `storm --json` prints it. `story_to` receives the history's records,
    `save_logs` what the trial's processes wrote; `watch` is called now and then while it blows.

    A storm that could not be played to its end is a result too: inconclusive, with the reason.
    """
    said = {"faults_meant": len(plan.schedule.events), "bound_ms": plan.bound_ms}
    settings = replace(plan.settings, parameters={**plan.settings.parameters, **said})
    weather: Weather | None = None
    versions: dict[str, str] = {}
    elapsed: dict[str, float] = {}
    try:
        with Trial(settings) as trial, trial.logs_kept(save_logs):
            weather = Weather(trial, plan, watch)
            weather.warm_up()
            weather.blow()
            weather.calm()
            verdict = trial.judge(plan.require)
            if story_to is not None:
                story_to += trial.story()
            if save:
                trial.save(save)
            versions |= trial.versions()
            elapsed = trial.elapsed_ms
    except Inconclusive as reason:
        verdict = inconclusive(str(reason))
    result = result_of(settings, verdict, versions, elapsed, plan.again)
    course = weather.course if weather else [Course(event) for event in plan.schedule.events]
    result["storm"] = {
        "duration_ms": plan.schedule.duration_ms,
        "trials": 1,
        "clients": plan.schedule.clients,
        "faults": count_faults(course),
        "schedule": plan.schedule.as_json(),
        "course": [each.as_json() for each in course],
    }
    return result
