"""Prints the progress and the result of a search in a terminal."""

import math
from collections.abc import Collection
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lockstorm.base.paths import runnable
from lockstorm.report.story import story_table, verdict_table
from lockstorm.results.event import Event
from lockstorm.results.verdict import property_verdict
from lockstorm.search.search_plan import SearchPlan

DAY_S = 86400


def show_search(out: Console, result: dict[str, Any], events: list[Event] | None) -> None:
    """Prints the story of the violating schedule, its deviations, the numbers of the search, and the verdict."""
    found = result.get("found")
    if found and events:
        out.print(story_table(events))
        out.print()
    if found:
        for line in found["choices"]:
            out.print(Text(line, "bold"))
        out.print()
    if "schedules" in result:
        out.print(_numbers(result))
        out.print()
        properties = {name: property_verdict(found) for name, found in result["verdict"].items()}
        out.print(verdict_table(properties, result["required"]))
        out.print()
    style = {0: "bold green", 1: "bold red"}.get(result["exit"], "bold yellow")
    out.print(Text(result["sentence"], style))
    if "replay" in result:
        out.print(Text(f"again: {runnable(result['replay'])}", "dim"))
    if "saved" in result:
        out.print(Text(f"saved: {result['saved']}", "dim"))


def coverage(checkpoints: dict[str, dict[str, int]], faults: Collection[str]) -> str | None:
    """The number of pairs of a checkpoint in the lock's code and a fault that occurred; None without faults."""
    pairs = len(checkpoints) * len(faults)
    hit = sum(len(struck) for struck in checkpoints.values())
    missed = [name for name, struck in checkpoints.items() if not struck]
    left_out = f"; never behind {', '.join(missed)}" if missed and hit else ""
    return f"{hit} of {pairs} pairs of checkpoint and fault{left_out}" if faults else None


def progress_line(progress: dict[str, Any], plan: SearchPlan, elapsed_s: float, before: int = 0) -> str:
    """The progress of a search. `before`: schedules of the campaign that an earlier search has tried."""
    count = progress.get("schedules", 0)
    rate = max(0, count - before) / max(elapsed_s, 0.001)
    mine = -(-(plan.schedules - plan.shard.first) // plan.shard.of)
    left_s = min((plan.seconds or math.inf) - elapsed_s, (mine - count) / rate if rate else math.inf)
    violated = {name: each["violated"] for name, each in progress.get("verdicts", {}).items() if each["violated"]}
    words = [f"{count:,} schedules of {plan.context.lock}", f"{rate:,.0f} a second"]
    words.append(f"about {progress.get('states', 0):,} states")
    words += [pairs] if (pairs := coverage(progress.get("checkpoints", {}), plan.budget)) else []
    words += [f"{count:,} violate {name.replace('_', ' ')}" for name, count in violated.items()]
    words += [f"{max(0, left_s):.0f} s left at most"] if left_s < DAY_S else []
    return ", ".join(words)


def _numbers(result: dict[str, Any]) -> Table:
    table = Table(box=None, padding=(0, 1), show_header=False)
    injected = ", ".join(f"{count:,} {name}" for name, count in result["injected"].items() if count) or "none"
    pct = result["pct"]
    groups = "\n".join(
        f"{group['schedules']:,} of {', '.join(group['violates']).replace('_', ' ')}"
        f" by {', '.join(group['faults']) or 'the order of steps'}, first {group['first']:,}"
        for group in result["groups"]
    )
    shrunk = result["found"] and f"{result['found']['choices_before_shrinking']} before shrinking"
    rows = {
        "schedules": f"{result['tried']:,}, {result['schedules_per_s']:,} a second, {result['steps']:,} steps",
        "distinct": f"{result['distinct']:,} histories in the first {result['schedules']:,}",
        "states": f"about {result['states']:,}, as far as they are visible",
        "faults": injected,
        "coverage": coverage(result["checkpoints"], result["faults"]),
        "PCT": pct["bound"]
        and f"an error of depth {pct['depth']} in one of {1 / pct['bound']:,.0f} at least "
        f"({pct['tasks']} tasks, {pct['steps']} steps)",
        "choices": shrunk,
        "violations": groups if result["groups"] else None,
        "no verdict": f"{result['inapplicable']:,}" if result["inapplicable"] else None,
    }
    for name, value in rows.items():
        if value:
            table.add_row(Text(name, "dim"), str(value))
    return table
