"""A library whose lock lives elsewhere than on the trial's servers: what breaks these says nothing about it."""

import json
import sys
from pathlib import Path

import pytest

from tests.helpers.support import lockstorm

ELSEWHERE = '''#!{python}
import fcntl
import time

from lockstorm import serve


class FileLock:
    """Of processes of one machine; it knows no server."""

    def __init__(self, path):
        self.file = open(path, "w")

    def acquire(self, wait):
        until = time.monotonic() + (3600 if wait is None else wait)
        while True:
            try:
                fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except BlockingIOError:
                if time.monotonic() >= until:
                    return False
                time.sleep(0.01)

    def release(self):
        fcntl.flock(self.file, fcntl.LOCK_UN)


serve(
    make=lambda urls, resource, lease: FileLock("{directory}/" + resource),
    acquire=lambda lock, wait: lock.acquire(wait),
    lease=False,
)
'''


@pytest.fixture
def elsewhere(tmp_path: Path) -> str:
    adapter = tmp_path / "file-lock"
    adapter.write_text(ELSEWHERE.format(python=sys.executable, directory=tmp_path))
    adapter.chmod(0o755)
    return str(adapter)


@pytest.mark.waits
def test_a_fault_on_a_link_that_carried_nothing_is_inconclusive(elsewhere: str) -> None:
    done = lockstorm("run", "partition-holder", "--adapter", elsewhere, "--time", "real", "--json")
    assert done.returncode == 3, done.stdout + done.stderr
    sentence = json.loads(done.stdout)["sentence"]
    assert sentence.startswith("Inconclusive: the lock does not use redis-1: nothing of it went through the links")


@pytest.mark.waits
def test_what_breaks_no_server_is_judged_elsewhere_too(elsewhere: str) -> None:
    for scenario in ("contention", "gc-pause"):
        done = lockstorm("run", scenario, "--adapter", elsewhere, "--time", "real")
        assert done.returncode == 0, done.stdout + done.stderr


def test_it_is_not_played_in_virtual_time(elsewhere: str) -> None:
    done = lockstorm("run", "contention", "--adapter", elsewhere, "--json")
    assert done.returncode == 3, done.stdout + done.stderr
    assert json.loads(done.stdout)["sentence"].startswith("Inconclusive: the lock does not use the servers of `open`")


def test_a_search_ends_with_a_sentence(elsewhere: str) -> None:
    done = lockstorm("explore", "--adapter", elsewhere, "--schedules", "20", "--json")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "the lock does not use the servers of `open`" in json.loads(done.stdout)["sentence"]


@pytest.mark.waits
def test_a_gate_does_not_call_it_safe(elsewhere: str, tmp_path: Path) -> None:
    policy = tmp_path / "lockstorm.toml"
    policy.write_text(f'[[lock]]\nadapter = "{elsewhere}"\n[scenarios]\nplay = ["gc-pause"]\ntime = "real"\n')
    done = lockstorm("gate", "-f", str(policy), "--json")
    verdict = json.loads(done.stdout)
    assert done.returncode == 3 and verdict["sentence"].startswith("Not known"), done.stdout + done.stderr
    assert verdict["cells"][0]["in_short"].startswith("the lock does not use the servers of `open`")


@pytest.mark.waits
def test_the_check_of_an_adapter_says_it_first(elsewhere: str) -> None:
    done = lockstorm("adapter", "check", elsewhere, "--json")
    first = json.loads(done.stdout)["checks"][0]
    assert done.returncode == 1 and not first["ok"]
    assert first["wrong"].startswith("the lock does not use the servers of `open`")
