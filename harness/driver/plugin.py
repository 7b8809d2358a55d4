"""Plug-ins: somebody's own lock in C, as a shared object (docs/test-your-own-lock.md). What one says of itself, as an
entry like those of the table of locks."""

import json
import os
import signal
import subprocess
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from harness.driver import paths
from harness.driver.errors import UsageError

PREFIX = "plugin:"  # what the names of such locks begin with
STARTER = paths.ROOT / "adapters" / "starters" / "lock-plugin.c"
LOAD_LIMIT_S = 20.0
DIGEST_SHOWN = 12
# What a plug-in may be linked with; another library would have connections, or threads, of its own.
LIBRARIES = ("libc.so", "libm.so", "libgcc_s.so", "ld-linux")
# What takes time, chance, messages or company from elsewhere than the environment, and what to call instead.
ELSEWHERE = {
    **dict.fromkeys(("clock_gettime", "gettimeofday", "time", "timespec_get", "clock"), "env_mono_ns or env_wall_ns"),
    **dict.fromkeys(("nanosleep", "clock_nanosleep", "usleep", "sleep", "poll", "select"), "env_sleep"),
    **dict.fromkeys(("rand", "rand_r", "random", "drand48", "getrandom", "getentropy", "arc4random"), "env_random"),
    **dict.fromkeys(("socket", "connect", "getaddrinfo"), "env_command"),
    **dict.fromkeys(("pthread_create", "thrd_create", "fork", "vfork", "posix_spawn", "system"), "env_watchdog_start"),
}


def is_plugin(lock: str) -> bool:
    return lock.startswith(PREFIX)


def path_of(word: str) -> Path:
    """The shared object that --plugin means."""
    path = Path(word).absolute()
    if "/" not in word:
        hint = f"did you mean ./{word}?" if path.is_file() else "a path has a slash in it, as ./mylock.so has"
        raise UsageError(f"there is no plug-in called {word!r}: {hint}")
    if not path.is_file():
        raise UsageError(f"{word}: there is no such file")
    return path


def entry_of(word: str) -> dict[str, Any]:
    """The entry of the lock that --plugin means. Not to be changed."""
    return _described(word, str(path_of(word)))


@cache
def _described(word: str, path: str) -> dict[str, Any]:
    said = _loaded(word, path)
    lock = said["lock"]
    elsewhere = taken_elsewhere(said["uses"], said["needs"])
    return {
        **lock,
        "name": PREFIX + word,
        "real_time_only": lock["real_time_only"] or bool(elsewhere),
        "plugin": {"path": path, "name": lock["name"], "version": digest_of(path), "elsewhere": elsewhere},
    }


def digest_of(path: str) -> str:
    """Which build it is: a plug-in has no version that could be relied on."""
    return f"sha256 {sha256(Path(path).read_bytes()).hexdigest()[:DIGEST_SHOWN]}"


def taken_elsewhere(uses: list[str], needs: list[str]) -> list[str]:
    """What it does besides its environment, each as a clause about it."""
    calls = [f"it calls {name} itself: {ELSEWHERE[name]} is there for that" for name in uses if name in ELSEWHERE]
    return calls + [f"it is linked with {library}" for library in needs if not library.startswith(LIBRARIES)]


def _loaded(word: str, path: str) -> dict[str, Any]:
    """What the program says that loads it: it may crash, or never come back, and takes nobody with it."""
    command = [paths.program("leash"), paths.program("plugin"), path]
    environment = {**os.environ, "LOCKSTORM_PARENT": str(os.getpid())}
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, env=environment, timeout=LOAD_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise UsageError(f"{word}: it was not loaded within {LOAD_LIMIT_S:g} s") from None
    said = done.stderr.decode(errors="replace").strip().splitlines()
    if done.returncode == UsageError.exit_status and said:
        raise UsageError(f"{word}: {said[-1]}")
    try:
        described: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        last = f": {said[-1]}" if said else ""
        raise UsageError(f"{word}: it ended {how_ended(done.returncode)} while it was loaded{last}") from None
    return described


def how_ended(status: int) -> str:
    """In words, of a process that was waited for."""
    return f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
