"""The verdict for a terminal: what happened, why it matters, what to do."""

import shlex
from collections.abc import Iterator
from textwrap import fill, indent

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lockstorm.base.paths import runnable
from lockstorm.gate.gate_judge import ACCEPTED, FAILED, INCONCLUSIVE, NOT_JUDGED, PASSED
from lockstorm.gate.messages import why_it_matters
from lockstorm.results.gate_verdict import GateApplication, GateCell, GateLock, GateVerdict, what_to_do
from lockstorm.results.statistics import ALWAYS_COUNTED
from lockstorm.results.verdict import played_again_words
from lockstorm.scenario.baseline import is_own_mistake

MARK = {PASSED: "✓", ACCEPTED: "~", FAILED: "✗", INCONCLUSIVE: "?", NOT_JUDGED: "·"}
STYLE = {PASSED: "green", ACCEPTED: "cyan", FAILED: "bold red", INCONCLUSIVE: "yellow", NOT_JUDGED: "dim"}
STORES = {
    "open": "a resource that takes every write",
    "fence-writes": "a resource that refuses late writes",
    "fence-reads-and-writes": "a resource that refuses late reads and writes",
}
TEXT_WIDTH = 100
SEARCH = "search"  # the case of an application
STORIES_MOST = 3  # scenarios explained for each lock; the list above has them all


def show_verdict(console: Console, verdict: GateVerdict, *, quiet: bool = False) -> None:
    """`quiet`: only what is not as the policy asks, with the command that repeats it, and the count."""
    for lock in verdict.locks:
        cells = verdict.cells_of(lock)
        if quiet:
            cells = [cell for cell in cells if not cell.ok]
        if cells:
            console.print(Text.assemble((lock.name, "bold"), f", with {STORES[lock.store]}"))
            if quiet:
                show_in_short(console, cells)
            else:
                console.print(cells_table(cells), "")
        failed = [cell for cell in cells if cell.outcome == FAILED]
        if failed and not quiet:
            show_failed(console, failed, lock)
    for application in verdict.applications:
        if not (quiet and application.ok):
            show_application(console, application, quiet=quiet)
    if not quiet:
        console.print(counts_table(verdict), "")
    for remark in remarks_of(verdict):
        console.print(Text(remark, "yellow"))
    style = {0: "bold green", 1: "bold red"}.get(verdict.exit, "bold yellow")
    sentence = f"interrupted: {verdict.sentence}" if verdict.interrupted else verdict.sentence
    console.print(Text(sentence + played_again_words(verdict.played_again), style))


def show_in_short(console: Console, cells: list[GateCell]) -> None:
    """Each case and the command that repeats it. A table would break the command at its width."""
    for cell in cells:
        show_case(console, cell.outcome, cell.scenario, cell.in_short, cell.replay)
    console.print()


def show_case(console: Console, outcome: str, scenario: str, words: str, replay: str) -> None:
    console.print(Text.assemble(" ", (MARK[outcome], STYLE[outcome]), "  ", (scenario, "bold"), f"  {words}"))
    if replay:
        console.print(Text(f"    again: {runnable(replay)}", "dim"))


def show_application(console: Console, case: GateApplication, *, quiet: bool) -> None:
    """The case of an application; of one that failed the smallest story, and what to do about it."""
    console.print(Text.assemble((case.name, "bold"), f", an application: {case.file}"))
    if quiet:
        show_case(console, case.outcome, SEARCH, case.in_short, case.replay)
        console.print()
        return
    table = Table(box=None, padding=(0, 1), show_header=False)
    table.add_row(Text(MARK[case.outcome], STYLE[case.outcome]), Text(SEARCH, "bold"), Text(case.in_short))
    console.print(table)
    for warning in case.warnings if case.outcome != FAILED else ():  # a failure names its cause
        console.print(Text(f"    warning: {warning.rule}: {warning.sentence}", "yellow"))
    console.print()
    if case.story:
        show_part(console, "What happened", *([case.happened] if case.happened else []))
        for line in case.story:
            console.print(Text(f"  {line}"), soft_wrap=True)
        console.print()
    if case.outcome == FAILED:
        show_part(console, "Why it matters", case.matters)
        show_part(console, "What to do", *case.to_do)
    if case.schedule:
        show_part(console, "See it happen")
        again = shlex.split(case.replay)[-1]
        page = shlex.join(["lockstorm", "report", again, "-o", "found.html"])
        console.print(Text(f"  {runnable(case.replay)}\n  {runnable(page)}"), "", soft_wrap=True)


