"""Workers of the gate: each plays a trial and keeps it, with its history and its logs."""

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.driver.crew import Crew, serve
from harness.driver.play import inconclusive, play
from harness.driver.storm import blow, plan
from harness.gate.files import write_json
from harness.gate.plan import Job, job_from


@dataclass(frozen=True)
class Errand:
    """A trial, and the directory that keeps it."""

    job: Job
    directory: str


class GateCrew(Crew):
    """Answers are results of trials, as `run --json` prints them, and `took_s` besides."""

    module = "harness.gate.player"
    in_memory = False  # a policy may ask for an hour of storm

    def lost(self, wish: Errand, reason: str) -> dict[str, Any]:
        job = wish.job
        said = {key: value for key, value in job.as_json().items() if key not in ("name", "storm")}
        result = {**said, **inconclusive(reason), "versions": {}, "took_s": 0.0}
        write_json(Path(wish.directory) / f"{job.name}.json", result)
        return result


def play_errand(wanted: dict[str, Any]) -> dict[str, Any]:
    job, directory = job_from(wanted["job"]), Path(wanted["directory"])
    history, logs = directory / f"{job.name}.history", directory / f"{job.name}.log"
    begun = time.monotonic()
    if job.faults is None:
        result = play(job.wish, save=history, save_logs=logs)
    else:
        result = blow(plan(job.storm), save=history, save_logs=logs)
    result["took_s"] = round(time.monotonic() - begun, 3)
    write_json(directory / f"{job.name}.json", result)
    return result


if __name__ == "__main__":
    serve(int(sys.argv[1]), lambda wanted: str(wanted["job"]["wish"]["time"]), play_errand)
