"""The bug zoo: every bug of scenarios/zoo has to be caught, and the lock without it must not be accused.

Twice: by the scenario that its entry names, and by the explorer, who is told what may go wrong and finds out when.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from harness.driver.crew import Crew, crew_size
from harness.driver.explore import FAULTS, explore, plan
from harness.driver.matrix import heaviness, lacks
from harness.driver.play import Wish
from harness.driver.zoo_entries import Bug

SECONDS_USUAL = 60
FIXED_SCHEDULES_LEAST = 300
STATUS_OF_EXIT = {0: "holds", 1: "violated", 3: "inconclusive"}
GOOD = ("caught", "not played", "not installed")  # what an entry may come to

Tell = Callable[[str], object]
Shown = dict[str, Any]


@dataclass(frozen=True)
class Hunt:
    """How far the explorer goes for each bug. `schedules`: at most so many, None: as many as fit in the time;
    `fixed_schedules`: the lock without the bug gets so many at least."""

    seconds: int = SECONDS_USUAL
    schedules: int | None = None
    fixed_schedules: int = FIXED_SCHEDULES_LEAST


def zoo(chosen: Sequence[Bug], hunt: Hunt | None, tell: Tell) -> dict[str, Any]:
    """Plays and hunts them, and returns what `zoo --json` prints. No `hunt`: only their scenarios. `tell` is called
    after each of `pieces_of` them. Interrupted, it says what is known by then."""
    scripted: dict[str, Shown] = {}
    explored: dict[str, Shown] = {}
    interrupted = False
    try:
        for name, shown in play_scripted(chosen, tell):
            scripted[name] = shown
        for bug in chosen if hunt else ():
            if hunt and bug.explore is not None:
                explored[bug.name] = explore_bug(bug, hunt, tell)
    except KeyboardInterrupt:
        interrupted = True
    entries = [entry_of(bug, scripted.get(bug.name), explored.get(bug.name)) for bug in chosen]
    return {
        "entries": entries,
        "numbers": numbers_of(entries),
        "seconds": hunt.seconds if hunt else None,
        "interrupted": interrupted,
        "ok": not interrupted and all(entry["result"] in GOOD for entry in entries),
    }


def pieces_of(chosen: Sequence[Bug], hunt: Hunt | None) -> int:
    """How often `zoo` tells."""
    played = sum(bool(bug.scenario and not lacks_of(bug)) for bug in chosen)
    hunted = sum(bug.explore is not None for bug in chosen) if hunt else 0
    return 2 * (played + hunted)


def lacks_of(bug: Bug) -> str:
    """Why its scenario cannot be played here; empty: it can, or there is none."""
    if not bug.scenario:
        return ""
    return next((reason for lock in (bug.lock, bug.fixed) if (reason := lacks(bug.trio_of(lock)))), "")


# --- the scenario ---


def play_scripted(chosen: Sequence[Bug], tell: Tell) -> Iterator[tuple[str, Shown]]:
    """What the scenarios of those that can be played here come to with both locks, side by side, as they end."""
    playable = [bug for bug in chosen if bug.scenario and not lacks_of(bug)]
    wanted = [(bug, role) for bug in playable for role in ("bug", "fixed")]
    wanted.sort(key=lambda pair: heaviness(wish_of(*pair)))
    wishes = [wish_of(*pair) for pair in wanted]
    played: dict[str, dict[str, Shown]] = {}
    with Crew(crew_size(wishes)) as crew:
        for number, summary in crew.play_all(wishes):
            bug, role = wanted[number]
            played.setdefault(bug.name, {})[role] = summary
            tell(f"{bug.name}: {bug.scenario}")
            if len(played[bug.name]) == 2:
                yield bug.name, scripted_of(bug, played[bug.name])


def wish_of(bug: Bug, role: str) -> Wish:
    return bug.wish_for(bug.lock if role == "bug" else bug.fixed)


def scripted_of(bug: Bug, played: Mapping[str, Shown]) -> Shown:
    return {
        "scenario": bug.scenario,
        **{role: played[role]["statuses"][bug.property] for role in ("bug", "fixed")},
        "sentence": played["bug"]["sentence"],
        "fixed_sentence": played["fixed"]["sentence"],
        "replay": played["bug"]["replay"],
        "fixed_replay": played["fixed"]["replay"],
    }


# --- the explorer ---


def explore_bug(bug: Bug, hunt: Hunt, tell: Tell) -> Shown:
    """Hunts until the property is violated or the time is over; the lock without the bug gets as many schedules."""
    found = explore(plan(bug.explore_for(bug.lock, seconds=hunt.seconds, schedules=hunt.schedules)), _unheard)
    tell(f"{bug.name}: explored")
    schedules = max(found.get("schedules", 0), hunt.fixed_schedules)
    fixed = explore(plan(bug.explore_for(bug.fixed, schedules=schedules)), _unheard)
    tell(f"{bug.name}: {bug.fixed} explored")
    choices = found["found"]["choices"] if found.get("found") else []
    return {
        "bug": STATUS_OF_EXIT[found["exit"]],
        "schedules": found.get("schedules", 0),
        "faults": faults_in(choices),
        "choices": choices,
        "elapsed_ms": found.get("elapsed_ms", 0),
        "fixed": STATUS_OF_EXIT[fixed["exit"]],
        "fixed_schedules": fixed.get("schedules", 0),
        "sentence": found["sentence"],
        "fixed_sentence": fixed["sentence"],
        "replay": found.get("replay"),
        "fixed_replay": fixed.get("replay"),
    }


def _unheard(_told: Mapping[str, Any]) -> None:
    """How far a search is, nobody asks: the next piece is told soon."""


def faults_in(choices: Sequence[str]) -> list[str]:
    """Which faults a schedule has in it, of its lines; the others only say who goes first."""
    words = {choice.partition(": ")[2].partition(" ")[0] for choice in choices}
    return [name for name in FAULTS if name in words]


# --- the result ---


def entry_of(bug: Bug, scripted: Shown | None, explored: Shown | None) -> dict[str, Any]:
    shown = [each for each in (scripted, explored) if each]
    return {
        "name": bug.name,
        "reference": bug.reference,
        "what": bug.what,
        "property": bug.property,
        "lock": bug.lock,
        "fixed": bug.fixed,
        "scenario": bug.scenario,
        "result": result_of(scripted, explored, lacks_of(bug)),
        "caught": any(each["bug"] == "violated" for each in shown),
        "accused": any(each["fixed"] == "violated" for each in shown),
        "scripted": scripted,
        "explored": explored,
        "unexplored": bug.unexplored,
        "not_installed": lacks_of(bug),
    }


def result_of(scripted: Shown | None, explored: Shown | None, lacking: str) -> str:
    """An entry in a word, the worst first. A scenario that does not show what its entry says it shows is told of, even
    if the explorer has found the bug. What the explorer alone misses is only a number, as long as the scenario shows
    it; so is what it could not judge of the lock without the bug: some properties only the bug puts to the test."""
    shown = [each for each in (scripted, explored) if each]
    if not shown:
        return "not installed" if lacking else "not played"
    if any(each["fixed"] == "violated" for each in shown):
        return "accused"
    told = scripted or shown[0]
    if told["bug"] == "holds":
        return "untriggered" if any(each["bug"] == "violated" for each in shown) else "missed"
    if "inconclusive" in (told["bug"], told["fixed"]):
        return "inconclusive"
    return "caught"


def numbers_of(entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Detection power, and false alarms."""
    played = [entry for entry in entries if entry["scripted"] or entry["explored"]]
    hunted = [entry["explored"] for entry in entries if entry["explored"]]
    needed = [each["schedules"] for each in hunted if each["bug"] == "violated"]
    return {
        "played": len(played),
        "caught": sum(entry["caught"] for entry in played),
        "hunted": len(hunted),
        "found": len(needed),
        "median_schedules": median(needed) if needed else None,
        "fixed_schedules": sum(each["fixed_schedules"] for each in hunted if each["fixed"] != "inconclusive"),
        "false_alarms": sum(entry["accused"] for entry in played),
    }


def exit_status(result: Mapping[str, Any]) -> int:
    """1: a bug is missed or a lock without it accused; 3: nothing was learned of some, or of all."""
    words = {entry["result"] for entry in result["entries"]}
    if words & {"missed", "untriggered", "accused"}:
        return 1
    return 3 if "inconclusive" in words or not words & {"caught"} else 0
