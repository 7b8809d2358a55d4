"""The matrix in a terminal: a grid, or a list of sentences if it has only one lock or only one scenario."""

from collections import Counter
from collections.abc import Iterable

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lockstorm.base.paths import runnable
from lockstorm.locks.lock_names import lock_named
from lockstorm.results.matrix_result import InapplicablePair, MatrixCell, MatrixResult
from lockstorm.results.verdict import played_again_words
from lockstorm.scenario.cells import MARK

STYLE = {"holds": "green", "fenced": "cyan", "violated": "bold red", "stuck": "magenta", "inconclusive": "yellow"}
MEANING = {
    "holds": "every required property holds",
    "fenced": "two holders, and the store refused the damage",
    "violated": "damage, or two holders and a store that refuses nothing",
    "stuck": "no damage, but a client was left waiting",
    "inconclusive": "nothing was learned",
}
NOT_PLAYED, NOT_APPLICABLE = " ", "·"
CELL_WIDTH = 2  # the mark of the result, and one of " *!"
NAMES_SHOWN = 5
WAITS = ("not", "polling", "blocking-pop", "push", "in-server")  # families of locks in their order, the simplest first

Grid = dict[str, dict[str, MatrixCell]]  # scenario -> column -> cell


def column_of(cell: MatrixCell) -> str:
    return cell.lock if cell.store == "open" else f"{cell.lock} / {cell.store}"


def rank_of(column: str) -> tuple[bool, bool, int, int, str]:
    """Sort key of a column: locks on one redis-server first, ordered by how they wait."""
    lock = lock_named(column.partition(" / ")[0])
    elsewhere = lock.service != "redis"
    return elsewhere, lock.nodes * (1 + lock.replicas) > 1, lock.nodes, WAITS.index(lock.waits), column


def grid_of(cells: Iterable[MatrixCell]) -> tuple[Grid, list[str]]:
    """The cells by scenario and column, and the sorted columns."""
    grid: Grid = {}
    for cell in cells:
        grid.setdefault(cell.scenario, {})[column_of(cell)] = cell
    columns = {column for row in grid.values() for column in row}
    return grid, sorted(columns, key=rank_of)


def table_mark(cell: MatrixCell) -> Text:
    """A cell in two characters."""
    suffix = "!" if not cell.ok else "*" if cell.control != "holds" else " "
    return Text(MARK[cell.result] + suffix, STYLE[cell.result] + (" reverse" if not cell.ok else ""))


def table_groups(columns: list[str], left: int, width: int) -> list[list[str]]:
    """Groups of columns that fit into the width. The name of a column is above it and extends to its right."""
    groups: list[list[str]] = [[]]
    for column in columns:
        if groups[-1] and left + CELL_WIDTH * len(groups[-1]) + len(column) > width:
            groups.append([])
        groups[-1].append(column)
    return groups


def staircase(columns: list[str], left: int) -> Text:
    """The names of the columns, one per line, each with a vertical line down to its column."""
    text = Text()
    for number, column in enumerate(columns):
        text.append(" " * left + "│ " * number, "dim")
        text.append(column + "\n", "bold")
    text.append(" " * left + "│ " * len(columns), "dim")
    text.rstrip()
    return text


def grid_rows(grid: Grid, columns: list[str], inapplicable: set[tuple[str, str]], left: int) -> Text:
    text = Text()
    for scenario, row in grid.items():
        text.append(f"{scenario:{left}}")
        for column in columns:
            if column in row:
                text.append_text(table_mark(row[column]))
            else:
                mark = NOT_APPLICABLE if (scenario, column.partition(" / ")[0]) in inapplicable else NOT_PLAYED
                text.append(f"{mark:{CELL_WIDTH}}", "dim")
        text.append("\n")
    text.rstrip()
    return text


def legend_of(cells: list[MatrixCell], has_inapplicable: bool) -> Text:
    text = Text()
    for result, meaning in MEANING.items():
        if any(cell.result == result for cell in cells):
            text.append(f"{MARK[result]} {result}", STYLE[result])
            text.append(f": {meaning}\n", "dim")
    if any(cell.control != "holds" for cell in cells):
        text.append("* its control, the same without the fault, does not hold either\n", "dim")
    if any(not cell.ok for cell in cells):
        text.append("! not as expected\n", "dim")
    if has_inapplicable:
        text.append(f"{NOT_APPLICABLE} the scenario does not apply to this lock\n", "dim")
    text.rstrip()
    return text


def grid_view(console: Console, result: MatrixResult) -> Group:
    grid, columns = grid_of(result.cells)
    inapplicable = {(pair.scenario, pair.lock) for pair in result.inapplicable}
    left = max(len(scenario) for scenario in grid) + 2
    blocks: list[Text] = []
    for group in table_groups(columns, left, console.width):
        blocks += [staircase(group, left), grid_rows(grid, group, inapplicable, left), Text()]
    return Group(*blocks, legend_of(result.cells, bool(inapplicable)))


