"""Plays the cases of one entry on the engine. What the campaign's journal has an answer for is not played again."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import msgspec
from msgspec import structs

from lockstorm.base.atomic_file import write_bytes, write_json
from lockstorm.base.errors import Inconclusive
from lockstorm.campaigns.campaign_case import CampaignCase, GateAnswer, GateCase, TrialCase, unpacked
from lockstorm.campaigns.case_journal import CaseJournal, case_key
from lockstorm.campaigns.dask_engine import DaskEngine
from lockstorm.gate.worker import KeptJob
from lockstorm.results.matrix_result import TrialSummary
from lockstorm.results.verdict import TrialResult
from lockstorm.scenario.play import inconclusive, trial_result
from lockstorm.scenario.worker_pool import trial_summary
from lockstorm.trial.settings import TrialSettings


class Unplayed(Inconclusive):
    """A case could not be played."""


class CasePool:
    """`name`: of the entry; `on_case` is called for each case that has an answer."""

    def __init__(self, engine: DaskEngine, journal: CaseJournal, name: str, on_case: Callable[[], object]) -> None:
        self._engine, self._journal, self._name, self._on_case = engine, journal, name, on_case

    def play_all(self, cases: Sequence[CampaignCase]) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yields the number and the answer of each case, as it ends. Unplayed for one that could not be played."""
        for number, answer in self.play_each(cases):
            if "error" in answer:
                raise Unplayed(answer["error"])
            yield number, answer

    def play_each(self, cases: Sequence[CampaignCase]) -> Iterator[tuple[int, dict[str, Any]]]:
        """The same; the answer of a case that could not be played is {"error": reason}."""
        keys = [case_key(self._name, case) for case in cases]
        left = []
        for number, key in enumerate(keys):
            answer = self._journal.answer(key)
            if answer is None:
                left.append(number)
                continue
            self._on_case()
            yield number, answer
        plain = [msgspec.to_builtins(cases[number]) for number in left]
        for place, answer in self._engine.play_all(plain, [keys[number] for number in left]) if left else ():
            if "error" not in answer:
                self._journal.add(keys[left[place]], answer)
            self._on_case()
            yield left[place], answer


class MatrixPool:
    """In the place of a pool of workers on this machine, for trials of scenarios."""

    def __init__(self, cases: CasePool) -> None:
        self._cases = cases

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """Every case has ended, or was given up."""

    def play_all(self, requests: Sequence[TrialSettings]) -> Iterator[tuple[int, TrialSummary]]:
        for number, answer in self._cases.play_each([TrialCase(request) for request in requests]):
            lost = answer.get("error")
            if lost:
                yield number, trial_summary(requests[number], inconclusive(lost))
            else:
                yield number, msgspec.convert(answer, TrialSummary)


class GatePool(MatrixPool):
    """The same for the trials of a policy: what they leave is put where the run is kept."""

    def play_all(self, requests: Sequence[KeptJob]) -> Iterator[tuple[int, TrialResult]]:  # type: ignore[override]
        for number, answer in self._cases.play_each([GateCase(kept.job) for kept in requests]):
            kept = requests[number]
            yield number, self._lost(kept, answer["error"]) if "error" in answer else self._kept(kept, answer)

    def _kept(self, kept: KeptJob, answer: dict[str, Any]) -> TrialResult:
        told = msgspec.convert(answer, GateAnswer)
        for suffix, content in told.files.items():
            write_bytes(Path(kept.directory) / f"{kept.job.name}{suffix}", unpacked(content))
        return told.result

    def _lost(self, kept: KeptJob, reason: str) -> TrialResult:
        job = kept.job
        result = structs.replace(trial_result(job.request, inconclusive(reason), {}, {}, job.replay), took_s=0.0)
        write_json(Path(kept.directory) / f"{job.name}.json", result)
        return result
