"""The shipped adapters in their scenarios, compared with their expected verdicts."""

import pytest

from lockstorm.base.errors import NotInstalled
from lockstorm.conformance.adapter_cells import PAGE, adapter_cells, adapter_page
from lockstorm.locks.adapter import PREFIX, adapter_entry
from lockstorm.scenario.play import play
from lockstorm.trial.settings import TrialSettings

pytestmark = pytest.mark.waits  # a library runs in real time only

VARIANT = pytest.mark.slow("starts a Java virtual machine for one more lock of this library", seconds=2)


@pytest.mark.parametrize("control", [False, True], ids=["fault", "control"])
@pytest.mark.parametrize(
    ("adapter", "scenario"),
    [pytest.param(*cell, marks=VARIANT if cell[0].startswith("redisson-") else []) for cell in sorted(adapter_cells())],
)
def test_a_library_has_the_expected_verdict(adapter: str, scenario: str, control: bool) -> None:
    cell = adapter_cells()[adapter, scenario]
    try:
        adapter_entry(PREFIX + adapter)
    except NotInstalled as reason:
        pytest.skip(str(reason))
    result = play(TrialSettings(PREFIX + adapter, scenario, time="real", control=control))
    found = {name: result.properties[name].status for name in result.required}
    expectation = dict.fromkeys(cell.fault, "holds") if control else cell.fault
    assert found == expectation, f"{result.sentence}; again: {result.replay}; {cell.reason}"


def test_the_page_has_the_table() -> None:
    text = PAGE.read_text()
    assert adapter_page() == text, "make matrix writes it"


def test_a_difference_is_one_and_has_its_reason() -> None:
    for cell in adapter_cells().values():
        assert bool(cell.differs) == bool(cell.reason)
