"""A matrix, or the results of a gate, as a page: a row for each lock, a column for each scenario, and the details of
the chosen cell beside them. The page of lock libraries is the same grid (library_grid.py)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lockstorm.report.templates import ICONS, render
from lockstorm.results.gate_verdict import GateCell, GateVerdict
from lockstorm.results.matrix_result import MatrixCell, MatrixResult

WORDS = {
    "holds": "nothing was violated",
    "fenced": "mutual exclusion was violated, and the fence protected the resource",
    "violated": "a property was violated",
    "stuck": "a client was left waiting, or the lock left something behind",
    "inconclusive": "no verdict was possible",
}


@dataclass(frozen=True, kw_only=True)
class GridCell:
    """A cell as matrix.js shows it. Its row is `lock` and `store`, its column `scenario`."""

    lock: str
    store: str
    scenario: str
    result: str  # of the grid's words
    sentence: str
    reason: str
    replay: str
    odd: bool  # a mark shows it
    mismatch: str  # why it is odd
    expected: str = ""
    control: str = ""
    control_expected: str = ""
    control_replay: str = ""
    more: tuple[tuple[str, str], ...] = ()  # titles and texts


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A page with filters."""

    title: str
    sentence: str
    exit: int  # 0, 1, 3: the colour of the sentence
    words: Mapping[str, str]  # the results, and what each means
    icons: Mapping[str, str] = field(default_factory=lambda: ICONS)  # of the results
    cells: list[GridCell]
    odd_word: str  # what the mark means
    only_odd: str  # the label of the filter for it
    axes: str = "Locks down, scenarios across"
    searched: str = "lock or scenario"
    facts: list[tuple[str, str]] = field(default_factory=list)
    column_words: Mapping[str, str] = field(default_factory=dict)  # what a column means, by its name


def grid_page(grid: Grid) -> str:
    cells = grid.cells
    rows = {(cell.lock, cell.store) for cell in cells}
    return render(
        "matrix.html.j2",
        title=grid.title,
        script="matrix.js",
        grid=grid,
        scenarios=list(dict.fromkeys(cell.scenario for cell in cells)),
        locks=sorted(rows, key=lambda pair: (pair[0], pair[1] != "open", pair)),
        at={(cell.lock, cell.store, cell.scenario): number for number, cell in enumerate(cells)},
        counts={result: sum(cell.result == result for cell in cells) for result in grid.words},
        odd=sum(cell.odd for cell in cells),
    )


def matrix_grid(matrix: MatrixResult | GateVerdict) -> Grid:
    cells = [grid_cell(cell) for cell in matrix.cells]
    facts = []
    if isinstance(matrix, MatrixResult) and matrix.time:  # not the table of expected verdicts
        facts = [("time", matrix.time), ("seed", str(matrix.seed)), ("repeat", str(matrix.repeat))]
    odd_word = ODD_WORDS[isinstance(matrix, GateVerdict)]
    return Grid(
        title="What the gate found" if isinstance(matrix, GateVerdict) else "Every lock against every scenario",
        sentence=matrix_sentence(matrix),
        exit=1 if any(cell.odd for cell in cells) else 0 if cells else 3,
        words=WORDS,
        cells=cells,
        odd_word=odd_word,
        only_odd=f"only what is {odd_word}",
        facts=facts,
    )


ODD_WORDS = {False: "not as expected", True: "not as the policy asks"}  # True: of the gate


def grid_cell(cell: MatrixCell | GateCell) -> GridCell:
    is_gate = isinstance(cell, GateCell)
    why = (
        cell.in_short if isinstance(cell, GateCell) else "" if cell.expected else "no result is expected for this cell"
    )
    mismatch = "" if cell.ok else f"{ODD_WORDS[is_gate].capitalize()}{f': {why}' if why else ''}"
    return GridCell(
        lock=cell.lock,
        store=cell.store or "",
        scenario=cell.scenario,
        result=cell.result or "",
        sentence=cell.sentence or "",
        reason=cell.reason or "",
        replay=cell.replay or "",
        odd=not cell.ok,
        mismatch=mismatch,
        expected=cell.expected or "",
        control=cell.control or "",
        control_expected=cell.control_expected or "",
        control_replay=cell.control_replay or "",
    )


def matrix_sentence(matrix: MatrixResult | GateVerdict) -> str:
    if isinstance(matrix, GateVerdict):
        return matrix.sentence
    odd = sum(not cell.ok for cell in matrix.cells)
    if not matrix.cells:
        return "The matrix is empty"
    if odd:
        return f"{odd:,} of {len(matrix.cells):,} cells {'is' if odd == 1 else 'are'} not as expected"
    return f"All {len(matrix.cells):,} cells are as expected"
