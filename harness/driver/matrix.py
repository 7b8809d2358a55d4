"""The matrix: every lock against every scenario, with its control, held against scenarios/expected.toml."""

import os
import signal
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Any

from harness.driver.expected import Cell, expected
from harness.driver.play import Wish, play, replay_command

RESULTS = ("holds", "fenced", "violated", "stuck", "inconclusive")
WORST_FIRST = ("inconclusive", "violated", "stuck", "fenced", "holds")

Trio = tuple[str, str, str]  # scenario, lock, store


@dataclass
class Seen:
    """What the trials of one cell came to, fault or control."""

    statuses: list[dict[str, str]] = field(default_factory=list)  # of the required properties, a trial each
    results: list[str] = field(default_factory=list)
    sentence: str = ""
    replay: str = ""

    @property
    def result(self) -> str:
        """One word for all trials: the worst."""
        return min(self.results, key=WORST_FIRST.index)


def result_of(statuses: dict[str, str]) -> str:
    """A trial in one word, from the statuses of the properties that count."""
    if "inconclusive" in statuses.values():
        return "inconclusive"
    if statuses.get("integrity") == "violated":
        return "violated"
    broken = {name for name, status in statuses.items() if status == "violated"}
    if broken == {"liveness"}:
        return "stuck"
    if "mutual_exclusion" in broken:
        return "fenced" if statuses.get("integrity") == "holds" else "violated"
    return "violated" if broken else "holds"


def play_cell(wish: Wish) -> dict[str, Any]:
    """In a worker process: one trial, as small as the matrix needs it."""
    played = play(wish)
    statuses = {name: played["verdict"][name]["status"] for name in played["required"]}
    return {"statuses": statuses, "sentence": played["sentence"], "replay": replay_command(wish)}


def matrix(
    trios: Iterable[Trio], time: str, repeat: int, seed: int, tell: Callable[[str], object], workers: int | None = None
) -> dict[str, Any]:
    """Runs every cell `repeat` times (seeds seed, seed + 1, ...) with fault and control, side by side. `tell` is called
    before each cell's last trial is counted. `ok`: everything is as expected."""
    trios = list(trios)
    seen: dict[tuple[Trio, bool], Seen] = {(trio, control): Seen() for trio in trios for control in (False, True)}
    pool = ProcessPoolExecutor(workers or os.cpu_count() or 1, initializer=end_on_interrupt)
    try:
        waiting = {}
        for scenario, lock, store in trios:
            for control in (False, True):
                for each in range(repeat):
                    wish = Wish(scenario, lock, store, time, seed=seed + each, control=control)
                    waiting[pool.submit(play_cell, wish)] = ((scenario, lock, store), control)
        for done in as_completed(waiting):
            trio, control = waiting[done]
            played, of = done.result(), seen[trio, control]
            tell(f"{trio[0]} {trio[1]}")
            of.statuses.append(played["statuses"])
            word = result_of(played["statuses"])
            if not of.results or WORST_FIRST.index(word) < WORST_FIRST.index(of.result):
                of.sentence, of.replay = played["sentence"], played["replay"]
            of.results.append(word)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    cells = [cell_of(trio, seen[trio, False], seen[trio, True]) for trio in trios]
    return {"time": time, "repeat": repeat, "seed": seed, "cells": cells, "ok": all(cell["ok"] for cell in cells)}


def end_on_interrupt() -> None:
    """A worker that is interrupted cleans its trial up; what the command's own handler prints is not its business."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def cell_of(trio: Trio, fault: Seen, control: Seen) -> dict[str, Any]:
    scenario, lock, store = trio
    told = expected().get(trio)
    return {
        "scenario": scenario,
        "lock": lock,
        "store": store,
        "result": fault.result,
        "expected": result_of(told.fault) if told else None,
        "control": control.result,
        "control_expected": result_of(told.control) if told else None,
        "ok": as_told(told, fault, control),
        "sentence": fault.sentence,
        "reason": told.reason if told else "",
        "replay": fault.replay,
        "control_replay": control.replay,
    }


def as_told(told: Cell | None, fault: Seen, control: Seen) -> bool:
    """Property by property, in every trial."""
    if told is None:
        return False
    return all(each == told.fault for each in fault.statuses) and all(each == told.control for each in control.statuses)
