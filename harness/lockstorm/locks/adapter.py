"""Adapters: programs that host a lock library in another language (docs/adapters.md). The entry of such a lock, like
those of the table of locks, and a connection to a running adapter."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Self

import msgspec

from lockstorm.base import paths
from lockstorm.base.errors import NotInstalled, UsageError
from lockstorm.base.hang_limit import HangLimit, await_readable
from lockstorm.base.option_fields import choose
from lockstorm.locks.adapter_lines import (
    NEWEST,
    AdapterAnswer,
    AdapterFacts,
    AdapterHello,
    AdapterNotice,
    ProtocolError,
    check_answer,
    parse_answer,
    parse_hello,
    parse_notice,
)
from lockstorm.native.library import locks, zoo_locks
from lockstorm.results.lock_entry import HostedLibrary, LockEntry

PATH_MOST = 4096  # bytes of a first line
PREFIX = "adapter:"  # of the names of such locks
C_LOCK = "lock:"  # of the words that name a C lock as an adapter
SHIPPED = paths.ROOT / "adapters"
SERVE = paths.PACKAGE / "adapter_program"  # serve() in each language
BUILDS = {"LOCKSTORM_BUILDS": "1"}  # a program that is compiled looks for changes when it is started with this
NOT_INSTALLED = 69  # exit status of an adapter whose library is missing (EX_UNAVAILABLE)
HELLO_LIMIT_S = 120.0
END_LIMIT_S = 5.0
REAL_TIME_ONLY = ("etcd",)  # trials cannot move its clock; a search supervises the server and can
LINE_MOST = 64 * 1024


def adapter_path(word: str) -> Path:
    """The program of --adapter: a path, or, without a slash, the name of a shipped adapter or lock:NAME."""
    if word.startswith(C_LOCK):
        return _c_lock_path(word.removeprefix(C_LOCK))
    if "/" in word:
        path = Path(word).absolute()
    elif (SHIPPED / word / "run").is_file():
        path = SHIPPED / word / "run"
    else:
        hint = f"did you mean ./{word}?" if Path(word).is_file() else f"there are: {', '.join(shipped_adapters())}"
        raise UsageError(f"there is no adapter called {word!r}: {hint}, or give a path with a slash in it")
    if not path.is_file():
        raise UsageError(f"{word}: there is no such program")
    if not os.access(path, os.X_OK):
        raise UsageError(f"{word} cannot be executed: chmod +x {word}")
    words: list[bytes] = []
    with contextlib.suppress(OSError), path.open("rb") as program:  # a program may be executable only
        words = program.readline(PATH_MOST).split() if program.read(2) == b"#!" else []
    if words and not os.path.exists(words[0]):
        raise UsageError(f"{word}: its first line names {os.fsdecode(words[0])}, which does not exist")
    return path


def _c_lock_path(name: str) -> Path:
    """The program that hosts a C lock of the table or the bug zoo. It knows which one by the name of the link to it."""
    if name not in {lock.name for lock in zoo_locks()}:
        name = choose("lock", name, [lock.name for lock in locks()])
    return _linked(paths.cache("locks") / name, paths.program("lock-adapter"))


def _linked(link: Path, target: str) -> Path:
    """Makes a symbolic link in the cache unless it is there."""
    if link.is_symlink() and os.readlink(link) == target:
        return link
    made = link.with_name(f".{link.name}.{os.getpid()}")
    try:
        link.parent.mkdir(parents=True, exist_ok=True)
        made.unlink(missing_ok=True)
        made.symlink_to(target)
        made.replace(link)
    except OSError as error:
        raise paths.no_cache(link, error) from None
    return link


def library_environment() -> dict[str, str]:
    """What adapters and their installer go by: where the libraries are, the Python that runs this, and where programs
    find serve(): the last entry of PYTHONPATH, which has nothing but the package, and of NODE_PATH. What builds
    programs in Go and Java is in LOCKSTORM_SERVE."""
    package = _linked(paths.cache("python") / paths.PACKAGE.name, str(paths.PACKAGE))
    return {
        "LOCKSTORM_LIBRARIES": str(paths.cache("adapters")),
        "LOCKSTORM_PYTHON": sys.executable,
        "LOCKSTORM_SERVE": str(SERVE),
        "PYTHONPATH": _path_with("PYTHONPATH", package.parent),
        "NODE_PATH": _path_with("NODE_PATH", SERVE / "node"),
    }


def _path_with(variable: str, last: Path) -> str:
    before = [os.environ[variable]] if os.environ.get(variable) else []
    return os.pathsep.join([*before, str(last)])


def install_libraries() -> int:
    """Fetches and builds the libraries of the shipped adapters, with what the machine has; the installer's status."""
    return subprocess.run([SHIPPED / "install"], env={**os.environ, **library_environment()}).returncode


