"""The advice in a terminal: the answer, the options with their outcomes, the remedies, the kinds of services with a
mark for each scenario that was played with all of them, and the table of decisions."""

from collections import Counter
from collections.abc import Iterable

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lockstorm.base.paths import runnable
from lockstorm.matrix.advice_result import Advice, Candidate, Decision, KindRow, Kinds, MeasuredCost, RemedyRow, Seen
from lockstorm.matrix.candidates import names_in_short
from lockstorm.matrix.matrix_table import MEANING, STYLE
from lockstorm.matrix.service_kinds import JUDGED
from lockstorm.scenario.cells import MARK
from lockstorm.scenario.scenario import scenarios

OTHERS_MOST = 6  # groups of options that are not recommended


PLACE = ("lock and store", "shared", "all of its own", "survives")
COUNTS = ("exclusion holds", "integrity holds", "liveness holds")  # JUDGED
UNBROKEN = ("kind", *PLACE[1:], *COUNTS, "scenario")
WIDE = 132  # columns of a terminal; a narrower one shows COUNTS in a table of their own
BREAKS_MOST = 12
BAR_WIDTH = 12
BAR = {"holds": "█", "violated": "▒", "stuck": "░"}


def show_remedies(console: Console, remedies: list[RemedyRow]) -> None:
    if not remedies:
        return
    console.print(Text("What an expert would do", "bold underline"))
    for row in remedies:
        console.print(Text(f" - {row.action}"))
        for label, choice in (("without", row.without), ("with", row.with_)):
            console.print(command_line(label, row.scenario, choice))
        if limit := row.limit:
            console.print(command_line("limit", limit.scenario, limit))
            console.print(Padding(Text(limit.note, "dim"), (0, 0, 0, 11)))
    console.print()


def command_line(label: str, scenario: str, choice: Seen) -> Padding:
    """What was seen, and below it the command that shows it."""
    result = choice.result
    text = Text(f"{label:8}", "dim").append(f"{result or 'not played'}", STYLE[result] if result else "dim")
    text.append(f": {scenario}, {choice.title}\n", "default")
    return Padding(text.append(f"        {runnable(choice.command)}", "bold"), (0, 0, 0, 3))


def show_kinds(console: Console, kinds: Kinds) -> None:
    console.print(Text("By kind of service, the best lock of each", "bold underline"))
    console.print(Text(kinds.sentence))
    for columns in (PLACE + COUNTS,) if console.width >= WIDE else (PLACE, COUNTS):
        console.print(kinds_grid(kinds.rows, columns))
    show_shared(console, kinds)
    for caution in kinds.cautions:
        console.print(Text(f" {caution}"))
    console.print()
    console.print(Text("What breaks the best lock of each kind", "bold underline"))
    console.print(breaks_grid(kinds.rows))
    console.print(sentences_grid(kinds.rows), "")
    console.print(Text("What it costs", "bold underline"))
    console.print(costs_grid(kinds.rows))
    if not any(row.cost.measured for row in kinds.rows):
        on_redis = dict.fromkeys(row.lock for row in kinds.rows if row.kind.startswith("red"))
        command = f"lockstorm compare --waiters 1 --rate none --lock {','.join(on_redis)} -o costs.json"
        console.print(Text(f" Measure those on Redis: {runnable(command)}; then --costs costs.json", "dim"))
    console.print()


def plain_grid(*titles: str, gap: int = 1) -> Table:
    table = Table(box=None, padding=(0, gap, 0, 1), header_style="dim")
    for title in titles:
        table.add_column(title, overflow="fold", no_wrap=title in UNBROKEN)
    return table


def kinds_grid(rows: list[KindRow], columns: tuple[str, ...]) -> Table:
    table = plain_grid("kind", *columns)
    for row in rows:
        equal = f" and {len(row.equal)} more" if row.equal else ""
        cells: dict[str, Text | str] = {
            "lock and store": row.title_of_lock + equal,
            "shared": Text.assemble(*((MARK[result], STYLE[result]) for result in row.shared.values())),
            "all of its own": held_bar(row),
            "survives": f"{len(row.survives)} of {known_count(row)}",
            **{name: share_held(row.properties[key]) for name, key in zip(COUNTS, JUDGED, strict=True)},
        }
        table.add_row(Text(row.title, "bold"), *(cells[name] for name in columns))
    return table


