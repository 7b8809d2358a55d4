"""Workers of the gate: each plays trials, and keeps the result, the history and the logs of each."""

import sys
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec import structs

from lockstorm.base.atomic_file import write_json
from lockstorm.gate.gate_plan import GateJob
from lockstorm.results.verdict import TrialResult
from lockstorm.scenario.deployment_effects import play_deployed
from lockstorm.scenario.play import inconclusive, play, trial_result
from lockstorm.scenario.worker_pool import PlainAnswer, WorkerPool, serve
from lockstorm.storm.storm import run_storm
from lockstorm.storm.storm_plan import plan_storm


@dataclass(frozen=True)
class KeptJob:
    """A trial to play, and the directory that keeps its result, history and log."""

    job: GateJob
    directory: str


class GateWorkerPool(WorkerPool):
    """Each answer is the result of a trial, as `run --json` prints it, and `took_s`."""

    module = "lockstorm.gate.worker"
    in_memory = False  # a policy may ask for an hour of storm

    def read(self, answer: PlainAnswer) -> TrialResult:
        return msgspec.convert(answer, TrialResult)

    def lost(self, request: KeptJob, reason: str) -> TrialResult:
        job = request.job
        result = trial_result(job.request, inconclusive(reason), {}, {}, job.replay)
        result = structs.replace(result, took_s=0.0)
        write_json(Path(request.directory) / f"{job.name}.json", result)
        return result


def play_kept_job(kept_job: KeptJob) -> TrialResult:
    job, directory = kept_job.job, Path(kept_job.directory)
    history, logs = directory / f"{job.name}.history", directory / f"{job.name}.log"
    begun = time.monotonic()
    if job.faults is None:
        result = play(job.request, save=history, save_logs=logs)
        result = result if job.request.control else play_deployed(job.request, result)
    else:
        result = run_storm(plan_storm(job.storm), save=history, save_logs=logs)
    result = structs.replace(result, took_s=round(time.monotonic() - begun, 3))
    write_json(directory / f"{job.name}.json", result)
    return result


if __name__ == "__main__":
    serve(int(sys.argv[1]), KeptJob, lambda kept_job: kept_job.job.request.time, play_kept_job)
