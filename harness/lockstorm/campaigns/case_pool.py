"""Plays the cases of one entry on the engine. What the campaign's journal has an answer for is not played again."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from lockstorm.base.atomic_file import write_bytes
from lockstorm.base.errors import Inconclusive
from lockstorm.campaigns.campaign_case import CampaignCase, GateAnswer, GateCase, TrialCase, Unplayable, unpacked
from lockstorm.campaigns.case_journal import CaseJournal, case_key
from lockstorm.campaigns.dask_engine import DaskEngine
from lockstorm.gate.worker import KeptJob
from lockstorm.results.matrix_result import TrialSummary
from lockstorm.results.verdict import TrialResult
from lockstorm.scenario.play import inconclusive
from lockstorm.scenario.worker_pool import TrialPool, trial_summary
from lockstorm.trial.settings import TrialSettings

Answer = TypeVar("Answer")


class CasePool:
    """`name`: of the entry; `on_case` is called for each case that has an answer."""

    def __init__(self, engine: DaskEngine, journal: CaseJournal, name: str, on_case: Callable[[], object]) -> None:
        self._engine, self._journal, self._name, self._on_case = engine, journal, name, on_case

    def play_all(self, cases: Sequence[CampaignCase], kind: type[Answer]) -> Iterator[tuple[int, Answer]]:
        """Yields the number and the answer of each case, as it ends. Inconclusive for one that could not be played."""
        for number, answer in self.play_each(cases, kind):
            if isinstance(answer, Unplayable):
                raise Inconclusive(answer.error)
            yield number, answer

    def play_each(self, cases: Sequence[CampaignCase], kind: type[Answer]) -> Iterator[tuple[int, Answer | Unplayable]]:
        """The same, with the reason in place of the answer of a case that could not be played."""
        keys = [case_key(self._name, case) for case in cases]
        left = []
        for number, key in enumerate(keys):
            known = self._journal.answer(key)
            if known is None:
                left.append(number)
                continue
            self._on_case()
            yield number, msgspec.convert(known, kind)
        plain = [msgspec.to_builtins(cases[number]) for number in left]
        for place, answer in self._engine.play_all(plain, [keys[number] for number in left]) if left else ():
            self._on_case()
            if "error" in answer:
                yield left[place], msgspec.convert(answer, Unplayable)
            else:
                self._journal.add(keys[left[place]], answer)
                yield left[place], msgspec.convert(answer, kind)


class MatrixPool(TrialPool):
    """In the place of a pool of workers on this machine, for trials of scenarios."""

    def __init__(self, cases: CasePool) -> None:
        self._cases = cases

    def play_all(self, requests: Sequence[TrialSettings]) -> Iterator[tuple[int, TrialSummary]]:
        for number, answer in self._cases.play_each([TrialCase(request) for request in requests], TrialSummary):
            if isinstance(answer, Unplayable):
                answer = trial_summary(requests[number], inconclusive(answer.error))
            yield number, answer


class GatePool(MatrixPool):
    """The same for the trials of a policy: what they leave is put where the run is kept."""

    def play_all(self, requests: Sequence[KeptJob]) -> Iterator[tuple[int, TrialResult]]:  # type: ignore[override]
        for number, answer in self._cases.play_each([GateCase(kept.job) for kept in requests], GateAnswer):
            kept = requests[number]
            if isinstance(answer, Unplayable):
                yield number, kept.lost(answer.error)
                continue
            for suffix, content in answer.files.items():
                write_bytes(Path(kept.directory) / f"{kept.job.name}{suffix}", unpacked(content))
            yield number, answer.result
