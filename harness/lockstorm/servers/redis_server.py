"""A real redis-server of a trial: on a private unix socket, by default without persistence, by a virtual or the real
clock."""

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lockstorm.base import paths
from lockstorm.base.errors import Inconclusive
from lockstorm.base.hang_limit import CONNECTION_LIMIT_S, START_LIMIT_S, HangLimit
from lockstorm.process.line_client import LineClient, Refusal
from lockstorm.process.process import Process, Sandbox, flag_words
from lockstorm.servers.redis_config import LEAST_REPLICAS, RedisSetting

if TYPE_CHECKING:
    import redis

START_NAP_S = 0.001
PROBE = "lockstorm:probe"
OWN_NAME = "lockstorm"  # the name of the driver's own connections in the server's list
OPTIONS: dict[str, object] = {
    "port": 0,
    "bind": "127.0.0.1",
    "save": "",
    "daemonize": "no",
    "unixsocketperm": 700,
    "jemalloc-bg-thread": "no",  # it would wait for a time that never comes, or is long past, and spin
    "enable-debug-command": "local",
}
NOT_ON_DISK: dict[str, object] = {"appendonly": "no"}
ON_DISK: dict[str, object] = {"aof-timestamp-enabled": "yes"}  # a crash cuts off the writes of the last seconds
# Synchronisation through a file: with a stream, the master often takes the replica for online only a second later. The
# file is removed afterwards, or a restarted server would find data. No timeout ends a link: clocks may stand still.
REPLICATION: dict[str, object] = {
    "repl-diskless-sync": "no",
    "rdb-del-sync-files": "yes",
    "repl-timeout": 1_000_000_000,
    "repl-ping-replica-period": 86_400,  # no traffic besides writes
}
CLUSTER: dict[str, object] = {
    "cluster-enabled": "yes",
    "cluster-node-timeout": 1000,
    "cluster-replica-validity-factor": 0,  # a replica that was cut off can be elected
    "cluster-require-full-coverage": "no",
    "cluster-allow-replica-migration": "no",
}


@dataclass(frozen=True)
class Network:
    """How the peers of a server (sentinels, replicas, nodes of its cluster) reach it."""

    cluster: bool
    announce: Callable[[str, int], int]  # name and port -> the port that peers use: a link's, if there is a proxy


