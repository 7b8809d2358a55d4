"""Which worker runs which test. One worker more than there are cores computes, with a lower priority; the others run
the tests with the marker `waits`, side by side. When nothing is left that waits, these compute, too: a test that
computes also waits for its servers now and then, and the cores would have nothing to do. A worker stays with a file,
whose fixtures it has, until nothing is left of it."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from xdist.workermanage import WorkerController, parse_tx_spec_config  # type: ignore[import-untyped]

from tests.tiers.collected import collected

if TYPE_CHECKING:
    from xdist.remote import Producer  # type: ignore[import-untyped]

COMPUTING = (os.cpu_count() or 1) + 1  # workers; the last one uses a core while the others wait
PRIORITY = 10  # of the workers that compute: less than that of those that wait for a moment
HELPS = pytest.StashKey[bool]()
QUEUED = 2  # a worker has to know its next test to know which fixtures end with this one


def computes(worker: str) -> bool:
    """Of a worker's name, gw0, gw1, ..."""
    return int(worker.removeprefix("gw")) < COMPUTING


@dataclass
class Lane:
    """The tests that are left, by file; and the file at which each worker is."""

    left: dict[str, list[int]] = field(default_factory=dict)
    at: dict[WorkerController, str] = field(default_factory=dict)

    def add(self, file: str, test: int) -> None:
        self.left.setdefault(file, []).append(test)

    def take(self, worker: WorkerController) -> int | None:
        """The next of its file, or the first of a file where nobody is, or else of that with most left."""
        file = self.at.get(worker)
        if file not in self.left:
            taken = {self.at[other] for other in self.at if other is not worker}
            free = [each for each in self.left if each not in taken]
            file = free[0] if free else max(self.left, key=lambda each: len(self.left[each]), default=None)
        if file is None:
            return None
        self.at[worker] = file
        test = self.left[file].pop(0)
        if not self.left[file]:
            del self.left[file]
        return test


class LaneScheduling:
    """A scheduler of xdist (xdist.scheduler.protocol). Tests are indices into the collection."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.expected = len(parse_tx_spec_config(config))
        self.running: dict[WorkerController, list[int]] = {}
        self.collections: dict[WorkerController, list[str]] = {}
        self.collection: list[str] | None = None
        self.waiting: set[int] = set()
        self.computing_lane, self.waiting_lane = Lane(), Lane()

    @property
    def nodes(self) -> list[WorkerController]:
        return list(self.running)

    @property
    def collection_is_completed(self) -> bool:
        return len(self.collections) >= self.expected

    @property
    def tests_finished(self) -> bool:
        """Whether every test has been given to a worker."""
        return self.collection is not None and not (self.computing_lane.left or self.waiting_lane.left)

    @property
    def has_pending(self) -> bool:
        return bool(self.computing_lane.left or self.waiting_lane.left or any(self.running.values()))

    def add_node(self, node: WorkerController) -> None:
        self.running[node] = []

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        self.collections[node] = list(collection)

    def schedule(self) -> None:
        """Called when all workers have collected, and again when one has replaced another that crashed."""
        if self.collection is None:
            first, *others = self.collections.values()
            different = {test for each in others for test in set(first) ^ set(each)}
            assert all(each == first for each in others), f"workers have collected different tests: {sorted(different)}"
            self.collection = first
            self.waiting = set(collected(self.config).waiting)
            for test in range(len(first)):
                self.put_back(test)
        for node in self.nodes:
            self.fill(node)

    def put_back(self, test: int) -> None:
        assert self.collection is not None
        lane = self.waiting_lane if test in self.waiting else self.computing_lane
        lane.add(self.collection[test].partition("::")[0], test)

    def fill(self, node: WorkerController) -> None:
        while not node.shutting_down and len(self.running[node]) < QUEUED:
            test = self.take(node)
            if test is None:
                node.shutdown()  # after what it has
                return
            self.running[node].append(test)
            node.send_runtest_some([test])

    def take(self, node: WorkerController) -> int | None:
        """A worker that has nothing left in its lane helps in the other one."""
        lanes = (self.computing_lane, self.waiting_lane)
        own, other = lanes if computes(node.gateway.id) else reversed(lanes)
        return (own if own.left else other).take(node)

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        self.running[node].remove(item_index)
        self.fill(node)

    def mark_test_pending(self, item: str) -> None:
        assert self.collection is not None
        self.put_back(self.collection.index(item))

    def remove_pending_tests_from_node(self, node: WorkerController, indices: Sequence[int]) -> None:
        raise NotImplementedError("nothing is taken from a worker again")

    def remove_node(self, node: WorkerController) -> str | None:
        """The test in which the worker crashed; its others are left for the rest."""
        given = self.running.pop(node)  # what it has collected still counts: its replacement has to be the last one
        for test in given[1:]:
            self.put_back(test)
        return self.collection[given[0]] if given and self.collection is not None else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: "Producer") -> LaneScheduling | None:
    """If there are workers beside those that compute."""
    wants = config.getoption("dist") == "worksteal" and len(parse_tx_spec_config(config)) > COMPUTING
    return LaneScheduling(config) if wants else None


def pytest_collection_finish(session: pytest.Session) -> None:
    """Not before: the tests begin when the last worker has collected."""
    worker = getattr(session.config, "workerinput", None)
    if worker and worker["workercount"] > COMPUTING and computes(worker["workerid"]):
        os.nice(PRIORITY)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A worker that waited, and helps to compute now, has nothing left to wait for."""
    worker = getattr(item.config, "workerinput", None)
    if not worker or worker["workercount"] <= COMPUTING or computes(worker["workerid"]):
        return
    if not item.get_closest_marker("waits") and HELPS not in item.config.stash:
        item.config.stash[HELPS] = True
        os.nice(PRIORITY)
