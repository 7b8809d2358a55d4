"""Plays each kind of entry of a campaign: what its cases are, and what their answers come to."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from lockstorm.campaigns.campaign_case import HuntCase, StormAnswer, StormCase, unpacked
from lockstorm.campaigns.campaign_file import (
    CUT_OF_LIBRARY,
    CampaignEntry,
    GateEntry,
    MatrixEntry,
    SearchEntry,
    StormEntry,
    ZooEntry,
)
from lockstorm.campaigns.case_pool import CasePool, GatePool, MatrixPool
from lockstorm.campaigns.search_pieces import PieceSearch
from lockstorm.gate.gate import play_and_judge
from lockstorm.gate.gate_plan import plan_gate
from lockstorm.gate.gate_policy import read_policy
from lockstorm.matrix.matrix import cell_unavailable_reason, matrix_exit_status, play_matrix, time_of
from lockstorm.results.gate_verdict import GateVerdict
from lockstorm.results.matrix_result import MatrixResult
from lockstorm.results.verdict import TrialResult
from lockstorm.search.search_plan import SearchPlan
from lockstorm.search.search_result import SearchResult
from lockstorm.storm.storm import StormSummary
from lockstorm.storm.storm_plan import StormRequest
from lockstorm.zoo.zoo import ExploredBug, ZooResult, play_scenarios, trial_count, zoo_exit_status, zoo_result


@dataclass(frozen=True)
class EntryResult:
    """What an entry came to. `files`: what is kept beside the result, by the ends of their names."""

    exit: int
    sentence: str
    result: SearchResult | MatrixResult | TrialResult | ZooResult | GateVerdict  # as its command prints it
    files: dict[str, bytes] = field(default_factory=dict)
    again: str = ""  # the command that shows what was found


def _ignore(_what: str) -> None:
    """The progress of a campaign counts cases."""


def count_cases(entry: CampaignEntry) -> int:
    """The number of cases of an entry; a search that finds something plays fewer."""
    match entry:
        case SearchEntry():
            return len(PieceSearch(entry.request, entry.cut).cases())
        case MatrixEntry():
            playable = [
                cell for cell in entry.cells if not cell_unavailable_reason(cell) and time_of(*cell[:2], entry.time)
            ]
            return len(playable) * 2 * entry.repeat
        case StormEntry():
            return entry.storm.trials
        case ZooEntry():
            hunted = sum(bug.explore is not None for bug in entry.bugs) if entry.hunt else 0
            return trial_count(entry.bugs, None) + hunted
        case GateEntry():
            policy = read_policy(entry.policy)
            searches = [PieceSearch(app.plan.request, CUT_OF_LIBRARY) for app in policy.apps]
            return len(plan_gate(policy).jobs) + sum(len(search.cases()) for search in searches)


def play_entry(entry: CampaignEntry, pool: CasePool, directory: Path) -> EntryResult:
    """Plays an entry to its end. `directory`: of the campaign."""
    match entry:
        case SearchEntry():
            return _play_search(entry, pool)
        case MatrixEntry():
            return _play_matrix(entry, pool)
        case StormEntry():
            return _play_storms(entry, pool)
        case ZooEntry():
            return _play_zoo(entry, pool)
        case GateEntry():
            return _play_gate(entry, pool, directory)


def _play_search(entry: SearchEntry, pool: CasePool) -> EntryResult:
    result = PieceSearch(entry.request, entry.cut).play(pool)
    files = {"schedule": result.schedule.encode()} if result.schedule else {}
    again = f"lockstorm replay {entry.name}.schedule" if result.schedule else ""
    return EntryResult(result.exit, result.sentence, result, files, again)


def _play_matrix(entry: MatrixEntry, pool: CasePool) -> EntryResult:
    result = play_matrix(entry.cells, entry.time, entry.repeat, entry.seed, _ignore, MatrixPool(pool))
    wrong = [cell for cell in result.cells if not cell.ok]
    unplayed = f"; {len(result.not_installed)} not installed here" if result.not_installed else ""
    sentence = f"{len(wrong)} of {len(result.cells)} cells are not as expected{unplayed}"
    again = wrong[0].replay if wrong else ""
    return EntryResult(matrix_exit_status(result, needs_all=False), sentence, result, again=again)


def _play_storms(entry: StormEntry, pool: CasePool) -> EntryResult:
    storm = entry.storm
    summary = StormSummary(storm)
    first, one = storm.request.seed, replace(storm, trials=StormRequest.trials)
    cases = [StormCase(one, seed) for seed in range(first, first + storm.trials)]
    answers = dict(pool.play_all(cases, StormAnswer))
    for number in range(len(cases)):
        summary.add(answers[number].result)
    result = summary.as_result()
    history = next((answers[number].history for number in range(len(cases)) if answers[number].history), "")
    files = {"history": unpacked(history)} if history else {}
    again = result.of_storm.first_violation.replay if result.of_storm.first_violation else ""
    return EntryResult(result.exit, result.sentence, result, files, again)


def _play_zoo(entry: ZooEntry, pool: CasePool) -> EntryResult:
    scripted = dict(play_scenarios(entry.bugs, _ignore, MatrixPool(pool)))
    hunted = [bug.name for bug in entry.bugs if bug.explore is not None] if entry.hunt else []
    cases = [HuntCase(name, entry.hunt) for name in hunted if entry.hunt]
    explored = {hunted[number]: answer for number, answer in pool.play_all(cases, ExploredBug)}
    result = zoo_result(entry.bugs, entry.hunt, scripted, explored)
    numbers = result.numbers
    sentence = f"{numbers.caught} of {numbers.played} bugs caught, {numbers.false_alarms} false alarms"
    return EntryResult(zoo_exit_status(result), sentence, result)


def _play_gate(entry: GateEntry, pool: CasePool, directory: Path) -> EntryResult:
    policy = replace(read_policy(entry.policy), runs=directory / "runs")

    def search(plan: SearchPlan) -> SearchResult:
        return PieceSearch(plan.request, CUT_OF_LIBRARY).play(pool)

    verdict, run = play_and_judge(policy, plan_gate(policy), _ignore, GatePool(pool), search)
    return EntryResult(verdict.exit, verdict.sentence, verdict, again=f"lockstorm check {run.relative_to(directory)}")
