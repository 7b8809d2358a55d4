"""The shipped adapters in the stories that they are played in, held against what their C ports do."""

import pytest

from harness.driver.adapter import PREFIX, entry_of
from harness.driver.adapter_cells import PAGE, adapter_cells, page_with
from harness.driver.errors import NotInstalled
from harness.driver.play import Wish, play


@pytest.mark.parametrize("control", [False, True], ids=["fault", "control"])
@pytest.mark.parametrize(("adapter", "scenario"), sorted(adapter_cells()))
def test_a_library_does_what_is_expected_of_it(adapter: str, scenario: str, control: bool) -> None:
    cell = adapter_cells()[adapter, scenario]
    try:
        entry_of(PREFIX + adapter)
    except NotInstalled as reason:
        pytest.skip(str(reason))
    result = play(Wish(scenario, PREFIX + adapter, time="real", control=control))
    found = {name: result["verdict"][name]["status"] for name in result["required"]}
    wanted = dict.fromkeys(cell.fault, "holds") if control else cell.fault
    assert found == wanted, f"{result['sentence']}; again: {result['replay']}; {cell.reason}"


def test_the_page_has_the_table() -> None:
    text = PAGE.read_text()
    assert page_with(text) == text, "make matrix writes it"


def test_a_difference_is_one_and_has_its_reason() -> None:
    for cell in adapter_cells().values():
        assert bool(cell.differs) == bool(cell.reason)
