"""What a trial is made of: processes on a leash, and the line on which they are asked."""

import os
import signal
import socket
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from harness.driver import process
from harness.driver.errors import Inconclusive
from harness.driver.explorer import CLOCK_PAGE
from harness.driver.line import Line, Refusal
from harness.driver.process import Nursery
from harness.driver.redis_server import mapped_clock
from tests.proxying import wait_until


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    made = Nursery()
    yield made
    made.close()


def said_by(nursery: Nursery, script: str, environment: Sequence[str] = (), inherit: Sequence[int] = ()) -> str:
    process = nursery.start("said", ["sh", "-c", script], environment=environment, inherit=inherit)
    assert process.wait() == 0
    return nursery.logs().get("said", "")


def test_a_process_gets_what_it_was_given_and_nothing_else(nursery: Nursery) -> None:
    kept, other = os.pipe()
    os.set_inheritable(other, True)
    said = said_by(
        nursery, "echo $PLANET; ls /proc/self/fd; cat; echo loud >&2", environment=["PLANET=a=b"], inherit=[kept]
    )
    os.close(kept)
    os.close(other)
    planet, *descriptors, loud = said.split()
    assert (planet, loud) == ("a=b", "loud")
    assert {"0", "1", "2", str(kept)} <= set(descriptors)
    assert len(descriptors) == 5  # and the one that ls reads with


def test_signals_are_as_they_usually_are(nursery: Nursery) -> None:
    """Python ignores SIGPIPE; a lock's client, or a server, is not to."""
    assert signal.getsignal(signal.SIGPIPE) is signal.SIG_IGN
    (line,) = said_by(nursery, "grep SigIgn /proc/self/status").splitlines()
    assert int(line.split()[1], 16) == 0


def test_how_a_process_ends(nursery: Nursery) -> None:
    assert nursery.start("a", ["sh", "-c", "exit 7"]).wait() == 7
    sleeper = nursery.start("b", ["sleep", "60"])
    assert sleeper.poll() is None
    assert os.getsid(sleeper.pid) == sleeper.pid
    sleeper.kill()
    assert sleeper.wait() == sleeper.poll() == -signal.SIGKILL
    sleeper.kill()  # nobody's number any more


def test_a_program_that_is_not_there(nursery: Nursery) -> None:
    with pytest.raises(Inconclusive, match="/no/such/program: No such file or directory"):
        nursery.start("none", ["/no/such/program"])


# --- processes that hatch ---


@pytest.fixture
def clock(tmp_path: Path) -> list[str]:
    """An environment in which it is seven seconds past the epoch."""
    page = tmp_path / "clock"
    page.write_bytes(CLOCK_PAGE.pack(b"", 7 * 10**9))
    return mapped_clock(page)


def in_own_session(pid: int) -> bool:
    return os.getsid(pid) == pid


def test_what_hatches_is_as_what_is_started(nursery: Nursery, clock: list[str]) -> None:
    script = "echo $PLANET $#; ls /proc/self/fd; grep SigIgn /proc/self/status; cat; date +%s; echo loud >&2; exit 7"
    for name in ("first", "second"):  # of the same zygote
        hatched = nursery.hatch(name, ["sh", "-c", script, "own", "", "b"], [*clock, "PLANET=a=b"])
        assert int(Path(f"/proc/{hatched.pid}/stat").read_text().split()[3]) == os.getpid()
        wait_until(partial(in_own_session, hatched.pid))
        assert hatched.wait() == 7
        planet, count, *descriptors, _, ignored, date, loud = nursery.logs()[name].split()
        assert (planet, count, date, loud, int(ignored, 16)) == ("a=b", "2", "7", "loud", 0)
        assert len(descriptors) == 4  # the usual ones, and the one that ls reads with


def test_ps_shows_the_words_of_what_hatched(nursery: Nursery, clock: list[str]) -> None:
    sleeper = nursery.hatch("it", ["sleep", "60"], clock)
    shown = Path(f"/proc/{sleeper.pid}/cmdline")
    wait_until(lambda: shown.read_bytes().rstrip(b"\0") == b"sleep\x0060")
    sleeper.kill()
    assert sleeper.wait() == -signal.SIGKILL


