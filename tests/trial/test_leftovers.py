"""No process, directory or shared memory stays behind, however a trial ends."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lockstorm.base.errors import Stalled
from lockstorm.base.hang_limit import HangLimit
from lockstorm.process.process import PREFIX, Sandbox
from tests.helpers.support import ENVIRONMENT, lockstorm, processes_below, short_directory, start_lockstorm

LONG = ("run", "contention", "--lock", "set-nx-px", "--time", "real", "--duration", "60s", "--json")


def wait_until(condition: Callable[[], bool], within_s: float, what: str) -> None:
    limit = HangLimit(within_s)
    while not condition():
        assert not limit.is_over(), f"not within {within_s} s: {what}"
        time.sleep(0.01)


def shared_memory_of(pids: list[int]) -> list[str]:
    return [name for name in os.listdir("/dev/shm") if any(name.endswith(f"_{pid}") for pid in pids)]


def running_trial(directory: Path, words: tuple[str, ...] = LONG) -> tuple[subprocess.Popen[str], list[int]]:
    """A trial in the middle of its work, and the processes it consists of."""
    driver = start_lockstorm(*words, env={**ENVIRONMENT, "TMPDIR": str(directory)}, start_new_session=True)

    def busy() -> bool:
        assert driver.poll() is None, driver.communicate()
        return any(directory.glob("lockstorm-*/client-4.log"))

    wait_until(busy, 20, "four clients")
    wait_until(lambda: len(processes_below(directory)) >= 7, 20, "redis, store, reaper, four clients")
    return driver, processes_below(directory)


def program_among(pids: list[int], name: bytes) -> int:
    return next(pid for pid in pids if Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].endswith(name))


def assert_clean(directory: Path, pids: list[int]) -> None:
    wait_until(lambda: not processes_below(directory), 10, f"processes gone: {processes_below(directory)}")
    wait_until(lambda: not list(directory.iterdir()), 10, "the private directory gone")
    assert not shared_memory_of(pids)


def test_a_trial_that_ends_leaves_nothing() -> None:
    before = set(os.listdir("/dev/shm"))
    with short_directory() as directory:
        done = lockstorm("run", "gc-pause", "--lock", "set-nx-px", env={**ENVIRONMENT, "TMPDIR": str(directory)})
        assert done.returncode == 1, done.stderr
        assert_clean(directory, [])
    left = {name for name in set(os.listdir("/dev/shm")) - before if "faketime" in name}
    mine = {name for name in left if not Path(f"/proc/{name.rsplit('_', 1)[1]}").exists()}
    assert not mine


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGKILL, -signal.SIGKILL)],
)
def test_a_driver_that_is_ended_leaves_nothing(number: signal.Signals, status: int) -> None:
    with short_directory() as directory:
        driver, pids = running_trial(directory)
        driver.send_signal(number)
        out, err = driver.communicate(timeout=600)
        assert driver.returncode == status, (out, err)
        assert "Traceback" not in err
        assert_clean(directory, pids)


INTERRUPTED_WITHIN = """
import os, signal, sys
from lockstorm.process.process import Reaper, Sandbox

answers = 0

def interrupted(line):
    def answer(reaper):
        global answers
        read = line(reaper)
        answers += 1
        if answers == int(sys.argv[1]):
            os.kill(os.getpid(), signal.SIGTERM)
        return read
    return answer

def give_up(number, frame):
    raise SystemExit(128 + number)

signal.signal(signal.SIGTERM, give_up)
Reaper._line = interrupted(Reaper._line)
sandbox = Sandbox()
sandbox.start("sleeper", ["sleep", "600"])
sandbox.close()
"""


@pytest.mark.parametrize("answer", [1, 2], ids=["when it is made", "when it is removed"])
def test_an_interrupt_while_a_directory_is_made_or_removed_leaves_nothing(answer: int) -> None:
    """Nothing is left at the driver's end, and not only soon after it."""
    with short_directory() as directory:
        command = [sys.executable, "-c", INTERRUPTED_WITHIN, str(answer)]
        done = subprocess.run(command, env={**ENVIRONMENT, "TMPDIR": str(directory)}, check=False)
        assert done.returncode == 128 + signal.SIGTERM
        assert list(directory.iterdir()) == []


