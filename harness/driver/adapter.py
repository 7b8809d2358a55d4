"""Adapters: programs that host somebody's lock library (docs/adapters.md). What one says of itself, as an entry like
those of the table of locks; and a program that is asked by hand."""

import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Self

from harness.driver import paths
from harness.driver.errors import NotInstalled, UsageError

PROTOCOL = 1
PREFIX = "adapter:"  # what the names of such locks begin with
SHIPPED = paths.ROOT / "adapters"
NOT_INSTALLED = 69  # the exit status by which an adapter says that its library is not here (EX_UNAVAILABLE)
HELLO_LIMIT_S = 30.0
END_LIMIT_S = 5.0
LINE_MOST = 64 * 1024
OUTCOMES = ("ok", "refused", "unknown")
WAITS = ("not", "polling", "push", "blocking-pop", "in-server")
ANSWER_KEYS = ("id", "outcome", "error", "token", "valid_until_ms", "held")
OPERATIONS = ("renew", "is_held", "status")  # that an adapter may do without
NODES_MOST = 7
LEASE_UNIT_MOST_MS = 60_000
SHOWN = 160


class Wrong(UsageError):
    """What an adapter does is not the protocol."""


def path_of(word: str) -> Path:
    """The program that --adapter means: a path, or, without a slash, the name of one that is shipped."""
    if "/" in word:
        path = Path(word).absolute()
    elif (SHIPPED / word / "run").is_file():
        path = SHIPPED / word / "run"
    else:
        hint = f"did you mean ./{word}?" if Path(word).is_file() else f"there are: {', '.join(shipped())}"
        raise UsageError(f"there is no adapter called {word!r}: {hint}, or a path with a slash in it")
    if not path.is_file():
        raise UsageError(f"{word}: there is no such program")
    if not os.access(path, os.X_OK):
        raise UsageError(f"{word} cannot be executed: chmod +x {word}")
    return path


def shipped() -> list[str]:
    """The names of the adapters that come with the project."""
    return sorted(path.parent.name for path in SHIPPED.glob("*/run"))


def is_adapter(lock: str) -> bool:
    return lock.startswith(PREFIX)


def entry_of(lock: str) -> dict[str, Any]:
    """The entry of an adapter's lock, whose name begins with PREFIX. Not to be changed."""
    word = lock.removeprefix(PREFIX)
    return described(word, str(path_of(word)))


@cache
def described(word: str, path: str) -> dict[str, Any]:
    """What a trial needs to know of an adapter's lock, in the words of the table of locks."""
    with AdapterProgram(path) as program:
        hello = program.hello()
    version = hello.get("version", "")
    return {
        "name": PREFIX + word,
        "summary": f"{hello['name']} {version}".strip(),
        "explanation": "A lock library in another language, hosted through an adapter (docs/adapters.md).",
        "source": hello.get("source", path),
        **{trait: hello.get(trait, False) for trait in ("lease", "token", "reentrant", "fair", "renews")},
        "renewable": "renew" in hello.get("operations", []),
        "once": False,
        "capacity": -1 if hello.get("semaphore") else 1,
        "waits": hello.get("waits", "polling"),
        "service": "redis",
        "built": True,
        "real_time_only": True,
        "nodes": hello.get("nodes", 1),
        "replicas": 0,
        "lease_unit_ms": hello.get("lease_unit_ms", 1),
        "adapter": {
            "path": path,
            "name": hello["name"],
            "version": version,
            "tcp": hello.get("tcp", False),
            "operations": hello.get("operations", []),
        },
    }


# --- what it may say ---


def check_answer(line: bytes, number: int) -> dict[str, Any]:
    """The answer to question `number`. Raises Wrong, in words that its author can use."""
    shown = line[:SHOWN].decode(errors="replace")
    try:
        answer = json.loads(line)
    except ValueError:
        raise Wrong(
            f"it said something that is no JSON: {shown!r}. Standard output is for answers, one object a line; "
            "whatever else a library prints belongs to standard error"
        ) from None
    if not isinstance(answer, dict):
        raise Wrong(f"it said {shown!r}: an answer is a JSON object")
    if type(answer.get("id")) is not int or answer["id"] != number:
        raise Wrong(f'it answered question {number} with "id": {answer.get("id")!r}: repeat the id of the question')
    if answer.get("outcome") not in OUTCOMES:
        raise Wrong(f'it said {shown!r}: "outcome" is one of {", ".join(OUTCOMES)}')
    unknown = [key for key in answer if key not in ANSWER_KEYS and "protocol" not in answer]
    if unknown:
        raise Wrong(f"it said {shown!r}: unknown key {unknown[0]!r}, there are {', '.join(ANSWER_KEYS)}")
    return answer


def _whole(low: int, high: int) -> tuple[Any, str]:
    return (lambda value: type(value) is int and low <= value <= high), f"a whole number from {low} to {high}"


