"""Workers of the gate: each plays trials, and keeps the result, the history and the logs of each."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec import structs

from lockstorm.base.atomic_file import write_json
from lockstorm.gate.gate_plan import GateJob
from lockstorm.results.verdict import TrialResult
from lockstorm.scenario.deployment_effects import play_deployed
from lockstorm.scenario.play import inconclusive, play, trial_result
from lockstorm.scenario.worker_pool import PlainAnswer, WorkerPool, work_off
from lockstorm.storm.storm import run_storm
from lockstorm.storm.storm_plan import plan_storm


@dataclass(frozen=True)
class KeptJob:
    """A trial to play, and the directory that keeps its result, history and log."""

    job: GateJob
    directory: str

    def play(self, play_job: Callable[[GateJob, Path, Path], TrialResult]) -> TrialResult:
        """Plays it, keeps its result, and returns that. `play_job` gets the files of its history and its logs."""
        directory, name, begun = Path(self.directory), self.job.name, time.monotonic()
        result = play_job(self.job, directory / f"{name}.history", directory / f"{name}.log")
        result = structs.replace(result, took_s=round(time.monotonic() - begun, 3))
        write_json(directory / f"{name}.json", result)
        return result

    def lost(self, reason: str) -> TrialResult:
        """Keeps the result of a trial that could not be played."""
        job = self.job
        result = structs.replace(trial_result(job.request, inconclusive(reason), {}, {}, job.replay), took_s=0.0)
        write_json(Path(self.directory) / f"{job.name}.json", result)
        return result


class GateWorkerPool(WorkerPool):
    """Each answer is the result of a trial, as `run --json` prints it, and `took_s`."""

    module = "lockstorm.gate.worker"
    in_memory = False  # a policy may ask for an hour of storm

    def read(self, answer: PlainAnswer) -> TrialResult:
        return msgspec.convert(answer, TrialResult)

    def lost(self, request: KeptJob, reason: str) -> TrialResult:
        return request.lost(reason)


def play_job(job: GateJob, history: Path, logs: Path) -> TrialResult:
    if job.faults is not None:
        return run_storm(plan_storm(job.storm), save=history, save_logs=logs)
    result = play(job.request, save=history, save_logs=logs)
    return result if job.request.control else play_deployed(job.request, result)


def play_kept_job(kept_job: KeptJob) -> TrialResult:
    return kept_job.play(play_job)


if __name__ == "__main__":
    work_off(int(sys.argv[1]), KeptJob, lambda kept_job: kept_job.job.request.time, play_kept_job)
