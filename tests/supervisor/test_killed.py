"""Nothing of a library's program stays behind in virtual time if the driver, a supervisor or a program is killed.

LOCKSTORM_KILLS=100   number of moments for each victim (default 2), drawn from LOCKSTORM_KILL_SEED (1)
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lockstorm.base.hang_limit import HangLimit
from tests.helpers.planting import plant_in
from tests.helpers.supervising import supervisor_command
from tests.helpers.support import ENVIRONMENT, short_directory, start_lockstorm

MOMENTS = int(os.environ.get("LOCKSTORM_KILLS", "2"))
SEED = int(os.environ.get("LOCKSTORM_KILL_SEED", "1"))
MOST_S = 0.5  # until a victim is killed
LIMIT_S = 20  # until all that is left has ended

# It has another thread and another process, which go on whatever their calls return.
MANY = """
import threading
def go_on():
    while True:
        try: time.sleep(0.5)
        except OSError: pass
if os.fork() == 0: go_on()
threading.Thread(target=go_on, daemon=True).start()
def answer(asked): return lock(asked)
"""
SAID = {
    "driver": {-signal.SIGKILL: ""},
    "supervisor": {3: "cannot be followed in virtual time: it was killed, or could not be started"},
    "program": {2: "it was ended by signal 9", 3: "the program ended before it began"},
}
ALONE = """
import threading, time
def go_on():
    while True: time.sleep(0.5)
threading.Thread(target=go_on).start()
"""


def with_environment(wanted: bytes) -> list[int]:
    """The processes whose environment has it."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and wanted in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def supervisors_of(pids: list[int]) -> list[int]:
    names = {pid: Path(f"/proc/{pid}/comm") for pid in pids}
    return [pid for pid, name in names.items() if name.exists() and name.read_text() == "supervisor\n"]


def child_of(pid: int) -> int:
    limit = HangLimit(LIMIT_S)
    while not (children := Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
        assert not limit.is_over(), "no program"
    return int(children[0])


def killed(victim: str, program: str, directory: Path, wait_s: float) -> tuple[int, str]:
    """Kills it in a running trial; returns the status of the driver and what it wrote."""
    words = ("run", "contention", "--adapter", program, "--duration", "1h", "--json")
    cookie = f"LOCKSTORM_TRIAL={directory}/".encode()
    driver = start_lockstorm(*words, env={**ENVIRONMENT, "TMPDIR": str(directory)})
    limit = HangLimit(LIMIT_S)
    while not (supervisors := supervisors_of(with_environment(cookie))):
        assert driver.poll() is None, driver.communicate()
        assert not limit.is_over(), "no supervisor"
        time.sleep(0.01)
    time.sleep(wait_s)
    if victim == "driver":
        driver.kill()
    elif victim == "supervisor":
        os.kill(supervisors[0], signal.SIGKILL)
    else:
        os.kill(child_of(supervisors[0]), signal.SIGKILL)
    output, errors = driver.communicate(timeout=600)
    limit = HangLimit(LIMIT_S)
    while (processes := with_environment(cookie)) or os.listdir(directory):
        assert not limit.is_over(), f"left: {processes}, {os.listdir(directory)}"
        time.sleep(0.01)
    return driver.returncode, output + errors


@pytest.mark.lengthy("plays several trials")
@pytest.mark.parametrize("victim", ["driver", "supervisor", "program"])
def test_whoever_is_killed_nothing_is_left(victim: str, tmp_path: Path) -> None:
    program = plant_in(tmp_path, MANY)
    moments = random.Random(SEED)
    for _ in range(MOMENTS):
        with short_directory() as directory:
            status, said = killed(victim, program, directory, moments.uniform(0, MOST_S))
        assert SAID[victim][status] in said
        assert "Traceback" not in said


def test_a_program_does_not_notice_that_its_supervisor_is_ended() -> None:
    running = subprocess.Popen(supervisor_command(sys.executable, "-c", ALONE), stderr=subprocess.PIPE, text=True)
    program = child_of(running.pid)
    limit = HangLimit(LIMIT_S)
    while len(os.listdir(f"/proc/{program}/task")) < 2:
        assert not limit.is_over(), "it has no thread"
        time.sleep(0.01)
    running.terminate()
    _, said = running.communicate(timeout=600)
    assert (running.returncode, said) == (-signal.SIGTERM, "")
    ended = HangLimit(LIMIT_S)  # SIGKILL was sent before: it makes no call any more, and is gone once it is scheduled
    while Path(f"/proc/{program}").exists() and "Z" not in Path(f"/proc/{program}/stat").read_text():
        assert not ended.is_over(), "it goes on"
        time.sleep(0.01)


@pytest.mark.parametrize("victim", ["supervisor", "program"])
def test_alone(victim: str) -> None:
    command = supervisor_command(sys.executable, "-c", ALONE)
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    program = child_of(running.pid)
    limit = HangLimit(LIMIT_S)
    while len(os.listdir(f"/proc/{program}/task")) < 2:
        assert not limit.is_over(), "it has no thread"
        time.sleep(0.01)
    os.kill(running.pid if victim == "supervisor" else program, signal.SIGKILL)
    _, said = running.communicate(timeout=600)
    assert victim == "supervisor" or said == ""  # a call that nobody answers is an error that the program may print
    assert running.returncode == (-signal.SIGKILL if victim == "supervisor" else 128 + signal.SIGKILL)
    limit = HangLimit(LIMIT_S)
    while Path(f"/proc/{program}").exists():
        assert not limit.is_over(), "the program goes on"
        time.sleep(0.01)
