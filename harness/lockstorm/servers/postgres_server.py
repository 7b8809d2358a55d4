"""A real PostgreSQL server of a trial: in its private directory, on a unix socket, by a virtual or the real clock.

Its data directory is a copy of a template that is made once. The server refuses to run as root; for root it runs as the
user postgres, or else as the user nobody. Decision 0041.
"""

import contextlib
import ctypes
import fcntl
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from lockstorm.base import paths
from lockstorm.base.errors import Inconclusive, NotInstalled
from lockstorm.base.hang_limit import START_LIMIT_S, HangLimit
from lockstorm.native.library import Message, library
from lockstorm.process.process import Process, Sandbox, User
from lockstorm.servers.postgres_wire import PostgresConnection, PostgresRefusal

STOP_LIMIT_S = 30.0
PORT = 5432  # not a port: it names the socket
TEMPLATE = 2  # in the template's name; another number when what it contains has changed
SOCKET = f".s.PGSQL.{PORT}"
DATABASE = "postgres"
ROLE = "lockstorm"
STANDBYS = "synchronous_standby_names"
WAITS_FOR_NOBODY = {"synchronous_commit": "local"}  # of the driver's own session
PLAIN_TEXT = "gssencmode=disable sslmode=disable"
SERVER_USERS = ("postgres", "nobody")
MEMORY = Path("/dev/shm")
MEMORY_FREE_BYTES = 256 << 20  # containers often have only 64 MB of /dev/shm

INITDB = (
    *("--auth", "trust"),
    *("--username", ROLE),
    *("--encoding", "UTF8"),
    *("--wal-segsize", "1"),
    *("--no-locale", "--no-sync", "--no-instructions"),
)
# The other two databases would be two thirds of what every trial copies.
SLIM = """UPDATE pg_database SET datistemplate = false
DROP DATABASE template0
DROP DATABASE template1
"""

# No background work; nothing is left in the machine's shared memory when the server is killed. A commit is written to
# the kernel before it is acknowledged, which a killed process does not lose; fsync protects against power failures.
OPTIONS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "fsync": "off",
    "autovacuum": "off",
    "jit": "off",
    "max_connections": "300",
    "shared_buffers": "2MB",  # with the tables of locks, what a server writes to when it makes its shared memory
    "max_locks_per_transaction": "10",
    "max_pred_locks_per_transaction": "10",
    "dynamic_shared_memory_type": "mmap",
    "max_parallel_workers": "0",
    "max_logical_replication_workers": "0",
    "max_wal_senders": "0",
    "wal_level": "minimal",
}

# With a replica: it begins with a copy of the same data directory, so all WAL since then must be kept. No timeout ends
# a connection, for the trial may have stopped the clock.
REPLICATION = {
    # A replica may not have fewer than its master had, or the server that made the data directory.
    "max_wal_senders": "10",
    "max_locks_per_transaction": "64",
    "wal_level": "replica",
    "wal_keep_size": "64MB",
    "wal_sender_timeout": "0",
    "wal_receiver_timeout": "0",
    "wal_retrieve_retry_interval": "10ms",
}


def conninfo(directory: Path | str, port: int = PORT) -> str:
    """The connection string of libpq for the socket of this port in this directory."""
    quoted = str(directory).replace("\\", r"\\").replace("'", r"\'")
    return f"host='{quoted}' port={port} user={ROLE} dbname={DATABASE} {PLAIN_TEXT}"


@cache
def postgres_version() -> str:
    output = subprocess.run([paths.postgres(), "--version"], capture_output=True, text=True, check=True).stdout
    return next((word for word in output.split() if word[0].isdigit()), "?")


@cache
def refusal_by_postgres(name: str, value: str) -> str:
    """Why the server refuses this value of a setting; empty: it takes it, or is not installed, and no trial needs the
    setting. It reads the setting before it looks for the data directory, which does not exist."""
    try:
        postgres = paths.postgres()
    except NotInstalled:
        return ""
    command = [postgres, "-C", name, "-c", f"{name}={value}", "-D", "/nonexistent"]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stderr.partition("FATAL:")[2].partition("\n")[0].strip()


@cache
def server_user() -> User | None:
    """The user as which the server has to run; None: this process's own."""
    if os.geteuid() != 0:
        return None
    for name in SERVER_USERS:
        with contextlib.suppress(KeyError):
            found = pwd.getpwnam(name)
            return User(found.pw_uid, found.pw_gid)
    raise Inconclusive(f"PostgreSQL refuses to run as root, and this machine has no user {' or '.join(SERVER_USERS)}")


class PostgresSession(PostgresConnection):
    """A session on a unix socket, begun by the constructor. Raises Inconclusive when it fails or is lost."""

    def __init__(self, path: Path, database: str = DATABASE, settings: Mapping[str, str] | None = None) -> None:
        super().__init__(socket.socket(socket.AF_UNIX))
        try:
            with _inconclusive():
                self.socket.connect(bytes(path))
                self.log_in(ROLE, database, "", settings or {})
        except Inconclusive:
            self.close()
            raise

    def rows(self, statement: str) -> list[list[str]]:
        with _inconclusive():
            return super().rows(statement)

    def value(self, statement: str) -> str:
        """The first column of the only row."""
        ((first, *_),) = self.rows(statement)
        return first

    def close(self) -> None:
        self.socket.close()


