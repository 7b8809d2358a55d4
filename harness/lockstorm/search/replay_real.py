"""Replays a schedule with real processes in real time, if its deviations allow. The order of steps of real processes
cannot be prescribed, but one process can be stopped or killed at a checkpoint of its lock's code."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from msgspec import structs

from lockstorm.base.errors import UsageError
from lockstorm.locks.lock_names import lock_named
from lockstorm.native.fault_names import name_now
from lockstorm.results.event import Event
from lockstorm.results.verdict import Verdict
from lockstorm.search.explorer import explorer_for, played_whole
from lockstorm.search.replay import context_words
from lockstorm.search.schedule_file import ScheduleFile
from lockstorm.search.search_plan import replayed_properties
from lockstorm.trial.settings import Store, TrialSettings
from lockstorm.trial.stall_sentinel import play_unstalled
from lockstorm.trial.trial import Trial

LINE = re.compile(r"before client-1 [0-9]+: ([a-z-]+) client-1( [0-9]+)?")
FAULTS_OF_REAL = ("kill-client", "pause-client", "pause-client-before-send")
START = "start"  # before the first checkpoint


@dataclass(frozen=True)
class Strike:
    """What strikes client 1, which begins alone, when it passes a checkpoint for the first time."""

    fault: str
    checkpoint: str
    amount_ms: int


def replay_real(
    schedule: ScheduleFile, name: str, story_to: list[Event] | None = None, save: Path | None = None
) -> Verdict:
    """Plays a schedule, and returns what replay_schedule does, with the checkpoint at which client 1 was struck.
    UsageError when real processes cannot play it, with the reason; Inconclusive when they failed to."""
    strike = strike_of(schedule, name)
    settings = TrialSettings(
        lock=schedule.lock,
        scenario="explore",
        store=cast(Store, schedule.store),
        time="real",
        seed=schedule.seed,
        lease_ms=schedule.lease_ms,
        nodes=lock_named(schedule.lock).nodes,
        replicas=schedule.replicas,
        permits=schedule.permits,
        fixed_lease=bool(schedule.fixed_lease),
        checks_validity=bool(schedule.checks_validity),
        without=",".join(schedule.servers.without) or None,
    )
    required = ",".join(replayed_properties(lock_named(schedule.lock), schedule.permits))

    def play_once(_: int) -> Verdict:
        with Trial(settings) as trial:
            _play(trial, schedule, strike)
            return trial.judge(required, story_to, save)

    verdict, _ = play_unstalled(play_once)
    return structs.replace(
        verdict, file=name, lock=schedule.lock, time="real", struck_at=strike.checkpoint, parameters=None
    )


def _play(trial: Trial, schedule: ScheduleFile, strike: Strike) -> None:
    first, *others = trial.clients(schedule.clients)
    first.start_increment(work_ms=schedule.work_ms)
    if strike.fault == "kill-client":
        trial.kill(first, at=strike.checkpoint)
        for client in others:
            client.start_increment(work_ms=schedule.work_ms)
        trial.finish(*others)
        return
    with trial.pause(first, at=strike.checkpoint):
        for client in others:
            client.start_increment(work_ms=schedule.work_ms)
        trial.run(others, trial.mono_ns + strike.amount_ms * 1_000_000)
    trial.finish(first, *others)


def strike_of(schedule: ScheduleFile, name: str) -> Strike:
    """What strikes client 1, and at which checkpoint: a replay in the explorer tells."""
    if schedule.servers.one_node_cluster:
        raise UsageError(f"{name}: --real: its servers are clusters, which a trial does not start")
    number = len(schedule.lines)
    line = f"{name}: line {schedule.line_numbers[0]}" if number and schedule.line_numbers else name
    if number != 1:
        raise UsageError(
            f"{name}: --real: it has {number} deviations, and real processes can make only one: nothing prescribes the "
            "order of their steps"
        )
    match = LINE.fullmatch(schedule.lines[0])
    if (
        not match
        or name_now(match.group(1)) not in FAULTS_OF_REAL
        or schedule.turns > 1
        or schedule.bound_ms
        or schedule.extends
    ):
        raise UsageError(
            f"{line}: --real: with real processes client 1, who begins, can be paused or killed in its only turn, "
            "and nothing else"
        )
    with explorer_for(schedule, 1) as explorer:
        words = context_words(schedule, replayed_properties(lock_named(schedule.lock), schedule.permits))
        done = played_whole(explorer.replay(words, schedule.lines, schedule.number), schedule.line_numbers, name)
    fault = name_now(match.group(1))
    checkpoint = next(place for place, struck in done.checkpoints.items() if struck)
    if checkpoint == START:
        raise UsageError(f"{line}: --real: client 1 is struck before it has passed any checkpoint of its lock's code")
    return Strike(fault, checkpoint, int(match.group(2) or 0))
