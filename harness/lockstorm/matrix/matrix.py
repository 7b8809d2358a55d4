"""The matrix: every lock against every scenario, with its control, held against scenarios/expected.toml."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace

from lockstorm.base.errors import UsageError
from lockstorm.base.option_fields import choose
from lockstorm.locks.adapter import is_adapter
from lockstorm.locks.lock_names import lock_named
from lockstorm.native.library import locks
from lockstorm.results.matrix_result import (
    CellName,
    InapplicablePair,
    MatrixCell,
    MatrixResult,
    TrialSummary,
    UnavailableCell,
)
from lockstorm.scenario.cells import CellKey, cell_result, worst_cell
from lockstorm.scenario.expected import ExpectedCell, expected, pairs
from lockstorm.scenario.library_expected import expected_of, library_cells
from lockstorm.scenario.play import scenario_named
from lockstorm.scenario.scenario import scenarios
from lockstorm.scenario.worker_pool import TrialPool, WorkerPool, worker_count
from lockstorm.servers.services import missing_for
from lockstorm.trial.settings import STORES, TIMES, TrialSettings

NO_TRIAL = TrialSummary({}, "", "")


@dataclass
class CellTrials:
    """The trials of one cell, either those with the fault or those of the control."""

    statuses: list[dict[str, str]] = field(default_factory=list)  # one per trial, of the required properties
    results: list[str] = field(default_factory=list)
    worst: TrialSummary = NO_TRIAL  # gives the cell its result
    played_again: int = 0  # times that a trial was played again, because the machine stood still

    def add(self, played: TrialSummary) -> None:
        result = cell_result(played.statuses)
        if not self.results or worst_cell([result, self.result]) != self.result:
            self.worst = played
        self.statuses.append(played.statuses)
        self.results.append(result)
        self.played_again += played.played_again

    @property
    def result(self) -> str:
        """The worst result of all trials."""
        return worst_cell(self.results)


def time_of(scenario: str, lock: str, time: str | None) -> str | None:
    """The kind of time in which the scenario is played with the lock. `time`: the requested kind; None: virtual time
    where possible. Returns None if the requested kind is impossible."""
    times = scenarios()[scenario].times_on(lock_named(lock))
    if time is None:
        return "virtual" if "virtual" in times else next(iter(times), None)
    return time if time in times else None


def requests_of(
    cell_key: CellKey, time: str, repeat: int, seed: int, server: str | None = None, config: str | None = None
) -> list[TrialSettings]:
    scenario, lock, store = cell_key
    usual = TrialSettings(lock, scenario, store=store, time=time, server=server, config=config)
    return [replace(usual, seed=seed + each, control=control) for each in range(repeat) for control in (False, True)]


def playing_order(request: TrialSettings) -> tuple[bool, int, int, str]:
    """Sort key. Virtual time comes before real time, in which workers only wait. Trials with many servers and those
    that outlast long leases come early, so that the last worker does not play them alone."""
    lock, scenario = lock_named(request.lock), scenarios()[request.scenario]
    nodes, replicas = (int(scenario.settings.get(name, getattr(lock, name))) for name in ("nodes", "replicas"))
    is_real = request.time != "virtual"
    outlasted_ms = scenario.real_lease_ms if is_real and not request.control else 0
    return is_real, -nodes * (1 + replicas), -outlasted_ms, request.scenario


def play_matrix(
    cell_keys: Iterable[CellKey],
    time: str | None,
    repeat: int,
    seed: int,
    report: Callable[[str], object],
    pool: TrialPool | None = None,
    server: str | None = None,
    config: str | None = None,
) -> MatrixResult:
    """Plays every cell `repeat` times (seeds seed, seed + 1, ...) with fault and control, several trials in parallel.
    Calls `report` after each trial. An interrupt ends it early; the result then contains the cells that are complete.
    `pool` plays the trials; None: workers on this machine."""
    unavailable = {cell_key: cell_unavailable_reason(cell_key) for cell_key in cell_keys}
    cell_keys = [cell_key for cell_key, reason in unavailable.items() if not reason]
    requests = [
        request
        for cell_key in cell_keys
        if (kind := time_of(*cell_key[:2], time))
        for request in requests_of(cell_key, kind, repeat, seed, server, config)
    ]
    requests.sort(key=playing_order)
    trials: dict[tuple[CellKey, bool], CellTrials] = {
        (cell_key, control): CellTrials() for cell_key in cell_keys for control in (False, True)
    }
    interrupted = not play_trials(requests, trials, report, pool or WorkerPool(worker_count(requests)))
    complete = [
        cell_key for cell_key in cell_keys if trials[cell_key, False].results and trials[cell_key, True].results
    ]
    unplayed = [cell_key for cell_key in cell_keys if cell_key not in complete]
    cells = [
        cell_of(cell_key, time_of(*cell_key[:2], time), trials[cell_key, False], trials[cell_key, True])
        for cell_key in complete
    ]
    return MatrixResult(
        time=time or "virtual where it can be, else real",
        repeat=repeat,
        seed=seed,
        server=server,
        config=config,
        cells=cells,
        inapplicable=inapplicable_pairs({key[0] for key in unavailable}, {key[1] for key in unavailable}),
        unplayed=[CellName(*cell_key) for cell_key in unplayed],
        not_installed=[UnavailableCell(*key, reason) for key, reason in unavailable.items() if reason],
        interrupted=interrupted,
        played_again=sum(each.played_again for each in trials.values()),
        ok=not interrupted and all(cell.ok for cell in cells),
    )


def play_trials(
    requests: list[TrialSettings],
    trials: dict[tuple[CellKey, bool], CellTrials],
    report: Callable[[str], object],
    pool: TrialPool,
) -> bool:
    """Plays all requests and adds each result to its cell. False: interrupted."""
    try:
        with pool as workers:
            for number, played in workers.play_all(requests):
                request = requests[number]
                trials[(request.scenario, request.lock, request.store or "open"), request.control].add(played)
                report(f"{request.scenario} {request.lock}")
    except KeyboardInterrupt:
        return False
    return True


def matrix_exit_status(result: MatrixResult, *, needs_all: bool) -> int:
    """1: a mismatch; 3: every mismatch is inconclusive, or, where `needs_all`, a cell could not be played."""
    wrong = [cell for cell in result.cells if not cell.ok]
    if result.not_installed and (not result.cells or needs_all):
        return 3
    if not wrong:
        return 0
    return 3 if all("inconclusive" in (cell.result, cell.control) for cell in wrong) else 1


def expected_matrix() -> MatrixResult:
    """The table of expected verdicts, in the form of the result of `play_matrix`."""
    cells = []
    for scenario, lock, store in pairs():
        if cell := expected().get((scenario, lock, store)):
            result, control = cell_result(cell.fault), cell_result(cell.control)
            cells.append(
                MatrixCell(
                    scenario,
                    lock,
                    store,
                    time=time_of(scenario, lock, None),
                    result=result,
                    expected=result,
                    control=control,
                    control_expected=control,
                    verdict=cell.fault,
                    reason=cell.reason,
                )
            )
    unplayed = [CellName(*cell_key) for cell_key in pairs() if cell_key not in expected()]
    inapplicable = inapplicable_pairs(set(scenarios()), {lock.name for lock in locks()})
    return MatrixResult(cells=cells, inapplicable=inapplicable, unplayed=unplayed)


def cell_unavailable_reason(cell_key: CellKey) -> str:
    """Why this machine cannot play the cell; empty if it can."""
    scenario, lock, store = cell_key
    pooled = bool(scenarios()[scenario].settings.get("pooled"))
    return missing_for(lock_named(lock), store, pooled=pooled)


def inapplicable_pairs(scenario_names: Collection[str], lock_names: Collection[str]) -> list[InapplicablePair]:
    return [
        InapplicablePair(name, lock.name, reason)
        for name, scenario in scenarios().items()
        for lock in map(lock_named, sorted(lock_names))
        if name in scenario_names and (reason := scenario.inapplicable_reason(lock))
    ]


def cell_of(cell_key: CellKey, time: str | None, fault: CellTrials, control: CellTrials) -> MatrixCell:
    cell = expected_of(cell_key)
    differs = difference(cell, fault, control)
    return MatrixCell(
        *cell_key,
        time=time,
        result=fault.result,
        expected=cell_result(cell.fault) if cell else None,
        control=control.result,
        control_expected=cell_result(cell.control) if cell else None,
        ok=not differs,
        difference=differs,
        verdict=fault.worst.statuses,
        sentence=fault.worst.sentence,
        reason=cell.reason if cell else "",
        results=dict(Counter(fault.results)),
        control_results=dict(Counter(control.results)),
        replay=fault.worst.replay,
        control_replay=control.worst.replay,
    )


def difference(cell: ExpectedCell | None, fault: CellTrials, control: CellTrials) -> str:
    if cell is None:
        return "scenarios/expected.toml, or adapters.toml, says nothing about it yet"
    found = [
        f"{where}: {phrase}"
        for where, trials, statuses in (("fault", fault, cell.fault), ("control", control, cell.control))
        if (phrase := difference_of(trials.statuses, statuses))
    ]
    return "; ".join(found)


def difference_of(statuses: list[dict[str, str]], expectation: dict[str, str]) -> str:
    """How these trials differ from the expectation. If only some do, the cell is a flake."""
    strange = [each for each in statuses if each != expectation]
    if not strange:
        return ""
    names = sorted(
        {name for each in strange for name in {*each, *expectation} if each.get(name) != expectation.get(name)}
    )
    phrases = []
    for name in names:
        found = "/".join(sorted({each.get(name, "not judged") for each in strange}))
        phrases.append(f"{name.replace('_', ' ')} {found} instead of {expectation.get(name, 'not judged')}")
    often = f" in {len(strange)} of {len(statuses)} trials: a flake" if len(strange) < len(statuses) else ""
    return f"{', '.join(phrases)}{often}"


def choose_cells(lock: str | None, scenario: str | None, store: str | None, time: str | None) -> list[CellKey]:
    """The cells that match all of the comma-separated names. Raises UsageError on an unknown name or if none match."""
    locks = {lock_named(name).name for name in lock.split(",")} if lock else None
    scenarios = {scenario_named(name).name for name in scenario.split(",")} if scenario else None
    stores = {choose("store mode", name, list(STORES)) for name in store.split(",")} if store else None
    if time is not None:
        choose("time", time, list(TIMES))
    of_adapters = [key for lock in sorted(locks or ()) if is_adapter(lock) for key in library_cells(lock)]
    chosen = [
        cell_key
        for cell_key in [*pairs(), *of_adapters]
        if (not scenarios or cell_key[0] in scenarios)
        and (not locks or cell_key[1] in locks)
        and (not stores or cell_key[2] in stores)
    ]
    playable = [cell_key for cell_key in chosen if time_of(*cell_key[:2], time)]
    if chosen and not playable:
        raise UsageError(f"none of these scenarios can be played in {time} time")
    if not chosen:
        raise UsageError(why_empty(scenarios, locks))
    return chosen


def why_empty(scenarios: set[str] | None, locks: set[str] | None) -> str:
    if scenarios and locks:
        reasons = [pair.reason for pair in inapplicable_pairs(scenarios, locks)]
        if len(reasons) == len(scenarios) * len(locks):
            return f"no cell matches: {'; '.join(dict.fromkeys(reasons))}"
    return "no cell matches: a store mode other than open needs a lock with tokens"
