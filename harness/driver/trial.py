"""A trial: one lock, one scenario, one history.

with Trial(TrialSettings("set-nx-px", seed=7)) as trial:
    a, b = trial.clients(2)
    a.start_increment()
    with trial.pause(a, at="before-write"):
        b.increment()
    a.finish()
    print(trial.judge()["sentence"])
"""

import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import threading
import time as real_time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self, TypeVar, get_args

from harness.driver import paths
from harness.driver.client import Client
from harness.driver.errors import Inconclusive, LockstormError, Unanswered, UsageError
from harness.driver.etcd_nodes import EtcdNodes
from harness.driver.fault import Fault, Target, means_of
from harness.driver.library import (
    FLAG_TEXT,
    FOREVER,
    FULL,
    Kind,
    Message,
    Outcome,
    Record,
    RunResult,
    Settings,
    StrandState,
    library,
)
from harness.driver.links import DirectLinks
from harness.driver.lock_names import entry_of
from harness.driver.nodes import Nodes
from harness.driver.plugin import how_ended
from harness.driver.postgres_nodes import PostgresNodes
from harness.driver.postgres_server import PostgresServer, conninfo
from harness.driver.process import Nursery, Process, inheritable, on_core, own_core
from harness.driver.proxy import Proxy
from harness.driver.redis_nodes import RedisNodes
from harness.driver.redis_server import RedisServer
from harness.driver.services import TABLE, check_installed, is_table, lease_late_ms
from harness.driver.topology import Topology, tagged
from harness.driver.zookeeper_nodes import ZooKeeperNodes

Time = Literal["virtual", "real"]
Store = Literal[
    "open",
    "fence-writes",
    "fence-reads-and-writes",
    "compare-owner",
    "compare-and-set",
    "table-open",
    "table-fence-writes",
    "table-fence-reads-and-writes",
    "table-compare-owner",
    "table-compare-and-set",
]
Persistence = Literal["none", "aof"]
TIMES: tuple[Time, ...] = ("virtual", "real")
STORES: tuple[Store, ...] = get_args(Store)
TOKEN_STORES: tuple[Store, ...] = (  # let nobody else in
    "fence-writes",
    "fence-reads-and-writes",
    "table-fence-writes",
    "table-fence-reads-and-writes",
)

RESOURCE = b"account"  # the name of what the lock protects
VIRTUAL_LEASE_MS = 30_000
PATIENCE_LEASES, PATIENCE_MS = 100, 3_600_000  # virtual time: how long anybody is waited for
TURN_LIMIT_MS = 30_000  # virtual time: how long one strand may keep the turn before the trial is given up
RUN_LIMIT_MS = 180_000  # real time: how long a run may last, beyond a workload's own duration; 100 polls take 150 s
REPLY_LIMIT_MS = 1000  # how long a client waits for an ordinary answer (client.c)
REAL_CONTROL_MS = 100  # a fault inside a lease of 10 s: not even a busy machine turns it into one past it
REAL_BEYOND_MS = 3_000  # past the lease: a poller may have just begun its longest sleep
REAL_BEYOND_NOTHING_MS = 300  # of a lock without one: nobody gets in anyhow
BOUND_LEASES, BOUND_NAP_MS = 2, 2_000  # a lease that runs out, one more of a wait that had just begun, a poller's sleep
QUIET_BEYOND_MS = 100
NOT_RESP = ("-bus", "-quorum", "-election")  # what such links carry
GAVE_UP = 4  # the exit status of a client whose adapter, or plug-in, is none (ENV_LIVE_GAVE_UP)
SAYS = "client: "  # what its own sentences begin with
CLOCK_STANDS = 1  # `extra` of a validity that no lock has told: its host is, or was, suspended


@dataclass(frozen=True)
class TrialSettings:
    """What makes two trials the same trial."""

    lock: str
    scenario: str = "by-hand"
    store: Store = "open"
    time: Time = "virtual"
    seed: int = 1
    control: bool = False
    lease_ms: int = VIRTUAL_LEASE_MS
    counter: int = 0
    nodes: int = 1
    replicas: int = 0  # of each node
    topology: Topology = "single"  # or a master under three sentinels, or a cluster of three masters: in real time
    permits: int = 1
    fixed_lease: bool = False  # no watchdog renews it
    direct: bool = False  # links lead straight to the servers: nothing can be done to what passes
    settable_clocks: bool = False  # in real time: servers run under libfaketime, or clock faults cannot bite
    persistence: Persistence = "none"  # of every redis-server
    server_options: tuple[str, ...] = ()  # of every redis-server: ("--maxmemory", "100mb")
    pooled: bool = False  # clients reach PostgreSQL through PgBouncer, in transaction mode; in a control, session mode
    resource: bytes = RESOURCE
    clients: int | None = None
    duration_ms: int | None = None
    history_records: int = 1 << 18
    parameters: dict[str, int] = field(default_factory=dict)


