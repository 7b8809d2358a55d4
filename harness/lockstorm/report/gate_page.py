"""The verdict of a gate as a page: the first failed case with its story, its advice and its picture, then the others,
then all cases as a table."""

import shlex
from dataclasses import dataclass
from pathlib import Path

from lockstorm.base.paths import runnable
from lockstorm.report.cell_grid import Grid, GridCell, grid_page
from lockstorm.report.drawing import Picture, draw
from lockstorm.report.matrix_page import KIND_WORDS, WORDS, scenario_kinds, scenario_words
from lockstorm.report.report_source import read_recorded
from lockstorm.report.trial_page import trial_subject
from lockstorm.report.window import shown_rows
from lockstorm.results.gate_verdict import GateApplication, GateCell, GateLock, GateVerdict, what_to_do
from lockstorm.results.statistics import count_outcomes
from lockstorm.scenario.baseline import is_own_mistake

PICTURES_MOST = 6  # stories with a picture
PICTURE_ROWS = 60
ODD_WORD = "not as the policy asks"
SEARCH = "search"  # the case of an application, in the place of a scenario
SEARCH_WORDS = "Schedules of an application: the order of its messages, and faults"
RESULTS = {"passed": "holds", "failed": "violated"}  # of applications, by outcome; any other: inconclusive


@dataclass(frozen=True)
class CaseStory:
    """A case that failed, or that could not be judged."""

    cell: GateCell
    to_do: list[str]  # paragraphs; empty after the first case of a lock, whose advice is about all of them
    change: str  # for the policy
    again: str
    whole: str  # the command that draws the whole trial; empty: its history was not kept
    picture: Picture | None

    @property
    def is_failed(self) -> bool:
        return self.cell.outcome == "failed"

    @property
    def title(self) -> str:
        return f"Space-time diagram of {self.cell.scenario} with {self.cell.lock}"


def gate_page(verdict: GateVerdict, trials: Path, rows: int) -> str:
    """`trials`: the directory of the kept histories, which may be missing. `rows`: the most of a picture."""
    return grid_page(
        gate_grid(verdict),
        "gate.html.j2",
        applications=[each for each in verdict.applications if not each.ok],
        runnable=runnable,
        stories=case_stories(verdict, trials, min(rows, PICTURE_ROWS)),
        unjudged=[f"{each.lock}: no case judges {each.property.replace('_', ' ')}" for each in verdict.unjudged],
    )


def gate_grid(verdict: GateVerdict) -> Grid:
    cells = [*map(case_cell, verdict.cells), *map(application_cell, verdict.applications)]
    chosen = [*(lock.name for lock in verdict.locks), *(each.name for each in verdict.applications)]
    names = list(dict.fromkeys(chosen)) or sorted({cell.lock for cell in cells})
    facts = {"policy": verdict.policy.file, "run": verdict.run}
    facts |= {name: verdict.versions[name] for name in ("lockstorm", "redis-server") if verdict.versions.get(name)}
    return Grid(
        title=f"Is {names[0]} safe?" if len(names) == 1 else f"Are these {len(names)} {kind_of(verdict)} safe?",
        sentence=f"interrupted: {verdict.sentence}" if verdict.interrupted else verdict.sentence,
        exit=verdict.exit,
        words=WORDS,
        cells=cells,
        odd_word=ODD_WORD,
        only_odd=f"only what is {ODD_WORD}",
        axes=f"Scenarios down, {kind_of(verdict)} across",
        facts=list(facts.items()),
        column_words=scenario_words(cells) | ({SEARCH: SEARCH_WORDS} if verdict.applications else {}),
        kinds=scenario_kinds(cells),
        kind_words=KIND_WORDS,
        count=count_outcomes(verdict.outcomes),
    )


def kind_of(verdict: GateVerdict) -> str:
    if not verdict.applications:
        return "locks"
    return "locks and applications" if verdict.locks else "applications"


def application_cell(case: GateApplication) -> GridCell:
    return GridCell(
        lock=case.name,
        store="open",
        scenario=SEARCH,
        result=RESULTS.get(case.outcome, "inconclusive"),
        sentence=case.happened or case.sentence,
        reason="",
        replay=case.replay,
        odd=not case.ok,
        mismatch="" if case.ok else f"{ODD_WORD.capitalize()}: {case.in_short}",
        short=case.in_short,
    )


def case_cell(cell: GateCell) -> GridCell:
    return GridCell(
        lock=cell.lock,
        store=cell.store,
        scenario=cell.scenario,
        result=cell.result,
        sentence=cell.sentence,
        reason=" ".join(filter(None, (cell.baseline, cell.reason))),
        replay=cell.replay,
        odd=not cell.ok,
        mismatch="" if cell.ok else f"{ODD_WORD.capitalize()}: {cell.in_short}",
        short=cell.in_short,
        control=cell.control,
        control_replay=cell.control_replay,
    )


def case_stories(verdict: GateVerdict, trials: Path, rows: int) -> list[CaseStory]:
    """The cases that are not as the policy asks: first those with a mistake of the lock's own, then the others that
    failed, then those without a verdict."""
    odd = [cell for cell in verdict.cells if not cell.ok]
    odd.sort(key=lambda cell: (cell.outcome != "failed", not is_own_mistake(cell.baseline)))
    advised: set[tuple[str, str]] = set()
    stories: list[CaseStory] = []
    for cell in odd:
        lock = next((each for each in verdict.locks if (each.name, each.store) == (cell.lock, cell.store)), None)
        is_first = cell.outcome == "failed" and (cell.lock, cell.store) not in advised
        if is_first:
            advised.add((cell.lock, cell.store))
        history = trials / f"{cell.shown}.history"
        with_picture = cell.outcome == "failed" and len(stories) < PICTURES_MOST and history.exists()
        stories.append(_story(cell, lock if is_first else None, history, rows if with_picture else 0))
    return stories


def _story(cell: GateCell, advised: GateLock | None, history: Path, rows: int) -> CaseStory:
    picture = None
    if rows:
        diagram = trial_subject(read_recorded(history)).diagram
        picture = draw(diagram, shown_rows(diagram, rows))
    return CaseStory(
        cell,
        [each for each in what_to_do(advised) if not is_told(each, cell)] if advised else [],
        advised.advice.change if advised and advised.advice else "",
        runnable(cell.replay) if cell.replay else "",
        runnable(f"lockstorm report {shlex.quote(str(history))}") if history.exists() else "",
        picture,
    )


def is_told(advice: str, cell: GateCell) -> bool:
    """Whether the comparison with a right lock ends with this advice."""
    scenario, _, cure = advice.partition(": ")
    return scenario == cell.scenario and cell.baseline.endswith(cure)
