"""What the controller of a run with several workers has to know of the collection: only the workers collect, and xdist
passes on nothing but the names of the tests. So the first worker writes it into a file of the controller's."""

import json
import os
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pytest
from xdist.workermanage import WorkerController  # type: ignore[import-untyped]

FILE = pytest.StashKey[Path]()
LEFT_OUT = pytest.StashKey[int]()
ADDED = pytest.StashKey[int]()


@dataclass(frozen=True)
class Collected:
    waiting: list[int] = field(default_factory=list)  # indices of the tests with the marker `waits`
    left_out: int = 0  # slow tests that are not run
    added: int = 0  # slow tests that are run because of what has changed


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    if FILE not in node.config.stash:
        handle, name = tempfile.mkstemp(prefix="lockstorm-collected-")
        os.close(handle)
        node.config.stash[FILE] = Path(name)
    node.workerinput["collected"] = str(node.config.stash[FILE])


@pytest.hookimpl(tryfirst=True)  # before the worker reports that it has collected
def pytest_collection_finish(session: pytest.Session) -> None:
    worker = getattr(session.config, "workerinput", None)
    if not worker or worker["workerid"] != "gw0":
        return
    waiting = [test for test, item in enumerate(session.items) if item.get_closest_marker("waits")]
    stash = session.config.stash
    found = Collected(waiting, stash.get(LEFT_OUT, 0), stash.get(ADDED, 0))
    Path(worker["collected"]).write_text(json.dumps(asdict(found)))


def collected(config: pytest.Config) -> Collected:
    """In the controller, after the workers have collected."""
    text = config.stash[FILE].read_text() if FILE in config.stash else ""
    return Collected(**json.loads(text)) if text else Collected()


def pytest_unconfigure(config: pytest.Config) -> None:
    if FILE in config.stash:
        config.stash[FILE].unlink(missing_ok=True)
