"""Plug-ins: a user's lock in C, as a shared object (docs/test-your-own-lock.md). The entry of such a lock, like those
of the table of locks."""

import os
import signal
import subprocess
from functools import cache
from hashlib import sha256
from pathlib import Path

import msgspec

from lockstorm.base import paths
from lockstorm.base.errors import UsageError
from lockstorm.results.lock_entry import HostedPlugin, LockEntry

PREFIX = "plugin:"  # of the names of such locks
STARTER = paths.ROOT / "adapters" / "starters" / "lock-plugin.c"
LOAD_LIMIT_S = 120.0
DIGEST_SHOWN = 12
# The libraries that a plug-in may be linked with; others may open connections or start threads.
LIBRARIES = ("libc.so", "libm.so", "libgcc_s.so", "ld-linux")
# Functions that get time, randomness, messages or threads outside the environment, and what to call instead.
ELSEWHERE = {
    **dict.fromkeys(("clock_gettime", "gettimeofday", "time", "timespec_get", "clock"), "env_mono_ns or env_wall_ns"),
    **dict.fromkeys(("nanosleep", "clock_nanosleep", "usleep", "sleep", "poll", "select"), "env_sleep"),
    **dict.fromkeys(("rand", "rand_r", "random", "drand48", "getrandom", "getentropy", "arc4random"), "env_random"),
    **dict.fromkeys(("socket", "connect", "getaddrinfo"), "env_command"),
    **dict.fromkeys(("pthread_create", "thrd_create", "fork", "vfork", "posix_spawn", "system"), "env_watchdog_start"),
}


def is_plugin(lock: str) -> bool:
    return lock.startswith(PREFIX)


def plugin_path(word: str) -> Path:
    """The shared object of --plugin."""
    path = Path(word).absolute()
    if "/" not in word:
        hint = f"did you mean ./{word}?" if path.is_file() else "a path has a slash in it, as ./mylock.so has"
        raise UsageError(f"there is no plug-in called {word!r}: {hint}")
    if not path.is_file():
        raise UsageError(f"{word}: there is no such file")
    return path


def plugin_entry(word: str) -> LockEntry:
    """The entry of the lock of --plugin. Callers must not change it."""
    return _described(word, str(plugin_path(word)))


@cache
def _described(word: str, path: str) -> LockEntry:
    loaded = _loaded(word, path)
    lock = loaded.lock
    elsewhere = taken_elsewhere(loaded.uses, loaded.needs)
    return msgspec.structs.replace(
        lock,
        name=PREFIX + word,
        real_time_only=lock.real_time_only or bool(elsewhere),
        plugin=HostedPlugin(path=path, name=lock.name, version=digest_of(path), elsewhere=elsewhere),
    )


def digest_of(path: str) -> str:
    """A checksum that identifies the build: a plug-in states no version."""
    return f"sha256 {sha256(Path(path).read_bytes()).hexdigest()[:DIGEST_SHOWN]}"


def taken_elsewhere(uses: list[str], needs: list[str]) -> list[str]:
    """What the plug-in does outside its environment, each as a clause about it."""
    calls = [f"it calls {name} itself: {ELSEWHERE[name]} is there for that" for name in uses if name in ELSEWHERE]
    return calls + [f"it is linked with {library}" for library in needs if not library.startswith(LIBRARIES)]


class LoadedPlugin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The output of the program `plugin`, which loads a plug-in (harness/client/plugin_main.c)."""

    lock: LockEntry
    uses: list[str]  # functions that it imports
    needs: list[str]  # libraries that it is linked with


def _loaded(word: str, path: str) -> LoadedPlugin:
    """Loads the plug-in in a process of its own: it may crash or hang there without harm to this process."""
    command = [paths.program("spawn"), paths.program("plugin"), path]
    environment = {**os.environ, "LOCKSTORM_PARENT": str(os.getpid())}
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, env=environment, timeout=LOAD_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise UsageError(f"{word}: it was not loaded within {LOAD_LIMIT_S:g} s") from None
    errors = done.stderr.decode(errors="replace").strip().splitlines()
    if done.returncode == UsageError.exit_status and errors:
        raise UsageError(f"{word}: {errors[-1]}")
    try:
        return msgspec.json.decode(done.stdout.splitlines()[-1], type=LoadedPlugin)
    except (IndexError, msgspec.DecodeError):
        last = f": {errors[-1]}" if errors else ""
        raise UsageError(f"{word}: it ended {how_ended(done.returncode)} while it was loaded{last}") from None


def how_ended(status: int) -> str:
    """The end of a process in words, by its status from subprocess."""
    return f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
