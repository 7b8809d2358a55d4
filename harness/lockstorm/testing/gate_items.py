"""The cases of a gate's policy as tests."""

import datetime
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from lockstorm.base.atomic_file import write_text
from lockstorm.base.errors import Inconclusive, LockstormError
from lockstorm.base.paths import runnable
from lockstorm.gate.app_judge import judge_searches
from lockstorm.gate.app_policy import AppChoice
from lockstorm.gate.gate_judge import FAILED, INCONCLUSIVE, NOT_JUDGED, judge_case
from lockstorm.gate.gate_plan import Case, GateJob, plan_gate
from lockstorm.gate.gate_policy import Policy, read_policy
from lockstorm.results.verdict import TrialResult
from lockstorm.scenario.play import play
from lockstorm.search.explore import search_schedules
from lockstorm.storm.storm import run_storm
from lockstorm.storm.storm_plan import plan_storm
from lockstorm.testing.item_state import PLAYING, REPORT, PlaysTrials
from lockstorm.testing.kept_trials import KeptTrials


class CaseFailed(Exception):
    """A property that the policy requires is violated; the text says which, and why it matters."""


class PolicyFile(pytest.File):
    """A policy, collected with --lockstorm-gate."""

    def collect(self) -> Iterator["CaseItem | SearchItem"]:
        try:
            policy = read_policy(self.path)
            cases = plan_gate(policy).cases
        except LockstormError as error:
            raise self.CollectError(str(error)) from None
        for case in cases:
            name = f"{case.lock.name}/{case.scenario}/{case.lock.store}"
            yield CaseItem.from_parent(self, name=name, policy=policy, case=case)
        for app in policy.apps:
            yield SearchItem.from_parent(self, name=f"{app.title}/search", app=app)


class PolicyItem(pytest.Item):
    """A case of a policy."""

    played_again = 0
    usual_seed: int | None = None  # the policy sets it

    def __init__(self, *, line: int, **more: Any) -> None:
        super().__init__(**more)
        self._line = line
        self._report: str | None = self.config.getoption(REPORT)
        self._kept = KeptTrials(self.nodeid, self._report, lambda: self._own)

    def runtest(self) -> None:
        playing: PlaysTrials = self
        self.stash[PLAYING] = playing
        self.play_case()

    def play_case(self) -> None:
        """Plays and judges it. Raises CaseFailed or Inconclusive."""
        raise NotImplementedError

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, CaseFailed | LockstormError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self._line - 1, self.name

    def kept_lines(self) -> list[str]:
        return self._kept.lines()

    def explain_by_stall(self, error: BaseException | None) -> None:
        """Each trial was played again already; a search is in virtual time."""

    def end_call(self) -> None:
        del self.stash[PLAYING]

    @cached_property
    def _own(self) -> Path:
        factory: pytest.TempPathFactory = self.config._tmp_path_factory  # type: ignore[attr-defined]
        return factory.mktemp("lockstorm-gate")


class CaseItem(PolicyItem):
    """A lock in one scenario or storm."""

    def __init__(self, *, policy: Policy, case: Case, **more: Any) -> None:
        super().__init__(line=case.lock.line, **more)
        self.policy = policy
        self.case = case

    def play_case(self) -> None:
        played = {job.name: self._play(job) for job in self.case.jobs}
        self.played_again = sum(result.played_again for result in played.values())
        cell = judge_case(self.policy, self.case, played, datetime.date.today(), "")
        if cell.outcome == FAILED:
            lines = [cell.in_short, cell.sentence, cell.in_full, cell.matters]
            raise CaseFailed("\n".join([each for each in lines if each] + [f"again: {runnable(cell.replay)}"]))
        if cell.outcome == INCONCLUSIVE:
            raise Inconclusive(cell.in_short)
        if cell.outcome == NOT_JUDGED:
            pytest.skip(cell.in_short)

    def _play(self, job: GateJob) -> TrialResult:
        """As a worker of the gate does."""
        kept = self._kept.add()
        if job.faults is None:
            result = play(job.request, save=kept.history)
        else:
            result = run_storm(plan_storm(job.storm), save=kept.history)
        if self._report:
            kept.lines()
        return result


class SearchItem(PolicyItem):
    """An application, whose schedules are searched."""

    def __init__(self, *, app: AppChoice, **more: Any) -> None:
        super().__init__(line=app.line, **more)
        self.app = app

    def play_case(self) -> None:
        result = search_schedules(self.app.plan, lambda _: None)
        if result.schedule:
            kept = self._kept.add()
            kept.schedule = kept.history.with_suffix(".schedule")
            write_text(kept.schedule, result.schedule)
        (judged,) = judge_searches([self.app.kept()], {self.app.name: result}, Path(), "")
        if judged.outcome == FAILED:
            lines = [judged.in_short, judged.happened, *judged.story, judged.matters, *judged.to_do]
            raise CaseFailed("\n".join([*lines, f"again: {runnable(judged.search)}"]))
        if judged.outcome == INCONCLUSIVE:
            raise Inconclusive(judged.in_short)
