"""A matrix, or the results of a gate, as a page: a row for each lock, a column for each scenario, and the details of
the chosen cell beside them. The page of lock libraries is the same grid (library_grid.py)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lockstorm.report.templates import ICONS, render

WORDS = {
    "holds": "nothing was violated",
    "fenced": "mutual exclusion was violated, and the fence protected the resource",
    "violated": "a property was violated",
    "stuck": "a client was left waiting, or the lock left something behind",
    "inconclusive": "no verdict was possible",
}
CELL_FIELDS = (
    "scenario", "lock", "store", "result", "expected", "control", "control_expected", "sentence", "reason", "replay",
    "control_replay",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A page with filters. Each of `cells` has `lock`, `store` and `scenario`, which are its row and its column, a
    `result` of `words`, and whether it is `odd`, which a mark shows; the other keys are details, as matrix.js
    shows them."""

    title: str
    sentence: str
    exit: int  # 0, 1, 3: the colour of the sentence
    words: Mapping[str, str]  # the results, and what each means
    icons: Mapping[str, str] = field(default_factory=lambda: ICONS)  # of the results
    cells: list[dict[str, Any]]
    odd_word: str  # what the mark means
    only_odd: str  # the label of the filter for it
    axes: str = "Locks down, scenarios across"
    searched: str = "lock or scenario"
    facts: list[tuple[str, str]] = field(default_factory=list)
    column_words: Mapping[str, str] = field(default_factory=dict)  # what a column means, by its name


def grid_page(grid: Grid, version: str) -> str:
    """The page in HTML."""
    cells = grid.cells
    rows = {(cell["lock"], cell["store"]) for cell in cells}
    return render(
        "matrix.html.j2",
        title=grid.title,
        script="matrix.js",
        version=version,
        grid=grid,
        scenarios=list(dict.fromkeys(cell["scenario"] for cell in cells)),
        locks=sorted(rows, key=lambda pair: (pair[0], pair[1] != "open", pair)),
        at={(cell["lock"], cell["store"], cell["scenario"]): number for number, cell in enumerate(cells)},
        counts={result: sum(cell["result"] == result for cell in cells) for result in grid.words},
        odd=sum(cell["odd"] for cell in cells),
    )


def matrix_page(matrix: dict[str, Any], version: str) -> str:
    gate = "policy" in matrix
    odd_word = "not as the policy asks" if gate else "not as expected"
    cells = [
        {key: cell_text(cell.get(key)) for key in CELL_FIELDS}
        | {"odd": is_odd(cell), "mismatch": mismatch_text(cell, odd_word)}
        for cell in matrix["cells"]
    ]
    any_odd = any(is_odd(cell) for cell in matrix["cells"])
    return grid_page(
        Grid(
            title="What the gate found" if gate else "Every lock against every scenario",
            sentence=matrix_sentence(matrix),
            exit=1 if any_odd else 0 if cells else 3,
            words=WORDS,
            cells=cells,
            odd_word=odd_word,
            only_odd=f"only what is {odd_word}",
            facts=[(name, str(matrix[name])) for name in ("time", "seed", "repeat") if name in matrix],
        ),
        version,
    )


def cell_text(value: Any) -> str:
    return "" if value is None else str(value)


def is_odd(cell: dict[str, Any]) -> bool:
    """Whether a cell differs from the expected results; the matrix compares each property, see its `ok`."""
    return not cell.get("ok", cell["result"] == cell["expected"])


def mismatch_text(cell: dict[str, Any], odd_word: str) -> str:
    """How a cell differs from the expected results; empty if it does not."""
    if not is_odd(cell):
        return ""
    why = cell.get("in_short") or ("" if cell["expected"] else "no result is expected for this cell")
    return f"{odd_word.capitalize()}{f': {why}' if why else ''}"


def matrix_sentence(matrix: dict[str, Any]) -> str:
    if "policy" in matrix:
        return cell_text(matrix.get("sentence"))
    cells = matrix["cells"]
    odd = sum(is_odd(cell) for cell in cells)
    if not cells:
        return "The matrix is empty"
    if odd:
        return f"{odd:,} of {len(cells):,} cells {'is' if odd == 1 else 'are'} not as expected"
    return f"All {len(cells):,} cells are as expected"
