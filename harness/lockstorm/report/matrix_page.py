"""A matrix as a page: which lock survives what? A column for each lock, and the scenarios in groups by what fails."""

from collections.abc import Iterable

from lockstorm.report.cell_grid import Grid, GridCell
from lockstorm.results.matrix_result import MatrixCell, MatrixResult
from lockstorm.scenario.attached_play import attached_scenarios
from lockstorm.scenario.scenario import KINDS, scenarios

WORDS = {
    "holds": "nothing was violated",
    "fenced": "mutual exclusion was violated, and the fence protected the resource",
    "violated": "a property was violated",
    "stuck": "a client was left waiting, or the lock left something behind",
    "inconclusive": "no verdict was possible",
}
SURVIVED = ("holds", "fenced")
NO_LOCK = "none"  # the lock without exclusion
STORM, OTHER = "storm", "other"
KIND_WORDS = {**KINDS, STORM: "random faults while clients work", OTHER: ""}
LISTED_MOST = 3  # locks that the sentence names one by one
ODD_WORD = "not as expected"


def matrix_grid(matrix: MatrixResult) -> Grid:
    cells = [grid_cell(cell) for cell in matrix.cells]
    odd = sum(cell.odd for cell in cells)
    facts = [("compared with the expected verdicts", matrix_sentence(matrix))] if cells else []
    if matrix.time:  # not the table of expected verdicts
        facts += [("time", matrix.time), ("seed", str(matrix.seed)), ("repeat", str(matrix.repeat))]
    return Grid(
        title="Which lock survives what?",
        sentence=survival_sentence(cells),
        exit=1 if odd else None if cells else 3,
        words=WORDS,
        cells=cells,
        odd_word=ODD_WORD,
        only_odd=f"only what is {ODD_WORD}",
        axes="Scenarios down, locks across",
        facts=facts,
        column_words=scenario_words(cells),
        kinds=scenario_kinds(cells),
        kind_words=KIND_WORDS,
        totals={pair: f"{survived}/{judged}" for pair, (survived, judged) in survivals(cells).items()},
    )


def scenario_kinds(cells: Iterable[GridCell]) -> dict[str, str]:
    """The kind of each scenario, by its name."""
    known = {**attached_scenarios(), **scenarios()}
    return {
        name: (known[name].kind if name in known else STORM if name.startswith(f"{STORM}-") else "") or OTHER
        for name in {cell.scenario for cell in cells}
    }


def scenario_words(cells: Iterable[GridCell]) -> dict[str, str]:
    known = {**attached_scenarios(), **scenarios()}
    return {cell.scenario: known[cell.scenario].summary for cell in cells if cell.scenario in known}


def grid_cell(cell: MatrixCell) -> GridCell:
    why = "" if cell.expected else "no result is expected for this cell"
    return GridCell(
        lock=cell.lock,
        store=cell.store or "",
        scenario=cell.scenario,
        result=cell.result or "",
        sentence=cell.sentence or "",
        reason=cell.reason or "",
        replay=cell.replay or "",
        odd=not cell.ok,
        mismatch="" if cell.ok else f"{ODD_WORD.capitalize()}{f': {why}' if why else ''}",
        expected=cell.expected or "",
        control=cell.control or "",
        control_expected=cell.control_expected or "",
        control_replay=cell.control_replay or "",
    )


def survivals(cells: Iterable[GridCell]) -> dict[tuple[str, str], tuple[int, int]]:
    """How many scenarios each lock with its store survives, and how many have a verdict."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for cell in cells:
        survived, judged = found.get((cell.lock, cell.store), (0, 0))
        is_judged = cell.result != "inconclusive"
        found[cell.lock, cell.store] = (survived + (cell.result in SURVIVED), judged + is_judged)
    return found


def survival_sentence(cells: list[GridCell]) -> str:
    """Which lock survives what, in one sentence: each lock of a few, else the best and the worst of those that are
    judged in half as many scenarios as any."""
    if not cells:
        return "The matrix is empty"
    found = survivals(cells)

    def words(pair: tuple[str, str]) -> str:
        store = f" with {pair[1]}" if pair[1] not in ("", "open") else ""
        return f"{pair[0]}{store} survives {found[pair][0]} of {found[pair][1]} scenarios"

    if len(found) <= LISTED_MOST:
        return "; ".join(map(words, found))
    least = max(1, max(judged for _, judged in found.values()) // 2)
    ranked = sorted(
        (pair for pair in found if pair[0] != NO_LOCK and found[pair][1] >= least),
        key=lambda pair: (-found[pair][0] / found[pair][1], -found[pair][1], pair),
    )
    if not ranked:
        return f"No verdict was possible for any of {len(found)} locks"
    choices = f"Of {len(ranked)} choices of lock and store with a verdict in {least} or more scenarios"
    return f"{choices}, {words(ranked[0])}, and {words(ranked[-1])}"


def matrix_sentence(matrix: MatrixResult) -> str:
    odd = sum(not cell.ok for cell in matrix.cells)
    if odd:
        return f"{odd:,} of {len(matrix.cells):,} cells {'is' if odd == 1 else 'are'} {ODD_WORD}"
    return f"all {len(matrix.cells):,} cells are as expected"
