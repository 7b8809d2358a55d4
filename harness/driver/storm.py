"""A storm: clients work under a lock while a schedule of faults passes over them; then everything is healed, and in the
quiet that follows everybody has to be served once more.

    lockstorm storm --lock set-nx-px --faults pause-client,partition --seed 7
"""

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

from harness.driver.errors import Inconclusive, UsageError
from harness.driver.fault import Fault, Target
from harness.driver.library import Kind, StrandState
from harness.driver.library import faults as fault_table
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
from harness.driver.schedule import Event, Schedule, draw_schedule, read_schedule
from harness.driver.storm_faults import ALL_CLIENTS, BY_NAME, Ground, Lock, StormFault
from harness.driver.trial import ANYWHERE, Client, Trial, TrialSettings

ALL = "all"
NS_PER_MS = 1_000_000
USUAL_CLIENTS = 4
USUAL_DURATION_MS = 10_000
USUAL_LEASE_MS = 1_000  # short, so that a storm has many leases
LONGEST_LEASES = 2  # a fault lasts so many leases at most, unless the user says otherwise
PART_OF_LEASE = 50  # a critical section, and the mean time between two of a client
TRIALS_LIMIT = 100_000
RECORDS_LEAST = 1 << 16
RECORDS_MOST = 1 << 24  # 1 GiB
RECORDS_PER_TURN = 16
RECORDS_PER_EVENT = 64

# The quiet phase: a free lock may go unnoticed for so long, and a hand-over takes so long at most.
PATIENCE_LEASES = 4
HAND_OVER_MS = 1_000  # the longest sleep of a poller, or the limit for an answer that does not come
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


