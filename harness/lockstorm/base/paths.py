"""Paths: the checkout or the installed package, the programs of the project, and the servers and libraries of the
machine."""

import functools
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from lockstorm.base.errors import Inconclusive, NotInstalled, UsageError

PACKAGE = Path(__file__).resolve().parents[1]
INSTALLED = PACKAGE / "installed"  # of a wheel (ci/wheel.py): what a checkout has beside the package
IS_INSTALLED = INSTALLED.is_dir()
ROOT = INSTALLED if IS_INSTALLED else PACKAGE.parents[1]
HOW_TO_BUILD = "install lockstorm again" if IS_INSTALLED else f"run ./lockstorm (or make build) in {ROOT}"
SCENARIOS = f"{PACKAGE.name}.{INSTALLED.name}.scenarios" if IS_INSTALLED else "scenarios"  # the Python package
USUAL_POLICY = "lockstorm.toml"  # the policy file of a gate, in the directory where it runs
BUILD = str(ROOT / "build")
JARS = Path("/usr/share/java")
LIBFAKETIME = "faketime/libfaketimeMT.so.1"
PROGRAMS = (  # of the project, as the Makefile builds them
    "client",
    "client-group",
    "client-services",
    "store",
    "store-table",
    "proxy",
    "check",
    "linearize",
    "explore",
    "lock-adapter",
    "supervisor",
    "plugin",
    "history",
    "spawn",
    "reaper",
)

SERVICE_PROGRAMS = ("client-services", "store-table")  # of PROGRAMS, those that only services other than Redis need


def python_path() -> str:
    """PYTHONPATH for a Python process of the project: the package, and the scenarios and tests of the checkout."""
    return os.pathsep.join([str(PACKAGE.parent)] if IS_INSTALLED else [str(ROOT / "harness"), str(ROOT)])


def runnable(command: str) -> str:
    """A command that begins with the word lockstorm, as a shell can run it in the working directory."""
    return f"{_launcher()}{command.removeprefix('lockstorm')}"


def _launcher() -> str:
    if not IS_INSTALLED:
        return "./lockstorm" if Path.cwd() == ROOT else shlex.quote(str(ROOT / "lockstorm"))
    beside = os.path.join(os.path.dirname(sys.executable), "lockstorm")  # of the same environment
    for found, shown in ((shutil.which("lockstorm"), "lockstorm"), (beside, shlex.quote(beside))):
        if found and os.path.exists(found) and os.path.samefile(found, beside):
            return shown
    return f"{shlex.quote(sys.executable)} -m lockstorm"


def build() -> Path:
    """The build directory; LOCKSTORM_BUILD chooses another one (a build with sanitizers)."""
    return Path(os.environ.get("LOCKSTORM_BUILD") or BUILD)


def cache(name: str) -> Path:
    """The directory for what is made once and can be made again: "templates" of servers, or libraries of "adapters".
    An installed lockstorm may lie where nobody can write: its cache is the user's (XDG_CACHE_HOME), and each
    installation has its own."""
    if not IS_INSTALLED:
        return build() / name
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "lockstorm" / sha256(str(INSTALLED).encode()).hexdigest()[:12] / name


def no_cache(place: Path, error: OSError) -> Inconclusive:
    return Inconclusive(f"{place} cannot be made ({error.strerror}): set XDG_CACHE_HOME to a directory")


def templates() -> Path:
    """The cache for templates of servers; it exists."""
    place = cache("templates")
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise no_cache(place, error) from None
    return place


def program(name: str) -> str:
    """A program of the project. LOCKSTORM_PROGRAMS names a build directory for programs, if not that of the library."""
    path = os.path.join(os.environ.get("LOCKSTORM_PROGRAMS") or os.environ.get("LOCKSTORM_BUILD") or BUILD, "bin", name)
    if not os.path.exists(path):
        raise Inconclusive(f"{path} is not built: {HOW_TO_BUILD}")
    return path


def redis_server(chosen: str | None = None, option: str = "--server") -> str:
    """The server to start for locks on Redis: the chosen program, else LOCKSTORM_REDIS_SERVER, else redis-server.
    Raises UsageError if the chosen one does not exist, or is no server of this kind. `option`: where it was chosen."""
    if chosen:
        found = shutil.which(chosen, path=search_path())
        if not found:
            is_there = os.path.exists(chosen)
            raise UsageError(f"{option} {chosen}: {'it is no program' if is_there else 'there is no such program'}")
        if answer := _no_redis_server(found):
            raise UsageError(f"{option} {chosen}: it is not redis-server or one of its kind: {answer}")
        return found
    return _redis_server_on(search_path(), os.environ.get("LOCKSTORM_REDIS_SERVER") or "redis-server")


