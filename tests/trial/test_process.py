"""The processes of a trial, which are bound to the driver, and the connection that sends them requests."""

import os
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from lockstorm.base.errors import Inconclusive
from lockstorm.process import process
from lockstorm.process.line_client import LineClient, Refusal
from lockstorm.process.process import Sandbox
from lockstorm.search.explorer import CLOCK_PAGE
from lockstorm.servers.redis_server import mapped_clock
from tests.helpers.proxying import wait_until


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    made = Sandbox()
    yield made
    made.close()


def test_without_a_reaper_no_directory_is_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The reaper removes the directory, so nothing else would."""
    monkeypatch.setenv("LOCKSTORM_PROGRAMS", str(tmp_path / "programs"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(Inconclusive, match="reaper is not built"):
        Sandbox()
    (tmp_path / "programs" / "bin").mkdir(parents=True)
    (tmp_path / "programs" / "bin" / "reaper").write_text("no program")
    with pytest.raises(Inconclusive, match="reaper cannot be run: Permission denied"):
        Sandbox()
    assert [path.name for path in tmp_path.iterdir()] == ["programs"]


def test_a_directory_that_cannot_be_made_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, reason in (("absent", "No such file or directory"), ("two\nlines", "has a line break")):
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / name))
        with pytest.raises(Inconclusive, match=reason):
            Sandbox()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("idle", [0, 2])
def test_one_reaper_serves_one_trial_after_the_other(idle: int) -> None:
    for each in [Sandbox() for _ in range(idle)]:
        each.close()
    reapers, left_behind = [], []
    for _ in range(2):
        made = Sandbox()
        reapers.append(made._reaper.process)
        (made.directory / "deep").mkdir()
        (made.directory / "deep" / "file").touch()
        sleeper = made.start("it", ["sleep", "60"])
        left_behind.append(made.directory)
        made.close()
        assert sleeper.returncode == -signal.SIGKILL
        assert not made.directory.exists()
    assert reapers[0] is reapers[1]
    assert reapers[0].pid in process.lasting_processes()
    assert left_behind[0] != left_behind[1]


def test_two_trials_at_once_have_a_reaper_each() -> None:
    first, second = Sandbox(), Sandbox()
    assert first._reaper is not second._reaper
    first.close()
    assert second.directory.exists()
    second.close()
    assert not second.directory.exists()


def test_an_idle_reaper_that_was_killed_is_replaced() -> None:
    made = Sandbox()
    killed = made._reaper.process
    made.close()
    killed.kill()
    killed.wait()
    made = Sandbox()
    assert made._reaper.process.pid != killed.pid
    made.close()
    assert not made.directory.exists()


def said_by(sandbox: Sandbox, script: str, environment: Sequence[str] = (), inherit: Sequence[int] = ()) -> str:
    process = sandbox.start("said", ["sh", "-c", script], environment=environment, inherit=inherit)
    assert process.wait() == 0
    return sandbox.logs().get("said", "")


def test_a_process_gets_what_it_was_given_and_nothing_else(sandbox: Sandbox) -> None:
    kept, other = os.pipe()
    os.set_inheritable(other, True)
    said = said_by(
        sandbox, "echo $PLANET; ls /proc/self/fd; cat; echo loud >&2", environment=["PLANET=a=b"], inherit=[kept]
    )
    os.close(kept)
    os.close(other)
    planet, *descriptors, loud = said.split()
    assert (planet, loud) == ("a=b", "loud")
    assert {"0", "1", "2", str(kept)} <= set(descriptors)
    assert len(descriptors) == 5  # and the descriptor that ls opens


def test_signals_are_as_they_usually_are(sandbox: Sandbox) -> None:
    """Python ignores SIGPIPE; a lock's client or a server must not."""
    assert signal.getsignal(signal.SIGPIPE) is signal.SIG_IGN
    (line,) = said_by(sandbox, "grep SigIgn /proc/self/status").splitlines()
    assert int(line.split()[1], 16) == 0


def test_how_a_process_ends(sandbox: Sandbox) -> None:
    assert sandbox.start("a", ["sh", "-c", "exit 7"]).wait() == 7
    sleeper = sandbox.start("b", ["sleep", "60"])
    assert sleeper.poll() is None
    assert os.getsid(sleeper.pid) == sleeper.pid
    sleeper.kill()
    assert sleeper.wait() == sleeper.poll() == -signal.SIGKILL
    sleeper.kill()  # its process id is no longer in use


def test_a_program_that_is_not_there(sandbox: Sandbox) -> None:
    with pytest.raises(Inconclusive, match="/no/such/program: No such file or directory"):
        sandbox.start("none", ["/no/such/program"])


# --- processes from a zygote ---


@pytest.fixture
def clock(tmp_path: Path) -> list[str]:
    """An environment whose clock shows seven seconds past the epoch."""
    page = tmp_path / "clock"
    page.write_bytes(CLOCK_PAGE.pack(b"", 7 * 10**9))
    return mapped_clock(page)


@pytest.mark.parametrize("kind", ["start", "zygote"])
def test_one_that_is_near_stays_in_the_session_in_a_group_of_its_own(kind: str, clock: list[str]) -> None:
    made = Sandbox(near=True)
    words = ["sleep", "60"]
    sleeper = made.start("it", words) if kind == "start" else made.start_from_zygote("it", words, clock)
    wait_until(lambda: os.getpgid(sleeper.pid) == sleeper.pid)
    assert os.getsid(sleeper.pid) == os.getsid(0)
    made.close()


def in_own_session(pid: int) -> bool:
    return os.getsid(pid) == pid


