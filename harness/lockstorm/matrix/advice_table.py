"""The advice in a terminal: the answer, the options with their outcomes, and the table of decisions."""

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lockstorm.matrix.advice_result import Advice, Candidate, Decision
from lockstorm.matrix.candidates import names_in_short
from lockstorm.matrix.kinds_table import show_kinds, show_remedies
from lockstorm.matrix.matrix_table import STYLE
from lockstorm.scenario.scenario import scenarios

OTHERS_MOST = 6  # groups of options that are not recommended


def same_outcome(options: list[Candidate]) -> list[list[Candidate]]:
    """Groups of options with the same outcomes, the best group first."""
    groups: dict[tuple[tuple[str, ...], ...], list[Candidate]] = {}
    for option in options:
        groups.setdefault(option.outcome, []).append(option)
    return list(groups.values())


def show_advice(console: Console, advice: Advice) -> None:
    titles = [choice.title for choice in advice.recommended]
    recommended = [option for option in advice.options if option.title in titles]
    console.print(Text(advice.sentence, "bold"))
    console.print()
    if recommended:
        console.print(options_table(same_outcome(recommended)), "")
        show_remarks(console, recommended)
    show_remedies(console, advice.remedies)
    if advice.prevention:
        console.print(Text("What prevents it", "bold underline"))
        console.print(pairs_table(advice.prevention.items()), "")
    if advice.unpreventable:
        console.print(Text("What cannot be prevented", "bold underline"))
        console.print(pairs_table((name, scenarios()[name].summary) for name in advice.unpreventable), "")
    others = [option for option in advice.options if option not in recommended]
    if others:
        console.print(Text("And the others", "bold underline"))
        console.print(options_table(same_outcome(others)[:OTHERS_MOST]))
        if len(same_outcome(others)) > OTHERS_MOST:
            console.print(Text(f" and {len(same_outcome(others)) - OTHERS_MOST} more outcomes: --json has all", "dim"))
        console.print()
    show_kinds(console, advice.kinds)
    console.print(Text("The table of decisions", "bold underline"))
    console.print(decisions_table(advice.decisions), "")
    console.print(Text("Not measured", "bold underline"))
    for what in advice.not_measured:
        console.print(Text(f" - {what}", "dim"))
    console.print(Text(f"From {advice.source}.", "dim"))


def show_remarks(console: Console, options: list[Candidate]) -> None:
    """Each remark once, with the locks that it concerns."""
    about: dict[str, list[str]] = {}
    for option in options:
        for remark in option.remarks:
            about.setdefault(remark, []).append(option.lock)
    for remark, names in about.items():
        console.print(Text(f" {names_in_short(dict.fromkeys(names))}: {remark}"))
    if about:
        console.print()


def options_table(groups: list[list[Candidate]]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 1), header_style="dim")
    for title in ("lock and store", "survives", "is damaged by", "leaves waiting"):
        table.add_column(title, overflow="fold")
    for group in groups:
        first = group[0]
        count = f"{len(first.survives)}" + (f", {len(first.unknown)} unknown" if first.unknown else "")
        table.add_row(
            Text(names_in_short(option.title for option in group), "bold"),
            Text(count, STYLE["holds"]),
            Text(names_in_short(first.damaged), STYLE["violated"]),
            Text(names_in_short(first.stuck), STYLE["stuck"]),
        )
    return table


def pairs_table(pairs: Iterable[tuple[str, str]]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 1), show_header=False)
    for name, meaning in pairs:
        table.add_row(Text(name, "bold"), meaning)
    return table


def decisions_table(decisions: list[Decision]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 1), header_style="dim")
    for title in ("for", "resource", "servers", "fails least", "fails in", "unpreventable"):
        table.add_column(title, overflow="fold")
    for row in decisions:
        count, unpreventable_count = len(row.damaged) + len(row.stuck), len(row.unpreventable)
        table.add_row(
            row.purpose,
            row.resource,
            row.servers,
            Text(
                names_in_short((choice.title for choice in row.best), 2) + (" (not all known)" if row.unknown else ""),
                "bold",
            ).append(" - a crashed holder blocks for ever" if row.blocks_after_crash else "", STYLE["stuck"]),
            f"{count} scenarios",
            Text(str(unpreventable_count), STYLE["violated" if unpreventable_count else "holds"]),
        )
    return table
