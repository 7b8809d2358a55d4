"""Prints the progress and the result of a search, and of the replay of a library's schedule, in a terminal."""

import math
from collections.abc import Collection, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lockstorm.base.paths import runnable
from lockstorm.report.story import (
    call_story_table,
    commands_table,
    sentence_text,
    show_result,
    story_table,
    verdict_table,
)
from lockstorm.results.event import Event
from lockstorm.results.verdict import HeardCommand, ScheduleLines, Verdict
from lockstorm.search.explorer import SearchProgress, count_states
from lockstorm.search.replay import ReplayedLibrary
from lockstorm.search.search_lines import ViolationGroup
from lockstorm.search.search_plan import SearchPlan
from lockstorm.search.search_result import SearchResult, SmallestSchedule, control_lines, numbered_lines

DAY_S = 86400
GROUPS_SHOWN = 12  # kinds of violations, by properties and faults


def show_search(out: Console, result: SearchResult, events: list[Event] | None, *, quiet: bool = False) -> None:
    """Prints the story of the violating schedule, its lines, the numbers of the search, and the verdict."""
    if result.found:
        _show_found(out, result.found, events, quiet=quiet)
    if result.properties:
        out.print(_numbers(result), "")
        if not result.library:
            out.print(verdict_table(result.properties, result.required), "")
    for warning in result.warnings:
        out.print(Text(f"warning: {warning.rule}: {warning.sentence}", "yellow"))
    out.print(sentence_text(result.sentence, result.exit))
    if result.properties:
        out.print(Text(f"again: {runnable(result.replay)}", "dim"))
    if result.saved:
        out.print(Text(f"saved: {result.saved}", "dim"))


def _show_found(out: Console, found: SmallestSchedule, events: list[Event] | None, *, quiet: bool) -> None:
    if events or (found.story and not quiet):
        out.print(story_table(events) if events else call_story_table(found.story), "")
    _show_lines(out, found.workload, found.choices, found.control)


def _show_lines(out: Console, workload: Sequence[str], choices: Sequence[str], control: ScheduleLines | None) -> None:
    for line in numbered_lines(workload, choices):
        out.print(Text(line, "bold"))
    for line in control_lines(workload, choices, control):
        out.print(Text(line, "dim"))
    out.print()


def show_lock_replay(out: Console, result: Verdict, events: list[Event] | None) -> None:
    """`events` are those of the story. Without them none is told."""
    if events and result.choices:
        out.print(story_table(events), "")
        _show_lines(out, [], result.choices, result.control)
        events = None
    show_result(out, result, events)
    _show_commands(out, result.commands)


def _show_commands(out: Console, commands: Sequence[HeardCommand] | None) -> None:
    if commands:
        out.print("", commands_table(commands))


def show_library_replay(out: Console, result: ReplayedLibrary, *, quiet: bool) -> None:
    if not quiet:
        out.print(call_story_table(result.story), "")
        _show_lines(out, result.workload, result.choices, result.control)
    _show_commands(out, result.commands)
    out.print(sentence_text(result.sentence, result.exit))


def coverage(checkpoints: dict[str, dict[str, int]], faults: Collection[str]) -> str | None:
    """The number of pairs of a checkpoint in the lock's code and a fault that occurred; None without faults."""
    pairs = len(checkpoints) * len(faults)
    hit = sum(len(struck) for struck in checkpoints.values())
    missed = [name for name, struck in checkpoints.items() if not struck]
    left_out = f"; never behind {', '.join(missed)}" if missed and hit else ""
    return f"{hit} of {pairs} pairs of checkpoint and fault{left_out}" if faults and checkpoints else None


def progress_line(progress: SearchProgress, plan: SearchPlan, elapsed_s: float, before: int = 0) -> str:
    """The progress of a search. `before`: schedules of the campaign that an earlier search has tried."""
    tally, count = progress.tally, progress.tally.schedules
    rate = max(0, count - before) / max(elapsed_s, 0.001)
    mine = -(-(plan.schedules - plan.shard.first) // plan.shard.of)
    left_s = min((plan.seconds or math.inf) - elapsed_s, (mine - count) / rate if rate else math.inf)
    violated = {name: each.violated for name, each in tally.verdicts.items() if each.violated}
    words = [f"{count:,} schedules of {plan.context.lock}", f"{rate:,.0f} a second"]
    words.append(f"{tally.calls:,} calls" if plan.lock.adapter else f"about {count_states(progress.states):,} states")
    words += [pairs] if (pairs := coverage(tally.checkpoints, plan.budget)) else []
    words += [f"{count:,} violate {name.replace('_', ' ')}" for name, count in violated.items()]
    words += [f"{max(0, left_s):.0f} s left at most"] if left_s < DAY_S else []
    return ", ".join(words)


def _causes(group: ViolationGroup, result: SearchResult) -> list[str]:
    """The faults of these schedules. Of the one that was made smaller those that are left: the others had no part."""
    found = result.found
    if not found or group.schedules > 1 or group.first != found.number:
        return group.faults
    words = {line.partition(": ")[2].split()[0] for line in found.choices}
    return [name for name in group.faults if name in words]


def _numbers(result: SearchResult) -> Table:
    table = Table(box=None, padding=(0, 1), show_header=False)
    pct, found = result.pct, result.found
    groups = "\n".join(
        f"{group.schedules:,} of {', '.join(group.violates).replace('_', ' ')}"
        f" by {', '.join(_causes(group, result)) or 'the order of steps'}, first {group.first:,}"
        for group in result.groups[:GROUPS_SHOWN]
    )
    if len(result.groups) > GROUPS_SHOWN:
        groups += f"\n... and {len(result.groups) - GROUPS_SHOWN} more kinds: --json has all"
    calls = f", {result.calls:,} calls" if result.library else ""
    shrunk = f"{found.calls_before_shrinking} calls and " if found and result.library else ""
    rows = {
        "schedules": f"{result.tried:,}, {result.schedules_per_s:,} a second{calls}, {result.steps:,} steps",
        "distinct": f"{result.distinct:,} histories in the first {result.schedules:,}",
        "states": "" if result.library else f"about {result.states:,}, as far as they are visible",
        "faults": ", ".join(f"{count:,} {name}" for name, count in result.injected.items() if count) or "none",
        "coverage": coverage(result.checkpoints, result.faults),
        "PCT": pct
        and pct.bound
        and f"an error of depth {pct.depth} in one of {1 / pct.bound:,.0f} at least "
        f"({pct.tasks} tasks, {pct.steps} steps)",
        "choices": found and f"{shrunk}{found.choices_before_shrinking} before shrinking",
        "violations": groups,
        "no verdict": f"{result.inapplicable:,}" if result.inapplicable else "",
        "not played": f"{result.unplayed:,}: {result.unplayed_reason}" if result.unplayed else "",
        "not repeated": f"{result.unrepeated:,}: {result.unrepeated_reason}" if result.unrepeated else "",
    }
    for name, value in rows.items():
        if value:
            table.add_row(Text(name, "dim"), str(value))
    return table