def test_what_hatches_may_run_where_the_driver_may(nursery: Nursery, clock: list[str]) -> None:
    everywhere = os.sched_getaffinity(0)
    for core in everywhere:
        os.sched_setaffinity(0, {core})
        try:
            assert nursery.hatch("it", ["sh", "-c", "grep Cpus_allowed_list /proc/self/status"], clock).wait() == 0
        finally:
            os.sched_setaffinity(0, everywhere)
    assert [int(line.split()[1]) for line in nursery.logs()["it"].splitlines()] == list(everywhere)


def test_without_its_zygote_it_starts_all_the_same(nursery: Nursery, clock: list[str]) -> None:
    said = ["sh", "-c", "echo $#", "own"]
    assert nursery.hatch("it", said, clock).wait() == 0
    for zygote in process._zygotes.values():
        zygote.process.kill()
        zygote.process.wait()
    assert nursery.hatch("it", said, clock).wait() == 0  # by a new one
    assert nursery.hatch("it", [*said, *["word"] * 300], clock).wait() == 0  # more than a zygote takes
    assert nursery.logs()["it"] == "0\n0\n300\n"


def test_a_zygote_that_does_not_answer_is_given_up(
    nursery: Nursery, clock: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process.Zygote, "ANSWER_LIMIT_S", 0.2)
    said = ["bash", "-c", "echo $#", "own"]
    assert nursery.hatch("it", said, clock).wait() == 0
    (stopped,) = (zygote for key, zygote in process._zygotes.items() if key[0] == "bash")
    stopped.process.send_signal(signal.SIGSTOP)
    assert nursery.hatch("it", said, clock).wait() == 0
    assert stopped.process.wait() == -signal.SIGKILL
    assert nursery.logs()["it"] == "0\n0\n"


def test_a_program_that_is_not_there_does_not_hatch(nursery: Nursery, clock: list[str]) -> None:
    with pytest.raises(Inconclusive, match="/no/such/program: No such file or directory"):
        nursery.hatch("none", ["/no/such/program"], clock)


# --- the line ---


def answering(path: Path, connections: list[list[bytes]]) -> threading.Thread:
    """Somebody who answers each question of a connection with the next of its answers, byte by byte, then closes it."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    listening.listen()

    def serve() -> None:
        with listening:
            for answers in connections:
                with listening.accept()[0] as wire:
                    for answer in answers:
                        wire.recv(4096)
                        for each in answer:
                            wire.sendall(bytes([each]))

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    return thread


def test_a_line_understands_every_kind_of_answer(tmp_path: Path) -> None:
    raw = [b"+OK\r\n", b":-7\r\n", b"$5\r\na\r\nb!\r\n", b"$-1\r\n", b"*3\r\n:1\r\n*0\r\n$0\r\n\r\n"]
    thread = answering(tmp_path / "s", [[*raw, b"-ERR no\r\n", b"+again\r\n"]])
    line = Line(tmp_path / "s")
    assert [line.ask("X") for _ in raw] == [b"OK", -7, b"a\r\nb!", None, [1, [], b""]]
    with pytest.raises(Refusal, match="ERR no"):
        line.ask("X")
    assert line.ask("X") == b"again"
    line.close()
    thread.join()


def test_a_lost_line_is_made_anew_with_its_greeting(tmp_path: Path) -> None:
    thread = answering(tmp_path / "s", [[b"+hello\r\n", b"+one\r\n"], [b"+hello\r\n", b"+two\r\n"], [b"?\r\n"]])
    line = Line(tmp_path / "s", ("HELLO",))
    assert line.ask("X") == b"one"
    with pytest.raises(OSError):
        line.ask("X")
    assert line.ask("X") == b"two"
    with pytest.raises(OSError):
        line.ask("X")
    with pytest.raises(OSError, match="not RESP2"):
        line.ask("X")
    thread.join()
