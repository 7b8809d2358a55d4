"""A real ZooKeeper server of a trial: in its private directory, on a port of its own, by a virtual or the real clock.

Its Java machine starts from an archive of loaded classes that was made once. Under a frozen clock everything that it
does by itself waits for that clock, and one thread looks at it again and again: SessionTracker, once a tick.
"""

import contextlib
import fcntl
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from lockstorm.base import paths
from lockstorm.base.errors import Inconclusive
from lockstorm.base.hang_limit import CONNECTION_LIMIT_S, START_LIMIT_S, HangLimit
from lockstorm.process.process import Process, Sandbox
from lockstorm.servers.redis_server import mapped_clock
from lockstorm.servers.zookeeper_wire import ZooKeeperConnection, ask_word, version_in

ASK_LIMIT_S = CONNECTION_LIMIT_S
# A request that comes too early may never be answered; the next one gets twice the time.
START_ASK_LIMIT_S, START_ASK_MOST_S = 0.1, 5.0
LEADER_ASK_LIMIT_S = 1.0  # one that is stopped does not answer; the others are asked meanwhile, and it again
ENSEMBLE_TICK_MS = 50
ENSEMBLE_PATIENCE_TICKS = 20  # silence after which a leader or follower is given up
TICK_MS = 4  # how often the server ends expired sessions: the accuracy of their end
LONGEST_SESSION_MS = 24 * 24 * 3600 * 1000
TIMER_THREAD = "SessionTracker"
FLUSH_SESSION_MS = 60_000

JAVA_OPTIONS = (
    "-Xmx64m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:CICompilerCount=1",
    "-XX:CompileThresholdScaling=5",  # a trial is too short for compiled code to pay
    *("-XX:+UnlockDiagnosticVMOptions", "-XX:GuaranteedSafepointInterval=0"),  # it stops only to collect garbage
    "-XX:-UsePerfData",  # or it leaves a file in /tmp
    "-Dzookeeper.jmx.log4j.disable=true",
    "-Dzookeeper.forceSync=no",  # a write is in the kernel before its answer; a killed process does not lose it
    "-Dzookeeper.preAllocSize=64",
    "-Dzookeeper.nio.numSelectorThreads=1",
    "-Dzookeeper.nio.numWorkerThreads=2",
    "-Dzookeeper.nio.sessionlessCnxnTimeout=3600000",  # connections without a session: the trial's own requests
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
)
MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"


@cache
def java_version() -> str:
    output = subprocess.run([paths.java(), "-version"], capture_output=True, text=True, check=True).stderr
    found = re.search(r'"([^"]+)"', output)
    return found[1] if found else "?"


class ZooKeeperServer:
    """Started by the constructor; `ready` waits until it answers."""

    clock_step_us = 1000  # its uptime is in milliseconds

    def __init__(
        self,
        sandbox: Sandbox,
        name: str,
        *,
        clock: Path | None,
        peers: Mapping[str, str],
        configured: Mapping[str, str] | None = None,
    ) -> None:
        """`peers`: server -> the address at which this one reaches it, for all servers of the ensemble, and for itself
        where it listens; empty: it is alone. `configured`: a team's own settings."""
        self.name = name
        self.number = -1  # in the scheduler
        self.clock = clock  # a file (preload/clock_page.h); None: the machine's clock
        self.port = sandbox.hold_port()
        self.directory = sandbox.directory / name
        self._sandbox = sandbox
        self._began_us = 0
        self._write_configuration(peers, configured or {})
        self.process = self._start()

    def _write_configuration(self, peers: Mapping[str, str], configured: Mapping[str, str]) -> None:
        data = self.directory / "data"
        data.mkdir(mode=0o700, parents=True)
        (data / "myid").write_text(f"{number_of(self.name)}\n")
        lines = zookeeper_settings(data, self.port, ENSEMBLE_TICK_MS if peers else TICK_MS)
        if peers:
            lines |= {"initLimit": ENSEMBLE_PATIENCE_TICKS, "syncLimit": ENSEMBLE_PATIENCE_TICKS}
            lines |= {f"server.{number_of(peer)}": address for peer, address in peers.items()}
        if "tickTime" in configured:
            del lines["maxSessionTimeout"]  # 20 ticks, unless the team says otherwise
        lines |= configured
        self.configuration = self.directory / "zoo.cfg"
        write_settings(self.configuration, lines)

    def _start(self) -> Process:
        if self.clock:  # every clock: sessions go by the monotonic one
            environment = [*mapped_clock(self.clock), "LOCKSTORM_CLOCK_ALL=1"]
        else:
            environment = [f"LD_PRELOAD={paths.own_library('loopback')}"]
        with class_archive(self._sandbox) as classes:
            command = java_command(self.configuration, f"-XX:SharedArchiveFile={classes}")
            return self._sandbox.start(self.name, command, environment=environment)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def peer_links(self) -> str:
        """A pattern of the links between it and the others of its ensemble, in both directions."""
        return f"peer-*{self.name}*"

    def ready(self) -> None:
        limit, ask_s = HangLimit(START_LIMIT_S, START_ASK_MOST_S), START_ASK_LIMIT_S
        while True:
            try:
                if "Mode: " in self.ask("srvr", ask_s):
                    return
            except TimeoutError:
                ask_s = min(2 * ask_s, START_ASK_MOST_S)
            except OSError:
                pass  # it does not listen yet
            if self.process.poll() is not None or limit.is_over():
                raise Inconclusive(f"ZooKeeper did not start: {self._sandbox.log_tail(self.name)}")
            time.sleep(0.01)

    def ask(self, word: str, limit_s: float = ASK_LIMIT_S) -> str:
        """The server's answer to a four-letter word."""
        with socket.create_connection(("127.0.0.1", self.port), limit_s) as connection:
            return ask_word(connection, word)

    def value(self, name: str) -> str:
        for line in self.ask("mntr").splitlines():
            key, _, value = line.partition("\t")
            if key == name:
                return value
        raise Inconclusive(f"{self.name} reports no {name}")

    def flush(self) -> None:
        """Deletes every node but the server's own."""
        with socket.create_connection(("127.0.0.1", self.port), ASK_LIMIT_S) as connected:
            connection = ZooKeeperConnection(connected, FLUSH_SESSION_MS)
            for path in connection.below(""):
                if path.split("/")[1] != "zookeeper":
                    connection.delete(path)
            connection.close()

    def timer(self) -> int:
        """The thread that ends sessions. It may get its name only after another thread has answered `ready`."""
        limit = HangLimit(START_LIMIT_S)
        while not limit.is_over():
            for task in Path(f"/proc/{self.process.pid}/task").iterdir():
                with contextlib.suppress(OSError):  # it has just ended
                    if (task / "comm").read_text().strip() == TIMER_THREAD:
                        return int(task.name)
            time.sleep(0.005)
        raise Inconclusive(f"{self.name} has no thread called {TIMER_THREAD}")

    def calibrate(self, now_us: int) -> None:
        """The server tells its uptime and not its time. `now_us`: its clock now."""
        self._began_us = now_us - now_us % self.clock_step_us - int(self.value("zk_uptime")) * 1000

    def time_us(self) -> int:
        """The server's clock in us since 1970, to the millisecond."""
        return self._began_us + int(self.value("zk_uptime")) * 1000

    def is_leader(self) -> bool:
        """Whether it reports itself as the leader; outside a majority, or while it is stopped, it does not."""
        with contextlib.suppress(OSError):
            return "Mode: leader" in self.ask("srvr", LEADER_ASK_LIMIT_S)
        return False

    def version(self) -> str:
        return version_in(self.ask("srvr"), "?")

    def restart(self) -> None:
        """Starts it again after its process has ended, with its data: sessions continue."""
        self.process.wait()
        self.process = self._start()
        self.ready()

    def close(self) -> None:
        """Kills it: connections end, sessions do not; the next process continues them."""
        self.process.end()