def test_ctrl_c_reaches_only_the_driver_and_says_so() -> None:
    """A terminal sends SIGINT to the whole foreground group: the children are not in it and do not die first."""
    with short_directory() as directory:
        driver, pids = running_trial(directory)
        os.killpg(driver.pid, signal.SIGINT)
        out, err = driver.communicate(timeout=600)
        assert (driver.returncode, err.strip(), out) == (130, "lockstorm: interrupted", "")
        assert_clean(directory, pids)


def test_ctrl_c_in_virtual_time() -> None:
    words = ("run", "contention", "--lock", "none", "--duration", "1h", "--clients", "4", "--json")
    with short_directory() as directory:
        driver, pids = running_trial(directory, words)
        driver.send_signal(signal.SIGINT)
        _, err = driver.communicate(timeout=600)
        assert (driver.returncode, err.strip()) == (130, "lockstorm: interrupted")
        assert_clean(directory, pids)


def test_the_next_trial_sweeps_up_after_a_reaper_that_was_killed() -> None:
    """The whole process tree is killed at once, as when a container is removed: no process is left to clean up."""
    with short_directory() as directory:
        driver, pids = running_trial(directory)
        os.kill(
            program_among(pids, b"reaper"), signal.SIGKILL
        )  # first: it would clean up as soon as the driver is dead
        driver.kill()
        driver.communicate(timeout=600)
        wait_until(lambda: not processes_below(directory), 10, "processes gone")
        assert list(directory.glob("lockstorm-*")), "there is something to sweep"
        done = lockstorm("run", "gc-pause", "--lock", "none", env={**ENVIRONMENT, "TMPDIR": str(directory)})
        assert done.returncode == 1, done.stderr
        assert_clean(directory, pids)


def test_files_that_are_written_during_the_removal_are_removed_too() -> None:
    """The children of a killed PostgreSQL still write for a while; their ids are not known."""
    sandbox = Sandbox()
    memory = Path(tempfile.mkdtemp(prefix=PREFIX, dir="/dev/shm"))
    (sandbox.directory / "server-1").symlink_to(memory)
    writes = """
import contextlib, itertools, pathlib, sys, time
end = time.monotonic() + 0.5
for number in itertools.takewhile(lambda _: time.monotonic() < end, itertools.count()):
    for directory in sys.argv[1:]:
        with contextlib.suppress(OSError):
            pathlib.Path(directory, str(number)).write_text("written")
"""
    with subprocess.Popen([sys.executable, "-c", writes, str(memory), str(sandbox.directory)]):
        wait_until(lambda: len(list(memory.iterdir())) > 10, 10, "files")
        sandbox.close()
    assert not memory.exists()
    assert not sandbox.directory.exists()


def test_a_killed_client_ends_the_trial_with_its_name() -> None:
    with short_directory() as directory:
        driver, pids = running_trial(directory)
        os.kill(program_among(pids, b"client"), signal.SIGKILL)
        out, err = driver.communicate(timeout=600)
        if '"played_again"' in out:
            raise Stalled("the trial whose client was killed had stalled, and was played again without that")
        assert driver.returncode == 3, (out, err)
        assert "client-" in out and "ended" in out
        assert_clean(directory, pids)


def test_trials_run_side_by_side() -> None:
    with short_directory() as directory:
        environment = {**ENVIRONMENT, "TMPDIR": str(directory)}
        words = ("run", "gc-pause", "--lock", "set-nx-px", "--json")
        drivers = [start_lockstorm(*words, env=environment) for _ in range(6)]
        for driver in drivers:
            out, err = driver.communicate(timeout=600)
            assert driver.returncode == 1, (out, err)
        assert_clean(directory, [])
