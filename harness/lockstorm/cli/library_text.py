"""Prints the progress and the result of a search of a library in a terminal."""

from typing import Any

from msgspec import convert
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lockstorm.base.paths import runnable
from lockstorm.report.story import call_story_table
from lockstorm.results.call_event import CallStoryLine
from lockstorm.search.library_plan import LibraryPlan

STYLES = {0: "bold green", 1: "bold red"}


def library_progress(progress: dict[str, Any], plan: LibraryPlan, elapsed_s: float, before: int = 0) -> str:
    """The progress of a search. `before`: schedules of the campaign that an earlier search has tried."""
    count = progress.get("schedules", 0)
    broken = {name: number for name, number in progress.get("broken", {}).items() if number}
    rate = max(0, count - before) / max(elapsed_s, 0.001)
    words = [f"{count:,} schedules of {plan.adapter}", f"{rate:,.0f} a second"]
    words.append(f"{progress.get('calls', 0):,} calls")
    words += [f"{number:,} break {name}" for name, number in broken.items()]
    if plan.seconds:
        words.append(f"{max(0, plan.seconds - elapsed_s):.0f} s left at most")
    return ", ".join(words)


def show_library_search(out: Console, result: dict[str, Any], *, quiet: bool) -> None:
    """Prints the story of the smallest schedule, the numbers of the search, and the verdict."""
    found = result.get("found")
    if found and not quiet:
        out.print(call_story_table(convert(found["story"], list[CallStoryLine])))
        out.print()
    if found:
        for line in (*found["workload"], *found["schedule"]):
            out.print(Text(line, "bold"))
        if found["control"]:
            out.print(Text(f"it holds without: {_left_out(found)}", "dim"))
        out.print()
    if "schedules" in result:
        out.print(_numbers(result))
        out.print()
    out.print(Text(result["sentence"], STYLES.get(result["exit"], "bold yellow")))
    if "replay" in result:
        out.print(Text(f"again: {runnable(result['replay'])}", "dim"))


def show_library_replay(out: Console, result: dict[str, Any], *, quiet: bool) -> None:
    if not quiet:
        out.print(call_story_table(convert(result["story"], list[CallStoryLine])))
        out.print()
    out.print(Text(result["sentence"], STYLES.get(result["exit"], "bold yellow")))


def _left_out(found: dict[str, Any]) -> str:
    """The calls that the control lacks."""
    kept = list(found["control"]["workload"])
    missing = []
    for line in found["workload"]:
        if line in kept:
            kept.remove(line)
        else:
            missing.append(line)
    return "; ".join(missing)


def _numbers(result: dict[str, Any]) -> Table:
    table = Table(box=None, padding=(0, 1), show_header=False)
    injected = ", ".join(f"{count:,} {name}" for name, count in result["injected"].items() if count) or "none"
    groups = "\n".join(
        f"{group['schedules']:,} of {', '.join(group['breaks'])} with {', '.join(group['faults']) or 'no fault'}, "
        f"first {group['first']:,}"
        for group in result["groups"]
    )
    rows = {
        "schedules": f"{result['schedules']:,}, {result['schedules_per_s']:,} a second, {result['calls']:,} calls, "
        f"{result['steps']:,} steps",
        "faults": injected,
        "broken": groups,
        "not played": f"{result['unplayed']:,}: {result['unplayed_reason']}" if result["unplayed"] else "",
        "not repeated": f"{result['unrepeated']:,}: {result['unrepeated_reason']}" if result["unrepeated"] else "",
    }
    for name, value in rows.items():
        if value:
            table.add_row(Text(name, "dim"), value)
    return table
