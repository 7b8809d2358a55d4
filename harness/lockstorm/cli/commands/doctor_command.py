"""`lockstorm doctor`: which features this machine can run, and why others cannot."""

import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import click
import msgspec
from rich.table import Table
from rich.text import Text

from lockstorm.base import paths
from lockstorm.base.errors import Inconclusive, LockstormError
from lockstorm.base.shared_objects import missing_for_files, missing_sentence
from lockstorm.cli.options import json_option
from lockstorm.cli.terminal import console, print_json
from lockstorm.native.library import library
from lockstorm.process.held_port import HeldPort
from lockstorm.servers.pgbouncer import pgbouncer_version
from lockstorm.servers.postgres_server import server_user
from lockstorm.servers.services import LEASE_UNIT_MS, REAL_TIME_ONLY, missing, missing_pooler
from lockstorm.servers.zookeeper_server import java_version
from lockstorm.trial.settings import SERVER_HELP, Time, TrialSettings
from lockstorm.trial.trial import Trial

NOT_NEEDED = "not installed, and only its own locks need it: "
WITHOUT_SUPERVISOR = "without it adapters are played with --time real (`lockstorm docs virtual-time`, what it needs)"
ADDRESSES_BY_CHANCE = (
    "; but addresses cannot be fixed here, so a program whose random numbers depend on them (Node) has another history "
    "each time; in Docker, --security-opt seccomp=unconfined allows it"
)
PROGRAMS, REDIS = "programs", "redis-server"
TRIAL = (PROGRAMS, REDIS)
WITHOUT_FAKETIME = "the locks on PostgreSQL have real time only"


class Examined(msgspec.Struct, frozen=True):
    name: str
    ok: bool
    found: str
    help: str = ""  # for a failure


def examine() -> list[Examined]:
    """What cannot work without a finding that failed is not looked for: it would fail for the same reason."""
    findings: list[Examined] = []
    for name, find, help_, needs in EXAMINED:
        failed = next((each.name for each in findings if each.name in needs and not each.ok), None)
        if failed:
            findings.append(Examined(name, False, f"not examined: it needs {failed}"))
            continue
        try:
            findings.append(Examined(name, True, find()))
        except (LockstormError, OSError, subprocess.SubprocessError) as reason:
            findings.append(Examined(name, False, str(reason), help_))
    return findings


def find_programs() -> str:
    """Where the programs and libraries of the project are. Raises Inconclusive if one is not built, or lacks a library
    of the machine."""
    found = {name: Path(paths.program(name)) for name in paths.PROGRAMS}
    needed = [path for name, path in found.items() if name not in paths.SERVICE_PROGRAMS]
    lacking = missing_for_files([*needed, Path(paths.own_library("preload")), Path(paths.own_library("near"))])
    if lacking:
        raise Inconclusive(missing_sentence(lacking))
    library()
    return f"built in {paths.build()}, on {platform.machine()}"


def _redis_version() -> str:
    output = subprocess.run([paths.redis_server(), "--version"], capture_output=True, text=True, check=True).stdout
    return next((word[2:] for word in output.split() if word.startswith("v=")), "?")


def _redis() -> str:
    return f"{_redis_version()} ({paths.redis_server()})"


def _faketime() -> str:
    if missing("postgres") and not _has_faketime():
        return "not installed, and only the locks on PostgreSQL need it, in virtual time"
    return paths.libfaketime()


def _directory() -> str:
    base = tempfile.gettempdir()
    with tempfile.NamedTemporaryFile(dir=base):
        pass
    if len(base) > 60:
        raise OSError(f"{base} is too long: the path of a UNIX socket in it would exceed 108 bytes")
    return base


def _virtual() -> str:
    with Trial(TrialSettings("none")) as trial:
        trial.advance(86_400_000)
        return "a day passed on a real redis-server at once, read back from its TIME"


# Two threads. One waits for the other's byte, by calls that a container may forbid to look into. Then it says whether
# its addresses are fixed (ADDR_NO_RANDOMIZE).
LIVES_AN_HOUR = """
import os, select, threading, time
reading, writing = os.pipe()
began = time.monotonic()
threading.Timer(3600, os.write, (writing, b".")).start()
select.select([reading], [], [])
addresses_fixed = int(open("/proc/self/personality").read(), 16) & 0x0040000
print(round(time.monotonic() - began), "fixed" if addresses_fixed else "by chance", end="")
"""


def live_for_an_hour() -> str:
    """Whether an unmodified program can live in virtual time here. Raises Inconclusive with the reason if it cannot."""
    command = [paths.program("supervisor"), "--alone", sys.executable, "-c", LIVES_AN_HOUR]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    waited, _, addresses = done.stdout.partition(" ")
    if done.returncode != 0 or waited != "3600":
        said = done.stderr.strip().splitlines()
        raise Inconclusive(said[-1] if said else f"a program that waits for an hour ended with {done.returncode}")
    found = "an unmodified program waited for an hour at once, by its own clock"
    return found if addresses == "fixed" else found + ADDRESSES_BY_CHANCE


def _pause() -> str:
    with Trial(TrialSettings("none")) as trial:
        (client,) = trial.clients(1)
        with trial.fault("pause-client", client):
            pass
    return f"stopped, seen in state T and continued, as {'root' if os.geteuid() == 0 else 'an ordinary user'}"


def _crash() -> str:
    with Trial(TrialSettings("none", persistence="aof")) as trial:
        trial.server.link.set("key", "value")
        with trial.fault("crash-server", trial.server, data="tail"):
            pass
        if trial.server.link.exists("key"):
            raise Inconclusive("the server still has the key that it should have lost")
    return "killed, and started again without the last write of its append-only file"


