"""Locks with one mistake each, beside the same lock without it: a scenario tells them apart."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.planted_plugins import one_mistake
from tests.helpers.support import lockstorm

ONE_MORE = pytest.mark.slow("a mistake that is seen on Redis, too, on another service", seconds=10)
# The lock, its mistake, the scenario that must see it, and the property that is violated.
MISTAKES = [
    ("push", "SILENT", "contention", "liveness"),
    ("push", "KEEPS", "contention", "liveness"),
    ("push", "LISTENS", "refused-acquire", "liveness"),
    ("queue", "TAKES_HEAD", "waiter-behind-gives-up", "liveness"),
    ("queue", "TAKES_TWO", "waiter-behind-gives-up", "fairness"),
    ("queue", "STAYS", "refused-acquire", "liveness"),
    ("queue", "STAYS", "waiter-behind-gives-up", "liveness"),
    ("queue", "SLOW", "waiter-behind-gives-up", "liveness"),
    ("queue", "SLOW", "contention", "liveness"),
    ("majority", "FORGETS_SILENT", "late-answers", "liveness"),
    ("renewing", "TWO_COMMANDS", "renewal-overtaken", "liveness"),
    ("renewing", "GOES_ON", "renewal-after-release", "liveness"),
    ("push", "IS_HOST", "holder-restarts", "mutual_exclusion"),
    pytest.param("tree", "FINDS_OLD", "holder-restarts", "mutual_exclusion", marks=ONE_MORE),
    pytest.param("etcd", "FINDS_OLD", "holder-restarts", "mutual_exclusion", marks=(pytest.mark.waits, ONE_MORE)),
]


def played(*words: str) -> dict[str, Any]:
    done = lockstorm("run", *words, "--json")
    assert done.returncode in (0, 1), done.stdout + done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.mark.parametrize(("lock", "mistake", "scenario", "broken"), MISTAKES)
def test_a_mistake_is_seen(tmp_path: Path, lock: str, mistake: str, scenario: str, broken: str) -> None:
    right = played(scenario, "--plugin", one_mistake(tmp_path, lock))
    assert right["exit"] == 0, right["sentence"]
    wrong = played(scenario, "--plugin", one_mistake(tmp_path, lock, mistake))
    assert wrong["exit"] == 1 and broken in wrong["required"], wrong["sentence"]
    assert wrong["verdict"][broken]["status"] == "violated", wrong["sentence"]
