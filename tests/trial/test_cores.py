"""Which core the processes of a trial in virtual time share."""

import os
import signal
import subprocess
import sys
import uuid

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
