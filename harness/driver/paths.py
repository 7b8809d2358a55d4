"""Where things are: the checkout, what was built from it, and what the machine has."""

import os
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from harness.driver.errors import Inconclusive

ROOT = Path(__file__).resolve().parents[2]


def build() -> Path:
    """The build directory; LOCKSTORM_BUILD chooses another one (a build with sanitizers)."""
    return Path(os.environ.get("LOCKSTORM_BUILD") or ROOT / "build")


def program(name: str) -> str:
    """One of our own programs. LOCKSTORM_PROGRAMS lets them come from another build than the library."""
    path = Path(os.environ.get("LOCKSTORM_PROGRAMS") or build()) / "bin" / name
    if not path.exists():
        raise Inconclusive(f"{path} is not built: run ./lockstorm (or make build) in {ROOT}")
    return str(path)


def redis_server() -> str:
    """The redis-server to start; LOCKSTORM_REDIS_SERVER chooses one that is not on the PATH."""
    found = shutil.which(os.environ.get("LOCKSTORM_REDIS_SERVER") or "redis-server", path=search_path())
    if not found:
        raise Inconclusive("redis-server is not installed: on Debian and Ubuntu it is in the package redis-server")
    return found


def libfaketime() -> str:
    """The library that gives servers their virtual clock; LOCKSTORM_LIBFAKETIME chooses one."""
    return _libfaketime_at(os.environ.get("LOCKSTORM_LIBFAKETIME"))


@cache
def _libfaketime_at(chosen: str | None) -> str:
    for path in [Path(chosen)] if chosen else _libfaketime_places():
        if path.is_file():
            return str(path)
    where = f"{chosen} does not exist" if chosen else "it is in the package libfaketime"
    raise Inconclusive(f"libfaketime is not installed, so servers cannot have a virtual clock: {where}")


def explored_clock() -> str:
    """The library that gives the explorer's servers a clock which is a page in memory."""
    path = build() / "lib" / "liblockstorm-clock.so"
    if not path.exists():
        raise Inconclusive(f"{path} is not built: run ./lockstorm (or make build) in {ROOT}")
    return str(path)


@cache
def libc() -> str:
    """The C library that this process runs with, as a path to preload."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        if "/libc.so.6" in line or "/libc-2." in line:
            return line.split(maxsplit=5)[5]
    raise Inconclusive("this system's C library is not glibc, which the virtual clock of redis-server needs")


def search_path() -> str:
    """The PATH with the places where distributions put servers."""
    return os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin"])


def _libfaketime_places() -> Iterator[Path]:
    for base in (Path("/usr/lib"), Path("/usr/local/lib"), Path("/usr/lib64")):
        yield from sorted(base.glob("*/faketime/libfaketimeMT.so.1"))
        yield base / "faketime" / "libfaketimeMT.so.1"