@dataclass(frozen=True)
class Plan:
    """One storm, ready to be played."""

    settings: TrialSettings
    schedule: Schedule
    again: str  # the command that repeats it
    require: str | None

    @property
    def work_ms(self) -> int:
        return max(1, self.schedule.lease_ms // PART_OF_LEASE)

    @property
    def bound_ms(self) -> int:
        """How long a lock that somebody wants may be free."""
        return PATIENCE_LEASES * self.schedule.lease_ms + self.turns_ms

    @property
    def turns_ms(self) -> int:
        """What the turns of all clients in the quiet phase take, one after the other."""
        return TURNS_IN_QUIET * self.schedule.clients * (self.work_ms + HAND_OVER_MS)

    @property
    def quiet_ms(self) -> int:
        """After so long whoever still waits has waited too long, even for a lock whose holder had died."""
        return self.bound_ms + PATIENCE_LEASES * self.schedule.lease_ms + self.turns_ms


@dataclass
class Course:
    """What became of an event."""

    event: Event
    state: str = "waits"  # active, proved, not proved, skipped
    reason: str = ""
    injected_ms: float | None = None
    healed_ms: float | None = None
    fault: Fault | None = None
    prepared: bool = False

    def as_json(self) -> dict[str, Any]:
        said: dict[str, Any] = {"at_ms": self.event.at_ms, "fault": self.event.fault, "target": self.event.target}
        said |= {"state": self.state, "reason": self.reason}
        said |= {"injected_ms": self.injected_ms, "healed_ms": self.healed_ms}
        return {key: value for key, value in said.items() if value not in (None, "")}


# --- planning ---


def known_faults() -> dict[str, dict[str, Any]]:
    """The faults that a storm can use: in the table of faults, and with an entry here."""
    return {fault["name"]: fault for fault in fault_table() if fault["name"] in BY_NAME}


def why_unfit(entry: StormFault, lock: Lock, time: str) -> str:
    """Why a fault cannot be in a storm over this lock in this kind of time; empty: it can."""
    if time not in known_faults()[entry.name]["times"]:
        return f"{entry.name} cannot bite in {time} time"
    reason = entry.unfit(lock)
    return f"{entry.name} cannot bite: {reason}" if reason else ""


def choose_faults(names: str, lock: Lock, time: str) -> tuple[str, ...]:
    """The faults that are meant; "all": those that fit."""
    known = known_faults()
    if names == ALL:
        return tuple(
            name for name in sorted(known) if not (BY_NAME[name].apart or why_unfit(BY_NAME[name], lock, time))
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
    check_range("--trials", storm.trials, 1, TRIALS_LIMIT)
    check_range("--longest", storm.longest_ms, 1, DURATION_LIMIT_MS)
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
    return Plan(settings, schedule, replay_command(storm, schedule.seed), wish.require)


def _draw(storm: StormWish, wish: Wish, lock: Lock, time: str) -> Schedule:
    lease_ms = wish.lease_ms or USUAL_LEASE_MS
    longest_ms = storm.longest_ms or LONGEST_LEASES * lease_ms
    duration_ms = wish.duration_ms or USUAL_DURATION_MS
    faults = choose_faults(storm.faults or ALL, lock, time)
    ground = ground_of(lock, time, lease_ms, longest_ms, wish.clients or USUAL_CLIENTS, faults)
    schedule = draw_schedule(wish.seed, faults, ground, duration_ms)
    if not schedule.events:
        raise UsageError(f"--duration {duration_ms}ms: no fault falls into so short a storm, it takes a lease at least")
    return schedule


def ground_of(lock: Lock, time: str, lease_ms: int, longest_ms: int, clients: int, faults: Sequence[str]) -> Ground:
    """Whom a storm finds: the names that a trial gives to its clients, servers and links."""
    replicas = max(lock["replicas"], _needs_of(faults).get("replicas", 0))
    servers = tuple(f"redis-{each + 1}" for each in range(lock["nodes"]))
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
    needs = _needs_of(sorted({event.fault for event in schedule.events}))
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
    pace_ms = max(1, schedule.lease_ms // PART_OF_LEASE)
    records = schedule.clients * schedule.duration_ms // pace_ms * RECORDS_PER_TURN
    records += len(schedule.events) * RECORDS_PER_EVENT + RECORDS_LEAST
    if records > RECORDS_MOST:
        raise UsageError(
            f"a storm of {schedule.duration_ms / 1000:g} s with {schedule.clients} clients and a lease of "
            f"{schedule.lease_ms} ms may leave {records:,} records, more than {RECORDS_MOST:,}: make it shorter, the lease "
            "longer or the clients fewer, and take more --trials"
        )
    return records


def replay_command(storm: StormWish, seed: int) -> str:
    """The command that repeats one storm."""
    wish = storm.wish
    words = ["lockstorm", "storm", "--lock", wish.lock]
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
        "--require": wish.require,
        "--permits": wish.permits,
    }
    for option, value in options.items():
        if value is not None:
            words += [option, str(value)]
    return shlex.join(words + (["--fixed-lease"] if wish.fixed_lease else []))


# --- playing ---


@dataclass(order=True)
class _Due:
    at_ns: int
    order: int
    act: Callable[[], None] = field(compare=False)


class Weather:
    """The schedule at work in one trial."""

    def __init__(self, trial: Trial, plan: Plan) -> None:
        self.trial, self.plan = trial, plan
        self.course = [Course(event) for event in plan.schedule.events]
        self.clients = trial.clients(plan.schedule.clients)
        self._began_ns = trial.mono_ns
        self._agenda: list[_Due] = []
        self._armed: dict[str, Course] = {}  # target -> what lands at its next checkpoint
        self._active: list[Course] = []
        self._dues = 0

    def blow(self) -> None:
        """The storm, from its first fault to its end."""
        self.trial.phase("storm")
        self._began_ns = self.trial.mono_ns
        for course in self.course:
            self._at(course.event.at_ms, lambda course=course: self._strike(course))  # type: ignore[misc]
        self._keep_busy()
        end_ns = self._began_ns + self.plan.schedule.duration_ms * NS_PER_MS
        while self.trial.mono_ns < end_ns:
            next_ns = min(self._agenda[0].at_ns, end_ns) if self._agenda else end_ns
            self.trial.run([self._client(name) for name in self._armed], next_ns, first=True)
            self._strike_the_held()
            while self._agenda and self._agenda[0].at_ns <= self.trial.mono_ns < end_ns:
                heappop(self._agenda).act()

    def calm(self) -> None:
        """Everything is healed, what was injected last first; everybody ends the turn it is at and makes one more."""
        for course in list(self._armed.values()):
            self._disarm(course, "the storm was over before its client came to the checkpoint")
        while self._active:
            self._end(self._active[-1])
        for course in self.course:
            if course.state == "waits":
                course.state, course.reason = "skipped", "the storm was over before"
        self.trial.heal()
        self.trial.phase("quiet")
        self._keep_busy()
        for client in self.clients:
            client.wind_down()
        self.trial.run(self.clients, self.trial.mono_ns + self.plan.quiet_ms * NS_PER_MS)

    # --- one fault ---

    def _strike(self, course: Course) -> None:
        """Its time has come: it begins, waits for its client's checkpoint, or finds somebody in its way."""
        event = course.event
        if not event.passage:
            self._begin(course)
        elif event.target in self._armed:
            course.state, course.reason = "skipped", "another fault waits for the same client's checkpoint"
        else:
            self._armed[event.target] = course
            self._client(event.target).hold_at(ANYWHERE, event.passage)

    def _strike_the_held(self) -> None:
        """Faults whose client has come to its checkpoint begin there."""
        for name, course in list(self._armed.items()):
            client = self._client(name)
            if client.state is StrandState.GONE:
                self._disarm(course, f"{name} had ended")
            elif client.state is StrandState.HELD:
                del self._armed[name]
                trial = self.trial
                trial.record(Kind.CHECKPOINT, name=trial.text(client.held_at), value=client.identity)
                self._begin(course)
                client.go_on()

    def _disarm(self, course: Course, reason: str) -> None:
        del self._armed[course.event.target]
        self._client(course.event.target).hold_at("", 0)
        course.state, course.reason = "skipped", reason

    def _begin(self, course: Course) -> None:
        event, entry = course.event, BY_NAME[course.event.fault]
        course.reason = self._in_the_way(course)
        if course.reason:
            course.state = "skipped"
            return
        course.injected_ms = self._now_ms()
        options = {name.replace("-", "_"): value for name, value in event.options.items()}
        course.fault = Fault(self.trial, event.fault, self._target(event.target), **options)
        took = course.fault.attempt()
        course.reason = course.fault.report
        if not took:
            self._conclude(course, proved=False)
            return
        course.state = "active"
        self._active.append(course)
        if entry.lasts:
            self._at(self._now_ms() + event.length_ms, lambda: self._end_when_possible(course))
        else:
            self._end(course)

    def _end_when_possible(self, course: Course) -> None:
        """Its time is over; while a server does not answer that must, it lasts on."""
        if course.state != "active":
            return
        blocking = next((other for other in self._active if other is not course and self._blocks(other, course)), None)
        if blocking:
            self._at(self._now_ms() + 1, lambda: self._end_when_possible(course))
        else:
            self._end(course)

    def _end(self, course: Course) -> None:
        assert course.fault
        self._active.remove(course)
        self._conclude(course, proved=course.fault.conclude())

    def _conclude(self, course: Course, *, proved: bool) -> None:
        course.state = "proved" if proved else "not proved"
        course.healed_ms = self._now_ms()
        if course.fault and course.fault.report:
            course.reason = course.fault.report
        self._keep_busy()

    # --- who is in whose way ---

    def _in_the_way(self, course: Course) -> str:
        """Why a fault cannot begin now; empty: it can."""
        event, entry = course.event, BY_NAME[course.event.fault]
        for other in self._active:
            same = (other.event.fault, other.event.target) == (event.fault, event.target)
            holds = {BY_NAME[other.event.fault].excludes, BY_NAME[other.event.fault].shares}
            wanted = entry.excludes and entry.excludes in holds and self._meet(other.event, event)
            if same or wanted or self._blocks(other, course):
                return f"{other.event.fault} was in effect on {other.event.target}"
        if self._is_client(event.target) and self._client(event.target).state is StrandState.GONE:
            return f"{event.target} had ended"
        return ""

    def _blocks(self, other: Course, course: Course) -> bool:
        """Whether the other has alone in hands what this one shares, or has to reach."""
        entry, held = BY_NAME[course.event.fault], BY_NAME[other.event.fault].excludes
        return (
            bool(held) and held in (entry.shares, entry.asks, entry.excludes) and self._meet(other.event, course.event)
        )

    def _meet(self, one: Event, other: Event) -> bool:
        """Whether two events concern the same process or server. A link has its server's name at its end."""
        ends = {one.target.rpartition(">")[2], other.target.rpartition(">")[2]}
        return len(ends) == 1 or (ALL_CLIENTS in ends and all(end.startswith("client") for end in ends))

    # --- whom ---

    def _is_client(self, target: str) -> bool:
        return any(target == f"client-{each + 1}" for each in range(len(self.clients)))

    def _client(self, target: str) -> Client:
        """By the name of its first life."""
        return self.clients[int(target.removeprefix("client-")) - 1]

    def _target(self, target: str) -> Target:
        if self._is_client(target):
            return self._client(target)
        if target == ALL_CLIENTS:
            return None
        return target if ">" in target else self.trial.server_named(target)

    def _keep_busy(self) -> None:
        """Whoever has nothing to do - it has just begun its life - works."""
        for client in self.clients:
            if client.state is StrandState.IDLE:
                client.start_workload(0, self.plan.work_ms, self.plan.work_ms)

    # --- when ---

    def _now_ms(self) -> float:
        return (self.trial.mono_ns - self._began_ns) / NS_PER_MS

    def _at(self, at_ms: float, act: Callable[[], None]) -> None:
        self._dues += 1
        heappush(self._agenda, _Due(self._began_ns + int(at_ms * NS_PER_MS), self._dues, act))


# --- results ---


def blow(plan: Plan, *, save: Path | None = None, story_to: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """Plays one storm and returns its result as `storm --json` prints it. `story_to` receives the history's records.

    A storm that could not be played to its end is a result too: inconclusive, with the reason.
    """
    said = {"faults_meant": len(plan.schedule.events), "bound_ms": plan.bound_ms}
    settings = replace(plan.settings, parameters={**plan.settings.parameters, **said})
    weather: Weather | None = None
    versions: dict[str, str] = {}
    elapsed: dict[str, float] = {}
    try:
        with Trial(settings) as trial:
            weather = Weather(trial, plan)
            weather.blow()
            weather.calm()
            verdict = trial.judge(plan.require)
            if story_to is not None:
                story_to += trial.story()
            if save:
                trial.save(save)
            versions["redis-server"] = trial.server.version()
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


def count_faults(course: Iterable[Course]) -> list[dict[str, Any]]:
    """Per fault: how often it was meant, injected, seen to take effect, and left out because something was in its way."""
    counts: dict[str, dict[str, Any]] = {}
    for each in course:
        empty = {"name": each.event.fault, "meant": 0, "injected": 0, "proved": 0, "skipped": 0}
        count = counts.setdefault(each.event.fault, empty)
        count["meant"] += 1
        count["injected"] += each.injected_ms is not None
        count["proved"] += each.state == "proved"
        count["skipped"] += each.state == "skipped"
    return [counts[name] for name in sorted(counts)]


def blow_many(
    storm: StormWish,
    tell: Callable[[str], object],
    *,
    save: Path | None = None,
    save_schedule: Path | None = None,
) -> dict[str, Any]:
    """Plays as many storms as are wanted, of rising seeds. The history and the schedule that are saved are those of the
    first storm in which something is violated."""
    summary = Summary(storm)
    for number in range(storm.trials):
        planned = plan(storm, storm.wish.seed + number)
        tell(f"{planned.settings.lock}, seed {planned.schedule.seed}")
        result = blow(planned, save=save)
        if result["exit"] == 1:
            if save_schedule and not summary.first:
                planned.schedule.save(save_schedule)
            save = None
        elif save:
            save.unlink(missing_ok=True)
        summary.add(result)
    return summary.as_json()


class Summary:
    """The results of several storms as one object."""

    def __init__(self, storm: StormWish) -> None:
        self.storm = storm
        self.first: dict[str, Any] | None = None  # in which something was violated
        self.unclear: dict[str, Any] | None = None  # the first that is inconclusive
        self.last: dict[str, Any] = {}
        self.counts = {"holds": 0, "violated": 0, "inconclusive": 0}
        self.properties: dict[str, dict[str, int]] = {}
        self.faults: dict[str, dict[str, Any]] = {}

    def add(self, result: dict[str, Any]) -> None:
        outcome = {0: "holds", 1: "violated"}.get(result["exit"], "inconclusive")
        self.counts[outcome] += 1
        self.last = result
        if outcome == "violated":
            self.first = self.first or result
        if outcome == "inconclusive":
            self.unclear = self.unclear or result
        for name, said in result["verdict"].items():
            count = self.properties.setdefault(name, {"holds": 0, "violated": 0, "inconclusive": 0})
            count[said["status"]] += 1
        for fault in result["storm"]["faults"]:
            sums = self.faults.setdefault(fault["name"], {"name": fault["name"]})
            for key, value in fault.items():
                if key != "name":
                    sums[key] = sums.get(key, 0) + value

    @property
    def sentence(self) -> str:
        judged, trials = self.counts["holds"] + self.counts["violated"], self.storm.trials
        unclear = f", {self.counts['inconclusive']} inconclusive" if self.counts["inconclusive"] else ""
        if self.counts["violated"]:
            return f"{self.counts['violated']} of {trials} storms violated{unclear}"
        if not judged:
            return f"Inconclusive: none of {trials} storms could be judged"
        worth = f": under {3 / judged:.2g} at 95 %" if judged > 3 else ""
        return f"0 violations in {judged} storms{worth}{unclear}"

    def as_json(self) -> dict[str, Any]:
        shown = self.first or self.unclear or self.last
        exit_status = 1 if self.first else 3 if self.unclear else 0
        result = {key: value for key, value in shown.items() if key != "storm"}
        storm = shown["storm"]
        first = self.first and {key: self.first[key] for key in ("seed", "sentence", "replay")}
        return result | {
            "seed": self.storm.wish.seed,
            "verdict": shown["verdict"],
            "sentence": self.sentence,
            "exit": exit_status,
            "storm": {
                "duration_ms": storm["duration_ms"],
                "trials": self.storm.trials,
                "clients": storm["clients"],
                "shown_seed": shown["seed"],  # whose verdict and schedule these are
                "verdicts": self.counts,
                "properties": self.properties,
                "first_violation": first,
                "faults": [self.faults[name] for name in sorted(self.faults)],
                "schedule": storm["schedule"],
            },
        }
