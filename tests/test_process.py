"""What a trial is made of: processes on a leash, and the line on which they are asked."""

import os
import signal
import socket
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from harness.driver.errors import Inconclusive
from harness.driver.line import Line, Refusal
from harness.driver.process import Nursery


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
