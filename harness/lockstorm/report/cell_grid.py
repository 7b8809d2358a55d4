"""A table of cells as a page, with filters, and the details of the chosen cell beside it. A matrix, the cases of a
gate, the table of lock libraries and the entries of a campaign are such grids."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lockstorm.base.paths import runnable
from lockstorm.report.templates import ICONS, render

ROOMY_MOST = 2  # columns of a table whose cells have room for words


@dataclass(frozen=True, kw_only=True)
class GridCell:
    """A cell as matrix.js shows it. It belongs to `lock` with `store`, and to `scenario`."""

    lock: str
    store: str
    scenario: str
    result: str  # of the grid's words
    sentence: str
    reason: str
    replay: str
    odd: bool  # a mark shows it
    mismatch: str  # why it is odd
    short: str = ""  # in a table with room for words; empty: its result
    expected: str = ""
    control: str = ""
    control_expected: str = ""
    control_replay: str = ""
    more: tuple[tuple[str, str], ...] = ()  # titles and texts


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A page with filters. Locks are rows, unless `kinds` groups the scenarios: these are rows then."""

    title: str
    sentence: str
    exit: int | None  # 0, 1, 3: the colour of the sentence; None: the sentence is no verdict
    words: Mapping[str, str]  # the results, and what each means
    icons: Mapping[str, str] = field(default_factory=lambda: ICONS)  # of the results
    cells: list[GridCell]
    odd_word: str  # what the mark means
    only_odd: str  # the label of the filter for it
    axes: str = "Locks down, scenarios across"
    searched: str = "lock or scenario"
    facts: list[tuple[str, str]] = field(default_factory=list)
    column_words: Mapping[str, str] = field(default_factory=dict)  # what a lock or a scenario means, by its name
    kinds: Mapping[str, str] = field(default_factory=dict)  # of each scenario, by its name
    kind_words: Mapping[str, str] = field(default_factory=dict)  # in the order of the groups
    totals: Mapping[tuple[str, str], str] = field(default_factory=dict)  # by lock and store
    count: str = ""  # the last line


@dataclass(frozen=True)
class GridHead:
    """The head of a row or of a column."""

    title: str
    store: str = ""
    words: str = ""
    total: str = ""


@dataclass(frozen=True)
class GridGroup:
    """Rows below a common head: for each the numbers of its cells, None where there is no cell."""

    title: str
    words: str
    rows: list[tuple[GridHead, list[int | None]]]


def grid_page(grid: Grid, template: str = "matrix.html.j2", **values: object) -> str:
    """The page. `values`: for a template that extends that of the matrix."""
    columns, groups = grid_table(grid)
    return render(
        template,
        title=grid.title,
        script="matrix.js",
        grid=grid,
        columns=columns,
        groups=groups,
        is_roomy=bool(grid.kinds) and len(columns) <= ROOMY_MOST,
        launcher=runnable("lockstorm"),
        counts={result: sum(cell.result == result for cell in grid.cells) for result in grid.words},
        odd=sum(cell.odd for cell in grid.cells),
        **values,
    )


def grid_table(grid: Grid) -> tuple[list[GridHead], list[GridGroup]]:
    """The heads of the columns, and the rows in their groups."""
    cells = grid.cells
    locks = sorted({(each.lock, each.store) for each in cells}, key=lambda pair: (pair[0], pair[1] != "open", pair))
    names = list(dict.fromkeys(each.scenario for each in cells))
    at = {(each.lock, each.store, each.scenario): number for number, each in enumerate(cells)}
    words = grid.column_words
    lock_heads = {
        pair: GridHead(pair[0], "" if pair[1] == "open" else pair[1], words.get(pair[0], ""), grid.totals.get(pair, ""))
        for pair in locks
    }
    scenario_heads = {name: GridHead(name, words=words.get(name, "")) for name in names}
    if not grid.kinds:
        rows = [(head, [at.get((*pair, name)) for name in names]) for pair, head in lock_heads.items()]
        return list(scenario_heads.values()), [GridGroup("", "", rows)]
    groups = [
        GridGroup(
            kind,
            grid.kind_words.get(kind, ""),
            [(scenario_heads[name], [at.get((*pair, name)) for pair in locks]) for name in names_of],
        )
        for kind, names_of in _grouped(names, grid)
    ]
    return list(lock_heads.values()), groups


def _grouped(names: Iterable[str], grid: Grid) -> list[tuple[str, list[str]]]:
    """The scenarios by kind, in the order of the kinds."""
    found: dict[str, list[str]] = {kind: [] for kind in grid.kind_words}
    for name in names:
        found.setdefault(grid.kinds[name], []).append(name)
    return [(kind, names_of) for kind, names_of in found.items() if names_of]