def shipped_adapters() -> list[str]:
    return sorted(path.parent.name for path in SHIPPED.glob("*/run"))


def is_adapter(lock: str) -> bool:
    return lock.startswith(PREFIX)


def adapter_entry(lock: str) -> LockEntry:
    """The entry of an adapter's lock, whose name begins with PREFIX. Callers must not change it."""
    word = lock.removeprefix(PREFIX)
    return described(word, str(adapter_path(word)))


@cache
def described(word: str, path: str) -> LockEntry:
    """The entry of an adapter's lock, from the answer to hello."""
    with AdapterProgram(path, BUILDS) as program:
        hello = program.hello()
    return LockEntry(
        name=PREFIX + word,
        summary=f"{hello.name} {hello.version}".strip(),
        explanation="A lock library in another language, hosted through an adapter (`lockstorm docs adapters`).",
        source=hello.source or path,
        fixed=None,
        **{name: getattr(hello, name) for name in ("lease", "token", "reentrant", "fair", "renews", "waits")},
        renewable="renew" in hello.operations,
        once=False,
        capacity=-1 if hello.semaphore else 1,
        service=hello.service,
        built=True,
        real_time_only=hello.service in REAL_TIME_ONLY,
        nodes=hello.nodes,
        replicas=0,
        lease_unit_ms=hello.lease_unit_ms,
        adapter=HostedLibrary(path, hello.name, hello.version, hello.tcp, list(hello.operations), hello.topology),
    )


@cache
def adapter_facts(path: str) -> AdapterFacts | None:
    """What an adapter says of its lock in the newest version of the protocol; None: it knows only version 1."""
    with AdapterProgram(path) as program:
        hello = program.hello(NEWEST)
    return hello if isinstance(hello, AdapterFacts) else None


def searched_only_reason(lock: LockEntry) -> str:
    """Why no trial plays this lock; empty if trials do. A trial gives each client addresses of its own, and what
    servers say of each other would lead all clients past them."""
    if not lock.adapter or lock.adapter.topology == "single":
        return ""
    servers = {"cluster": "a Redis cluster", "sentinel": "a master under sentinels"}[lock.adapter.topology]
    return (
        f"its library is configured for {servers}, which trials do not give to libraries; "
        f"`lockstorm explore --adapter {lock.name.removeprefix(PREFIX)}` searches it there, and the adapter of the "
        "same library for one server plays in trials"
    )


# --- a program ---


