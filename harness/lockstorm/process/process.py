"""Processes of a trial: bound to the driver, so that none outlives it, and known to the reaper, which removes what they
leave behind."""

import atexit
import contextlib
import ctypes
import fcntl
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from lockstorm.base import paths
from lockstorm.base.errors import Inconclusive
from lockstorm.base.hang_limit import CONNECTION_LIMIT_S, LOOK_S, START_LIMIT_S, HangLimit, await_readable
from lockstorm.native.library import library
from lockstorm.process.held_port import HeldPort

PREFIX = "lockstorm-"
START_NAP_S = 0.002
NAME_BYTES = 4  # of a directory's random name, which sockets' paths contain
SOCKET_PATH_MOST = 107  # bytes
COOKIE = "LOCKSTORM_TRIAL"  # in the environment of its processes: the directory (reaper_main.c)


class Process:
    """A child that ends when the driver does (harness/process/spawn.h). Starting one costs less than subprocess.Popen,
    which would take as long as the small programs themselves run."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None  # the exit status, or the negative number of the signal that ended it

    @classmethod
    def start(
        cls, command: Sequence[str], environment: Sequence[str], output: int, inherit: Sequence[int], near: bool
    ) -> Self:
        """`environment`: variables (NAME=VALUE) that are added to this process's own."""
        kept = (ctypes.c_int * len(inherit))(*inherit)
        pid: int = library().spawn_process(_texts(command), _texts(environment), output, kept, len(inherit), near)
        if pid < 0:
            raise Inconclusive(f"{command[0]}: {os.strerror(ctypes.get_errno())}")
        return cls(pid)

    def poll(self) -> int | None:
        """Its returncode if it has ended, else None."""
        return self._await_end(os.WNOHANG)

    def wait(self) -> int:
        """Waits for its end; its returncode."""
        status = self._await_end(0)
        assert status is not None
        return status

    def wait_at_most(self, limit_s: float) -> int | None:
        """Waits for its end, at most limit_s; its returncode if it has ended, else None."""
        if self.poll() is None:
            watch = os.pidfd_open(self.pid)
            try:
                await_readable([watch], HangLimit(limit_s))
            finally:
                os.close(watch)
        return self.poll()

    def send_signal(self, number: int) -> None:
        """Its id cannot belong to another process before its end was waited for."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def end(self) -> None:
        """Kills it, if it has not ended, and waits for its end."""
        self.kill()
        self.wait()

    def _await_end(self, options: int) -> int | None:
        if self.returncode is None:
            ended, status = os.waitpid(self.pid, options)
            if ended:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


class Zygote:
    """A program that is loaded but not started; it forks the processes that start (zygote_service.h)."""

    ARGUMENT_BYTES = 4096  # reserved for the arguments of its processes
    WORD_LIMIT, REQUEST_LIMIT = 200, 60_000  # the latter in bytes
    KEPT_LIMIT = 8  # descriptors that a process inherits
    ANSWER_LIMIT_S = CONNECTION_LIMIT_S

    def __init__(self, program: str, preload: str) -> None:
        """`preload`: the variable LD_PRELOAD of a server that becomes a zygote by it; empty for programs of ours."""
        self.driver, self._thread = os.getpid(), threading.current_thread()
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = [*([preload] if preload else []), f"LOCKSTORM_ZYGOTE={theirs.fileno()}"]
        self._line.settimeout(self.ANSWER_LIMIT_S)
        with theirs, open(os.devnull, "w") as nowhere:
            command = [program, "." * self.ARGUMENT_BYTES]
            try:
                self.process = Process.start(command, environment, nowhere.fileno(), [theirs.fileno()], near=True)
            except Inconclusive:
                self._line.close()
                raise

    @property
    def lives(self) -> bool:
        """False after the end of the thread that started it, with which it ends too."""
        return self.driver == os.getpid() and self._thread.is_alive() and self.process.poll() is None

    def start(
        self, words: Sequence[str], environment: Sequence[str], output: int, inherit: Sequence[int], near: bool
    ) -> Process | None:
        """Starts a process. None if the zygote cannot."""
        head = " ".join(str(number) for number in (len(words), int(near), *inherit))
        request = "\0".join((head, *words, *environment, "")).encode("utf-8", "surrogateescape")
        if len(words) > self.WORD_LIMIT or len(request) > self.REQUEST_LIMIT or len(inherit) > self.KEPT_LIMIT:
            return None
        try:
            socket.send_fds(self._line, [request], [output, *inherit])
            answer = self._line.recv(4)
        except OSError:
            self.process.kill()  # it is not loaded properly, and a late answer would be taken for the next one's
            return None
        pid = int.from_bytes(answer, sys.byteorder, signed=True)
        return Process(pid) if len(answer) == 4 and pid > 0 else None

    def close(self) -> None:
        self._line.close()
        if self.driver == os.getpid():
            self.process.kill()
            self.process.wait()


class Reaper:
    """The process that makes a trial's directory and removes what the trial leaves behind
    (harness/process/reaper_main.c), for one trial after the other. It ends by itself when the driver does; a driver
    that ends in an orderly way waits for it."""

    def __init__(self, program: str) -> None:
        self.program, self.driver = program, os.getpid()
        pipe = subprocess.PIPE
        try:
            self.process = subprocess.Popen([program], stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0)
        except OSError as error:
            raise Inconclusive(f"{program} cannot be run: {error.strerror}") from None
        _reapers.append(self)

    def guard(self, directory: Path) -> str:
        """Makes the directory, and begins to look after it. The reason, if it cannot."""
        if "\n" in str(directory):
            return f"$TMPDIR has a line break: {directory!r}"
        with contextlib.suppress(OSError):
            self.tell(os.fsencode(directory) + b"\n")
        if self._line() == b"ready\n":
            return ""
        reason = self.process.communicate()[1].decode(errors="replace").strip() or "the reaper has ended"
        self.close()
        return reason

    def tell(self, lines: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(lines)

    def finish(self) -> bool:
        """Returns when the trial's processes and directory are gone. False: it cannot serve another trial."""
        with contextlib.suppress(OSError):
            self.tell(b"over\n")
            if self._line() == b"gone\n" and self.driver == os.getpid():
                return True
        self.close()
        return False

    def close(self) -> None:
        """Ends it. It first removes what a trial has left."""
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream:
                with contextlib.suppress(OSError):
                    stream.close()
        self.process.wait()
        with contextlib.suppress(ValueError):
            _reapers.remove(self)

    def _line(self) -> bytes:
        assert self.process.stdout
        return self.process.stdout.readline()