def list_view(result: MatrixResult, by_lock: bool) -> Group:
    """A sentence per cell: every scenario of one lock, or every lock of one scenario."""
    blocks: list[RenderableType] = []
    for title, cells in sections_of(result.cells, by_lock).items():
        table = Table(box=None, padding=(0, 1), show_header=False)
        for cell in cells:
            name = cell.scenario if by_lock else column_of(cell)
            suffix = "" if cell.control == "holds" else f"; control: {cell.control}"
            sentence = Text(f"{cell.sentence}{suffix}")
            if cell.reason:
                sentence.append(f"\n{cell.reason}", "dim")
            mark = Text(cell.result + ("" if cell.ok else " !"), STYLE[cell.result])
            table.add_row(Text(name, "bold"), mark, sentence)
        blocks += [Text(title, "bold underline"), table, Text()]
    if result.inapplicable:
        blocks.append(inapplicable_view(result.inapplicable, by_lock))
    return Group(*blocks)


def sections_of(cells: list[MatrixCell], by_lock: bool) -> dict[str, list[MatrixCell]]:
    sections: dict[str, list[MatrixCell]] = {}
    for cell in cells if by_lock else sorted(cells, key=lambda cell: rank_of(column_of(cell))):
        sections.setdefault(column_of(cell) if by_lock else cell.scenario, []).append(cell)
    return sections


def inapplicable_view(pairs: list[InapplicablePair], by_lock: bool) -> Group:
    """The pairs of scenario and lock that do not go together, by reason."""
    by_reason: dict[str, list[str]] = {}
    for pair in pairs:
        reason = pair.reason if by_lock else pair.reason.removeprefix(pair.lock + " ")
        by_reason.setdefault(reason, []).append(pair.scenario if by_lock else pair.lock)
    lines = [Text(f"{reason}: {', '.join(names)}", "dim") for reason, names in by_reason.items()]
    return Group(Text("not applicable", "bold underline"), *(Padding(line, (0, 1)) for line in lines), Text())


def show_matrix(console: Console, result: MatrixResult) -> None:
    """The matrix, then the cells that are not as expected, each with the command that repeats it."""
    cells = result.cells
    by_lock = len({cell.lock for cell in cells}) == 1
    by_scenario = len({cell.scenario for cell in cells}) == 1
    if cells:
        console.print(list_view(result, by_lock) if by_lock or by_scenario else grid_view(console, result), "")
    for cell in cells:
        if not cell.ok and cell.expected:
            show_difference(console, cell)
    show_without_expectation(console, [cell for cell in cells if not cell.expected])
    console.print(closing(result))
    if cells and not (by_lock or by_scenario):
        console.print(
            Text(f"One cell in detail: {runnable('lockstorm run SCENARIO --lock LOCK [--store MODE]')}", "dim")
        )


def show_difference(console: Console, cell: MatrixCell) -> None:
    console.print(Text(f"{cell.scenario} with {cell.lock}/{cell.store}: {cell.difference}", "bold red"))
    console.print(Text(f"  {cell.sentence}"))
    console.print(Text(f"  again: {runnable(cell.replay)}", "dim"))
    if "control:" in cell.difference:
        console.print(Text(f"  its control: {runnable(cell.control_replay)}", "dim"))


def show_without_expectation(console: Console, cells: list[MatrixCell]) -> None:
    """Names the cells for which scenarios/expected.toml has no line."""
    by_scenario: dict[str, list[str]] = {}
    for cell in cells:
        by_scenario.setdefault(cell.scenario, []).append(column_of(cell))
    for scenario, columns in by_scenario.items():
        names = ", ".join(columns[:NAMES_SHOWN]) + (", …" if len(columns) > NAMES_SHOWN else "")
        line = f"{scenario}: scenarios/expected.toml says nothing yet about {len(columns)} of these cells ({names})"
        console.print(Text(line, "bold yellow"))


def closing(result: MatrixResult) -> Text:
    """The last line: the number of cells, and of those not as expected, not played or not installed."""
    count, wrong = len(result.cells), sum(not cell.ok for cell in result.cells)
    repeated = f", {result.repeat} times each" if result.repeat > 1 else ""
    line = f"{count} cell{'s' if count != 1 else ''}{repeated}"
    as_usual = "as with the defaults" if result.config else "as expected"
    line += f", all {as_usual}" if not wrong else f": {wrong} not {as_usual}"
    left_out = len(result.unplayed)
    if result.interrupted:
        line = f"interrupted: {line}; {left_out} not known"
    elif left_out:
        line += f"; {left_out} cannot be played in {result.time} time"
    for reason, number in Counter(cell.reason for cell in result.not_installed).items():
        line += f"; {number} not installed ({reason})"
    line += played_again_words(result.played_again)
    bad = wrong or result.interrupted
    return Text(line, "bold red" if wrong else "bold yellow" if bad else "bold green")