class AdapterProgram:
    """A running adapter, which ends with this process. Checks every answer; a ProtocolError names the program."""

    def __init__(self, path: str, more: Mapping[str, str] | None = None) -> None:
        """`more`: variables for its environment."""
        self.path = path
        self.number = 0
        self.protocol = 1
        self._unread = b""
        self._under_way: set[int] = set()  # requests without an answer
        self.notices: list[AdapterNotice] = []
        self._early: dict[int, AdapterAnswer] = {}  # answers that nobody has received
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed by close)
        environment = {**os.environ, **library_environment(), "LOCKSTORM_PARENT": str(os.getpid()), **(more or {})}
        self._process = subprocess.Popen(
            [paths.program("spawn"), path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            bufsize=0,
            env=environment,
        )

        self._watch = os.pidfd_open(self._process.pid)  # readable when it has ended

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Kills the adapter's process group, which has the adapter's pid until that is waited for."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        if self._watch >= 0:
            os.close(self._watch)
            self._watch = -1
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            if stream:
                with contextlib.suppress(OSError):
                    stream.close()

    def hello(self, protocol: int = 1) -> AdapterHello:
        """Asks for a version of the protocol, and goes on in the version that the answer has."""
        self.send("hello", protocol=protocol)
        with self._named():
            answer = parse_hello(self._answer_line(HELLO_LIMIT_S, "hello"), self.number, protocol)
        self.protocol = answer.protocol
        return answer

    def ask(self, verb: str, limit_s: float, **more: object) -> AdapterAnswer:
        """Sends a request and returns its answer; ProtocolError if none comes within the limit."""
        self.send(verb, **more)
        return self.receive(limit_s, verb)

    def send(self, verb: str, **more: object) -> None:
        self.number += 1
        self._under_way.add(self.number)
        assert self._process.stdin
        with contextlib.suppress(BrokenPipeError):  # the next receive reports how it ended
            self._process.stdin.write(msgspec.json.encode({"id": self.number, "op": verb, **more}) + b"\n")

    def end_input(self) -> int | None:
        """Closes its input. Returns its exit status; None if it goes on."""
        assert self._process.stdin
        self._process.stdin.close()
        return self._status()

    def _status(self) -> int | None:
        """Its exit status, or the negative signal; None if it goes on. Leaves it to be waited for."""
        if not await_readable([self._watch], HangLimit(END_LIMIT_S)):
            return None
        seen = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        assert seen
        return seen.si_status if seen.si_code == os.CLD_EXITED else -seen.si_status

    def receive(self, limit_s: float, verb: str) -> AdapterAnswer:
        """The answer to the last request, which was `verb`."""
        with self._named():
            return check_answer(self._answer_line(limit_s, verb), self.number)

    def _answer_line(self, limit_s: float, verb: str) -> bytes:
        line = self._line(limit_s)
        if line is None:
            raise ProtocolError(f"it did not answer {verb} within {limit_s:g} s")
        self._under_way.discard(self.number)
        return line

    def receive_one(self, number: int, limit_s: float) -> AdapterAnswer | None:
        """The answer to this request, in any order from version 2 on; None: it did not come in time."""
        with self._named():
            limit = HangLimit(limit_s)
            while number not in self._early:
                line = self._line(limit.left_s())
                if line is None:
                    return None
                answer = parse_answer(line, self.protocol)
                if answer.id not in self._under_way:
                    raise ProtocolError(f"it answered request {answer.id}, which is not under way")
                self._under_way.remove(answer.id)
                self._early[answer.id] = answer
            return self._early.pop(number)

    def next_notice(self, limit_s: float) -> AdapterNotice | None:
        """The next notice, while no request is under way; None: none came in time."""
        with self._named():
            if not self.notices and (line := self._any_line(HangLimit(limit_s))) is not None:
                if (notice := parse_notice(line)) is None:
                    raise ProtocolError("it answered a request that is not under way")
                self.notices.append(notice)
            return self.notices.pop(0) if self.notices else None

    def is_silent(self, for_s: float) -> bool:
        with self._named():
            return self._line(for_s) is None

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except ProtocolError as wrong:
            raise ProtocolError(f"{self.path}: {wrong}") from None

    def _line(self, limit_s: float) -> bytes | None:
        """The next line that is no notice."""
        limit = HangLimit(limit_s)
        while (line := self._any_line(limit)) is not None:
            notice = parse_notice(line) if self.protocol > 2 else None
            if notice is None:
                return line
            self.notices.append(notice)
        return None

    def _any_line(self, limit: HangLimit) -> bytes | None:
        assert self._process.stdout
        while b"\n" not in self._unread:
            if len(self._unread) > LINE_MOST:
                raise ProtocolError(f"it wrote more than {LINE_MOST} bytes without a line end")
            if not self._readable(limit):
                return None
            some = os.read(self._process.stdout.fileno(), 1 << 16)
            if not some:
                raise self._ended()
            self._unread += some
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _readable(self, limit: HangLimit) -> bool:
        """Whether there is output to read within the limit. Raises at once if the adapter has ended: a child of it may
        still hold its output open."""
        assert self._process.stdout
        ready = await_readable([self._process.stdout.fileno(), self._watch], limit)
        if ready == [self._watch]:
            raise self._ended()
        return bool(ready)

    def _ended(self) -> Exception:
        status = self._status()
        if status is None:
            return ProtocolError("it closed its standard output")
        self._errors.seek(0)
        errors = self._errors.read().decode(errors="replace").strip().splitlines()
        causes = [line for line in errors if "error" in line.lower()]  # other lines may follow the cause
        last = f": {(causes or errors)[-1].strip()}" if errors else ""
        if status == NOT_INSTALLED:
            return NotInstalled(f"not installed: {self.path}{last}")
        how = f"by signal {-status}" if status < 0 else f"with status {status}"
        return ProtocolError(f"it ended {how}{last}")
