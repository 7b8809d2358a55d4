"""The matrix for a terminal: a grid, or sentences when it is about one lock or one scenario."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from harness.driver.library import locks

STYLE = {"holds": "green", "fenced": "cyan", "violated": "bold red", "stuck": "magenta", "inconclusive": "yellow"}
MARK = {"holds": "✓", "fenced": "◇", "violated": "✗", "stuck": "∞", "inconclusive": "?"}
MEANING = {
    "holds": "all that was required",
    "fenced": "two holders, and the store refused the damage",
    "violated": "damage, or two holders where nothing refuses it",
    "stuck": "nobody was hurt, somebody was left waiting",
    "inconclusive": "nothing was learned",
}
NOT_PLAYED, UNFIT = " ", "·"
CELL_WIDTH = 2  # a mark, and what it is marked with
NAMES_SHOWN = 5
WAITS = ("not", "polling", "blocking-pop", "push", "in-server")  # families of locks, the plain ones first

Grid = dict[str, dict[str, dict[str, Any]]]  # scenario -> column -> cell


def column_of(cell: dict[str, Any]) -> str:
    return str(cell["lock"]) if cell["store"] == "open" else f"{cell['lock']} / {cell['store']}"


def rank_of(column: str) -> tuple[bool, bool, int, int, str]:
    """Locks on one redis-server first, by the way in which they wait."""
    lock = next(lock for lock in locks() if lock["name"] == column.partition(" / ")[0])
    elsewhere = lock["service"] != "redis"
    return elsewhere, lock["nodes"] * (1 + lock["replicas"]) > 1, lock["nodes"], WAITS.index(lock["waits"]), column


def grid_of(cells: Iterable[dict[str, Any]]) -> tuple[Grid, list[str]]:
    """The cells by scenario and column, and the columns in their order."""
    grid: Grid = {}
    for cell in cells:
        grid.setdefault(cell["scenario"], {})[column_of(cell)] = cell
    columns = {column for row in grid.values() for column in row}
    return grid, sorted(columns, key=rank_of)


def mark_of(cell: dict[str, Any]) -> Text:
    """A cell in two characters."""
    behind = "!" if not cell["ok"] else "*" if cell["control"] != "holds" else " "
    return Text(MARK[cell["result"]] + behind, STYLE[cell["result"]] + (" reverse" if not cell["ok"] else ""))


def groups_of(columns: list[str], left: int, width: int) -> list[list[str]]:
    """As many columns side by side as fit: each has its name above it, which reaches out to the right."""
    groups: list[list[str]] = [[]]
    for column in columns:
        if groups[-1] and left + CELL_WIDTH * len(groups[-1]) + len(column) > width:
            groups.append([])
        groups[-1].append(column)
    return groups


def staircase(columns: list[str], left: int) -> Text:
    """The names of the columns, a line each, and a rail from each down to its column."""
    text = Text()
    for number, column in enumerate(columns):
        text.append(" " * left + "│ " * number, "dim")
        text.append(column + "\n", "bold")
    text.append(" " * left + "│ " * len(columns), "dim")
    text.rstrip()
    return text


def grid_rows(grid: Grid, columns: list[str], unfit: set[tuple[str, str]], left: int) -> Text:
    text = Text()
    for scenario, row in grid.items():
        text.append(f"{scenario:{left}}")
        for column in columns:
            if column in row:
                text.append_text(mark_of(row[column]))
            else:
                is_unfit = (scenario, column.partition(" / ")[0]) in unfit
                text.append(f"{UNFIT if is_unfit else NOT_PLAYED:{CELL_WIDTH}}", "dim")
        text.append("\n")
    text.rstrip()
    return text


def legend_of(cells: list[dict[str, Any]], unfit: bool) -> Text:
    """What the marks mean that are in the grid."""
    text = Text()
    for word, meaning in MEANING.items():
        if any(cell["result"] == word for cell in cells):
            text.append(f"{MARK[word]} {word}", STYLE[word])
            text.append(f": {meaning}\n", "dim")
    if any(cell["control"] != "holds" for cell in cells):
        text.append("* its control, the same without the fault, does not hold either\n", "dim")
    if any(not cell["ok"] for cell in cells):
        text.append("! not as expected\n", "dim")
    if unfit:
        text.append(f"{UNFIT} not applicable: no story about this lock\n", "dim")
    text.rstrip()
    return text


def grid_view(console: Console, result: dict[str, Any]) -> Group:
    grid, columns = grid_of(result["cells"])
    unfit = {(pair["scenario"], pair["lock"]) for pair in result["unfit"]}
    left = max(len(scenario) for scenario in grid) + 2
    blocks: list[Text] = []
    for group in groups_of(columns, left, console.width):
        blocks += [staircase(group, left), grid_rows(grid, group, unfit, left), Text()]
    return Group(*blocks, legend_of(result["cells"], bool(unfit)))


def list_view(result: dict[str, Any], by_lock: bool) -> Group:
    """A sentence a cell: of one lock every scenario, or of one scenario every lock."""
    blocks: list[Any] = []
    for title, cells in sections_of(result["cells"], by_lock).items():
        table = Table(box=None, padding=(0, 1), show_header=False)
        for cell in cells:
            name = cell["scenario"] if by_lock else column_of(cell)
            behind = "" if cell["control"] == "holds" else f"; control: {cell['control']}"
            told = Text(f"{cell['sentence']}{behind}")
            if cell["reason"]:
                told.append(f"\n{cell['reason']}", "dim")
            word = Text(cell["result"] + ("" if cell["ok"] else " !"), STYLE[cell["result"]])
            table.add_row(Text(name, "bold"), word, told)
        blocks += [Text(title, "bold underline"), table, Text()]
    if result["unfit"]:
        blocks.append(unfit_view(result["unfit"], by_lock))
    return Group(*blocks)


def sections_of(cells: list[dict[str, Any]], by_lock: bool) -> dict[str, list[dict[str, Any]]]:
    sections: dict[str, list[dict[str, Any]]] = {}
    for cell in cells if by_lock else sorted(cells, key=lambda cell: rank_of(column_of(cell))):
        sections.setdefault(column_of(cell) if by_lock else cell["scenario"], []).append(cell)
    return sections


def unfit_view(unfit: list[dict[str, str]], by_lock: bool) -> Group:
    """What is no story about a lock, by reason."""
    by_reason: dict[str, list[str]] = {}
    for pair in unfit:
        reason = pair["reason"] if by_lock else pair["reason"].removeprefix(pair["lock"] + " ")
        by_reason.setdefault(reason, []).append(pair["scenario" if by_lock else "lock"])
    lines = [Text(f"{reason}: {', '.join(names)}", "dim") for reason, names in by_reason.items()]
    return Group(Text("not applicable", "bold underline"), *(Padding(line, (0, 1)) for line in lines), Text())


def show(console: Console, result: dict[str, Any]) -> None:
    """The matrix; below it the cells that are not as expected, each with the command for it."""
    cells = result["cells"]
    by_lock = len({cell["lock"] for cell in cells}) == 1
    by_scenario = len({cell["scenario"] for cell in cells}) == 1
    if cells:
        console.print(list_view(result, by_lock) if by_lock or by_scenario else grid_view(console, result))
        console.print()
    for cell in cells:
        if not cell["ok"] and cell["expected"]:
            show_difference(console, cell)
    show_untold(console, [cell for cell in cells if not cell["expected"]])
    console.print(closing(result))
    if cells and not (by_lock or by_scenario):
        console.print(Text("One cell in detail: ./lockstorm run SCENARIO --lock LOCK [--store MODE]", "dim"))


def show_difference(console: Console, cell: dict[str, Any]) -> None:
    console.print(Text(f"{cell['scenario']} with {cell['lock']}/{cell['store']}: {cell['difference']}", "bold red"))
    console.print(Text(f"  {cell['sentence']}"))
    console.print(Text(f"  again: ./{cell['replay']}", "dim"))
    if "control:" in cell["difference"]:
        console.print(Text(f"  its control: ./{cell['control_replay']}", "dim"))


def show_untold(console: Console, cells: list[dict[str, Any]]) -> None:
    """Nobody has said yet what these are expected to show."""
    by_scenario: dict[str, list[str]] = {}
    for cell in cells:
        by_scenario.setdefault(cell["scenario"], []).append(column_of(cell))
    for scenario, columns in by_scenario.items():
        names = ", ".join(columns[:NAMES_SHOWN]) + (", …" if len(columns) > NAMES_SHOWN else "")
        told = f"{scenario}: scenarios/expected.toml says nothing yet about {len(columns)} of these cells ({names})"
        console.print(Text(told, "bold yellow"))


def closing(result: dict[str, Any]) -> Text:
    """The matrix in a line."""
    count, wrong = len(result["cells"]), sum(not cell["ok"] for cell in result["cells"])
    repeated = f", {result['repeat']} times each" if result["repeat"] > 1 else ""
    told = f"{count} cell{'s' if count != 1 else ''}{repeated}"
    told += ", all as expected" if not wrong else f": {wrong} not as expected"
    left_out = len(result["unplayed"])
    if result["interrupted"]:
        told = f"interrupted: {told}; {left_out} not known"
    elif left_out:
        told += f"; {left_out} cannot be played in {result['time']} time"
    for reason, number in Counter(cell["reason"] for cell in result["not_installed"]).items():
        told += f"; {number} not installed ({reason})"
    bad = wrong or result["interrupted"]
    return Text(told, "bold red" if wrong else "bold yellow" if bad else "bold green")
