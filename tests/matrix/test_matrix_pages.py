"""The pages that show the matrix say what the table of expected verdicts says."""

from pathlib import Path

import pytest

from lockstorm.base.errors import UsageError
from lockstorm.base.marked_pages import page_with
from lockstorm.matrix import matrix_pages
from lockstorm.matrix.matrix import expected_matrix
from lockstorm.matrix.matrix_pages import (
    BEGIN,
    COLUMNS_MOST,
    END,
    FAMOUS_LOCKS,
    FAMOUS_SCENARIOS,
    matrix_tables,
    page_groups,
)
from lockstorm.native.library import locks
from lockstorm.results.matrix_result import MatrixResult
from lockstorm.scenario.expected import expected, pairs
from lockstorm.scenario.scenario import scenarios
from lockstorm.trial.settings import STORES


@pytest.fixture(scope="module")
def matrix() -> MatrixResult:
    return expected_matrix()


def test_the_pages_are_as_make_matrix_writes_them() -> None:
    for page, text in matrix_pages.matrix_documents().items():
        assert page.read_text() == text, f"{page.name} is stale: run make matrix"


def test_every_cell_is_shown_or_named_as_unknown(matrix: MatrixResult) -> None:
    cells = {(cell.scenario, cell.lock, cell.store) for cell in matrix.cells}
    unknown = {(cell.scenario, cell.lock, cell.store) for cell in matrix.unplayed}
    assert cells == set(expected()) and not cells & unknown
    assert cells | unknown == set(pairs())


def test_every_scenario_and_lock_is_played_or_has_a_reason(matrix: MatrixResult) -> None:
    played = {(scenario, lock) for scenario, lock, _ in pairs()}
    inapplicable = {(pair.scenario, pair.lock) for pair in matrix.inapplicable}
    assert not played & inapplicable
    assert played | inapplicable == {(scenario, lock.name) for scenario in scenarios() for lock in locks()}


def test_what_other_servers_do_to_a_lock_has_its_reason() -> None:
    """Nobody expects a database to lose a lock, so every such cell of the plain resource says why."""
    services = {lock.name: lock.service for lock in locks()}
    silent = [
        (scenario, lock)
        for (scenario, lock, store), cell in expected().items()
        if services[lock] in ("etcd", "postgres")
        and store == "open"
        and "violated" in cell.fault.values()
        and not cell.reason
    ]
    assert silent == []


def test_the_famous_ones_exist() -> None:
    assert set(FAMOUS_SCENARIOS) <= set(scenarios())
    names = {lock.name: lock for lock in locks()}
    for column in FAMOUS_LOCKS:
        lock, _, store = column.partition(" / ")
        assert store in STORES and (store == "open" or names[lock].token)


def test_a_table_has_a_mark_for_each_cell(matrix: MatrixResult) -> None:
    """Read back from the text: the marks of one well-known row."""
    marks: dict[str, str] = {}
    heads: list[str] = []
    for line in matrix_tables(matrix).splitlines():
        fields = [field.strip() for field in line.strip("|").split("|")]
        if line.startswith("| | "):
            heads = [field.strip("`") for field in fields[1:]]
        elif fields[0] == "gc-pause":
            marks |= dict(zip(heads, fields[1:], strict=True))
    assert len(marks) == len({(cell.lock, cell.store) for cell in matrix.cells})
    assert (marks["set-nx-px"], marks["setnx"], marks["none"]) == ("✗", "✓", r"✗\*")
    assert marks["fenced / fence-reads-and-writes"] == "◇"


@pytest.mark.parametrize("count", [0, 1, COLUMNS_MOST, COLUMNS_MOST + 1, 31])
def test_tables_have_all_columns_and_a_readable_width(count: int) -> None:
    columns = [str(each) for each in range(count)]
    groups = page_groups(columns)
    assert [column for group in groups for column in group] == columns
    assert all(len(group) <= COLUMNS_MOST for group in groups)


def test_a_page_without_its_marks_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    assert page_with(page, r"new \1", BEGIN, END) == f"before\n{BEGIN}\n\nnew \\1\n{END}\nafter\n"
    page.write_text(f"before\n{BEGIN}\n")
    with pytest.raises(UsageError, match="must each occur exactly once"):
        page_with(page, "new", BEGIN, END)