def _failovers() -> str:
    version = _redis_version()
    major = version.partition(".")[0]
    if not major.isdigit() or int(major) < 7:
        raise Inconclusive(f"redis-server {version} has neither SENTINEL DEBUG nor CLUSTER ADDSLOTSRANGE")
    HeldPort().close()
    return "by hand, by sentinels and in a cluster"


def _clocks() -> str:
    with Trial(TrialSettings("none", time="real", settable_clocks=True, direct=True)) as trial:
        with trial.fault("clock-jump", trial.server, offset_ms=86_400_000):
            pass
        with trial.fault("clock-drift", trial.server, ppm=1_000_000):
            trial.advance(20)
    return "a redis-server was set a day ahead and made to run twice as fast, read back from its TIME"


def _postgres() -> str:
    if reason := missing("postgres"):
        return NOT_NEEDED + reason
    time: Time = "virtual" if _has_faketime() else "real"
    with Trial(TrialSettings("pg-lease", time=time)) as trial:
        (client,) = trial.clients(1)
        token = client.acquire().token
        trial.advance(trial.lease_ms if time == "virtual" else 0)
        user = server_user()
        whom = f"user {user.uid}" if user else "the same user"
        return f"{trial.database.version()} ({paths.postgres()}), as {whom}; it gave the token {token}"


def _etcd() -> str:
    if reason := missing("etcd"):
        return NOT_NEEDED + reason
    with Trial(TrialSettings("etcd", time="real", lease_ms=LEASE_UNIT_MS["etcd"])) as trial:
        (client,) = trial.clients(1)
        token = client.acquire().token
        version = trial.etcd.known[0].version()
    return f"{version} ({paths.etcd()}); it gave the token {token}. In real time only: {REAL_TIME_ONLY['etcd']}"


def _zookeeper() -> str:
    if reason := missing("zookeeper"):
        return NOT_NEEDED + reason
    with Trial(TrialSettings("zookeeper")) as trial:
        (client,) = trial.clients(1)
        token = client.acquire().token
        trial.advance(trial.lease_ms)
        version = f"{trial.zookeeper.known[0].version()} (Java {java_version()}, {paths.java()})"
        with trial.fault("clock-drift", trial.nodes.known[0], ppm=1_000_000, keep="yes"):
            trial.advance(trial.lease_ms)
        clock = "it uses the monotonic clock, which is virtual, may run fast or slow, and is never set"
        return f"{version}; it gave the token {token}; {clock}"


def _has_faketime() -> bool:
    try:
        return bool(paths.libfaketime())
    except LockstormError:
        return False


def _pgbouncer() -> str:
    if reason := missing("postgres") or missing_pooler():
        return f"not installed, and only the scenario pooled-sessions needs it: {reason}"
    time: Time = "virtual" if _has_faketime() else "real"
    with Trial(TrialSettings("pg-advisory-xact", time=time, pooled=True)) as trial:
        (client,) = trial.clients(1)
        if not client.acquire().ok:
            raise Inconclusive("a transaction through it did not get a free lock")
        return f"{pgbouncer_version()} ({paths.pgbouncer()}); a transaction through it got a lock"


# What is examined: its name, how, what helps if it fails, and what it cannot work without.
EXAMINED: tuple[tuple[str, Callable[[], str], str, tuple[str, ...]], ...] = (
    (PROGRAMS, find_programs, "", ()),  # its reasons say what helps
    (REDIS, _redis, "install the package redis-server", ()),
    ("libfaketime", _faketime, f"install the package libfaketime; without it {WITHOUT_FAKETIME}", (PROGRAMS,)),
    ("private directory", _directory, "set TMPDIR to a directory with a short path that you may write to", ()),
    ("virtual time", _virtual, "without it --time real still works", TRIAL),
    ("virtual time of libraries", live_for_an_hour, WITHOUT_SUPERVISOR, TRIAL),
    ("pause a client", _pause, "it needs signals to your own processes, and /proc", TRIAL),
    ("crash a server", _crash, "it needs redis-server 7.0 or newer, and space for its append-only file", TRIAL),
    ("failovers", _failovers, "they need redis-server 7.0 or newer and ports on the loopback interface", TRIAL),
    ("PostgreSQL", _postgres, "without it everything works but the locks on PostgreSQL", (PROGRAMS,)),
    ("PgBouncer", _pgbouncer, "without it only the scenario pooled-sessions is left out", (PROGRAMS,)),
    ("etcd", _etcd, "without it everything works but the locks on etcd", (PROGRAMS,)),
    ("ZooKeeper", _zookeeper, "without it everything works but the locks on ZooKeeper", (PROGRAMS,)),
    ("clock faults in real time", _clocks, "without them, clock faults work in virtual time", TRIAL),
)


@click.command("doctor")
@click.option("--server", metavar="PROGRAM", help=SERVER_HELP)
@json_option
def doctor_command(server: str | None, as_json: bool) -> int:
    """Show what this machine can run, and what is missing for the rest.

    \b
    Example: lockstorm doctor --server valkey-server
    """
    if server:
        os.environ["LOCKSTORM_REDIS_SERVER"] = paths.redis_server(server)
    findings = examine()
    well = all(finding.ok for finding in findings)
    if as_json:
        print_json({"findings": findings, "ok": well})
        return 0 if well else 3
    table = Table(box=None, show_header=False, padding=(0, 1))
    for finding in findings:
        mark = Text("ok", "green") if finding.ok else Text("no", "bold red")
        table.add_row(mark, finding.name, finding.found + (f" - {finding.help}" if finding.help else ""))
    console().print(table)
    return 0 if well else 3
