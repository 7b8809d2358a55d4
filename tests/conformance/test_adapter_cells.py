"""The shipped adapters in their scenarios, compared with their expected verdicts."""

import pytest

from lockstorm.base.errors import NotInstalled, UsageError
from lockstorm.conformance.adapter_cells import PAGE, SCENARIOS_SHOWN, adapter_page
from lockstorm.locks.adapter import PREFIX, adapter_entry
from lockstorm.matrix.matrix import play_matrix
from lockstorm.scenario import library_expected
from lockstorm.scenario.library_expected import adapters_in_trials, library_cells
from lockstorm.scenario.play import play
from lockstorm.scenario.scenario import scenarios
from lockstorm.trial.settings import TrialSettings
from tests.helpers.daily import daily
from tests.helpers.support import lockstorm

REAL_LEASE_MS = 6000  # beside other work a program waits for a processor for a second and more
CONTROL = pytest.mark.slow("the control of a trial that is played; its adapter is started in both", seconds=4)


ANOTHER = "one more library of a language and service that are played every day"
IN_REAL_TIME = daily(adapters_in_trials(), ("redis-py", "redsync", "redisson"), ANOTHER, 6)
IN_SCENARIOS = daily(adapters_in_trials(), ("redis-py", "redsync", "pals", "kazoo"), ANOTHER, 6)


@pytest.fixture(autouse=True)
def installed(request: pytest.FixtureRequest) -> None:
    if adapter := getattr(request.node, "callspec", None) and request.node.callspec.params.get("adapter"):
        try:
            adapter_entry(PREFIX + adapter)
        except NotInstalled as reason:
            pytest.skip(str(reason))


def check_cell(adapter: str, scenario: str, time: str, control: bool) -> None:
    lock = PREFIX + adapter
    cell = library_cells(lock)[scenario, lock, "open"]
    assert cell
    lease_ms = REAL_LEASE_MS if time == "real" else None
    result = play(TrialSettings(lock, scenario, time=time, control=control, lease_ms=lease_ms))
    found = {name: result.properties[name].status for name in result.required}
    assert found == cell.expects(control), f"{result.sentence}; again: {result.replay}; {cell.reason}"


@pytest.mark.lengthy("starts two programs for each of its trials")
@pytest.mark.parametrize("control", [pytest.param(False, id="fault"), pytest.param(True, id="control", marks=CONTROL)])
@pytest.mark.parametrize("adapter", IN_SCENARIOS)
def test_a_library_has_the_expected_verdict(adapter: str, control: bool) -> None:
    time = "real" if adapter_entry(PREFIX + adapter).real_time_only else "virtual"
    shown = [name for name in SCENARIOS_SHOWN if (name, PREFIX + adapter, "open") in library_cells(PREFIX + adapter)]
    assert len(shown) >= 3
    for scenario in shown:
        check_cell(adapter, scenario, time, control)


@pytest.mark.waits
@pytest.mark.parametrize("adapter", IN_REAL_TIME)
def test_a_library_has_the_same_verdict_in_real_time(adapter: str) -> None:
    check_cell(adapter, "gc-pause", "real", False)


@pytest.mark.slow("every scenario with every library", seconds=200)
@pytest.mark.parametrize("adapter", adapters_in_trials())
def test_every_cell_of_a_library_is_as_expected(adapter: str) -> None:
    time = "real" if adapter_entry(PREFIX + adapter).real_time_only else "virtual"
    result = play_matrix(library_cells(PREFIX + adapter), time, 1, 1, lambda _: None)
    assert [(cell.scenario, cell.store, cell.difference) for cell in result.cells if not cell.ok] == []
    unplayed = [cell for cell in result.unplayed if time in scenarios()[cell.scenario].times]
    assert result.cells and not unplayed


@pytest.mark.slow("plays cells of a library by the command", seconds=5)
def test_the_matrix_has_the_cells_of_a_library() -> None:
    done = lockstorm("matrix", "--lock", "adapter:redis-py", "--scenario", "gc-pause,slow-network-replies")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 cells" in done.stdout


@pytest.mark.slow("starts every shipped adapter", seconds=12)
def test_the_page_has_the_table() -> None:
    text = PAGE.read_text()
    assert adapter_page() == text, "make matrix writes it"


def test_an_adapter_without_expected_verdicts_is_for_the_gate(tmp_path: object) -> None:
    done = lockstorm("matrix", "--lock", "adapter:./lock-adapter.py")
    assert done.returncode == 2 and "there is no such program" in done.stderr


BAD = [
    ('[redis-py]\nport = "nope"\n', "nope"),
    ('[redis-py]\nport = "set-nx-px"\nno-such = { integrity = "holds", reason = "x" }\n', "no scenario called no-such"),
    ('[redis-py]\nport = "set-nx-px"\nnot_played = { no-other = "x" }\n', "no scenario called no-other"),
    ('[redis-py]\nport = "set-nx-px"\ngc-pause = { integrity = "holds" }\n', "and a reason"),
    ('[redis-py]\nport = "set-nx-px"\ngc-pause = { integrity = "maybe", reason = "x" }\n', "and a reason"),
    ('[redis-py]\nport = "set-nx-px"\ngc-pause = { integrity = "violated", reason = "x" }\n', "so it is no difference"),
    ("[other]\n", "is about other, and shipped are redis-py"),
]


@pytest.mark.parametrize(("text", "message"), BAD, ids=[message for _, message in BAD])
def test_a_contradiction_in_the_file_is_named(
    text: str, message: str, tmp_path: "object", monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "adapters.toml"  # type: ignore[operator]
    file.write_text(text)
    monkeypatch.setattr(library_expected, "FILE", file)
    monkeypatch.setattr(library_expected, "shipped_adapters", lambda: ["redis-py"])
    library_expected.library_tables.cache_clear()
    library_expected.library_cells.cache_clear()
    try:
        with pytest.raises(UsageError, match=message):
            library_expected.library_cells("adapter:redis-py")
    finally:
        library_expected.library_tables.cache_clear()
        library_expected.library_cells.cache_clear()
