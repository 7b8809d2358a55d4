"""Processes of a trial: started on a leash, so that none outlives the driver, and told to the warden, so that nothing
of theirs stays behind."""

import atexit
import contextlib
import ctypes
import fcntl
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from harness.driver import paths
from harness.driver.errors import Inconclusive
from harness.driver.library import library

PREFIX = "lockstorm-"
COOKIE = "LOCKSTORM_TRIAL"  # in the environment of its processes: the directory (warden.c)


class Process:
    """A process on a leash (harness/leash.h), as far as a trial needs it: subprocess.Popen would cost as much as the
    small ones do themselves."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None  # a signal's number, negative, if it ended by one

    @classmethod
    def start(
        cls, command: Sequence[str], environment: Sequence[str], output: int, inherit: Sequence[int], near: bool
    ) -> Self:
        variables = {**os.environ, **dict(word.split("=", 1) for word in environment)}
        words, kept = _texts(command), (ctypes.c_int * len(inherit))(*inherit)
        values = _texts([f"{key}={value}" for key, value in variables.items()])
        pid: int = library().leash_start(words, values, output, kept, len(inherit), near)
        if pid < 0:
            raise Inconclusive(f"{command[0]}: {os.strerror(ctypes.get_errno())}")
        return cls(pid)

    def poll(self) -> int | None:
        """How it ended, if it has."""
        return self._await_end(os.WNOHANG)

    def wait(self) -> int:
        """How it ended, when it has."""
        status = self._await_end(0)
        assert status is not None
        return status

    def wait_at_most(self, limit_s: float) -> int | None:
        """How it ended, if it did by then."""
        if self.poll() is None:
            watch = os.pidfd_open(self.pid)
            try:
                select.select([watch], [], [], limit_s)
            finally:
                os.close(watch)
        return self.poll()

    def send_signal(self, number: int) -> None:
        """As long as nobody has waited for it, its number is nobody else's."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _await_end(self, options: int) -> int | None:
        if self.returncode is None:
            ended, status = os.waitpid(self.pid, options)
            if ended:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


class Zygote:
    """A program that is loaded and has not begun, and the processes that begin (preload/zygote.c)."""

    ROOM = 4096  # for their words
    WORD_LIMIT, REQUEST_LIMIT = 200, 60_000  # the latter in bytes
    ANSWER_LIMIT_S = 10.0

    def __init__(self, program: str, preload: str) -> None:
        self.driver, self._thread = os.getpid(), threading.current_thread()
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = [preload, f"LOCKSTORM_ZYGOTE={theirs.fileno()}"]
        self._line.settimeout(self.ANSWER_LIMIT_S)
        with theirs, open(os.devnull, "w") as nowhere:
            command = [program, "." * self.ROOM]
            try:
                self.process = Process.start(command, environment, nowhere.fileno(), [theirs.fileno()], near=True)
            except Inconclusive:
                self._line.close()
                raise

    @property
    def lives(self) -> bool:
        """It ends with the thread that started it."""
        return self.driver == os.getpid() and self._thread.is_alive() and self.process.poll() is None

    def start(self, words: Sequence[str], environment: Sequence[str], output: int) -> Process | None:
        """None: it cannot."""
        request = b"".join(os.fsencode(word) + b"\0" for word in (str(len(words)), *words, *environment))
        if len(words) > self.WORD_LIMIT or len(request) > self.REQUEST_LIMIT:
            return None
        try:
            socket.send_fds(self._line, [request], [output])
            answer = self._line.recv(4)
        except OSError:
            self.process.kill()  # not loaded as it should be, and a late answer would be taken for the next one's
            return None
        pid = int.from_bytes(answer, sys.byteorder, signed=True)
        return Process(pid) if len(answer) == 4 and pid > 0 else None

    def close(self) -> None:
        self._line.close()
        if self.driver == os.getpid():
            self.process.kill()
            self.process.wait()


_zygotes: dict[tuple[str, str], Zygote] = {}


def hatched(command: Sequence[str], environment: Sequence[str], output: int) -> Process | None:
    """A process of that program's zygote, which is started if there is none; None: that cannot be had."""
    preload = next(word for word in environment if word.startswith("LD_PRELOAD="))
    key = command[0], preload
    zygote = _zygotes.get(key)
    if not zygote or not zygote.lives:
        if zygote:
            zygote.close()
        elif not _zygotes:
            atexit.register(_end_zygotes)
        zygote = _zygotes[key] = Zygote(*key)
    return zygote.start(command[1:], environment, output)


def zygotes() -> set[int]:
    """The processes of this driver that are no trial's: they stay for the next one."""
    return {zygote.process.pid for zygote in _zygotes.values()}


def _end_zygotes() -> None:
    while _zygotes:
        _zygotes.popitem()[1].close()


@dataclass(frozen=True)
class User:
    """Somebody else, for a server that refuses to be root."""

    uid: int
    gid: int