@functools.cache
def _no_redis_server(program: str) -> str:
    """What shows that a program is no server of Redis's kind; empty: it is one. They all answer --version with
    "server v="."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, errors="replace", timeout=30)
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    said = (done.stdout + done.stderr).strip().partition("\n")[0]
    return "" if "server v=" in said else f"its answer to --version is {said!r}"


@functools.cache
def _redis_server_on(path: str, command: str) -> str:
    found = shutil.which(command, path=path)
    if not found:
        raise Inconclusive("redis-server is not installed: on Debian and Ubuntu it is in the package redis-server")
    return found


def postgres(program: str = "postgres") -> str:
    """A program of the newest PostgreSQL server installed; LOCKSTORM_POSTGRES names its directory."""
    chosen = os.environ.get("LOCKSTORM_POSTGRES")
    for directory in [Path(chosen)] if chosen else _postgres_places():
        if (directory / "postgres").is_file() and (directory / program).is_file():
            return str(directory / program)
    where = f"{chosen} has none" if chosen else "on Debian and Ubuntu it is in the package postgresql"
    raise NotInstalled(f"PostgreSQL is not installed: {where}")


def pgbouncer() -> str:
    """The pooler PgBouncer; LOCKSTORM_PGBOUNCER names another program."""
    return _installed("PgBouncer", "LOCKSTORM_PGBOUNCER", "pgbouncer", "pgbouncer", "does not exist")


def etcd() -> str:
    """The etcd to start; LOCKSTORM_ETCD names one that is not on the PATH."""
    return os.path.abspath(_installed("etcd", "LOCKSTORM_ETCD", "etcd", "etcd-server", "is not a program"))


def _installed(title: str, variable: str, program: str, package: str, lacks: str) -> str:
    chosen = os.environ.get(variable)
    found = shutil.which(chosen or program, path=search_path())
    if not found:
        where = f"{chosen} {lacks}" if chosen else f"on Debian and Ubuntu it is in the package {package}"
        raise NotInstalled(f"{title} is not installed: {where}")
    return found


def java() -> str:
    """The Java virtual machine that runs ZooKeeper; LOCKSTORM_JAVA names another one."""
    found = shutil.which(os.environ.get("LOCKSTORM_JAVA") or "java", path=search_path())
    if not found:
        raise NotInstalled("Java is not installed, and ZooKeeper needs it: it comes with the package zookeeper")
    return found


def zookeeper_classes() -> str:
    """The class path of the ZooKeeper server: the jar of the distribution, which names the others except the log's.
    LOCKSTORM_ZOOKEEPER names a directory of jars, such as that of a release."""
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
    """The version in the name of the ZooKeeper jar; or "unknown"."""
    directory = Path(os.environ.get("LOCKSTORM_ZOOKEEPER") or JARS)
    names = [path.stem for path in sorted(directory.glob("zookeeper-[0-9]*.jar"))]
    return names[-1].partition("-")[2] if names else "unknown"


def libfaketime() -> str:
    """The library that sets PostgreSQL's clock in virtual time; other servers have our own, "preload".
    LOCKSTORM_LIBFAKETIME names another library."""
    return _libfaketime_at(os.environ.get("LOCKSTORM_LIBFAKETIME"))


@functools.cache
def _libfaketime_at(chosen: str | None) -> str:
    bases = (Path("/usr/lib"), Path("/usr/local/lib"), Path("/usr/lib64"))
    usual = [each for base in bases for each in (*sorted(base.glob(f"*/{LIBFAKETIME}")), base / LIBFAKETIME)]
    for path in [Path(chosen)] if chosen else usual:
        if path.is_file():
            return str(path)
    where = f"{chosen} does not exist" if chosen else "it is in the package libfaketime"
    raise Inconclusive(f"libfaketime is not installed, so the clock of PostgreSQL cannot be set: {where}")


def own_library(name: str) -> str:
    """A library of the project for a server's LD_PRELOAD. preload: the server reads its clock from a shared page; near:
    its processes stay in one session; loopback: it listens on the loopback interface instead of all interfaces."""
    path = build() / "lib" / f"liblockstorm-{name}.so"
    if not path.exists():
        raise Inconclusive(f"{path} is not built: {HOW_TO_BUILD}")
    return str(path)


def search_path() -> str:
    """The PATH and the directories in which distributions install servers."""
    return os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin"])


def _postgres_places() -> Iterator[Path]:
    versions = [path for path in Path("/usr/lib/postgresql").glob("*/bin") if path.parent.name.isdigit()]
    yield from sorted(versions, key=lambda path: int(path.parent.name), reverse=True)
    on_path = shutil.which("postgres", path=search_path())
    if on_path:
        yield Path(on_path).resolve().parent
