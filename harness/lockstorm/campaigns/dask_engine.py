"""The engine: Dask (`distributed`). It hands cases to the workers of a cluster - one on this machine, or any other that
is named - and to another worker when one is lost."""

import logging
import os
import re
import signal
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Self

from lockstorm.base.errors import Inconclusive, UsageError
from lockstorm.base.version import VERSION
from lockstorm.campaigns.campaign_case import Plain
from lockstorm.campaigns.case_process import CaseProcess

LOCAL = "local"
CONNECT_LIMIT_S = 10
DEATHS_MOST = 10  # a case whose worker died so often is not tried again
WORKERS_MOST = 256
LOOK_EVERY_S = 0.05
ADDRESS = re.compile(r"(tcp|tls|ws|wss|ucx)://\S+:\d+")
EXTRA = "pip install 'lockstorm[campaign]'"


def _distributed() -> Any:
    """The package, which has no types; its import takes half a second."""
    return import_module("distributed")


class EngineLost(Inconclusive):
    """The scheduler is gone, and with it what has not been answered."""


_case_process: CaseProcess | None = None


def play_on_worker(case: Plain, version: str) -> Plain:
    """Runs on a worker of the engine: the answer to a case, both as JSON."""
    worker = _distributed().get_worker()
    global _case_process
    if version != VERSION:
        return {"error": f"the worker {worker.address} has lockstorm {VERSION}, and the campaign {version}"}
    if _case_process is None:
        cores, name = sorted(os.sched_getaffinity(0)), worker.name
        _case_process = CaseProcess(cores[(name if isinstance(name, int) else os.getpid()) % len(cores)])
    return _case_process.play(case)


def dask_setup(_worker: Any) -> None:
    """Dask calls it in each worker of a local cluster. Ctrl-C reaches the whole process group of a terminal: the
    campaign decides then what its workers do."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class DaskEngine:
    """A context manager. `on`: local, or the address of a scheduler; `workers`: of a local cluster."""

    def __init__(self, on: str = LOCAL, workers: int | None = None) -> None:
        if find_spec("distributed") is None:
            raise UsageError(f"a campaign needs Dask, which is not installed here: {EXTRA}")
        if on != LOCAL and not ADDRESS.fullmatch(on):
            raise UsageError(f"--on {on}: local, or the address of a scheduler, as in tcp://scheduler:8786")
        self.on = on
        self._given_up = False
        self._files = ExitStack()
        self._workers = workers or len(os.sched_getaffinity(0))

    def __enter__(self) -> Self:
        distributed = _distributed()
        for name in ("distributed", "distributed.client", "asyncio"):  # what is lost is said by this class
            logging.getLogger(name).setLevel(logging.CRITICAL)
        import_module("dask").config.set({"distributed.scheduler.allowed-failures": DEATHS_MOST})
        self._cluster = None
        if self.on == LOCAL:
            self._cluster = distributed.LocalCluster(
                n_workers=self._workers,
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,
                preload=__name__,
                local_directory=self._files.enter_context(
                    tempfile.TemporaryDirectory(prefix="lockstorm-dask-", ignore_cleanup_errors=True)
                ),
            )
        try:
            self.client = distributed.Client(self._cluster or self.on, timeout=CONNECT_LIMIT_S, set_as_default=False)
        except (OSError, ValueError) as error:
            raise UsageError(f"--on {self.on}: no scheduler of Dask answers there: {error}") from None
        return self

    def __exit__(self, *exception: object) -> None:
        with suppress(Exception):  # a scheduler that is gone cannot be told
            self.client.close(timeout=CONNECT_LIMIT_S)
        if self._cluster:
            self._cluster.close(timeout=CONNECT_LIMIT_S)
        self._files.close()

    def give_up(self) -> None:
        """Ends what is being played: who waits for an answer gets EngineLost. Any thread may call it."""
        self._given_up = True

    @property
    def title(self) -> str:
        """The number of workers, the scheduler, and the dashboard if there is one."""
        found = self.client.scheduler_info(n_workers=-1)
        count = len(found["workers"])
        dashboard = f", dashboard {self.client.dashboard_link}" if find_spec("bokeh") else ""  # which draws it
        return f"{count} worker{'' if count == 1 else 's'} at {self.on}{dashboard}"

    def play_all(self, cases: Sequence[Plain], keys: Sequence[str]) -> Iterator[tuple[int, Plain]]:
        """Yields the number and the answer of each case, as it ends. What is not needed any more when the caller stops
        is given up. `keys`: a name for each, by which the engine knows it; the same case may be asked for again."""
        futures = [
            self.client.submit(play_on_worker, case, VERSION, key=key, pure=False)
            for case, key in zip(cases, keys, strict=True)
        ]
        numbers = {future.key: number for number, future in enumerate(futures)}
        try:
            completed = _distributed().as_completed(futures, loop=self.client.loop)
            while completed.count():
                for future in self._ended(completed):
                    yield numbers[future.key], self._answer(future)
        finally:
            with suppress(Exception):  # a scheduler that is gone has given them up
                self.client.cancel(futures, force=True)

    def _ended(self, completed: Any) -> list[Any]:
        """The futures that have ended meanwhile; an empty list after a moment without any."""
        ended: list[Any] = completed.next_batch(block=False)
        if self._given_up:
            raise EngineLost("the campaign was interrupted")
        if not ended and self.client.status != "running":
            raise EngineLost(f"the scheduler at {self.on} is gone")
        if not ended:
            time.sleep(LOOK_EVERY_S)
        return ended

    def _answer(self, future: Any) -> Plain:
        if future.status == "finished":
            answer: Plain = future.result()
            return answer
        if future.status == "error" and isinstance(
            future.exception(), import_module("distributed.scheduler").KilledWorker
        ):
            return {"error": f"{DEATHS_MOST} workers ended while they played it"}
        if future.status == "error":
            return {"error": f"the worker failed: {future.exception()}"}
        raise EngineLost(f"the scheduler at {self.on} is gone")
