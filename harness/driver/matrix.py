"""The matrix: every lock against every scenario, with its control, held against scenarios/expected.toml."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from harness.driver.cells import Trio, result_of, worst_of
from harness.driver.crew import Crew, crew_size
from harness.driver.expected import Cell, expected, pairs
from harness.driver.library import locks
from harness.driver.play import Wish, lock_named
from harness.driver.scenario import scenarios
from harness.driver.services import missing_for


@dataclass
class Seen:
    """What the trials of one cell came to, fault or control."""

    statuses: list[dict[str, str]] = field(default_factory=list)  # of the required properties, a trial each
    results: list[str] = field(default_factory=list)
    worst: dict[str, Any] = field(default_factory=dict)  # the trial that the cell's result is of

    def add(self, played: dict[str, Any]) -> None:
        word = result_of(played["statuses"])
        if not self.results or worst_of([word, self.result]) != self.result:
            self.worst = played
        self.statuses.append(played["statuses"])
        self.results.append(word)

    @property
    def result(self) -> str:
        """One word for all trials: the worst."""
        return worst_of(self.results)


def time_of(scenario: str, lock: str, time: str | None) -> str | None:
    """The kind of time in which it is played when this one is asked for (None: virtual time where it can be)."""
    times = scenarios()[scenario].times_on(lock_named(lock))
    if time is None:
        return "virtual" if "virtual" in times else times[0]
    return time if time in times else None


def wishes_of(trio: Trio, time: str, repeat: int, seed: int) -> list[Wish]:
    return [Wish(*trio, time, seed=seed + each, control=control) for each in range(repeat) for control in (False, True)]


def heaviness(wish: Wish) -> tuple[bool, int, int, str]:
    """What is played first: virtual time, then real, in which workers only wait; and the many servers and the long
    leases, which somebody outlasts, so that nobody is left alone with them at the end."""
    lock, story = lock_named(wish.lock), scenarios()[wish.scenario]
    nodes, replicas = (int(story.settings.get(name, lock[name])) for name in ("nodes", "replicas"))
    is_real = wish.time != "virtual"
    outlasted_ms = story.real_lease_ms if is_real and not wish.control else 0
    return is_real, -nodes * (1 + replicas), -outlasted_ms, wish.scenario


def matrix(
    trios: Iterable[Trio],
    time: str | None,
    repeat: int,
    seed: int,
    tell: Callable[[str], object],
    workers: int | None = None,
) -> dict[str, Any]:
    """Runs every cell `repeat` times (seeds seed, seed + 1, ...) with fault and control, side by side. `tell` is called
    after each trial. `ok`: everything that was played is as expected. Interrupted, it says what is known by then."""
    asked = list(trios)
    trios = [trio for trio in asked if not lacks(trio)]
    wishes = [
        wish
        for trio in trios
        for wish in wishes_of(trio, time_of(*trio[:2], time) or "virtual", repeat, seed)
        if time_of(*trio[:2], time)
    ]
    wishes.sort(key=heaviness)
    seen: dict[tuple[Trio, bool], Seen] = {(trio, control): Seen() for trio in trios for control in (False, True)}
    interrupted = False
    try:
        with Crew(workers or crew_size(wishes)) as crew:
            for number, played in crew.play_all(wishes):
                wish = wishes[number]
                seen[(wish.scenario, wish.lock, wish.store or "open"), wish.control].add(played)
                tell(f"{wish.scenario} {wish.lock}")
    except KeyboardInterrupt:
        interrupted = True
    known = [trio for trio in trios if seen[trio, False].results and seen[trio, True].results]
    unplayed = [trio for trio in trios if trio not in known]
    cells = [cell_of(trio, time_of(*trio[:2], time), seen[trio, False], seen[trio, True]) for trio in known]
    return {
        "time": time or "virtual where it can be, else real",
        "repeat": repeat,
        "seed": seed,
        "cells": cells,
        "unfit": unfit({trio[0] for trio in asked}, {trio[1] for trio in asked}),
        "unplayed": [named(trio) for trio in unplayed],
        "not_installed": not_installed(asked),
        "interrupted": interrupted,
        "ok": not interrupted and all(cell["ok"] for cell in cells),
    }


def told_matrix() -> dict[str, Any]:
    """The table of expected verdicts in the form of a matrix that was played, without what only trials have."""
    cells = []
    for trio in pairs():
        told = expected().get(trio)
        if told:
            scenario, lock, store = trio
            result, control = result_of(told.fault), result_of(told.control)
            cells.append(
                {
                    "scenario": scenario,
                    "lock": lock,
                    "store": store,
                    "time": time_of(scenario, lock, None),
                    "result": result,
                    "expected": result,
                    "control": control,
                    "control_expected": control,
                    "ok": True,
                    "verdict": told.fault,
                    "reason": told.reason,
                }
            )
    unplayed = [named(trio) for trio in pairs() if trio not in expected()]
    return {"cells": cells, "unfit": unfit(set(scenarios()), {lock["name"] for lock in locks()}), "unplayed": unplayed}


def not_installed(trios: Iterable[Trio]) -> list[dict[str, str]]:
    """The cells whose servers are not here, and why."""
    reasons = {trio: lacks(trio) for trio in trios}
    return [{**named(trio), "reason": reason} for trio, reason in reasons.items() if reason]


def lacks(trio: Trio) -> str:
    """Why this cell cannot be played here; empty: it can."""
    scenario, lock, store = trio
    pooled = bool(scenarios()[scenario].settings.get("pooled"))
    return missing_for(lock_named(lock), store, pooled=pooled)


def named(trio: Trio) -> dict[str, str]:
    return dict(zip(("scenario", "lock", "store"), trio, strict=True))


def unfit(scenario_names: Collection[str], lock_names: Collection[str]) -> list[dict[str, str]]:
    """The pairs that are no story at all, and why."""
    return [
        {"scenario": name, "lock": lock["name"], "reason": told.unfit(lock)}
        for name, told in scenarios().items()
        for lock in locks()
        if name in scenario_names and lock["name"] in lock_names and told.unfit(lock)
    ]


def cell_of(trio: Trio, time: str | None, fault: Seen, control: Seen) -> dict[str, Any]:
    scenario, lock, store = trio
    told = expected().get(trio)
    return {
        "scenario": scenario,
        "lock": lock,
        "store": store,
        "time": time,
        "result": fault.result,
        "expected": result_of(told.fault) if told else None,
        "control": control.result,
        "control_expected": result_of(told.control) if told else None,
        "ok": as_told(told, fault, control),
        "difference": difference(told, fault, control),
        "verdict": fault.worst["statuses"],
        "sentence": fault.worst["sentence"],
        "reason": told.reason if told else "",
        "results": dict(Counter(fault.results)),
        "control_results": dict(Counter(control.results)),
        "replay": fault.worst["replay"],
        "control_replay": control.worst["replay"],
    }


def as_told(told: Cell | None, fault: Seen, control: Seen) -> bool:
    """Property by property, in every trial."""
    if told is None:
        return False
    return all(each == told.fault for each in fault.statuses) and all(each == told.control for each in control.statuses)


def difference(told: Cell | None, fault: Seen, control: Seen) -> str:
    """What is not as it was expected to be, in words; empty when all is."""
    if told is None:
        return "scenarios/expected.toml says nothing about it yet"
    found = [
        f"{where}: {phrase}"
        for where, seen, said in (("fault", fault, told.fault), ("control", control, told.control))
        if (phrase := difference_of(seen.statuses, said))
    ]
    return "; ".join(found)


def difference_of(statuses: list[dict[str, str]], said: dict[str, str]) -> str:
    """How these trials are not what was said of them; a flake is called one."""
    strange = [each for each in statuses if each != said]
    if not strange:
        return ""
    names = sorted({name for each in strange for name in {*each, *said} if each.get(name) != said.get(name)})
    phrases = []
    for name in names:
        found = "/".join(sorted({each.get(name, "not judged") for each in strange}))
        phrases.append(f"{name.replace('_', ' ')} {found} instead of {said.get(name, 'not judged')}")
    often = f" in {len(strange)} of {len(statuses)} trials: a flake" if len(strange) < len(statuses) else ""
    return f"{', '.join(phrases)}{often}"
