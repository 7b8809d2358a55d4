"""Where things are: the checkout, what was built from it, and what the machine has."""

import os
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from harness.driver.errors import Inconclusive, NotInstalled

ROOT = Path(__file__).resolve().parents[2]
JARS = Path("/usr/share/java")


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


def postgres(program: str = "postgres") -> str:
    """A program of the newest PostgreSQL server here; LOCKSTORM_POSTGRES chooses the directory that it is in."""
    chosen = os.environ.get("LOCKSTORM_POSTGRES")
    for directory in [Path(chosen)] if chosen else _postgres_places():
        if (directory / "postgres").is_file() and (directory / program).is_file():
            return str(directory / program)
    where = f"{chosen} has none" if chosen else "on Debian and Ubuntu it is in the package postgresql"
    raise NotInstalled(f"PostgreSQL is not installed: {where}")


def pgbouncer() -> str:
    """The pooler; LOCKSTORM_PGBOUNCER chooses one."""
    chosen = os.environ.get("LOCKSTORM_PGBOUNCER")
    found = shutil.which(chosen or "pgbouncer", path=None if chosen else f"{os.environ.get('PATH', '')}:/usr/sbin")
    if found:
        return found
    where = f"{chosen} does not exist" if chosen else "on Debian and Ubuntu it is in the package pgbouncer"
    raise NotInstalled(f"PgBouncer is not installed: {where}")


def etcd() -> str:
    """The etcd to start; LOCKSTORM_ETCD chooses one that is not on the PATH."""
    chosen = os.environ.get("LOCKSTORM_ETCD")
    found = shutil.which(chosen or "etcd", path=search_path())
    if not found:
        where = f"{chosen} is none" if chosen else "on Debian and Ubuntu it is in the package etcd-server"
        raise NotInstalled(f"etcd is not installed: {where}")
    return os.path.abspath(found)


def java() -> str:
    """The Java machine that runs ZooKeeper; LOCKSTORM_JAVA chooses one."""
    found = shutil.which(os.environ.get("LOCKSTORM_JAVA") or "java", path=search_path())
    if not found:
        raise NotInstalled("Java is not installed, and ZooKeeper needs it: it comes with the package zookeeper")
    return found


def zookeeper_classes() -> str:
    """The class path of the ZooKeeper server: the distribution's jar, which names all others but that for its log.
    LOCKSTORM_ZOOKEEPER chooses a directory of jars, as a release has it."""
    chosen = os.environ.get("LOCKSTORM_ZOOKEEPER")
    if chosen:
        if not any(Path(chosen).glob("zookeeper*.jar")):
            raise NotInstalled(f"ZooKeeper is not installed: {chosen} has no zookeeper*.jar")
        return f"{chosen}/*"
    jar = JARS / "zookeeper.jar"
    if not jar.is_file():
        raise NotInstalled("ZooKeeper is not installed: on Debian and Ubuntu it is in the package zookeeper")
    return f"{jar}:{JARS / 'slf4j-simple.jar'}"


def zookeeper_version() -> str:
    """As its jar is called."""
    directory = Path(os.environ.get("LOCKSTORM_ZOOKEEPER") or JARS)
    names = [path.stem for path in sorted(directory.glob("zookeeper-[0-9]*.jar"))]
    return names[-1].partition("-")[2] if names else "unknown"


def libfaketime() -> str:
    """The library that gives servers a clock that can be set: in virtual time PostgreSQL (others: preload), in real
    time redis-server. LOCKSTORM_LIBFAKETIME chooses one."""
    return _libfaketime_at(os.environ.get("LOCKSTORM_LIBFAKETIME"))


@cache
def _libfaketime_at(chosen: str | None) -> str:
    for path in [Path(chosen)] if chosen else _libfaketime_places():
        if path.is_file():
            return str(path)
    where = f"{chosen} does not exist" if chosen else "it is in the package libfaketime"
    raise Inconclusive(f"libfaketime is not installed, so the clock of this server cannot be set: {where}")


def preload() -> str:
    """The library that gives a server a clock which is a page in memory."""
    path = build() / "lib" / "liblockstorm-preload.so"
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


def _postgres_places() -> Iterator[Path]:
    versions = [path for path in Path("/usr/lib/postgresql").glob("*/bin") if path.parent.name.isdigit()]
    yield from sorted(versions, key=lambda path: int(path.parent.name), reverse=True)
    on_path = shutil.which("postgres", path=search_path())
    if on_path:
        yield Path(on_path).resolve().parent


def _libfaketime_places() -> Iterator[Path]:
    for base in (Path("/usr/lib"), Path("/usr/local/lib"), Path("/usr/lib64")):
        yield from sorted(base.glob("*/faketime/libfaketimeMT.so.1"))
        yield base / "faketime" / "libfaketimeMT.so.1"
