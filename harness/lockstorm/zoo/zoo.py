"""The bug zoo: lockstorm has to catch every bug of scenarios/zoo, and must not accuse the lock without the bug.

Each bug is tried twice: by the scenario that its entry names, and by the explorer, which knows only the lock, and for
some entries the kinds of faults, but never when they have to strike.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import msgspec

from lockstorm.matrix.matrix import cell_unavailable_reason, playing_order
from lockstorm.native.fault_names import fault_names
from lockstorm.results.matrix_result import TrialSummary
from lockstorm.scenario.worker_pool import TrialPool, WorkerPool, worker_count
from lockstorm.search.explore import search_schedules
from lockstorm.search.search_plan import plan_search
from lockstorm.trial.settings import TrialSettings
from lockstorm.zoo.zoo_entries import Bug

SECONDS_USUAL = 60
FIXED_SCHEDULES_LEAST = 300
STATUS_OF_EXIT = {0: "holds", 1: "violated", 3: "inconclusive"}
GOOD = ("caught", "not played", "not installed")  # results that are no error

OnTrial = Callable[[str], object]


class ShownBug(msgspec.Struct, frozen=True, kw_only=True):
    """The statuses of a bug and of the lock without it. A record has no more than these."""

    bug: str
    fixed: str
    sentence: str = ""
    fixed_sentence: str = ""
    replay: str | None = None
    fixed_replay: str | None = None


class ScriptedBug(ShownBug, frozen=True, kw_only=True):
    """What the scenario has shown."""

    scenario: str | None = None


class ExploredBug(ShownBug, frozen=True, kw_only=True):
    """What the explorer has shown. A record has what is the same on every machine."""

    schedules: int  # to the first violation
    violates: list[str]
    faults: list[str]
    choices: list[str] = []
    elapsed_ms: int = 0
    fixed_schedules: int


OF_BUG = ("name", "reference", "what", "property", "lock", "fixed", "scenario", "tuned", "unexplored")


class TriedBug(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    reference: str
    what: str
    property: str
    lock: str
    fixed: str
    scenario: str | None
    result: str
    caught: bool
    accused: bool
    scripted: ScriptedBug | None
    explored: ExploredBug | None
    as_it_comes: bool
    tuned: str
    unexplored: str
    not_installed: str


class ZooNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """How many bugs were found, and how many false alarms there were."""

    played: int
    caught: int
    hunted: int
    found: int
    found_as_it_comes: int
    median_schedules: float | None
    fixed_schedules: int
    false_alarms: int


class ZooResult(msgspec.Struct, frozen=True, kw_only=True):
    """The JSON of `zoo`."""

    entries: list[TriedBug]
    numbers: ZooNumbers
    seconds: int | None
    interrupted: bool
    ok: bool


@dataclass(frozen=True)
class Hunt:
    """Limits of the explorer for each bug. `schedules`: the most schedules, None: as many as fit in the time;
    `fixed_schedules`: the fewest schedules for the lock without the bug."""

    seconds: int = SECONDS_USUAL
    schedules: int | None = None
    fixed_schedules: int = FIXED_SCHEDULES_LEAST


def run_zoo(chosen: Sequence[Bug], hunt: Hunt | None, on_trial: OnTrial) -> ZooResult:
    """Tries the bugs, and returns what `zoo --json` prints. No `hunt`: only their scenarios. `on_trial` is called after
    each trial and each search, trial_count times. Interrupted, it returns what is known by then."""
    scripted: dict[str, ScriptedBug] = {}
    explored: dict[str, ExploredBug] = {}
    interrupted = False
    try:
        for name, shown in play_scenarios(chosen, on_trial):
            scripted[name] = shown
        for bug in chosen if hunt else ():
            if hunt and bug.explore is not None:
                explored[bug.name] = explore_bug(bug, hunt, on_trial)
    except KeyboardInterrupt:
        interrupted = True
    return zoo_result(chosen, hunt, scripted, explored, interrupted=interrupted)


def zoo_result(
    chosen: Sequence[Bug],
    hunt: Hunt | None,
    scripted: Mapping[str, ScriptedBug],
    explored: Mapping[str, ExploredBug],
    *,
    interrupted: bool = False,
) -> ZooResult:
    """What `zoo --json` prints. `scripted`, `explored`: what the scenarios and the explorer have shown, by the names of
    the bugs."""
    entries = [zoo_entry(bug, scripted.get(bug.name), explored.get(bug.name)) for bug in chosen]
    return ZooResult(
        entries=entries,
        numbers=zoo_numbers(entries),
        seconds=hunt.seconds if hunt else None,
        interrupted=interrupted,
        ok=not interrupted and all(entry.result in GOOD for entry in entries),
    )


def trial_count(chosen: Sequence[Bug], hunt: Hunt | None) -> int:
    """How often run_zoo calls `on_trial`."""
    played = sum(bool(bug.scenario and not unavailable_reason(bug)) for bug in chosen)
    hunted = sum(bug.explore is not None for bug in chosen) if hunt else 0
    return 2 * (played + hunted)


def unavailable_reason(bug: Bug) -> str:
    """Why the scenario of a bug cannot be played here; empty: it can, or it has no scenario."""
    if not bug.scenario:
        return ""
    return next(
        (reason for lock in (bug.lock, bug.fixed) if (reason := cell_unavailable_reason(bug.cell_key_of(lock)))), ""
    )


# --- the scenario ---


def play_scenarios(
    chosen: Sequence[Bug], on_trial: OnTrial, pool: TrialPool | None = None
) -> Iterator[tuple[str, ScriptedBug]]:
    """Plays the scenarios that can be played here, with both locks, in parallel; yields results as they come. `pool`
    plays them; None: workers on this machine."""
    playable = [bug for bug in chosen if bug.scenario and not unavailable_reason(bug)]
    wanted = [(bug, role) for bug in playable for role in ("bug", "fixed")]
    wanted.sort(key=lambda pair: playing_order(scenario_request(*pair)))
    requests = [scenario_request(*pair) for pair in wanted]
    played: dict[str, dict[str, TrialSummary]] = {}
    with pool or WorkerPool(worker_count(requests)) as workers:
        for number, summary in workers.play_all(requests):
            bug, role = wanted[number]
            played.setdefault(bug.name, {})[role] = summary
            on_trial(f"{bug.name}: {bug.scenario}")
            if len(played[bug.name]) == 2:
                yield bug.name, scripted_bug(bug, played[bug.name])


def scenario_request(bug: Bug, role: str) -> TrialSettings:
    return bug.request_for(bug.lock if role == "bug" else bug.fixed)


def scripted_bug(bug: Bug, played: Mapping[str, TrialSummary]) -> ScriptedBug:
    return ScriptedBug(
        scenario=bug.scenario,
        bug=played["bug"].statuses.get(bug.property, "inconclusive"),
        fixed=played["fixed"].statuses.get(bug.property, "inconclusive"),
        sentence=played["bug"].sentence,
        fixed_sentence=played["fixed"].sentence,
        replay=played["bug"].replay,
        fixed_replay=played["fixed"].replay,
    )


# --- the explorer ---


def explore_bug(bug: Bug, hunt: Hunt, on_trial: OnTrial) -> ExploredBug:
    """Searches until the property is violated or the time is over, then runs as many schedules without the bug."""
    limited = bug.search_for(bug.lock, seconds=hunt.seconds, schedules=hunt.schedules)
    found = search_schedules(plan_search(limited), lambda _: None)
    on_trial(f"{bug.name}: explored")
    schedules = max(found.schedules, hunt.fixed_schedules)
    fixed = search_schedules(plan_search(bug.search_for(bug.fixed, schedules=schedules)), lambda _: None)
    on_trial(f"{bug.name}: {bug.fixed} explored")
    smallest = found.found
    choices = smallest.choices if smallest else []
    return ExploredBug(
        bug=STATUS_OF_EXIT[found.exit],
        schedules=found.schedules,
        violates=[name for name in found.required if smallest and name in smallest.violates],
        faults=faults_in(choices),
        choices=choices,
        elapsed_ms=found.elapsed_ms,
        fixed=STATUS_OF_EXIT[fixed.exit],
        fixed_schedules=fixed.schedules,
        sentence=found.sentence,
        fixed_sentence=fixed.sentence,
        replay=found.replay if found.properties else None,
        fixed_replay=fixed.replay if fixed.properties else None,
    )


def faults_in(choices: Sequence[str]) -> list[str]:
    """The faults in the lines of a schedule; other lines only change the order of steps."""
    words = {choice.partition(": ")[2].partition(" ")[0] for choice in choices}
    return [name for name in fault_names("simulation") if name in words]


# --- the result ---


def shown_of(entry: TriedBug) -> list[ShownBug]:
    return [each for each in (entry.scripted, entry.explored) if each]


def zoo_entry(bug: Bug, scripted: ScriptedBug | None, explored: ExploredBug | None) -> TriedBug:
    shown = [each for each in (scripted, explored) if each]
    return TriedBug(
        **{key: getattr(bug, key) for key in OF_BUG},
        result=entry_result(scripted, explored, unavailable_reason(bug)),
        caught=any(each.bug == "violated" for each in shown),
        accused=any(each.fixed == "violated" for each in shown),
        scripted=scripted,
        explored=explored,
        as_it_comes=bug.explore == {},
        not_installed=unavailable_reason(bug),
    )


def entry_result(scripted: ScriptedBug | None, explored: ExploredBug | None, unavailable: str) -> str:
    """The result of an entry in a word; the worst wins. A scenario that does not show its bug is an error even if the
    explorer has found the bug. As long as the scenario shows the bug, it is no error that the explorer misses it, or
    cannot judge the lock without the bug: some properties are only tested when the bug occurs."""
    shown = [each for each in (scripted, explored) if each]
    if not shown:
        return "not installed" if unavailable else "not played"
    if any(each.fixed == "violated" for each in shown):
        return "accused"
    decisive = scripted or shown[0]
    if decisive.bug == "holds":
        return "untriggered" if any(each.bug == "violated" for each in shown) else "missed"
    if "inconclusive" in (decisive.bug, decisive.fixed):
        return "inconclusive"
    return "caught"


def zoo_numbers(entries: Sequence[TriedBug]) -> ZooNumbers:
    played = [entry for entry in entries if shown_of(entry)]
    hunted = [entry.explored for entry in entries if entry.explored]
    needed = [each.schedules for each in hunted if each.bug == "violated"]
    found_plainly = [each for each in entries if each.as_it_comes and each.explored and each.explored.bug == "violated"]
    return ZooNumbers(
        played=len(played),
        caught=sum(entry.caught for entry in played),
        hunted=len(hunted),
        found=len(needed),
        found_as_it_comes=len(found_plainly),
        median_schedules=median(needed) if needed else None,
        fixed_schedules=sum(each.fixed_schedules for each in hunted if each.fixed != "inconclusive"),
        false_alarms=sum(entry.accused for entry in played),
    )


def zoo_exit_status(result: ZooResult) -> int:
    """1: a bug was missed, or a lock without it accused; 3: a bug, or all of them, could not be judged."""
    words = {entry.result for entry in result.entries}
    if words & {"missed", "untriggered", "accused"}:
        return 1
    return 3 if "inconclusive" in words or not words & {"caught"} else 0
