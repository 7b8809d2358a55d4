"""Processes of a trial in virtual time share a core and a session."""

import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from lockstorm.process import cores
from lockstorm.process.cores import claimed_cores, on_core
from lockstorm.trial.settings import TrialSettings
from lockstorm.trial.trial import Trial

ALL = os.sched_getaffinity(0)
CLAIMING = """
import signal, sys
from lockstorm.process import cores
cores.CLAIM = "\\0" + sys.argv[1]
with cores.claimed_cores(1) as (core,):
    print(core, flush=True)
    signal.pause()
"""


@pytest.fixture(autouse=True)
def own_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests claim cores, too."""
    monkeypatch.setattr(cores, "CLAIM", f"\0{uuid.uuid4()}-{{}}")


def test_one_core_after_the_other_is_claimed_and_with_none_left_they_are_shared() -> None:
    with claimed_cores(1) as (first,), claimed_cores(len(ALL)) as others:
        assert others[-1] == first
        assert set(others) == ALL
        with claimed_cores(2 * len(ALL)) as shared:
            assert sorted(shared) == sorted([*ALL, *ALL])
    with on_core(first), claimed_cores(2) as given_back:
        assert given_back == [first, first]


@pytest.mark.skipif(len(ALL) < 2, reason="one core cannot be chosen among")
def test_another_driver_has_another_core_until_it_ends_however_it_ends() -> None:
    command = [sys.executable, "-c", CLAIMING, cores.CLAIM.lstrip("\0")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout
        theirs = int(other.stdout.readline())
        for _ in range(20):
            with claimed_cores(1) as (mine,):
                assert mine != theirs
        with on_core(theirs), claimed_cores(1) as (only,):
            assert only == theirs
        other.send_signal(signal.SIGKILL)
    claim = cores._claim(theirs)
    assert claim
    claim.close()


@pytest.mark.skipif(len(ALL) < 2, reason="one core cannot be chosen among")
def test_a_trial_stays_on_a_core_that_no_other_has() -> None:
    with claimed_cores(1) as (taken,), Trial(TrialSettings("set-nx-px", "gc-pause")):
        (own,) = os.sched_getaffinity(0)
        assert own != taken
    assert os.sched_getaffinity(0) == ALL


def family(pid: int) -> list[int]:
    """With all that it has started, and they."""
    children = [int(word) for path in Path(f"/proc/{pid}/task").glob("*/children") for word in path.read_text().split()]
    return [pid, *(each for child in children for each in family(child))]


@pytest.mark.parametrize("lock", ["set-nx-px", "pg-advisory", "zookeeper"])
def test_a_trial_in_virtual_time_has_one_session(lock: str) -> None:
    """Another session may have to wait for its share of a core (decision 0098)."""
    with Trial(TrialSettings(lock, "gc-pause")) as running:
        running.clients(2)
        pids = [each for process in running.context.sandbox.processes for each in family(process.pid)]
        assert len(pids) >= 5
        assert {os.getsid(pid) for pid in pids} == {os.getsid(0)}
        groups = {os.getpgid(pid) for pid in pids}
        assert os.getpgid(0) not in groups, "a Ctrl-C at the terminal would reach it"


def test_in_real_time_each_process_has_a_share_of_a_busy_core() -> None:
    with Trial(TrialSettings("set-nx-px", "gc-pause", time="real")) as running:
        running.clients(2)
        pids = [process.pid for process in running.context.sandbox.processes]
        assert [os.getsid(pid) for pid in pids] == pids