class RedisServer:
    """Started by the constructor; `ready` waits until it answers. In a network it listens on a port at once."""

    clock_step_us = 1  # the resolution of time_us

    def __init__(
        self,
        sandbox: Sandbox,
        name: str,
        *,
        clock: Path | None,
        frozen: bool = True,
        options: tuple[str, ...] = (),
        network: Network | None = None,
        program: str | None = None,
        configured: tuple[RedisSetting, ...] | None = None,
    ) -> None:
        """`program`: what --server names; None: the usual redis-server. `configured`: a team's own settings, which
        those of the trial overrule; None: it writes nothing to disk."""
        self.name = name
        self.program = paths.redis_server(program)
        self.socket = sandbox.directory / f"{name}.sock"
        self.clock = clock  # a file (preload/clock_page.h); None: the machine's clock
        self.frozen = frozen and clock is not None  # the clock moves only when the trial moves it
        self.number = -1  # in the scheduler
        self.port = self.announced = self.announced_bus = 0
        self.probe = PROBE  # a key that no lock uses
        self.replicas: list[RedisServer] = []
        self.gone = False  # ended on purpose
        self._sandbox = sandbox
        self.directory = sandbox.directory / name
        self.directory.mkdir(mode=0o700)
        own = [] if configured is None else [str(self._write_settings(configured))]
        usual = OPTIONS | (NOT_ON_DISK if configured is None else ON_DISK) | REPLICATION
        places: dict[str, object] = {"unixsocket": self.socket, "dir": self.directory}
        self._command = [self.program, *own, *flag_words(usual | places), *options]
        self._network = network
        self._listening: list[str] = self._ports() if network else []
        self.process = self._start()
        self._client = LineClient(self.socket, ("CLIENT", "SETNAME", OWN_NAME))

    def _write_settings(self, settings: tuple[RedisSetting, ...]) -> Path:
        file = self.directory.with_suffix(".conf")
        file.write_text("".join(f"{each.line}\n" for each in settings))
        return file

    @cached_property
    def link(self) -> "redis.Redis":
        """A full Redis client, for what few trials need: it takes longer to load than a simple trial. It reconnects
        once after a lost connection."""
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        return redis.Redis(
            unix_socket_path=str(self.socket),
            socket_timeout=CONNECTION_LIMIT_S,
            driver_info=None,
            protocol=2,  # a server may lack HELLO
            client_name=OWN_NAME,
            retry=Retry(NoBackoff(), 1),
        )

    def _ask(self, *words: str) -> Any:
        """Sends one request; reconnects once after a lost connection."""
        try:
            return self._client.request(*words)
        except OSError:
            try:
                return self._client.request(*words)
            except OSError as error:
                raise Inconclusive(f"{self.name} does not answer: {error}") from None

    def _start(self) -> Process:
        command = self._command + self._listening
        if not self.clock:
            return self._sandbox.start(self.name, command)
        return self._sandbox.start_from_zygote(self.name, command, mapped_clock(self.clock))

    def _ports(self) -> list[str]:
        """Chooses its ports; returns them as options."""
        assert self._network
        self.port = self._sandbox.hold_port()
        self.announced = self._network.announce(self.name, self.port)
        options: dict[str, object] = {"port": self.port}
        if not self._network.cluster:
            return flag_words(options | {"replica-announce-port": self.announced, "replica-announce-ip": "127.0.0.1"})
        bus = self._sandbox.hold_port()
        self.announced_bus = self._network.announce(f"{self.name}-bus", bus)
        options |= {"cluster-port": bus, "cluster-announce-port": self.announced}
        options |= {"cluster-announce-bus-port": self.announced_bus, "cluster-announce-ip": "127.0.0.1"}
        return flag_words(options | CLUSTER)

    def restart(self) -> None:
        """Starts it again after its process has ended: at the same place, with the data there, if any."""
        self.process.wait()
        self.socket.unlink(missing_ok=True)
        self._client.close()
        self.link.connection_pool.disconnect()
        self.process = self._start()
        self.ready()
        if self.port:
            self.link.config_set("port", self.port)

    def ready(self) -> None:
        self._sandbox.await_start(
            "redis-server",
            self.name,
            self.process,
            lambda: self._client.request("PING"),
            (OSError, Refusal),
            nap_s=START_NAP_S,
            look_s=CONNECTION_LIMIT_S,
            reason=self._reason,
        )
        if not (self._network and self._network.cluster):  # `join` waits for the nodes of one
            check_no_cluster(self.name, self._client)
        if self.frozen:
            # Keys expire on access only: a background cycle would depend on the machine's speed.
            self._ask("DEBUG", "SET-ACTIVE-EXPIRE", "0")

    def _reason(self) -> str:
        """The last warning in the server's own log, without process number and date; else its last lines."""
        warnings = [
            line.partition(" # ")[2] for line in self._sandbox.log_tail(self.name, 20).split("; ") if " # " in line
        ]
        return warnings[-1] if warnings else self._sandbox.log_tail(self.name)

    def listen(self) -> None:
        """Also listens on a loopback port, which replicas need."""
        self.port = self.announced = self._sandbox.hold_port()
        self.link.config_set("port", self.port)

    def follow(self, master: "RedisServer", port: int | None = None) -> None:
        """Becomes a replica of the master, through a link's port if one is given; returns when it has acknowledged a
        write."""
        self.link.replicaof("NO", "ONE")  # or it would not reconnect at once to a master that it follows already
        self.link.replicaof("127.0.0.1", str(port or master.announced))
        self.await_link(master)

    def await_link(self, master: "RedisServer") -> None:
        """Returns when it follows the master and has acknowledged a write."""
        limit = HangLimit(START_LIMIT_S, CONNECTION_LIMIT_S)
        while self.link.info("replication").get("master_link_status") != "up":
            if limit.is_over():
                raise Inconclusive(f"{self.name} did not become a replica: {self._sandbox.log_tail(self.name)}")
            time.sleep(0.005)
        master.replicas.append(self)
        master.prove_replicas()

    def prove_replicas(self) -> None:
        """Writes, and counts the acknowledgements on the same connection: WAIT is about the connection's own writes. A
        master that takes no writes yet, by its configuration, has to get more replicas first."""
        if len(self.replicas) < int(self.link.config_get(LEAST_REPLICAS[0])[LEAST_REPLICAS[0]] or 0):
            return
        with contextlib.closing(self.link.client()) as link:  # type: ignore[no-untyped-call]
            link.set(self.probe, "")
            acknowledged = link.wait(len(self.replicas), 0)
            link.delete(self.probe)
        if acknowledged < len(self.replicas):  # more is no error: sentinels may have added replicas
            raise Inconclusive(f"{acknowledged} of {len(self.replicas)} replicas of {self.name} acknowledge its writes")

    def time_us(self) -> int:
        seconds, micros = self._ask("TIME")
        return int(seconds) * 1_000_000 + int(micros)

    def calls(self, *, succeeded: bool = False) -> dict[str, int]:
        """How often each command was run since the server started; calls in a script count as well. `succeeded`:
        without those that ended with an error (servers before Redis 6.2 do not tell)."""
        counted = self.link.info("commandstats")
        return {
            key.removeprefix("cmdstat_"): value["calls"] - (value.get("failed_calls", 0) if succeeded else 0)
            for key, value in counted.items()
        }

    def version(self) -> str:
        told = dict(line.split(":", 1) for line in self._ask("INFO", "server").decode().splitlines() if ":" in line)
        if told.get("server_name") == "valkey":  # which tells as redis_version what it is compatible with
            return f"valkey {told['valkey_version']}"
        return str(told["redis_version"])

    def flush(self) -> None:
        self.link.flushall()

    def close(self) -> None:
        self._client.close()
        if "link" in self.__dict__:
            self.link.close()


def check_no_cluster(name: str, client: LineClient) -> None:
    """Raises Inconclusive if what --server or --config starts is a cluster that refuses every command, as a node does
    until 2 s of its clock after it has its slots: the lock would be judged by that (issue #55)."""
    try:
        down = b"cluster_state:fail" in client.request("CLUSTER", "INFO")
    except Refusal:
        return  # it is no cluster, or lacks the command
    if down:
        raise Inconclusive(
            f"{name} is a cluster that refuses every command (CLUSTERDOWN), for it has no slots, or has them since a "
            "moment: `lockstorm explore --one-node-cluster` plays a cluster of one node"
        )


def mapped_clock(clock: Path) -> list[str]:
    """The environment of a server that reads its time from this file (preload/clock_page.h)."""
    return [f"LD_PRELOAD={paths.own_library('preload')}", f"LOCKSTORM_CLOCK_PAGE={clock}", "TZ=UTC"]