_reapers: list[Reaper] = []  # those that have not ended
_idle_reapers: list[Reaper] = []


def _take_reaper(program: str) -> Reaper:
    """The reaper that served the last trial of this process, if it is idle and this program, or a new one."""
    for reaper in reversed(_idle_reapers):
        if reaper.program == program and reaper.driver == os.getpid():
            with contextlib.suppress(ValueError):  # another thread has taken it
                _idle_reapers.remove(reaper)
                if reaper.process.poll() is None:
                    return reaper
                reaper.close()
                break
    return Reaper(program)


@atexit.register
def _end_reapers() -> None:
    """Also those of trials that an interrupt kept from closing: what they removed is gone when this process ends."""
    _idle_reapers.clear()
    for reaper in list(_reapers):
        if reaper.driver == os.getpid():
            reaper.close()


_zygotes: dict[tuple[str, str], Zygote] = {}


def _process_from_zygote(
    command: Sequence[str], environment: Sequence[str], output: int, inherit: Sequence[int], near: bool
) -> Process | None:
    """Starts a process from the program's zygote, which is started if need be. None if that is not possible."""
    preload = next((word for word in environment if word.startswith("LD_PRELOAD=")), "")
    key = command[0], preload
    zygote = _zygotes.get(key)
    if not zygote or not zygote.lives:
        if zygote:
            zygote.close()
        elif not _zygotes:
            atexit.register(_end_zygotes)
        zygote = _zygotes[key] = Zygote(*key)
    return zygote.start(command[1:], environment, output, inherit, near)