def number_of(name: str) -> int:
    return int(name.rpartition("-")[2])


def zookeeper_settings(data: Path, port: int, tick_ms: int) -> dict[str, object]:
    return {
        "tickTime": tick_ms,
        "dataDir": data,
        "clientPort": port,
        "clientPortAddress": "127.0.0.1",
        "maxSessionTimeout": LONGEST_SESSION_MS,
        "maxClientCnxns": 0,
        "admin.enableServer": "false",
        "4lw.commands.whitelist": "srvr,mntr",
    }


def write_settings(file: Path, settings: Mapping[str, object]) -> None:
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))


def java_command(configuration: Path, *options: str) -> list[str]:
    return [paths.java(), *JAVA_OPTIONS, *options, "-cp", paths.zookeeper_classes(), MAIN, str(configuration)]


@contextlib.contextmanager
def class_archive(sandbox: Sandbox) -> Iterator[Path]:
    """The archive of the classes that a server loads. Makes it, under a lock, if it is missing for this Java.
    Without the archive a server takes twice as long to start."""
    places = paths.templates()
    archive = places / f"zookeeper-{paths.zookeeper_version()}-java-{java_version()}.jsa"
    with (places / "zookeeper-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX if not archive.exists() else fcntl.LOCK_SH)
        if not archive.exists():
            _record(sandbox, archive)
        yield archive


def _record(sandbox: Sandbox, archive: Path) -> None:
    """Starts a server and shuts it down in order: then it writes the archive."""
    beside, directory = archive.with_suffix(".new"), sandbox.directory / "zookeeper-archive"
    directory.mkdir(mode=0o700)
    port, configuration = sandbox.hold_port(), directory / "zoo.cfg"
    write_settings(configuration, zookeeper_settings(directory / "data", port, TICK_MS))
    command = java_command(configuration, f"-XX:ArchiveClassesAtExit={beside}")
    process = sandbox.start("zookeeper-archive", command)
    limit = HangLimit(START_LIMIT_S)
    while not limit.is_over() and process.poll() is None:
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", port), START_ASK_LIMIT_S) as connection,
        ):
            if "zk_server_state" in ask_word(connection, "mntr"):
                break
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    process.wait_at_most(START_LIMIT_S)
    if not beside.exists():
        raise Inconclusive(f"ZooKeeper did not start: {sandbox.log_tail('zookeeper-archive')}")
    beside.rename(archive)


def leading_server(servers: Sequence[ZooKeeperServer], within_s: float = START_LIMIT_S) -> ZooKeeperServer:
    """The server that reports itself as the leader; waits until there is one."""
    limit = HangLimit(within_s, len(servers) * LEADER_ASK_LIMIT_S)
    while not limit.is_over():
        for server in servers:
            if server.is_leader():
                return server
        time.sleep(0.01)
    raise Inconclusive(f"ZooKeeper has no leader within {within_s:g} s")
