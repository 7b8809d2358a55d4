"""Real time: no verdict is taken from a trial during which the machine stood still; it is played again, and counted."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lockstorm.base import paths
from lockstorm.base.errors import Inconclusive, Stalled, UsageError
from lockstorm.native.library import Stall, StallKind
from lockstorm.scenario.play import play
from lockstorm.scenario.worker_pool import play_request
from lockstorm.storm.storm import run_storm, run_storms
from lockstorm.storm.storm_plan import StormRequest, plan_storm
from lockstorm.trial import stall_sentinel
from lockstorm.trial.settings import TrialSettings, at_pace
from lockstorm.trial.stall_sentinel import StallSentinel, describe_stall, pace_of, play_unstalled
from tests.helpers.support import ENVIRONMENT, start_lockstorm, trial

STOPPED_S = 1.5  # longer than what a trial with a lease of 3 s tolerates
LEASE_MS = 3_000
STALL = Stalled("the machine stood still for 13.40 s")


class Stalls:
    """Makes the first `count` trials stall."""

    def __init__(self, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = count
        monkeypatch.setattr(StallSentinel, "find_stall", lambda _: self.find())

    def find(self) -> Stalled | None:
        self.left -= 1
        return STALL if self.left >= 0 else None


REAL = TrialSettings("set-nx-px", "gc-pause", time="real", control=True)


def test_a_trial_that_stalled_is_played_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    Stalls(2, monkeypatch)
    result = play(REAL, save=tmp_path / "history")
    assert (result.exit, result.played_again) == (0, 2)
    assert (tmp_path / "history").exists()


def test_a_trial_that_stalls_each_time_is_inconclusive(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    Stalls(1000, monkeypatch)
    events: list[object] = []
    result = play(REAL, save=tmp_path / "history", story_to=events)  # type: ignore[arg-type]
    assert (result.exit, result.played_again) == (3, 4)
    assert "the machine stood still for 13.40 s" in result.sentence
    assert not events and not (tmp_path / "history").exists()


def test_the_matrix_counts_what_was_played_again(monkeypatch: pytest.MonkeyPatch) -> None:
    Stalls(1, monkeypatch)
    assert play_request(REAL).played_again == 1


@pytest.mark.waits
def test_storms_count_what_was_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    Stalls(1, monkeypatch)
    request = TrialSettings("set-nx-px", "storm", time="real", lease_ms=400, duration_ms=200, clients=2)
    storm = StormRequest(request, faults="pause-client")
    assert run_storm(plan_storm(storm)).played_again == 1
    Stalls(1, monkeypatch)
    assert run_storms(storm, lambda _: None).played_again == 1


def test_in_virtual_time_nothing_stalls(monkeypatch: pytest.MonkeyPatch) -> None:
    Stalls(1000, monkeypatch)
    assert play(TrialSettings("set-nx-px", "gc-pause", control=True)).exit == 0


def test_an_error_is_explained_by_the_stall_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError), trial("set-nx-px", time="real"):
        raise AssertionError("without a stall it is what it is")
    Stalls(1000, monkeypatch)
    with pytest.raises(Stalled) as stalled, trial("set-nx-px", time="real"):
        raise AssertionError("too late")
    assert isinstance(stalled.value.__cause__, AssertionError)
    with pytest.raises(UsageError), trial("set-nx-px", time="real"):
        raise UsageError("a wrong option stays one")


def test_a_trial_that_stalled_does_not_wait_for_what_may_never_come(monkeypatch: pytest.MonkeyPatch) -> None:
    with trial("set-nx-px", time="real", lease_ms=600_000) as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        Stalls(1000, monkeypatch)
        with pytest.raises(Stalled):
            two.acquire()  # it is granted the lock in ten minutes


def test_plays_are_bounded_in_number_and_time(monkeypatch: pytest.MonkeyPatch) -> None:
    paces = []

    def play_once(pace: int) -> None:
        paces.append(pace)
        raise Stalled("it stood still")

    with pytest.raises(Stalled) as stalled:
        play_unstalled(play_once)
    assert paces == [1, 2, 4, 4, 4] == [pace_of(play) for play in range(1, 6)]
    assert stalled.value.played_again == 4
    monkeypatch.setattr(stall_sentinel, "PLAYED_AGAIN_WITHIN_S", -1.0)
    with pytest.raises(Stalled) as stalled:
        play_unstalled(play_once)
    assert stalled.value.played_again == 0


def test_other_errors_are_not_played_again() -> None:
    tries = []

    def play_once(pace: int) -> None:
        tries.append(pace)
        raise Inconclusive("a server did not start")

    with pytest.raises(Inconclusive):
        play_unstalled(play_once)
    assert tries == [1]


def test_a_slower_pace_makes_short_leases_longer() -> None:
    def lease_ms(before_ms: int, pace: int, **chosen: bool) -> int | None:
        return at_pace(TrialSettings("set-nx-px", time="real", lease_ms=before_ms), pace, **chosen).lease_ms

    assert [lease_ms(400, pace) for pace in (1, 2, 4)] == [400, 800, 1600]
    assert [lease_ms(5_000, pace) for pace in (1, 2, 4)] == [5_000, 5_000, 5_000]  # clients wait 4 s for an answer
    assert lease_ms(400, 4, lease_is_chosen=True) == 400
    virtual = TrialSettings("set-nx-px", lease_ms=400)
    assert at_pace(virtual, 4) == virtual


def test_at_a_slower_pace_everything_waits_longer() -> None:
    with (
        trial("set-nx-px", time="real", control=True, pace=1) as usual,
        trial("set-nx-px", time="real", control=True, pace=2) as slow,
    ):
        assert slow.reply_limit_ms == 2 * usual.reply_limit_ms
        assert slow.bound_ms == usual.bound_ms + usual.reply_limit_ms


def test_a_stall_is_described() -> None:
    assert describe_stall(Stall(int(13.4e9), StallKind.MACHINE, b"")) == "the machine stood still for 13.40 s"
    assert describe_stall(Stall(int(0.5e9), StallKind.THREAD, b"redis-server")) == (
        "redis-server waited 0.50 s for a processor"
    )
    assert describe_stall(Stall(int(2e9), StallKind.WALL_CLOCK, b"")) == "the machine's wall clock jumped by 2.00 s"


def test_a_machine_that_stands_still_is_noticed() -> None:
    """All processes of a trial are stopped and go on together, as when the host stops a virtual machine."""
    command = start_lockstorm(
        *("run", "gc-pause", "--lock", "set-nx-px-renew", "--time", "real", "--control", "--json"),
        *("--lease", f"{LEASE_MS}ms"),
    )
    stopped = stop_all_in_a_trial(command)
    time.sleep(STOPPED_S)
    for pid in reversed(stopped):
        os.kill(pid, signal.SIGCONT)
    output, errors = command.communicate(timeout=120)
    result = json.loads(output)
    assert result["played_again"] >= 1, (result["sentence"], errors)
    assert result["exit"] in (0, 3)  # 3: it stood still each time, by itself


def stop_all_in_a_trial(command: "subprocess.Popen[str]") -> list[int]:
    """Stops the command and all its processes once its two clients run."""
    while len([pid for pid in descendants(command.pid) if name_of(pid) == "client"]) < 2:
        assert command.poll() is None, "it ended before its clients had started"
        time.sleep(0.002)
    time.sleep(0.02)  # the sentinel has begun to watch
    stopped: list[int] = []
    while new := [pid for pid in (command.pid, *descendants(command.pid)) if pid not in stopped]:
        for pid in new:
            os.kill(pid, signal.SIGSTOP)
        stopped += new
    return stopped


def descendants(pid: int) -> list[int]:
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        children = [int(child) for thread in threads for child in (thread / "children").read_text().split()]
    except OSError:  # it has ended
        return []
    return children + [each for child in children for each in descendants(child)]


def name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def test_pytest_plays_a_stalled_test_again_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "from lockstorm.base.errors import Inconclusive, Stalled\n"
        "plays = []\n"
        "def test_stalled():\n"
        "    plays.append(1)\n"
        "    if len(plays) < 3: raise Stalled('it stood still')\n"
        "def test_failed():\n"
        "    raise Inconclusive('Stalled: this is another reason')\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", str(paths.ROOT / "pyproject.toml")]
    done = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, env=ENVIRONMENT)
    assert "1 failed, 1 passed, 2 rerun" in done.stdout, done.stdout


@pytest.mark.parametrize(("time_", "error"), [("real", Stalled), ("virtual", Inconclusive)])
def test_a_lock_that_could_not_be_opened_is_played_again_in_real_time(time_: str, error: type[Inconclusive]) -> None:
    with (
        pytest.raises(Inconclusive, match="did not answer while the lock was opened") as raised,
        trial("set-nx-px", time=time_) as running,
        running.fault("pause-server", running.server),
    ):
        running.clients(1)
    assert type(raised.value) is error