def cells_table(cells: list[GateCell]) -> Table:
    table = Table(box=None, padding=(0, 1), show_header=False)
    for cell in cells:
        line = Text(cell.in_short)
        for each in cell.accepted:
            line.append(f"\naccepted until {each.until}: {each.why}", "dim")
        table.add_row(Text(MARK[cell.outcome], STYLE[cell.outcome]), Text(cell.scenario, "bold"), line)
    return table


def counts_table(verdict: GateVerdict) -> Table:
    """A line for each lock and application: how many of its cases had which outcome."""
    outcomes = [each for each in MARK if each in ALWAYS_COUNTED or each in verdict.outcomes]
    apps, of_locks = verdict.applications, bool(verdict.locks)
    title = "lock or application" if apps and of_locks else "application" if apps else "lock"
    titles = [title, "store" if of_locks else "", "cases"]
    table = Table(*titles, *(each.replace("-", " ") for each in outcomes), box=None, padding=(0, 1))
    for lock in verdict.locks:
        cells = verdict.cells_of(lock)
        counts = [sum(cell.outcome == each for cell in cells) for each in outcomes]
        table.add_row(lock.name, lock.store, str(len(cells)), *map(str, counts))
    for case in apps:
        table.add_row(case.name, "", "1", *(str(int(case.outcome == each)) for each in outcomes))
    return table


def show_failed(console: Console, failed: list[GateCell], lock: GateLock) -> None:
    """The scenarios that break this lock, its own mistakes first; what they harm, and what to do about it."""
    failed = sorted(failed, key=lambda cell: not is_own_mistake(cell.baseline))
    stories = [f"{cell.scenario}: {cell.in_full}" for cell in failed[:STORIES_MOST]]
    if len(failed) > STORIES_MOST:
        stories.append(f"And {len(failed) - STORIES_MOST} more, in the list above.")
    harms = dict.fromkeys(name for cell in failed for name in cell.violated)
    show_part(console, "What happened", *stories)
    show_part(console, "Why it matters", why_it_matters(harms))
    show_part(console, "What to do", *what_to_do(lock))
    if lock.advice and lock.advice.change:
        where = f"The lock is chosen in {lock.used}. " if lock.used else ""
        show_part(console, "", f"{where}In the policy, replace the lock from line {lock.line} on by:")
        console.print(Text(indent(lock.advice.change, " " * 6), "cyan"))
    console.print(Text("See it happen", "bold"))
    console.print(Text(f"  {runnable(failed[0].replay)}"))
    console.print()


def show_part(console: Console, title: str, *paragraphs: str) -> None:
    """Prints paragraphs under a title, wrapped at a readable width also without a terminal."""
    if title:
        console.print(Text(title, "bold"))
    for paragraph in paragraphs:
        width = min(console.width, TEXT_WIDTH)
        text = fill(paragraph, width, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
        console.print(Text(text))


def remarks_of(verdict: GateVerdict) -> Iterator[str]:
    file = verdict.policy.file
    for each in verdict.unjudged:
        yield (
            f"{each.lock}/{each.store}: {each.property.replace('_', ' ')} is required, but no trial judges "
            "it: add a scenario or a storm that does (crash-holder for liveness), or do not require it"
        )
    for acceptance in verdict.acceptances:
        where = f"{file}:{acceptance.line}: the acceptance of {acceptance.scenario} for {acceptance.lock}"
        if acceptance.state == "gone":
            yield f"{where}: this no longer happens, remove the acceptance"
        elif acceptance.state == "expired":
            yield f"{where} was valid until {acceptance.until}: it has expired"
