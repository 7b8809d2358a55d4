"""A matrix, or the results of a gate, as a page: a row for each lock, a column for each scenario, and the details of
the chosen cell beside them."""

from typing import Any

from lockstorm.report.trial_page import render

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


def matrix_page(matrix: dict[str, Any], version: str) -> str:
    gate = "policy" in matrix
    odd_word = "not as the policy asks" if gate else "not as expected"
    cells = [
        {key: cell_text(cell.get(key)) for key in CELL_FIELDS}
        | {"odd": is_odd(cell), "mismatch": mismatch_text(cell, odd_word)}
        for cell in matrix["cells"]
    ]
    scenarios = list(dict.fromkeys(cell["scenario"] for cell in cells))
    locks = sorted(
        {(cell["lock"], cell["store"]) for cell in cells}, key=lambda pair: (pair[0], pair[1] != "open", pair)
    )
    at = {(cell["lock"], cell["store"], cell["scenario"]): number for number, cell in enumerate(cells)}
    counts = {result: sum(cell["result"] == result for cell in cells) for result in WORDS}
    odd = sum(is_odd(cell) for cell in matrix["cells"])
    return render(
        "matrix.html.j2",
        title="What the gate found" if gate else "Every lock against every scenario",
        script="matrix.js",
        version=version,
        sentence=matrix_sentence(matrix),
        exit=1 if odd else 0 if cells else 3,
        facts=[(name, str(matrix[name])) for name in ("time", "seed", "repeat") if name in matrix],
        scenarios=scenarios,
        locks=locks,
        cells=cells,
        at=at,
        counts=counts,
        words=WORDS,
        odd=odd,
        odd_word=odd_word,
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