@contextlib.contextmanager
def _inconclusive() -> Iterator[None]:
    try:
        yield
    except (OSError, PostgresRefusal) as reason:
        raise Inconclusive(f"PostgreSQL: {reason}") from None


class PostgresServer:
    """Started by the constructor; `ready` waits until it answers."""

    clock_step_us = 1  # the resolution of time_us

    def __init__(
        self,
        sandbox: Sandbox,
        name: str,
        *,
        clock: Path | None,
        replicated: bool = False,
        follows: str = "",
        configured: Mapping[str, str] | None = None,
        port: int = 0,
    ) -> None:
        """`replicated`: it has a replica, or is one. `follows`: HOST:PORT of its master, if it is a replica.
        `configured`: a team's own settings. `port`: of the loopback interface, where it listens too; 0: nowhere."""
        self.name = name
        self.number = -1  # in the scheduler
        self.clock = clock  # a file, for libfaketime; None: the machine's clock
        self.directory = sandbox.directory / name
        self.sockets = sandbox.directory / f"{name}-socket"
        self.port = port or PORT
        self.socket = self.sockets / f".s.PGSQL.{self.port}"
        self._sandbox = sandbox
        self._user = server_user()
        self._own_session: PostgresSession | None = None
        self._options = {**(configured or {}), **OPTIONS, **(REPLICATION if replicated else {})}
        if port:
            self._options |= {"listen_addresses": "127.0.0.1", "port": str(port)}
        if follows:  # when it is promoted it has no standby of its own
            self._options.pop(STANDBYS, None)
        if self._user:
            sandbox.grant_access(self._user)
        for path in [self.sockets, *([clock] if clock else [])]:
            _make(path, self._user, directory=path is self.sockets)
        place = _place_in_memory(self.directory)
        place.mkdir(mode=0o700)
        with data_template(sandbox, self._user) as template:
            subprocess.run(["cp", "-aT", "--reflink=auto", str(template), str(place)], check=True)
        if follows:
            host, _, number = follows.rpartition(":")
            self._options["primary_conninfo"] = f"host={host} port={number} user={ROLE} {PLAIN_TEXT}"
            _make(place / "standby.signal", self._user, directory=False)
        self.process = self._start()

    def _near_library(self) -> str:
        """The library that keeps its processes in one session, where the server's user may read it."""
        if not self._user:
            return paths.own_library("near")
        copied = self._sandbox.directory / Path(paths.own_library("near")).name
        if not copied.exists():  # a server that has mapped it would crash if it was written again
            shutil.copy(paths.own_library("near"), copied)
            copied.chmod(0o644)
        return str(copied)

    def _start(self) -> Process:
        command = server_command(self.directory, self.sockets, self._options)
        environment: list[str] = []
        if self.clock:  # shows the time in this file's first line
            environment = [
                f"LD_PRELOAD={paths.libfaketime()} {self._near_library()}",
                f"FAKETIME_TIMESTAMP_FILE={self.clock}",
                "FAKETIME_NO_CACHE=1",
                "FAKETIME_DONT_FAKE_MONOTONIC=1",
                "TZ=UTC",
            ]
        return self._sandbox.start(self.name, command, environment=environment, user=self._user)

    @property
    def session(self) -> PostgresSession:
        if not self._own_session:
            self._own_session = PostgresSession(self.socket, settings=WAITS_FOR_NOBODY)
        return self._own_session

    def ready(self) -> None:
        self._sandbox.await_start("PostgreSQL", self.name, self.process, self._answers, (Inconclusive,))
        if self.clock:
            # libfaketime's shared memory stays mapped; without a name, nothing of it is left when the server is killed.
            for leftover in (f"faketime_shm_{self.process.pid}", f"sem.faketime_sem_{self.process.pid}"):
                (MEMORY / leftover).unlink(missing_ok=True)

    def _answers(self) -> bool:
        return self.socket.exists() and self.session.value("SELECT 1") == "1"

    def time_us(self) -> int:
        return int(self.session.value("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"))

    def version(self) -> str:
        return self.session.value("SHOW server_version").split()[0]

    def restart(self) -> None:
        """Starts it again after its process has ended, when the last of its children has left the shared memory."""
        self._session_end()
        self.process.wait()
        self.socket.unlink(missing_ok=True)
        limit = HangLimit(START_LIMIT_S)
        while True:
            self.process = self._start()
            try:
                return self.ready()
            except Inconclusive:
                in_use = "shared memory block" in self._sandbox.log_tail(self.name, 4)
                if not in_use or limit.is_over():
                    raise
            time.sleep(0.01)

    def write(self) -> str:
        """Commits a message that no lock reads. Returns the end of the WAL."""
        self.session.value("SELECT pg_logical_emit_message(true, 'lockstorm', '')")
        return self.session.value("SELECT pg_current_wal_flush_lsn()")

    def await_write(self, end: str) -> None:
        """For a replica: returns when it has replayed its master's WAL up to `end`."""
        limit = HangLimit(START_LIMIT_S)
        while self.session.value(f"SELECT coalesce(pg_last_wal_replay_lsn() >= '{end}', false)") != "t":
            if limit.is_over():
                raise Inconclusive(f"{self.name} does not follow: {self._sandbox.log_tail(self.name)}")
            time.sleep(0.002)

    def promote(self) -> None:
        if self.session.value("SELECT pg_promote()") != "t":
            raise Inconclusive(f"{self.name} was not promoted: {self._sandbox.log_tail(self.name)}")

    def kill(self) -> None:
        """Kills it for good, with all its children: none has time to tell its client that the server shuts down."""
        self._session_end()
        report = Message()
        if not library().postgres_end(self.process.pid, ctypes.byref(report)):
            raise Inconclusive(f"{self.name} was not killed: {report.text.decode(errors='replace')}")
        self.process.wait()

    def register_children(self) -> None:
        """Registers its children with the reaper: a child that a fault has stopped does not notice the server's end."""
        self._sandbox.register(*self._children())

    def _children(self) -> list[int]:
        with contextlib.suppress(OSError):
            return [
                int(pid)
                for pid in Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
            ]
        return []

    def _session_end(self) -> None:
        if self._own_session:
            self._own_session.close()
        self._own_session = None

    def flush(self) -> None:
        """Ends all sessions but the driver's own, and with them what they hold, and empties all tables."""
        self.session.value(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        tables = "SELECT string_agg(quote_ident(tablename), ', ') FROM pg_tables WHERE schemaname = 'public'"
        if names := self.session.value(tables):
            self.session.rows(f"TRUNCATE {names}")

    def pids(self) -> list[int]:
        return [self.process.pid, *self._children()]

    def close(self) -> None:
        """Ends it at once, as a crash does, but with all its children and its shared memory."""
        self._session_end()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            for pid in self.pids():  # a fault may have stopped them
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
            self.process.wait_at_most(STOP_LIMIT_S)


def _make(path: Path, user: User | None, *, directory: bool) -> None:
    if directory:
        path.mkdir(mode=0o700)
    else:
        path.touch(mode=0o600)
    if user:
        os.chown(path, user.uid, user.gid)


def _place_in_memory(directory: Path) -> Path:
    """The place of a directory that is yet to be made: in memory if there is enough, for three hundred files on a disk
    would take longer than the rest of a trial. Makes the link to it first, by which the reaper finds it."""
    there = MEMORY / f"{directory.parent.name}-{directory.name}"
    with contextlib.suppress(OSError):
        free = os.statvfs(MEMORY)
        if free.f_bavail * free.f_frsize >= MEMORY_FREE_BYTES:
            directory.symlink_to(there)
            return there
    return directory


def server_command(directory: Path, sockets: Path, options: Mapping[str, str]) -> list[str]:
    """What starts a server on this data directory. `options`: its settings."""
    settings = {**options, "unix_socket_directories": sockets}
    words = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
    return [paths.postgres(), "-D", str(directory), *words]


@contextlib.contextmanager
def data_template(sandbox: Sandbox, user: User | None) -> Iterator[Path]:
    """The data directory to copy. Makes it, under a lock, if it is missing for this version."""
    places = paths.templates()
    template = places / f"postgres-{postgres_version()}-{TEMPLATE}-of-{user.uid if user else os.geteuid()}"
    with (places / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX if not template.exists() else fcntl.LOCK_SH)
        if not template.exists():
            made, beside = sandbox.directory / "initdb", template.with_suffix(".new")
            _initialize(made, user)
            shutil.rmtree(beside, ignore_errors=True)
            subprocess.run(["cp", "-a", str(made), str(beside)], check=True)
            shutil.rmtree(made)
            beside.rename(template)
        yield template


def _initialize(directory: Path, user: User | None) -> None:
    _make(directory, user, directory=True)
    spawn = [paths.program("spawn"), *([f"--user={user.uid}:{user.gid}"] if user else [])]
    single = [paths.postgres(), "--single", "-D", str(directory), DATABASE]
    for command, words in (([paths.postgres("initdb"), "-D", str(directory), *INITDB], ""), (single, SLIM)):
        done = subprocess.run([*spawn, *command], input=words, capture_output=True, text=True, cwd="/")
        if done.returncode != 0:
            raise Inconclusive(f"{command[0]} failed: {done.stderr.strip()[-200:]}")
    for path in (*directory.rglob("*_fsm"), *directory.rglob("*_vm")):
        path.unlink()  # free-space and visibility maps, which a server can do without: each trial would copy them
    for path in sorted((directory / "pg_wal").glob("0*"))[1:]:
        path.unlink()  # segments for later, behind the one with the last checkpoint: a third of what a trial would copy