NODES: dict[str, type[Nodes[Any]]] = {
    "redis": RedisNodes,
    "postgres": PostgresNodes,
    "etcd": EtcdNodes,
    "zookeeper": ZooKeeperNodes,
}
OneKind = TypeVar("OneKind", bound=Nodes[Any])


class Trial:
    """Servers, clients, clock and history of one trial, in a private directory that goes when the trial closes.

    In virtual time all of it stays on the core where it was opened. One process works at a time, so nothing is lost;
    and a packet that one core has taken from its queue and not yet delivered, another core sees nowhere: a server that
    is about to hear of something would look as if it were at rest (harness/rest.h).
    """

    def __init__(self, settings: TrialSettings) -> None:
        self.settings = settings
        self.lease_ms = settings.lease_ms
        self.reply_limit_ms = REPLY_LIMIT_MS
        self.control = settings.control
        usual_ms = BOUND_LEASES * settings.lease_ms + BOUND_NAP_MS + lease_late_ms(self.lock)
        self.bound_ms = settings.parameters.get("bound_ms", usual_ms)  # how long a free lock may go unnoticed
        self.verdict: dict[str, Any] | None = None
        self.elapsed_ms: dict[str, float] = {}
        self.resource = tagged(settings.resource) if settings.topology == "cluster" else settings.resource
        self.table: PostgresServer | None = None  # where the resource is, if it is a table
        self.proxy: Proxy | None = None
        self.fault_reason = ""  # why the driver could not do what a fault asked of it
        self._peer_links: dict[str, int] = {}  # name -> port on which the proxy listens for it
        self.every_client: list[Client] = []  # the dead too
        self._faults: list[Fault] = []
        self._texts: dict[str, int] = {}
        self._suspended: set[int] = set()  # workers whose hosts are
        self._addresses: dict[str, str] = {}  # link -> where clients connect
        self._exit = contextlib.ExitStack()
        self._mark = real_time.perf_counter()
        run_limit_ms = RUN_LIMIT_MS + (settings.duration_ms or 0)
        self._limit_ms = TURN_LIMIT_MS if settings.time == "virtual" else run_limit_ms

    # --- life ---

    def __enter__(self) -> Self:
        check_installed(self.lock, self.settings.store, pooled=self.settings.pooled)
        try:
            self._open()
        except BaseException:
            self._exit.close()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self._exit.close()

    def _open(self) -> None:
        lib, message = library(), Message()
        if self.settings.time == "virtual":
            self._exit.enter_context(on_core(own_core()))
        self.nursery = Nursery()
        self._exit.callback(self.nursery.close)
        self.history_path = self.nursery.directory / "history"
        stage = self.nursery.directory / "stage"
        time = 1 if self.settings.time == "virtual" else 2
        settings = Settings(time=time, seed=self.settings.seed, capacity=self.settings.history_records)
        self._must(lib.history_create(bytes(self.history_path), settings, message), message)
        self._history = self._must(lib.history_open(bytes(self.history_path), message), message)
        self._exit.callback(lib.history_close, self._history)
        self._must(lib.stage_create(bytes(stage), time, self.settings.seed, message), message)
        self.conductor = self._must(lib.conductor_open(bytes(stage), message), message)
        self._exit.callback(lib.conductor_close, self.conductor)
        self._stage = stage
        self._patience_ms = PATIENCE_MS + PATIENCE_LEASES * self.lease_ms + (self.settings.duration_ms or 0)
        library().conductor_set_patience(self.conductor, self._patience_ms * 1_000_000)
        self._watch_signals()
        self._begin_history()
        self.nodes: Nodes[Any] = NODES[self.lock["service"]](self)
        self.means = means_of(self)
        self._start_proxy()
        self._start_servers()
        self._lap("start")

    def _watch_signals(self) -> None:
        """Python notes a signal and goes on in C; through this pipe the conductor hears of it and comes back."""
        if threading.current_thread() is not threading.main_thread():
            return  # signals are the main thread's, and Ctrl-C ends it
        reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        for end in (reading, writing):
            self._exit.callback(os.close, end)
        self._exit.callback(signal.set_wakeup_fd, before)
        library().conductor_set_signal_fd(self.conductor, reading)

    def _begin_history(self) -> None:
        self.record(Kind.CLOCK, outcome=Outcome.OK, value=self.mono_ns)
        self._driver = self.text("driver")
        said = self.settings
        words = {"scenario": said.scenario, "lock": said.lock, "store": said.store, "time": said.time}
        if said.topology != "single":
            words["topology"] = said.topology
        for key, word in words.items():
            self.record(Kind.PARAMETER, name=self.text(key), value=self.text(word), flags=FLAG_TEXT)
        numbers = {"seed": said.seed, "control": int(said.control), "lease_ms": said.lease_ms, "counter": said.counter}
        numbers["bound_ms"] = self.bound_ms
        for key, number in {**numbers, **said.parameters}.items():
            self.record(Kind.PARAMETER, name=self.text(key), value=number)

    @property
    def pids(self) -> set[int]:
        """All processes of this trial, those that have ended too."""
        return {process.pid for process in self.nursery.processes}

    @property
    def lock(self) -> dict[str, Any]:
        """The entry of this trial's lock in the table of locks, or what its adapter or its plug-in says."""
        return entry_of(self.settings.lock)

    @property
    def redis(self) -> RedisNodes:
        return self._nodes_of(RedisNodes)

    @property
    def postgres(self) -> PostgresNodes:
        return self._nodes_of(PostgresNodes)

    @property
    def etcd(self) -> EtcdNodes:
        return self._nodes_of(EtcdNodes)

    @property
    def zookeeper(self) -> ZooKeeperNodes:
        return self._nodes_of(ZooKeeperNodes)

    def _nodes_of(self, kind: type[OneKind]) -> OneKind:
        if not isinstance(self.nodes, kind):
            raise UsageError(f"{self.settings.lock} lives on {self.nodes.title}, not on {kind.title}")
        return self.nodes

    @property
    def servers(self) -> list[RedisServer]:
        """The nodes, if they are redis-servers."""
        return self.nodes.masters if isinstance(self.nodes, RedisNodes) else []

    @property
    def server(self) -> RedisServer:
        """The only one of them, or the first."""
        return self.redis.masters[0]

    @property
    def replicas(self) -> list[RedisServer]:
        """Of these nodes."""
        return self.redis.replicas

    @property
    def database(self) -> PostgresServer:
        """The only node of a lock on PostgreSQL."""
        return self.postgres.databases[0]

    def versions(self) -> dict[str, str]:
        """Which servers the lock and the resource lived on."""
        table = {"postgres": self.table.version()} if self.table else {}
        hosted = self.lock.get("adapter") or self.lock.get("plugin")
        library = {hosted["name"]: hosted["version"]} if hosted else {}
        return {**self.nodes.versions(), **table, **library}

    def at_exit(self, action: Callable[[], object]) -> None:
        """Done when the trial closes, the last first."""
        self._exit.callback(action)

    def _start_proxy(self) -> None:
        self._links: Proxy | DirectLinks
        if self.settings.direct:
            self._links = DirectLinks(self.nursery)
            return
        message, actor = Message(), self.text("proxy")
        self.proxy = Proxy(self.nursery, self.history_path, self._stage, actor, self.settings.seed)
        self._links = self.proxy
        self._exit.callback(self.proxy.close)
        self._must(library().conductor_set_proxy(self.conductor, bytes(self.proxy.control), message), message)

    def link(
        self, name: str, target: Path | str, *, option: str = "STEPPED", listen: str | None = None, file: str = ""
    ) -> str:
        """Where somebody has to connect to reach the target: a link of the proxy, if there is one."""
        if name not in self._addresses:
            self._addresses[name] = self._links.link(name, target, listen=listen, option=option, file=file)
        return self._addresses[name]

    def lead(self, pattern: str, target: Path) -> None:
        """Links that match lead to another target from now on."""
        self._links.lead(pattern, target)

    def peer_port(self, name: str, port: int, client: str = "peers") -> int:
        """The port on which others than clients reach the port of a server: a link's, if there is a proxy."""
        if not self.proxy:
            return port
        link, target = f"{client}>{name}", f"127.0.0.1:{port}"
        if link in self._peer_links:
            self.proxy.lead(link, target)
        else:
            option = "PLAIN" if name.endswith(NOT_RESP) else ""
            address = self.proxy.link(link, target, listen="127.0.0.1:0", option=option)
            self._peer_links[link] = int(address.rpartition(":")[2])
        return self._peer_links[link]

    def _start_servers(self) -> None:
        """The nodes, their replicas and the store, side by side."""
        if is_table(self.settings.store):
            # By the machine's clock: it looks at none. And beside a lock's own server: what happens to that is no
            # matter of the resource.
            self.table = PostgresServer(self.nursery, "postgres-store", clock=None)
            self._exit.callback(self.table.close)
        self.nodes.start()
        store = self._start_store()
        self.nodes.ready()
        self._await_store(store)
        if self.settings.time == "virtual":
            self.prove_clock()

    def _start_store(self) -> Process:
        self.store_socket = self.nursery.directory / "store.sock"
        command = [paths.program("store"), "--history", str(self.history_path), "--stage", str(self._stage)]
        command += ["--socket", str(self.store_socket), "--mode", self.settings.store.removeprefix(TABLE)]
        command += ["--actor", str(self.text("store")), "--stranger", str(self.text("stranger"))]
        command += ["--counter", str(self.settings.counter)]
        if self.table:
            self.table.ready()
            command += ["--table", conninfo(self.table.sockets)]
        store = self.nursery.start("store", command)
        message = Message()
        number = library().conductor_add_server(self.conductor, None, bytes(self.store_socket), message)
        self._must(number >= 0, message)
        return store

    def _await_store(self, store: Process) -> None:
        deadline = real_time.monotonic() + 10
        while not self.store_socket.exists():
            if store.poll() is not None or real_time.monotonic() > deadline:
                raise Inconclusive(f"the store did not start: {self.nursery.log_tail('store')}")
            real_time.sleep(0.001)

    def clients(self, count: int, resource: bytes | None = None) -> list[Client]:
        """Starts client-1 .. client-N, side by side; returns when each has opened its lock and waits for a step."""
        hosts = len({client.host for client in self.every_client})
        names = [f"client-{hosts + 1 + each}" for each in range(count)]
        new = [self._client_place(name, resource or self.resource) for name in names]
        self._clients_start(new)
        self._lap("clients")
        return new

    def _clients_start(self, new: list[Client]) -> None:
        for client in new:
            library().conductor_expect(self.conductor, client.strand)
        for client in new:
            self._client_start(client)
        self.every_client += new
        self.run(new)

    def client_on(self, strand: int) -> Client:
        """The latest who lives, or lived, in this place."""
        return next(client for client in reversed(self.every_client) if client.strand == strand)

    def kill(self, client: Client, at: str | None = None) -> None:
        """Ends a client's process, at a checkpoint or now."""
        if at:
            client.run_to(at)
        self.inject("kill-client", client)

    def restart(self, client: Client) -> Client:
        """The next life of a client that was killed: the same host, clocks and links, another name, nothing known."""
        if not client.ended or client.next_life or not client.process:
            raise UsageError(f"{client.name} was not killed, or lives again already")
        if client.strand in self._suspended:
            raise UsageError(f"the host of {client.name} is suspended: nothing starts there")
        client.process.wait()
        for strand in (client.strand, client.strand + 1):
            library().conductor_reuse_strand(self.conductor, strand)
        new = Client(self, client.host, client.resource, client.strand, client.life + 1)
        client.next_life = new
        self._clients_start([new])
        return new

    def process_ended(self, pid: int) -> None:
        """For a fault: a process has ended on purpose. What its end makes others do is done when this returns."""
        library().conductor_forget(self.conductor, pid)
        for client in self.every_client:
            if client.process and not client.ended and client.pid == pid:
                client.ended = True
                status = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
                self.record(Kind.ACTOR_EXIT, name=client.identity, value=status.si_status if status else 0)
        if self.settings.time == "virtual":
            library().conductor_settle(self.conductor)

    def suspend(self, strand: int, suspended: bool) -> int:
        """For a fault: the monotonic clock of a client's host stands, or goes on. Whoever keeps to a validity does so
        by that clock, goes on believing, and cannot say so itself."""
        lib, client = library(), self.client_on(strand)
        left = int(lib.conductor_set_suspended(self.conductor, strand, suspended))
        (self._suspended.add if left > 0 else self._suspended.discard)(strand)
        host_ns = lib.conductor_host_mono_ns(self.conductor, strand)
        valid_until_ns = lib.conductor_host_validity_ns(self.conductor, strand)
        if valid_until_ns > host_ns and not client.ended:
            until_ns = FOREVER if left > 0 else self.mono_ns + valid_until_ns - host_ns
            fields = {"name": self.text(os.fsdecode(client.resource)), "value": until_ns, "extra": CLOCK_STANDS}
            self.record(Kind.VALIDITY, actor=client.identity, outcome=Outcome.OK, **fields)
        return left

    def _client_place(self, name: str, resource: bytes) -> Client:
        """Two places on the stage, side by side: worker and watchdog."""
        worker = library().conductor_add_strand(self.conductor)
        watchdog = library().conductor_add_strand(self.conductor)
        if watchdog < 0:
            raise UsageError("more than 96 clients in one trial")
        return Client(self, name, resource, worker)

    def _client_start(self, client: Client) -> None:
        lib = library()
        turn, watchdog, yields = (
            inheritable(fd)
            for fd in (
                lib.conductor_turn_fd(self.conductor, client.strand),
                lib.conductor_turn_fd(self.conductor, client.strand + 1),
                lib.conductor_yield_fd(self.conductor),
            )
        )
        options = {
            "history": self.history_path,
            "stage": self._stage,
            "resource-hex": client.resource.hex(),
            "resource-id": self.text(os.fsdecode(client.resource)),
            "lease-ms": self.lease_ms,
            "reply-limit-ms": self.reply_limit_ms,
            "permits": self.settings.permits,
            "store": self.link(f"{client.host}>store", self.store_socket),
            "actor": client.identity,
            "strand": client.strand,
            "life": client.life - 1,
            "turn-fd": turn,
            "watchdog-fd": watchdog,
            "yield-fd": yields,
        }
        program = "client" if self.lock["service"] == "redis" else "client-services"
        if self.lock.get("adapter"):
            self.nursery.hunt()
        options |= self._hosted_words()
        command = [paths.program(program), *(f"--{key}={value}" for key, value in options.items())]
        command += [f"--node={address}" for address in self.nodes.addresses(client)]
        command += ["--fixed-lease"] if self.settings.fixed_lease else []
        client.process = self.nursery.start(client.name, command, inherit=(turn, watchdog, yields))
        for strand in (client.strand, client.strand + 1):
            if not lib.conductor_watch(self.conductor, strand, client.pid):
                raise Inconclusive(f"{client.name} did not start: {self.nursery.log_tail(client.name)}")

    def _hosted_words(self) -> dict[str, str]:
        """How a client is told which lock it hosts."""
        for kind in ("adapter", "plugin"):
            if hosted := self.lock.get(kind):
                return {kind: hosted["path"]}
        return {"lock": self.settings.lock}

    # --- time ---

    @property
    def mono_ns(self) -> int:
        """The trial's monotonic clock."""
        return int(library().conductor_mono_ns(self.conductor))

    def wall_ms(self, client: Client) -> int:
        """What the wall clock of a client's host shows."""
        return int(library().conductor_host_wall_ns(self.conductor, client.strand)) // 1_000_000

    def advance(self, duration_ms: float) -> None:
        """Lets that much of the trial's time pass; whoever has something to do then does it."""
        self.run([], until_ns=self.mono_ns + int(duration_ms * 1_000_000))
        self.note_clock()

    def note_clock(self) -> None:
        """Says in the history what time it is, and reads it back from every server."""
        proved = self.settings.time == "real" or self.prove_clock()
        self.record(Kind.CLOCK, outcome=Outcome.OK if proved else Outcome.UNKNOWN, value=self.mono_ns)

    def approach_lease_end(self) -> None:
        """Lets nearly a lease pass, before anybody asks for the lock who would otherwise ask all the time. In a
        control, and in real time, where the rest might be too short for a busy machine: nothing."""
        if not self.control and self.settings.time == "virtual":
            self.advance(self.lease_ms * 0.9)

    def outlast_lease(self, other: Client, checkpoint: str | None = None) -> None:
        """Lets time pass until the other client has done its step, or stands at a checkpoint; at most two leases (in
        real time one and some seconds), for a lock that never expires lets nobody in. In a control: time that is safely
        within the lease."""
        if self.control:
            self.advance(self.lease_ms / 10 if self.settings.time == "virtual" else REAL_CONTROL_MS)
            return
        beyond_ms = self.lease_ms if self.settings.time == "virtual" else self._real_beyond_ms()
        lib, until_ns = library(), self.mono_ns + (self.lease_ms + beyond_ms) * 1_000_000
        if checkpoint:
            lib.conductor_arm(self.conductor, other.strand, checkpoint.encode(), 1)
        self.run([other], until_ns)
        lib.conductor_arm(self.conductor, other.strand, b"", 0)
        if lib.conductor_state(self.conductor, other.strand) == StrandState.HELD:
            self.record(Kind.CHECKPOINT, name=self.text(checkpoint or ""), value=other.identity)

    def touch_links(self, client: Client) -> None:
        """Sends something small along each of a client's links to its nodes, on a connection of its own, as a pool of
        connections does: what a cut swallows even if the client has nothing to say. No answer is waited for."""
        for node in self.nodes.known:
            with contextlib.closing(connect(self._addresses[f"{client.host}>{node.name}"])) as connection:
                connection.sendall(self.nodes.touch)
                self.settle()

    @property
    def nodes_pattern(self) -> str:
        """Which servers are nodes of the lock, and not the resource."""
        return f"{self.lock['service']}-*"

    def _real_beyond_ms(self) -> int:
        return REAL_BEYOND_MS + lease_late_ms(self.lock) if self.lock["lease"] else REAL_BEYOND_NOTHING_MS

    def prove_clock(self) -> bool:
        """Reads TIME back from every node; a clock that is not where the trial has it ends the trial."""
        for server in self.nodes.clocked:
            if not library().conductor_server_works(self.conductor, server.number):
                continue
            shown, meant = server.time_us(), library().conductor_server_wall_us(self.conductor, server.number)
            if shown != meant - meant % server.clock_step_us:
                raise Inconclusive(f"the clock of {server.name} stands at {shown} us instead of {meant} us")
        return True

    def run(self, awaited: list[Client], until_ns: int = FOREVER, *, first: bool = False) -> None:
        """Runs the trial until all of these clients are parked (`first`: one of them) or the clock reaches until_ns."""
        run_to = library().conductor_run_to_first if first else library().conductor_run
        strands = (ctypes.c_int * max(1, len(awaited)))(*(client.strand for client in awaited))
        while True:
            outcome = RunResult(run_to(self.conductor, strands, len(awaited), until_ns, self._limit_ms))
            if outcome in (RunResult.DONE, RunResult.TIME):
                return self.nodes.check()
            if outcome is RunResult.INTERRUPTED:
                continue  # Python has run its own handler by now; without an exception there is nothing to do
            raise self._why(outcome, awaited)

    def finish(self, *clients: Client) -> None:
        """Runs the trial until these clients have done their steps."""
        for client in clients:
            client.go_on()
        self.run(list(clients))

    def _why(self, outcome: RunResult, awaited: list[Client]) -> LockstormError:
        if outcome is RunResult.DIED:
            dead = library().conductor_dead(self.conductor)
            for client in self.every_client:
                if client.process and client.pid == dead:
                    return self._why_dead(client, client.process.wait())
            return Inconclusive(f"a client ended (process {dead})")
        return Inconclusive(self._why_late(outcome, awaited))

    def _why_dead(self, client: Client, status: int) -> LockstormError:
        if status == GAVE_UP:  # what its adapter wrote may stand before and after that
            lines = self.nursery.logs()[client.name].splitlines()
            sentence = next(line for line in reversed(lines) if line.startswith(SAYS))
            return UsageError(f"{self.settings.lock}: {sentence.removeprefix(SAYS)}")
        said = self.nursery.log_tail(client.name)
        if self.lock.get("plugin"):
            who = f"{self.settings.lock}: {client.name}, which hosts it, ended {how_ended(status)}"
            return Inconclusive(f"{who}: {said}" if said else who)
        return Inconclusive(f"{client.name} ended (status {status}): {said}")

    def _why_late(self, outcome: RunResult, awaited: list[Client]) -> str:
        names = ", ".join(client.name for client in awaited) or "nobody"
        if outcome is RunResult.LATE:
            return f"{names} did not come back within {self._patience_ms / 1000:g} s of the trial's time"
        if outcome is RunResult.QUIET:
            return f"nobody can go on: the trial waits for {names}, who waits for the trial"
        if outcome is RunResult.STUCK:
            late = f"{names} did not come back within {self._limit_ms / 1000:g} s"
            return self.unanswered or (f"{self.settings.lock}: {late}" if self.lock.get("plugin") else late)
        return "a server's clock could not be written"

    # --- faults ---

    @contextlib.contextmanager
    def pause(self, client: Client, at: str | None = None) -> Iterator[None]:
        """Stops a client's whole process, at a checkpoint or now; it goes on when the block ends."""
        if at:
            client.run_to(at)
        with self.fault("pause-client", client):
            yield
        client.go_on()

    @contextlib.contextmanager
    def fault(
        self, name: str, target: Target = None, other: RedisServer | None = None, **options: str | float | bytes
    ) -> Iterator[Fault]:
        """Injects a fault, proves it, and heals it when the block ends; each is a record."""
        fault = self.inject(name, target, other, **options)
        try:
            yield fault
        except BaseException:
            fault.heal(prove=False)
            raise
        fault.heal()

    @contextlib.contextmanager
    def fault_unless_control(self, name: str, target: Target = None, **options: str | float | bytes) -> Iterator[None]:
        """As `fault`; in a control nothing, and the block is played all the same."""
        if self.control:
            yield
            return
        with self.fault(name, target, None, **options):
            yield

    def inject(
        self, name: str, target: Target = None, other: RedisServer | None = None, **options: str | float | bytes
    ) -> Fault:
        """The same, until its `heal` is called or the trial ends."""
        fault = Fault(self, name, target, other, **options)
        self._faults.append(fault)
        try:
            fault.inject()
        except BaseException:
            fault.heal(prove=False)
            raise
        return fault

    def prepare(
        self, name: str, target: Target = None, other: RedisServer | None = None, **options: str | float | bytes
    ) -> Fault:
        """Makes ready for a fault, whose `inject` and `heal` are then called: what a client does in between is what a
        failover loses."""
        fault = Fault(self, name, target, other, **options)
        self._faults.append(fault)
        fault.prepare()
        return fault

    @contextlib.contextmanager
    def rule(self, name: str, links: str, direction: str, *words: str | int | bytes) -> Iterator[Proxy]:
        """What no fault has a name for: a rule of the proxy (faults/README.md), until the block ends."""
        if not self.proxy:
            raise UsageError("the links of this trial do not lead through the proxy")
        library().conductor_set_unreliable(self.conductor)
        self.proxy.rule(name, links, direction, *words)
        try:
            yield self.proxy
        finally:
            self.proxy.remove(name)
            self.settles()

    def settle(self) -> None:
        """Lets everything arrive that is in flight and that nobody holds: what a healed fault let go, for instance."""
        if not self.settles():
            raise Unanswered(self.unanswered)

    @property
    def unanswered(self) -> str:
        """Who did not answer when that was waited for, if anybody ever did not."""
        reason: bytes = library().conductor_unanswered(self.conductor)
        return reason.decode(errors="replace")

    def settles(self) -> bool:
        """The same; False: a server, or the proxy, does not answer."""
        return bool(library().conductor_settle(self.conductor))

    def heal(self) -> None:
        """Heals whatever is not healed yet, the last first."""
        while self._faults:
            self._faults.pop().heal()

    # --- history ---

    def note(self, text: str) -> None:
        """Something that a reader of the story should know."""
        self.record(Kind.NOTE, name=self.text(text))

    def commands(self) -> int:
        """How many commands the servers have run, but for those that the trial and replicas ask, too."""
        return self.nodes.commands()

    def phase(self, name: str) -> None:
        """The trial is in this phase from here on: "storm", "quiet"."""
        self.record(Kind.PHASE, name=self.text(name))

    def quiet(self, *clients: Client) -> None:
        """The last phase: every fault is healed, and each of these clients that lives must be served - whoever does
        nothing wants to increment once more, and if there is none, the first does when it is done. Ends when all are
        served, or when it is clear that somebody never will be: that is the finding, not an error."""
        self.heal()
        self.phase("quiet")
        living = [client for client in clients if not client.ended]
        idle = [client for client in living if client.state is StrandState.IDLE]
        for client in living:
            client.go_on()
            if client in idle:
                client.start_increment()
        held_ms = self.lease_ms if self.lock["lease"] else self.bound_ms  # by somebody dead
        limit_ns = (held_ms + self.bound_ms + QUIET_BEYOND_MS) * 1_000_000
        self.run(living, self.mono_ns + limit_ns)
        if not idle and living[0].state is StrandState.IDLE:  # all had something to finish: nobody asked in this phase
            living[0].start_increment()
            self.run(living[:1], self.mono_ns + limit_ns)
        self.note_clock()

    def text(self, text: str) -> int:
        """The index by which records name this text."""
        if text not in self._texts:
            raw = text.encode("utf-8", "surrogateescape")
            wall_ns = library().conductor_wall_ns(self.conductor)
            index = library().history_text(self._history, raw, len(raw), self.mono_ns, wall_ns)
            if index == 0:
                raise Inconclusive("the history is full")
            self._texts[text] = index
        return self._texts[text]

    def record(self, kind: Kind, **fields: int) -> int:
        """Appends a record of the driver's own."""
        wall_ns = library().conductor_wall_ns(self.conductor)
        fields = {"actor": self._texts.get("driver", 0), **fields}
        record = Record(kind=kind, mono_ns=self.mono_ns, wall_ns=wall_ns, **fields)
        index = int(library().history_append(self._history, ctypes.byref(record)))
        return 0 if index == FULL else index

    def _freeze(self) -> None:
        """In real time somebody may still be running, and would go on writing to the history that is read."""
        for client in self.every_client:
            if client.process and not client.ended:
                library().conductor_stop_between_records(self.conductor, client.strand)

    def judge(self, require: str | None = None) -> dict[str, Any]:
        """Ends the trial and has its history judged: what `check` says, as docs/verdicts.md describes it."""
        self.heal()
        if self.proxy:
            for rule in self.proxy.idle_rules():
                raise Inconclusive(f"the rule {rule} of the proxy matched nothing: what it was to break went unbroken")
        if self.settings.time == "real":
            self._freeze()
        self.settle()
        library().history_end(self._history)
        self._lap("scenario")
        self.verdict = check(self.history_path, require)
        self._lap("judge")
        return self.verdict

    def story(self) -> list[dict[str, Any]]:
        """The history as dictionaries, in order (the JSON Lines form without its first line)."""
        return read_history(self.history_path)

    def save(self, path: Path) -> None:
        """Writes the history to a new file."""
        message = Message()
        if not library().history_save(bytes(self.history_path), bytes(path), message):
            raise UsageError(f"the history was not saved: {message}")

    @contextlib.contextmanager
    def logs_kept(self, path: Path | None) -> Iterator[None]:
        """Whatever becomes of the block: what the trial's processes wrote during it stands in a file, if anything."""
        try:
            yield
        finally:
            if path and (written := self.nursery.logs()):
                path.write_text("".join(f"== {name}\n{text}" for name, text in written.items()))

    def _lap(self, name: str) -> None:
        now = real_time.perf_counter()
        self.elapsed_ms[name] = self.elapsed_ms.get(name, 0.0) + (now - self._mark) * 1000
        self._mark = now

    @staticmethod
    def _must(good: Any, message: Message) -> Any:
        if not good:
            raise Inconclusive(str(message))
        return good


def connect(address: str) -> socket.socket:
    """To a unix socket, or to a port of the loopback interface."""
    host, _, port = address.rpartition(":")
    if host and port.isdigit():
        return socket.create_connection((host, int(port)))
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address)
    return connection


def check(path: Path, require: str | None = None, *words: str) -> dict[str, Any]:
    """Has a recorded history judged, with more words for `check`. Raises UsageError on damaged or unreadable input."""
    command = [paths.program("check"), *([f"--require={require}"] if require else []), *words, "--", str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 1, 3):
        reason = done.stderr.strip() or f"check ended with status {done.returncode}"
        raise UsageError(reason)
    verdict: dict[str, Any] = json.loads(done.stdout)
    return verdict


def read_history(path: Path) -> list[dict[str, Any]]:
    """A binary history as dictionaries, one a record."""
    done = subprocess.run([paths.program("history"), "to-json", str(path)], capture_output=True, text=True)
    if done.returncode != 0:
        raise UsageError(done.stderr.strip())
    return [json.loads(line) for line in done.stdout.splitlines()[1:]]
