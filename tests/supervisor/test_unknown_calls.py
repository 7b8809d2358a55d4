"""A program that waits in a call which the supervisor does not know, or cannot follow, is stopped with the call's name
within a bounded time; it never gets a wrong time in silence. A program that computes, or that somebody else has
stopped, is not mistaken for one that waits."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.helpers.building import make
from tests.helpers.supervising import UNSUPERVISED, output_of, supervised, supervisor_command

pytestmark = pytest.mark.waits  # for two seconds of the machine's time, until it is sure

WAITS = "supervisor: the program waits in a call that is not known: {} (number {}), in the thread blocking_calls\n"
CANNOT = "supervisor: the program makes a call that cannot be followed: {} (number {})\n"
UNKNOWN = {
    "flock": ("flock", 73),
    "fcntl": ("fcntl", 72),
    "fcntl-ofd": ("fcntl", 72),
    "msgrcv": ("msgrcv", 70),
    "semop": ("semtimedop", 220),
    "mq_receive": ("mq_timedreceive", 243),
    "open-fifo": ("openat", 257),
    "connect": ("connect", 42),
    "write": ("write", 1),
    "send": ("sendto", 44),
    "recv-waitall": ("recvfrom", 45),
    "preadv2": ("preadv2", 327),
    "splice": ("splice", 275),
}
# These would go by the machine's clock, or never end.
IMPOSSIBLE = {"semtimedop": 220, "mq_timedreceive": 243}
KNOWN = {"io_uring": "0.000000000 io_uring: -38\n", "sigwaitinfo": "4.000050000 sigwaitinfo: 10\n",
         "signalfd": "3.000050000 signalfd: 14\n",
         "compute": "0.003000000 compute: 1\n"}  # fmt: skip
STARTED = "0.000000000 start: 0\n"


@pytest.fixture(scope="module")
def program() -> Path:
    return make("build/tests/blocking_calls") / "tests" / "blocking_calls"


@pytest.mark.parametrize("call", sorted(UNKNOWN))
def test_a_call_that_is_not_known_ends_the_program_with_its_name(program: Path, call: str) -> None:
    done = supervised(program, call, limit_s=60)
    assert (done.returncode, done.stdout) == (UNSUPERVISED, STARTED)
    assert done.stderr == WAITS.format(*UNKNOWN[call])


@pytest.mark.parametrize("call", sorted(IMPOSSIBLE))
def test_a_call_that_cannot_be_followed_ends_the_program_at_once(program: Path, call: str) -> None:
    done = supervised(program, call, limit_s=60)
    assert (done.returncode, done.stdout) == (UNSUPERVISED, STARTED)
    assert done.stderr == CANNOT.format(call, IMPOSSIBLE[call])


@pytest.mark.parametrize("call", sorted(KNOWN))
def test_these_are_known(program: Path, call: str) -> None:
    assert output_of(program, call, limit_s=60) == STARTED + KNOWN[call]


def children_of(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_program_that_computes_for_ever_is_left_to_its_owner(program: Path) -> None:
    running = subprocess.Popen(supervisor_command(program, "nothing"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            running.wait(3)
    finally:
        running.kill()
    assert running.communicate() == (STARTED.encode(), b"")


def test_a_program_that_is_stopped_from_outside_goes_on_later() -> None:
    """While it is stopped no time passes for it."""
    script = "import time; print('up', flush=True); [time.time() for _ in range(10**7)]; print(time.monotonic())"
    command = supervisor_command("python3", "-c", script)
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stdout
    assert running.stdout.readline() == "up\n"
    (child,) = children_of(running.pid)
    os.kill(child, signal.SIGSTOP)
    time.sleep(3)
    assert running.poll() is None
    os.kill(child, signal.SIGCONT)
    printed, errors = running.communicate(timeout=60)
    assert errors == ""
    assert 1000 <= float(printed) < 1000.1
