"""The matrix as GitHub tables, and the pages of the project that show the table of expected verdicts.

`python -m lockstorm.matrix.matrix_pages` (make matrix) writes them to docs/matrix.md, between two marks.
A test fails if a page is out of date.
"""

from collections.abc import Iterator
from pathlib import Path

from lockstorm.base import paths
from lockstorm.base.atomic_file import write_text
from lockstorm.base.marked_pages import page_with
from lockstorm.matrix.candidates import names_in_short
from lockstorm.matrix.matrix import expected_matrix
from lockstorm.matrix.matrix_table import MEANING, NOT_APPLICABLE, NOT_PLAYED, grid_of
from lockstorm.results.matrix_result import MatrixCell, MatrixResult
from lockstorm.scenario.cells import MARK
from lockstorm.scenario.scenario import scenarios

BEGIN, END = "<!-- matrix: begin, written by make matrix -->", "<!-- matrix: end -->"
COLUMNS_MOST = 8  # of a table, besides the column of scenarios
FAMOUS_SCENARIOS = (
    "gc-pause",
    "packet-delay",
    "pause-after-validity-check",
    "partition-holder",
    "failover-unreplicated",
    "restart-data-lost",
    "clock-jump-node",
    "crash-restart-node",
)
FAMOUS_LOCKS = {
    "setnx / open": "SETNX",
    "set-nx-px / open": "SET NX PX",
    "pubsub / open": "Redisson",
    "redlock / open": "Redlock",
    "set-nx-px-fenced / fence-reads-and-writes": "SET NX PX, fenced",
}


def matrix_tables(result: MatrixResult) -> str:
    """The whole matrix: a row per scenario, a column per lock, in tables of a readable width, and a legend."""
    grid, columns = grid_of(result.cells)
    inapplicable = {(pair.scenario, pair.lock) for pair in result.inapplicable}
    blocks = []
    for group in page_groups(columns):
        lines = ["| | " + " | ".join(f"`{column}`" for column in group) + " |", "|---|" + ":-:|" * len(group)]
        for scenario, row in grid.items():
            marks = [
                page_mark(row.get(column), (scenario, column.partition(" / ")[0]) in inapplicable) for column in group
            ]
            lines.append(f"| {scenario} | " + " | ".join(marks) + " |")
        blocks.append("\n".join(lines))
    return "\n\n".join([*blocks, legend(result)]) + "\n"


def page_groups(columns: list[str]) -> list[list[str]]:
    """The columns of each table: about the same number, at most COLUMNS_MOST."""
    count = -(-len(columns) // COLUMNS_MOST)
    size = -(-len(columns) // count) if count else 0
    return [columns[start : start + size] for start in range(0, len(columns), size or 1)]


def page_mark(cell: MatrixCell | None, is_inapplicable: bool) -> str:
    if cell is None:
        return NOT_APPLICABLE if is_inapplicable else NOT_PLAYED
    control = "" if cell.control == "holds" else r"\*"
    return f"{MARK[cell.result]}{control}{'' if cell.ok else ' !'}"


def legend(result: MatrixResult) -> str:
    cells = result.cells
    entries = [
        f"{MARK[result]} {result}: {meaning}"
        for result, meaning in MEANING.items()
        if any(cell.result == result for cell in cells)
    ]
    if any(cell.control != "holds" for cell in cells):
        entries.append(r"\*: the control, which is the same without the fault, does not hold either")
    if any(not cell.ok for cell in cells):
        entries.append("!: not as expected")
    if result.inapplicable:
        entries.append(f"{NOT_APPLICABLE}: does not apply to this lock")
    if result.unplayed:
        entries.append("empty: not known")
    return ". ".join(entries) + "."


def famous_table(result: MatrixResult) -> str:
    """The cells that the articles discuss, as words."""
    cells = {(cell.scenario, f"{cell.lock} / {cell.store}"): cell for cell in result.cells}
    inapplicable = {(pair.scenario, pair.lock) for pair in result.inapplicable}
    lines = ["| | " + " | ".join(FAMOUS_LOCKS.values()) + " |", "|---|" + "---|" * len(FAMOUS_LOCKS)]
    for scenario in FAMOUS_SCENARIOS:
        marks = []
        for column in FAMOUS_LOCKS:
            cell = cells.get((scenario, column))
            without = NOT_APPLICABLE if (scenario, column.partition(" / ")[0]) in inapplicable else "not known"
            marks.append(f"{MARK[cell.result]} {cell.result}" if cell else without)
        lines.append(f"| `{scenario}` | " + " | ".join(marks) + " |")
    return "\n".join(lines) + "\n"


def reasons(result: MatrixResult) -> str:
    """A section per scenario: its summary, its control, its source, and the reasons of its cells."""
    blocks = []
    for name, scenario in scenarios().items():
        lines = [f"### {name}", "", scenario.summary, f"Control: {scenario.control}. Source: {scenario.source}.", ""]
        lines += [*reasons_section(name, result), ""]
        blocks.append("\n".join(lines))
    return "\n".join(blocks)


def reasons_section(scenario: str, result: MatrixResult) -> Iterator[str]:
    by_reason: dict[tuple[str, str], list[str]] = {}
    for cell in result.cells:
        if cell.scenario == scenario and cell.reason:
            by_reason.setdefault((cell.result, cell.reason), []).append(f"`{cell.lock}/{cell.store}`")
    for (cell_result, reason), columns in by_reason.items():
        yield f"- {MARK[cell_result]} {names_in_short(columns)}: {reason}"
    locks_by_reason: dict[str, list[str]] = {}
    for pair in result.inapplicable:
        if pair.scenario == scenario:
            reason = pair.reason.removeprefix(f"{pair.lock} ")
            locks_by_reason.setdefault(reason, []).append(f"`{pair.lock}`")
    for reason, names in locks_by_reason.items():
        yield f"- {NOT_APPLICABLE} {names_in_short(names)}: {reason}"


def matrix_documents() -> dict[Path, str]:
    matrix, page = expected_matrix(), paths.ROOT / "docs" / "matrix.md"
    text = f"{famous_table(matrix)}\n{matrix_tables(matrix)}\n## Why\n\n{reasons(matrix)}"
    return {page: page_with(page, text, BEGIN, END)}


if __name__ == "__main__":
    for page, text in matrix_documents().items():
        write_text(page, text)
