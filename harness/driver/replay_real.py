"""A schedule that was found, with real processes in real time - where its steps allow: nobody can tell processes which
of them takes the next step, but one can be stopped or killed where it stands in its lock's code."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from harness.driver.errors import UsageError
from harness.driver.explore import explorer_for, required_of, words_for
from harness.driver.explorer import bad_line
from harness.driver.play import lock_named
from harness.driver.schedule_file import Found
from harness.driver.trial import Store, Trial, TrialSettings

LINE = re.compile(r"before client-1 [0-9]+: (pause|pause-before-send|crash) client-1( [0-9]+)?")
START = "start"  # where no checkpoint was passed yet


@dataclass(frozen=True)
class Strike:
    """What happens to client 1, which begins alone, where it has just passed a checkpoint for the first time."""

    fault: str
    checkpoint: str
    amount_ms: int


def replay_real(
    found: Found, name: str, story_to: list[dict[str, Any]] | None = None, save: Path | None = None
) -> dict[str, Any]:
    """Plays it, and returns what `replay` returns, with where client 1 was struck. UsageError where it cannot be played
    so, with the reason; Inconclusive where it could not be."""
    strike = strike_of(found, name)
    settings = TrialSettings(
        lock=found.lock,
        scenario="explore",
        store=cast(Store, found.store),
        time="real",
        seed=found.seed,
        lease_ms=found.lease_ms,
        nodes=lock_named(found.lock)["nodes"],
        replicas=found.replicas,
        permits=found.permits,
        fixed_lease=bool(found.fixed_lease),
    )
    with Trial(settings) as trial:
        _play(trial, found, strike)
        verdict = trial.judge(",".join(required_of(None, lock_named(found.lock))))
        if story_to is not None:
            story_to += trial.story()
        if save:
            trial.save(save)
    verdict.pop("parameters", None)
    return {"file": name, "lock": found.lock, "time": "real", "struck_at": strike.checkpoint, **verdict}


def _play(trial: Trial, found: Found, strike: Strike) -> None:
    first, *others = trial.clients(found.clients)
    first.start_increment(work_ms=found.work_ms)
    if strike.fault == "crash":
        trial.kill(first, at=strike.checkpoint)
        for client in others:
            client.start_increment(work_ms=found.work_ms)
        trial.finish(*others)
        return
    with trial.pause(first, at=strike.checkpoint):
        for client in others:
            client.start_increment(work_ms=found.work_ms)
        trial.run(others, trial.mono_ns + strike.amount_ms * 1_000_000)
    trial.finish(first, *others)


def strike_of(found: Found, name: str) -> Strike:
    """Where in its code client 1 is struck: the explorer, which follows the schedule once, knows."""
    number = len(found.lines)
    line = f"{name}: line {found.line_numbers[0]}" if number and found.line_numbers else name
    if number != 1:
        raise UsageError(
            f"{name}: --real: it has {number} surprises; only one can be brought about with real processes, whose "
            "steps nobody orders"
        )
    match = LINE.fullmatch(found.lines[0])
    if not match or found.turns > 1 or found.bound_ms or found.extends:
        raise UsageError(
            f"{line}: --real: with real processes client 1, who begins, can be paused or killed in its only turn, "
            "and nothing else"
        )
    with explorer_for(found, 1) as explorer:
        said = explorer.follow(words_for(found, required_of(None, lock_named(found.lock))), found.lines, found.number)
    if wrong := bad_line(said, found.line_numbers or (1,), name):
        raise wrong
    fault = match.group(1)
    checkpoint = next(place for place, struck in said["checkpoints"].items() if struck)
    if checkpoint == START:
        raise UsageError(f"{line}: --real: client 1 is struck before it has passed any checkpoint of its lock's code")
    return Strike(fault, checkpoint, int(match.group(2) or 0))