def lasting_processes() -> set[int]:
    """The ids of zygotes and reapers, which belong to no single trial: they stay for the next one."""
    return {reaper.process.pid for reaper in _reapers} | {zygote.process.pid for zygote in _zygotes.values()}


def _end_zygotes() -> None:
    while _zygotes:
        _zygotes.popitem()[1].close()


@dataclass(frozen=True)
class User:
    """Another user, for a server that refuses to run as root."""

    uid: int
    gid: int


def check_socket_path(path: Path) -> None:
    """Raises Inconclusive for a path that no unix socket can have."""
    if len(os.fsencode(path)) > SOCKET_PATH_MOST:
        raise Inconclusive(f"{path} is too long for a unix socket: set TMPDIR to a shorter path")


class Sandbox:
    """A private directory (mode 0700), the processes that live in it, and the reaper that removes both.

    The reaper makes the directory below $TMPDIR (/tmp). It is removed when the sandbox is closed and when the driver
    dies, however it dies.
    """

    def __init__(self, near: bool = False) -> None:
        """`near`: its processes stay in this session, as harness/process/spawn.h explains."""
        self._near = near
        self.directory = Path(tempfile.gettempdir()) / f"{PREFIX}{secrets.token_hex(NAME_BYTES)}"
        self.processes: list[Process] = []
        self._ports: list[HeldPort] = []
        self._reaper = _take_reaper(paths.program("reaper"))
        if reason := self._reaper.guard(self.directory):
            raise Inconclusive(f"no private directory: {reason}")

    def start(
        self,
        name: str,
        command: Sequence[str],
        *,
        environment: Sequence[str] = (),
        inherit: Sequence[int] = (),
        user: User | None = None,
    ) -> Process:
        """Starts a process whose output goes to NAME.log. `inherit`: descriptors that it inherits, by the same number;
        `user`: the user as which it runs."""
        environment = [*environment, f"{COOKIE}={self.directory}"]
        if user:  # spawn must not run with this environment before it changes the user: libfaketime makes files
            near = ["--near"] if self._near else []
            command = [paths.program("spawn"), *near, f"--user={user.uid}:{user.gid}", "env", *environment, *command]
            environment = [f"LOCKSTORM_PARENT={os.getpid()}"]
        with self._log(name) as log:
            return self._keep(Process.start(command, environment, log, inherit, self._near))

    def start_from_zygote(
        self, name: str, command: Sequence[str], environment: Sequence[str] = (), inherit: Sequence[int] = ()
    ) -> Process:
        """Starts a program from a zygote (zygote_service.h): the second start is cheaper. It is a program of ours that
        calls zygote_begin, or a server with our LD_PRELOAD, which has to be the same each time."""
        with self._log(name) as log:
            own = [*environment, f"{COOKIE}={self.directory}"]
            process = _process_from_zygote(command, own, log, inherit, self._near)
            if process:
                return self._keep(process)
        return self.start(name, command, environment=environment, inherit=inherit)

    def start_program(self, name: str, command: Sequence[str], inherit: Sequence[int] = ()) -> Process:
        """Starts a program of ours that calls zygote_begin. One of another build, with a sanitizer, is started by exec:
        a sanitizer does not know of such children."""
        is_other_build = os.environ.get("LOCKSTORM_PROGRAMS") or os.environ.get("LOCKSTORM_BUILD")
        start = self.start if is_other_build else self.start_from_zygote
        return start(name, command, inherit=inherit)

    @contextlib.contextmanager
    def _log(self, name: str) -> Iterator[int]:
        """A descriptor for appending to NAME.log."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        log = os.open(self.directory / f"{name}.log", flags, 0o600)
        try:
            yield log
        finally:
            os.close(log)

    def _keep(self, process: Process) -> Process:
        self.processes.append(process)
        self.register(process.pid)
        return process

    def await_start(
        self,
        title: str,
        name: str,
        process: Process,
        answers: Callable[[], object],
        failures: tuple[type[Exception], ...] = (),
        *,
        nap_s: float = START_NAP_S,
        look_s: float = LOOK_S,
        reason: Callable[[], str] | None = None,
    ) -> None:
        """Returns when `answers` neither returns False nor raises one of these failures. Raises Inconclusive if the
        process ends before, or hangs: with a reason, or with the last lines of NAME.log."""
        limit = HangLimit(START_LIMIT_S, look_s)
        while True:
            with contextlib.suppress(*failures):
                if answers() is not False:
                    return
            if process.poll() is not None or limit.is_over():
                why = reason() if reason else self.log_tail(name)
                raise Inconclusive(f"{title} did not start: {why or 'it gave no reason'}")
            time.sleep(nap_s)

    def hold_port(self) -> int:
        """A port of the loopback interface for a server, which nobody else gets before the sandbox is closed."""
        self._ports.append(HeldPort())
        return self._ports[-1].number

    def reap_by_environment(self) -> None:
        """At the end the reaper also kills every process with the environment of this sandbox's processes: what they
        start may start others, whose process ids are not known."""
        self._tell_reaper(b"hunt\n")

    def register(self, *pids: int) -> None:
        """Gives the reaper the ids of processes that it has to kill, if they live then."""
        self._tell_reaper(b"".join(b"%d\n" % pid for pid in pids))

    def _tell_reaper(self, lines: bytes) -> None:
        try:
            self._reaper.tell(lines)
        except BrokenPipeError:
            raise Inconclusive(f"the reaper has ended, so nothing removes {self.directory}") from None

    def grant_access(self, user: User) -> None:
        """Lets the user's group reach files in the directory that it may use; it cannot list the directory."""
        for above in self.directory.parents:
            said = above.stat()
            is_open = said.st_mode & 0o001 or (said.st_gid == user.gid and said.st_mode & 0o010)
            if not is_open and said.st_uid != user.uid:
                raise Inconclusive(f"user {user.uid} cannot pass through {above}: set TMPDIR to where it can")
        os.chown(self.directory, -1, user.gid)
        self.directory.chmod(0o710)

    def log_tail(self, name: str, lines: int = 3) -> str:
        """The last lines that a process wrote, for a message."""
        return "; ".join(line.strip() for line in self.log_of(name).strip().splitlines()[-lines:])

    def log_of(self, name: str) -> str:
        """All that a process has written."""
        with contextlib.suppress(OSError):
            return (self.directory / f"{name}.log").read_text(errors="replace")
        return ""

    def logs(self) -> dict[str, str]:
        """Process -> what it has written, for those that have written anything."""
        texts = {path.stem: path.read_text(errors="replace") for path in sorted(self.directory.glob("*.log"))}
        return {name: text if text.endswith("\n") else f"{text}\n" for name, text in texts.items() if text}

    def close(self) -> None:
        """Kills the processes that are left; returns when they and the directory are gone."""
        for process in self.processes:
            if process.poll() is None:
                process.kill()
        for process in self.processes:
            process.wait()
        for port in self._ports:
            port.close()
        if self._reaper.finish():
            _idle_reapers.append(self._reaper)


def flag_words(options: Mapping[str, object]) -> list[str]:
    """Options as the words of a command."""
    return [word for name, value in options.items() for word in (f"--{name}", str(value))]


def inheritable(descriptor: int) -> int:
    """A descriptor that the C library owns, checked to be open; it is passed on and never closed here."""
    fcntl.fcntl(descriptor, fcntl.F_GETFD)
    return descriptor


def _texts(words: Sequence[str]) -> "ctypes.Array[ctypes.c_char_p]":
    """The words as an array of C strings that ends with NULL."""
    return (ctypes.c_char_p * (len(words) + 1))(*(os.fsencode(word) for word in words), None)
