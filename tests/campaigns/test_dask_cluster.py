"""A scheduler and workers of their own: some are killed, some join late."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

from lockstorm.search.explore import search_schedules
from lockstorm.search.search_plan import SearchRequest, plan_search
from tests.campaigns.campaigning import PROGRAM, answered, campaign, environment, kept, written

SEARCH = '[[explore]]\nlock = "setnx"\nschedules = 40000\ncut = 2000\nfaults = "pause-client"\n'
CASES = 20
LIMIT_S = 120

pytestmark = pytest.mark.slow("starts a scheduler and workers", seconds=20)


class Cluster:
    """Processes of Dask on this machine. Those that are left end with it."""

    def __init__(self, directory: Path) -> None:
        self._file = directory / "scheduler.json"
        self._log: IO[bytes] = (directory / "dask.log").open("wb")
        self.scheduler = self._start("dask_scheduler", "--port", "0")
        self.workers: list[subprocess.Popen[bytes]] = []
        self.address = ""

    def await_scheduler(self) -> None:
        await_(lambda: self._file.exists() and self._file.read_text().rstrip().endswith("}"))  # written to its end
        self.address = str(json.loads(self._file.read_text())["address"])

    def _start(self, program: str, *words: str) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", f"distributed.cli.{program}", "--scheduler-file", str(self._file)]
        command += ["--host", "127.0.0.1", "--no-dashboard", *words]
        return subprocess.Popen(command, env=environment(), stdout=self._log, stderr=self._log)

    def add_worker(self) -> "subprocess.Popen[bytes]":
        self.workers.append(self._start("dask_worker", "--nthreads", "1", "--no-nanny"))
        return self.workers[-1]

    def close(self) -> None:
        for process in [*self.workers, self.scheduler]:
            process.kill()
            process.wait()
        self._log.close()


def await_(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def await_answers(results: Path, number: int) -> None:
    await_(lambda: len(answered(results)) >= number)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path)
    try:
        cluster.await_scheduler()
        yield cluster
    finally:
        cluster.close()


def begun(directory: Path, cluster: Cluster) -> "subprocess.Popen[str]":
    words = [*PROGRAM, written(directory, SEARCH), "-o", "out", "--on", cluster.address]
    pipe = subprocess.PIPE
    return subprocess.Popen(words, cwd=directory, env=environment(), stdout=pipe, stderr=pipe, text=True)


def the_search_of_one_process() -> str:
    request = SearchRequest("setnx", schedules=40000, faults="pause-client")
    return search_schedules(plan_search(request), lambda _: None).history_sha256


def test_workers_that_are_killed_and_workers_that_join_late(tmp_path: Path, cluster: Cluster) -> None:
    first, second = cluster.add_worker(), cluster.add_worker()
    running = begun(tmp_path, cluster)
    results = tmp_path / "out"
    for number, killed in ((2, first), (6, second)):
        await_answers(results, number)
        killed.kill()
        cluster.add_worker()
    said, complaint = running.communicate(timeout=LIMIT_S)
    assert running.returncode == 0, complaint
    assert "0 violations in 40,000 schedules" in said
    assert len(answered(results)) == len(set(answered(results))) == CASES
    assert kept(results, "setnx")["history_sha256"] == the_search_of_one_process()


def test_a_scheduler_that_is_killed(tmp_path: Path, cluster: Cluster) -> None:
    cluster.add_worker()
    running = begun(tmp_path, cluster)
    results = tmp_path / "out"
    await_answers(results, 3)
    cluster.scheduler.kill()
    said, complaint = running.communicate(timeout=LIMIT_S)
    before = answered(results)
    assert running.returncode == 3 and len(before) < CASES
    assert f"the scheduler at {cluster.address} is gone" in said and "campaign --resume out" in said
    assert "Traceback" not in complaint, complaint
    assert kept(results, "campaign")["state"] == "lost"
    done = campaign(tmp_path, "--resume", "out", "--workers", "2")
    assert done.returncode == 0, done.stderr
    assert answered(results)[: len(before)] == before
    assert len(answered(results)) == len(set(answered(results))) == CASES
    assert kept(results, "setnx")["history_sha256"] == the_search_of_one_process()