_TEXT = (lambda value: isinstance(value, str) and value.strip() != ""), "a text that is not empty"
_FLAG = (lambda value: isinstance(value, bool)), "true or false"
HELLO_KEYS: dict[str, tuple[Any, str]] = {
    "id": _whole(1, 2**53),
    "outcome": ((lambda value: value == "ok"), "ok"),
    "protocol": ((lambda value: value == PROTOCOL), f"{PROTOCOL}, the version that it speaks"),
    "name": _TEXT,
    "version": _TEXT,
    "source": _TEXT,
    **dict.fromkeys(("lease", "token", "reentrant", "fair", "renews", "semaphore", "tcp"), _FLAG),
    "waits": ((lambda value: value in WAITS), f"one of {', '.join(WAITS)}"),
    "nodes": _whole(1, NODES_MOST),
    "lease_unit_ms": _whole(1, LEASE_UNIT_MOST_MS),
    "operations": (
        (lambda value: isinstance(value, list) and all(each in OPERATIONS for each in value)),
        f"a list of what it can do besides, of {', '.join(OPERATIONS)}",
    ),
}
HELLO_NEEDED = ("protocol", "name")


def check_hello(answer: Mapping[str, Any]) -> None:
    for key, value in answer.items():
        if key not in HELLO_KEYS:
            raise Wrong(f"its hello has the unknown key {key!r}: there are {', '.join(HELLO_KEYS)}")
        good, words = HELLO_KEYS[key]
        if not good(value):
            raise Wrong(f"its hello says {json.dumps({key: value})}: {key} has to be {words}")
    for key in HELLO_NEEDED:
        if key not in answer:
            raise Wrong(f"its hello lacks {key!r}: {HELLO_KEYS[key][1]}")


# --- a program ---


class AdapterProgram:
    """An adapter that runs, on a leash. Every answer is checked; a Wrong names the program."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.number = 0
        self._unread = b""
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed by close)
        environment = {**os.environ, "LOCKSTORM_PARENT": str(os.getpid())}
        self._process = subprocess.Popen(
            [paths.program("leash"), path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            bufsize=0,
            env=environment,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends it, and whatever it has started in its group, whose number is its own until somebody waits for it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            if stream:
                with contextlib.suppress(OSError):
                    stream.close()

    def hello(self) -> dict[str, Any]:
        answer = self.ask("hello", HELLO_LIMIT_S, protocol=PROTOCOL)
        assert answer is not None
        with self._named():
            check_hello(answer)
        return answer

    def ask(self, verb: str, limit_s: float, **more: object) -> dict[str, Any]:
        """The answer to a question; Wrong if none comes within the limit."""
        self.tell(verb, **more)
        return self.hear(limit_s, verb)

    def tell(self, verb: str, **more: object) -> None:
        self.number += 1
        self.tell_raw(json.dumps({"id": self.number, "op": verb, **more}).encode() + b"\n")

    def tell_raw(self, line: bytes) -> None:
        assert self._process.stdin
        with contextlib.suppress(BrokenPipeError):  # how it ended, whoever listens is told
            self._process.stdin.write(line)

    def end_input(self) -> int | None:
        """Closes its input, and gives its exit status, if it ends by that."""
        assert self._process.stdin
        self._process.stdin.close()
        return self._status()

    def _status(self) -> int | None:
        """How it ended, if it does soon. Nobody has waited for it then."""
        watch = os.pidfd_open(self._process.pid)
        try:
            if not select.select([watch], [], [], END_LIMIT_S)[0]:
                return None
        finally:
            os.close(watch)
        seen = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        assert seen
        return seen.si_status if seen.si_code == os.CLD_EXITED else -seen.si_status

    def hear(self, limit_s: float, verb: str) -> dict[str, Any]:
        with self._named():
            line = self._line(limit_s)
            if line is None:
                raise Wrong(f"it did not answer {verb} within {limit_s:g} s")
            return check_answer(line, self.number)

    def heard_nothing(self, for_s: float) -> bool:
        with self._named():
            return self._line(for_s) is None

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except Wrong as wrong:
            raise Wrong(f"{self.path}: {wrong}") from None

    def _line(self, limit_s: float) -> bytes | None:
        assert self._process.stdout
        until = time.monotonic() + limit_s
        while b"\n" not in self._unread:
            if len(self._unread) > LINE_MOST:
                raise Wrong(f"it said more than {LINE_MOST} bytes without a line end")
            if not self._readable(max(0.0, until - time.monotonic())):
                return None
            some = os.read(self._process.stdout.fileno(), 1 << 16)
            if not some:
                raise self._ended()
            self._unread += some
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _readable(self, limit_s: float) -> bool:
        """Whether there is something to read within the limit. When it has ended nothing is waited for: what it has
        started may still have its output."""
        assert self._process.stdout
        watch = os.pidfd_open(self._process.pid)
        try:
            ready = select.select([self._process.stdout.fileno(), watch], [], [], limit_s)[0]
        finally:
            os.close(watch)
        if ready == [watch]:
            raise self._ended()
        return bool(ready)

    def _ended(self) -> Exception:
        status = self._status()
        if status is None:
            return Wrong("it closed its standard output")
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip().splitlines()
        errors = [line for line in said if "error" in line.lower()]  # some write a goodbye after it
        last = f": {(errors or said)[-1].strip()}" if said else ""
        if status == NOT_INSTALLED:
            return NotInstalled(f"not installed: {self.path}{last}")
        how = f"by signal {-status}" if status < 0 else f"with status {status}"
        return Wrong(f"it ended {how}{last}")