class Nursery:
    """A private directory (mode 0700), the processes that live in it, and the warden that removes both.

    The directory is made below $TMPDIR (/tmp). It is removed when the nursery is closed and when the driver dies,
    however it dies.
    """

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix=PREFIX))
        self.processes: list[Process] = []
        self._warden = subprocess.Popen(
            [paths.program("warden"), str(self.directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )
        assert self._warden.stdin and self._warden.stdout and self._warden.stderr
        if self._warden.stdout.readline() != b"ready\n":
            reason = self._warden.communicate()[1].decode(errors="replace").strip()
            self.directory.rmdir()
            raise Inconclusive(f"no private directory: {reason}")

    def start(
        self,
        name: str,
        command: Sequence[str],
        *,
        environment: Sequence[str] = (),
        inherit: Sequence[int] = (),
        near: bool = False,
        user: User | None = None,
    ) -> Process:
        """Starts a process whose output goes to NAME.log. `inherit`: descriptors that it keeps, by the same number;
        `near`: in this session, as harness/leash.h explains; `user`: as whom it runs, if not as us."""
        environment = [*environment, f"{COOKIE}={self.directory}"]
        if user:  # the environment may be such that only that user should begin with it: libfaketime makes files
            command = [paths.program("leash"), f"--user={user.uid}:{user.gid}", "env", *environment, *command]
            environment = [f"LOCKSTORM_PARENT={os.getpid()}"]
        with self._log(name) as log:
            return self._keep(Process.start(command, environment, log, inherit, near))

    def hatch(self, name: str, command: Sequence[str], environment: Sequence[str]) -> Process:
        """Starts a program that many trials start with the same LD_PRELOAD, ours (preload/zygote.c): its second start
        is cheaper."""
        with self._log(name) as log:
            process = hatched(command, [*environment, f"{COOKIE}={self.directory}"], log)
            if process:
                return self._keep(process)
        return self.start(name, command, environment=environment)

    @contextlib.contextmanager
    def _log(self, name: str) -> Iterator[int]:
        """The descriptor of NAME.log."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        log = os.open(self.directory / f"{name}.log", flags, 0o600)
        try:
            yield log
        finally:
            os.close(log)

    def _keep(self, process: Process) -> Process:
        self.processes.append(process)
        self.entrust(process.pid)
        return process

    def hunt(self) -> None:
        """In the end the warden also ends whoever has the environment of this nursery's processes: what they start may
        start others, and nobody knows them by number."""
        assert self._warden.stdin
        self._warden.stdin.write(b"hunt\n")

    def entrust(self, *pids: int) -> None:
        """Tells the warden of processes that it has to end, if they live then."""
        assert self._warden.stdin
        self._warden.stdin.write(b"".join(b"%d\n" % pid for pid in pids))

    def admit(self, user: User) -> None:
        """Lets that user's group pass through the directory, to what it is given there; it cannot list it."""
        for above in self.directory.parents:
            said = above.stat()
            is_open = said.st_mode & 0o001 or (said.st_gid == user.gid and said.st_mode & 0o010)
            if not is_open and said.st_uid != user.uid:
                raise Inconclusive(f"user {user.uid} cannot pass through {above}: set TMPDIR to where it can")
        os.chown(self.directory, -1, user.gid)
        self.directory.chmod(0o710)

    def log_tail(self, name: str, lines: int = 3) -> str:
        """The last lines that a process wrote, for a message."""
        with contextlib.suppress(OSError):
            text = (self.directory / f"{name}.log").read_text(errors="replace")
            return "; ".join(line.strip() for line in text.strip().splitlines()[-lines:])
        return ""

    def logs(self) -> dict[str, str]:
        """What each process has written that wrote anything."""
        texts = {path.stem: path.read_text(errors="replace") for path in sorted(self.directory.glob("*.log"))}
        return {name: text if text.endswith("\n") else f"{text}\n" for name, text in texts.items() if text}

    def close(self) -> None:
        """Kills what is left and returns when directory and processes are gone."""
        assert self._warden.stdin
        for process in self.processes:
            if process.poll() is None:
                process.kill()
        for process in self.processes:
            process.wait()
        with contextlib.suppress(OSError):
            self._warden.stdin.close()
        self._warden.wait()
        for stream in (self._warden.stdout, self._warden.stderr):
            if stream:
                stream.close()


@contextlib.contextmanager
def on_core(core: int) -> Iterator[None]:
    """Processes that are started meanwhile stay on that core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def own_core() -> int:
    """On which this process runs."""
    return int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[36])


def inheritable(descriptor: int) -> int:
    """A descriptor that the C side owns, checked to be open (it is passed on, never closed here)."""
    fcntl.fcntl(descriptor, fcntl.F_GETFD)
    return descriptor


def _texts(words: Sequence[str]) -> "ctypes.Array[ctypes.c_char_p]":
    """As C wants them: ended by NULL."""
    return (ctypes.c_char_p * (len(words) + 1))(*(os.fsencode(word) for word in words), None)