def known_count(row: KindRow) -> int:
    return len(row.survives) + len(row.damaged) + len(row.stuck)


def held_bar(row: KindRow) -> Text:
    """A bar of the scenarios that the lock survives, that damage, and that leave a client waiting. A part that is not
    empty has at least one character."""
    counts = {"holds": len(row.survives), "violated": len(row.damaged), "stuck": len(row.stuck)}
    total = known_count(row)
    if not total:
        return Text("not played", "dim")
    widths = {name: max(1, round(BAR_WIDTH * count / total)) if count else 0 for name, count in counts.items()}
    widths[max(counts, key=lambda name: counts[name])] += BAR_WIDTH - sum(widths.values())  # what rounding took or gave
    return Text.assemble(*((BAR[name] * width, STYLE[name]) for name, width in widths.items()))


def share_held(counts: dict[str, int]) -> str:
    return f"{counts.get('holds', 0)} of {sum(counts.values())}" if counts else "-"


def show_shared(console: Console, kinds: Kinds) -> None:
    results = {result: None for row in kinds.rows for result in row.shared.values()}
    legend = ", ".join(f"{MARK[result]} {MEANING[result]}" for result in MARK if result in results)
    if kinds.shared:
        console.print(Text(f" shared, from left to right: {', '.join(kinds.shared)}", "dim"))
        console.print(Text(f" {legend}", "dim"))
    meaning = f"{BAR['holds']} survives, {BAR['violated']} is damaged, {BAR['stuck']} leaves a client waiting"
    console.print(Text(f" {meaning}; a property is not judged in every scenario", "dim"))


def breaks_grid(rows: list[KindRow]) -> Table:
    table = plain_grid("kind", "is damaged by (✗), leaves a client waiting in (∞)")
    for row in rows:
        lines = [
            Text(f"{MARK[result]} {names_in_short(names, BREAKS_MOST)}", STYLE[result])
            for result, names in (("violated", row.damaged), ("stuck", row.stuck))
            if names
        ]
        table.add_row(Text(row.title, "bold"), Text("\n").join(lines))
    return table


def sentences_grid(rows: list[KindRow]) -> Table:
    """Each scenario that breaks a kind, once: the one that breaks most kinds first."""
    counts = Counter(each.scenario for row in rows for each in row.breaks)
    table = plain_grid("scenario", "breaks", "what happens in it")
    for name in sorted(counts, key=lambda name: (-counts[name], name)):
        table.add_row(Text(name, "bold"), f"{counts[name]} of {len(rows)}", scenarios()[name].summary)
    return table


def costs_grid(rows: list[KindRow]) -> Table:
    table = plain_grid("kind", "servers", "lock", "costs", "measured, one client")
    for row in rows:
        cost = row.cost
        table.add_row(
            Text(row.title, "bold"),
            str(cost.servers),
            row.lock,
            cost.text,
            measured_words(cost.measured),
        )
    return table


def measured_words(measured: MeasuredCost | None) -> str:
    if not measured:
        return "not measured"
    return f"{measured.requests_per_grant:g} requests a grant, {measured.cost_ratio:g} x redis-benchmark"


def same_outcome(options: list[Candidate]) -> list[list[Candidate]]:
    """Groups of options with the same outcomes, the best group first."""
    groups: dict[tuple[tuple[str, ...], ...], list[Candidate]] = {}
    for option in options:
        groups.setdefault(option.outcome, []).append(option)
    return list(groups.values())


def show_advice(console: Console, advice: Advice) -> None:
    titles = [choice.title for choice in advice.recommended]
    recommended = [option for option in advice.options if option.title in titles]
    for line in advice.answer:
        console.print(Text(line, "bold"))
    if rest := advice.sentence.removeprefix(" ".join(advice.answer)).strip():
        console.print(Text(rest))
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
    table = plain_grid("for", "resource", "servers", "fails least", "fails in", "unpreventable", gap=2)
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