def test_a_process_from_a_zygote_is_as_one_that_is_started(sandbox: Sandbox, clock: list[str]) -> None:
    script = "echo $PLANET $#; ls /proc/self/fd; grep SigIgn /proc/self/status; cat; date +%s; echo loud >&2; exit 7"
    for name in ("first", "second"):  # of the same zygote
        forked = sandbox.start_from_zygote(name, ["sh", "-c", script, "own", "", "b"], [*clock, "PLANET=a=b"])
        assert int(Path(f"/proc/{forked.pid}/stat").read_text().split()[3]) == os.getpid()
        wait_until(partial(in_own_session, forked.pid))
        assert forked.wait() == 7
        planet, count, *descriptors, _, ignored, date, loud = sandbox.logs()[name].split()
        assert (planet, count, date, loud, int(ignored, 16)) == ("a=b", "2", "7", "loud", 0)
        assert len(descriptors) == 4  # the usual ones, and the descriptor that ls opens


def test_a_process_from_a_zygote_keeps_descriptors_by_their_numbers(sandbox: Sandbox, clock: list[str]) -> None:
    """Whatever numbers they have in the zygote: the packet brings them under others, the second one as the first."""
    pipes = [os.pipe() for _ in range(3)]
    kept = [writing for _, writing in reversed(pipes)]
    words = ["python3", "-c", f"import os; [os.write(number, b'%d' % number) for number in {kept}]"]
    assert sandbox.start_from_zygote("it", words, clock, inherit=kept).wait() == 0, sandbox.logs()
    for reading, writing in pipes:
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            assert pipe.read() == b"%d" % writing


def test_ps_shows_the_words_of_a_process_from_a_zygote(sandbox: Sandbox, clock: list[str]) -> None:
    sleeper = sandbox.start_from_zygote("it", ["sleep", "60"], clock)
    shown = Path(f"/proc/{sleeper.pid}/cmdline")
    wait_until(lambda: shown.read_bytes().rstrip(b"\0") == b"sleep\x0060")
    sleeper.kill()
    assert sleeper.wait() == -signal.SIGKILL


def test_what_hatches_may_run_where_the_driver_may(sandbox: Sandbox, clock: list[str]) -> None:
    everywhere = os.sched_getaffinity(0)
    for core in everywhere:
        os.sched_setaffinity(0, {core})
        try:
            assert (
                sandbox.start_from_zygote("it", ["sh", "-c", "grep Cpus_allowed_list /proc/self/status"], clock).wait()
                == 0
            )
        finally:
            os.sched_setaffinity(0, everywhere)
    assert [int(line.split()[1]) for line in sandbox.logs()["it"].splitlines()] == list(everywhere)


def test_without_its_zygote_it_starts_all_the_same(sandbox: Sandbox, clock: list[str]) -> None:
    said = ["sh", "-c", "echo $#", "own"]
    assert sandbox.start_from_zygote("it", said, clock).wait() == 0
    for zygote in process._zygotes.values():
        zygote.process.kill()
        zygote.process.wait()
    assert sandbox.start_from_zygote("it", said, clock).wait() == 0  # by a new zygote
    assert sandbox.start_from_zygote("it", [*said, *["word"] * 300], clock).wait() == 0  # more than a zygote accepts
    assert sandbox.logs()["it"] == "0\n0\n300\n"


def test_a_zygote_that_does_not_answer_is_given_up(
    sandbox: Sandbox, clock: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process.Zygote, "ANSWER_LIMIT_S", 0.2)
    said = ["bash", "-c", "echo $#", "own"]
    assert sandbox.start_from_zygote("it", said, clock).wait() == 0
    (stopped,) = (zygote for key, zygote in process._zygotes.items() if key[0] == "bash")
    stopped.process.send_signal(signal.SIGSTOP)
    assert sandbox.start_from_zygote("it", said, clock).wait() == 0
    assert stopped.process.wait() == -signal.SIGKILL
    assert sandbox.logs()["it"] == "0\n0\n"


def test_a_program_that_is_not_there_does_not_hatch(sandbox: Sandbox, clock: list[str]) -> None:
    with pytest.raises(Inconclusive, match="/no/such/program: No such file or directory"):
        sandbox.start_from_zygote("none", ["/no/such/program"], clock)


# --- LineClient ---


def answering(path: Path, connections: list[list[bytes]]) -> threading.Thread:
    """A server that answers each request of a connection with the next answer, byte by byte, then closes it."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    listening.listen()

    def serve() -> None:
        with listening:
            for answers in connections:
                # A client that has read "?" closes the connection.
                with listening.accept()[0] as wire, suppress(BrokenPipeError):
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
    line = LineClient(tmp_path / "s")
    assert [line.request("X") for _ in raw] == [b"OK", -7, b"a\r\nb!", None, [1, [], b""]]
    with pytest.raises(Refusal, match="ERR no"):
        line.request("X")
    assert line.request("X") == b"again"
    line.close()
    thread.join()


def test_a_lost_line_is_made_anew_with_its_greeting(tmp_path: Path) -> None:
    thread = answering(tmp_path / "s", [[b"+hello\r\n", b"+one\r\n"], [b"+hello\r\n", b"+two\r\n"], [b"?\r\n"]])
    line = LineClient(tmp_path / "s", ("HELLO",))
    assert line.request("X") == b"one"
    with pytest.raises(OSError):
        line.request("X")
    assert line.request("X") == b"two"
    with pytest.raises(OSError):
        line.request("X")
    with pytest.raises(OSError, match="not RESP2"):
        line.request("X")
    thread.join()
