"""What `lockstorm matrix --json` prints: a cell for each scenario, lock and store mode."""

import msgspec


class TrialSummary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The part of a trial's result that a cell needs."""

    statuses: dict[str, str]  # of the required properties
    sentence: str
    replay: str
    played_again: int = 0  # times, because the machine stood still


class CellName(msgspec.Struct, frozen=True):
    scenario: str
    lock: str
    store: str


class UnavailableCell(CellName, frozen=True):
    """A cell whose servers are not installed."""

    reason: str


class InapplicablePair(msgspec.Struct, frozen=True):
    """A scenario that does not apply to a lock."""

    scenario: str
    lock: str
    reason: str


class MatrixCell(CellName, frozen=True, kw_only=True):
    """All trials of a cell. In a table that was not played, such as that of the expected verdicts, the fields that
    describe trials have their defaults."""

    time: str | None = None
    result: str  # the worst of all trials with the fault
    expected: str | None = None  # None: nothing is expected of it yet
    control: str  # the worst of all trials without the fault
    control_expected: str | None = None
    ok: bool = True  # each trial has the expected status of each property
    difference: str = ""  # from what is expected
    verdict: dict[str, str] = {}  # the statuses of the worst trial
    sentence: str = ""  # of the worst trial
    reason: str = ""  # of the expected result
    results: dict[str, int] = {}  # number of trials by result
    control_results: dict[str, int] = {}
    replay: str = ""
    control_replay: str = ""


class MatrixResult(msgspec.Struct, frozen=True, kw_only=True):
    time: str = ""
    repeat: int = 1
    seed: int = 1
    server: str | None = None
    config: str | None = None
    cells: list[MatrixCell]
    inapplicable: list[InapplicablePair] = []
    unplayed: list[CellName] = []  # interrupted, or impossible in this time
    not_installed: list[UnavailableCell] = []
    interrupted: bool = False
    played_again: int = 0
    ok: bool = True  # all cells that were played are as expected
