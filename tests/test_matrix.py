"""The matrix: cells in one word, the comparison with the expected table, the command."""

import json

import pytest

from harness.driver import matrix as matrix_module
from harness.driver.expected import Cell, expected
from harness.driver.matrix import matrix, result_of
from harness.driver.matrix_table import markdown
from tests.support import lockstorm

BROKEN = ("gc-pause", "set-nx-px", "open")
FENCED = ("gc-pause", "set-nx-px-fenced", "fence-reads-and-writes")
SAFE = ("lost-credits", "set-nx-px", "open")


@pytest.mark.parametrize(
    ("statuses", "word"),
    [
        ({"mutual_exclusion": "holds", "integrity": "holds"}, "holds"),
        ({"mutual_exclusion": "violated", "integrity": "violated"}, "violated"),
        ({"mutual_exclusion": "holds", "integrity": "violated"}, "violated"),
        ({"mutual_exclusion": "violated", "integrity": "holds", "fencing": "holds"}, "fenced"),
        ({"mutual_exclusion": "violated"}, "violated"),
        ({"mutual_exclusion": "holds", "integrity": "holds", "liveness": "violated"}, "stuck"),
        ({"mutual_exclusion": "holds", "integrity": "violated", "liveness": "violated"}, "violated"),
        ({"mutual_exclusion": "holds", "fencing": "violated", "liveness": "violated"}, "violated"),
        ({"mutual_exclusion": "violated", "integrity": "inconclusive"}, "inconclusive"),
    ],
)
def test_a_trial_in_one_word(statuses: dict[str, str], word: str) -> None:
    assert result_of(statuses) == word


@pytest.fixture
def wrong_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that expects the unfenced lock to hold."""
    holds = {"mutual_exclusion": "holds", "integrity": "holds"}
    table = {**expected(), BROKEN: Cell(*BROKEN, holds, holds, "a mistake")}
    monkeypatch.setattr(matrix_module, "expected", lambda: table)


def test_cells_are_played_and_compared() -> None:
    told: list[str] = []
    found = matrix([BROKEN, FENCED, SAFE], "virtual", 2, 1, told.append)
    assert found["ok"]
    assert [cell["result"] for cell in found["cells"]] == ["violated", "fenced", "holds"]
    assert {cell["control"] for cell in found["cells"]} == {"holds"}
    assert len(told) == 3 * 2 * 2


@pytest.mark.usefixtures("wrong_table")
def test_what_is_not_as_expected_is_seen() -> None:
    found = matrix([BROKEN, SAFE], "virtual", 1, 1, lambda _: None)
    assert not found["ok"]
    assert [cell["ok"] for cell in found["cells"]] == [False, True]
    assert "!" in markdown(found).splitlines()[2]


def test_a_cell_that_the_table_does_not_know_is_not_as_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix_module, "expected", dict)
    assert not matrix([SAFE], "virtual", 1, 1, lambda _: None)["ok"]


def test_the_command() -> None:
    done = lockstorm("matrix", "--scenario", "gc-pause", "--lock", "set-nx-px,fenced", "--json")
    said = json.loads(done.stdout)
    assert done.returncode == 0
    assert said["ok"]
    assert {(cell["lock"], cell["store"]) for cell in said["cells"]} == {
        ("set-nx-px", "open"),
        ("fenced", "open"),
        ("fenced", "fence-writes"),
        ("fenced", "fence-reads-and-writes"),
        ("set-nx-px", "compare-and-set"),
        ("fenced", "compare-and-set"),
    }
    shown = lockstorm("matrix", "--scenario", "gc-pause", "--lock", "set-nx-px", "--store", "open")
    assert "1 cells, all as expected" in shown.stdout
    table = lockstorm("matrix", "--scenario", "gc-pause", "--lock", "set-nx-px", "--store", "open", "--markdown")
    assert table.stdout.splitlines()[2] == "| `set-nx-px` | **violated** |"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--lock", "redlok"), "did you mean redlock?"),
        (("--scenario", "gc-paus"), "did you mean gc-pause?"),
        (("--lock", "set-nx-px", "--store", "fence-writes"), "no cell fits"),
        (("--json", "--markdown"), "not both"),
        (("--time", "imaginary"), "there is no time"),
        (("--repeat", "0"), "repeat"),
    ],
)
def test_bad_wishes(words: tuple[str, ...], message: str) -> None:
    done = lockstorm("matrix", *words)
    assert done.returncode == 2
    assert message in done.stderr
