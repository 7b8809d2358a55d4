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
import struct
import subprocess
import threading
import time as real_time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self, get_args

import redis

from harness.driver import paths
from harness.driver.errors import Inconclusive, Unanswered, UsageError
from harness.driver.etcd_server import EtcdServer, leader_of
from harness.driver.fault import Fault, Target, means_of
from harness.driver.library import (
    FLAG_TEXT,
    FOREVER,
    FULL,
    Kind,
    Message,
    Object,
    Outcome,
    Record,
    RunResult,
    Settings,
    Step,
    StepKind,
    StepResult,
    StrandState,
    library,
    locks,
)
from harness.driver.links import DirectLinks
from harness.driver.pgbouncer import PgBouncer
from harness.driver.pgbouncer import version as pgbouncer_version
from harness.driver.postgres_server import SOCKET, PostgresServer, conninfo
from harness.driver.process import Nursery, Process, inheritable
from harness.driver.proxy import Proxy
from harness.driver.redis_server import Network, RedisServer, free_port
from harness.driver.services import REAL_TIME_ONLY, TABLE, check_installed, check_lease, is_table
from harness.driver.topology import CLUSTER_MASTERS, Sentinel, Topology, cluster_ranges, join, slot_of, tagged, watch
from harness.driver.zookeeper_server import ZooKeeperServer, java_version

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

# What a redis-server is told; "aof": nothing is acknowledged before it is in the append-only file, and on the disk.
PERSISTENCE: dict[Persistence, tuple[str, ...]] = {
    "none": (),
    "aof": ("--appendonly", "yes", "--appendfsync", "always"),
}

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
RESP_PING = b"*1\r\n$4\r\nPING\r\n"
HTTP_VERSION = b"GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n"
ZOOKEEPER_WORD = b"srvr"
NOT_RESP = ("-bus", "-quorum", "-election")  # what such links carry
POSTGRES_SSL_REQUEST = struct.pack("!II", 8, 80877103)  # what a client may begin with, and is answered
# Asked by the trial and by replicas, how often depends on the machine. So a lock's own WAIT is not counted either.
TRIALS_OWN = ("ping", "time", "info", "hello", "wait", "replconf", "psync", "config|get", "config|set")
ANYWHERE = "*"  # every checkpoint (STAGE_ANYWHERE)
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


@dataclass(frozen=True)
class Result:
    """What a step of a client came to."""

    outcome: Outcome
    token: int
    value: int
    version: int
    turns: int
    error: str

    @property
    def ok(self) -> bool:
        return self.outcome is Outcome.OK


class Client:
    """A client process. Methods that `start_` something return at once; `finish` runs the trial until it is done.
    The others do both."""

    def __init__(self, trial: "Trial", host: str, resource: bytes, strand: int, life: int = 1) -> None:
        self.trial = trial
        self.host = host  # whose clocks, links and places on the stage are those of all its lives
        self.life = life
        self.name = host if life == 1 else f"{host}.{life}"
        self.resource = resource  # the name of what its lock protects
        self.identity = trial.text(self.name)
        self.strand = strand
        self.process: Process | None = None
        self.ended = False  # on purpose
        self.next_life: Client | None = None

    @property
    def pid(self) -> int:
        assert self.process
        return self.process.pid

    # --- steps ---

    def acquire(self, wait_ms: int = -1) -> Result:
        """Asks for the lock; -1 waits as long as the pattern itself does."""
        return self._do(StepKind.ACQUIRE, wait_ms=wait_ms)

    def start_acquire(self, wait_ms: int = -1) -> None:
        self._start(StepKind.ACQUIRE, wait_ms=wait_ms)

    def release(self) -> Result:
        return self._do(StepKind.RELEASE)

    def start_release(self) -> None:
        self._start(StepKind.RELEASE)

    def renew(self) -> Result:
        return self._do(StepKind.RENEW)

    def is_held(self) -> Result:
        """Asks the lock whether it is this client's: ok yes, refused no, unknown where the pattern cannot say."""
        return self._do(StepKind.IS_HELD)

    def read(self, what: Object = Object.COUNTER) -> Result:
        return self._do(StepKind.READ, object=what)

    def write(self, value: int, what: Object = Object.COUNTER) -> Result:
        """Writes a value that was computed from what this client last read under its grant."""
        return self._do(StepKind.WRITE, object=what, value=value)

    def start_write(self, value: int, what: Object = Object.COUNTER) -> None:
        self._start(StepKind.WRITE, object=what, value=value)

    def add(self, value: int, what: Object = Object.COUNTER) -> Result:
        """Lets the store add: atomic."""
        return self._do(StepKind.ADD, object=what, value=value)

    def work(self, work_ms: int) -> Result:
        return self._do(StepKind.SLEEP, work_ms=work_ms)

    def start_increment(self, by: int = 1, work_ms: int = 0, token: int = 0) -> None:
        """acquire, read the counter, work, write the sum, release; with a token of the application's own instead of the
        lock's, if one is given"""
        fields = {"object": Object.COUNTER, "wait_ms": -1, "value": by, "work_ms": work_ms, "turns": 1, "token": token}
        self._start(StepKind.WORKLOAD, **fields)

    def increment(self, by: int = 1, work_ms: int = 0) -> Result:
        self.start_increment(by, work_ms)
        return self.finish()

    def start_workload(self, duration_ms: int, work_ms: int, think_ms: int) -> None:
        """Increments again and again for a time."""
        self._start(
            StepKind.WORKLOAD,
            object=Object.COUNTER,
            wait_ms=-1,
            value=1,
            work_ms=work_ms,
            think_ms=think_ms,
            duration_ms=duration_ms,
        )

    def start_hold(self, turns: int = 0, pace_us: int = 0, work_ms: int = 0) -> None:
        """Acquires and releases, no access to the store in between, until that was tried `turns` times (0: no limit) or
        the history is full; the n-th time not before n * pace_us."""
        self._start(StepKind.HOLD, wait_ms=-1, turns=turns, pace_us=pace_us, work_ms=work_ms)

    # --- waiting ---

    def finish(self) -> Result:
        """Runs the trial until this client's step is done."""
        self.trial.finish(self)
        return self.result()

    def run_to(self, checkpoint: str, nth: int = 1) -> None:
        """Runs the trial until this client stands at the n-th passage of a checkpoint, and holds it there."""
        lib, conductor = library(), self.trial.conductor
        lib.conductor_arm(conductor, self.strand, checkpoint.encode(), nth)
        self.trial.run([self])
        if lib.conductor_state(conductor, self.strand) != StrandState.HELD:
            lib.conductor_arm(conductor, self.strand, b"", 0)
            raise Inconclusive(f"{self.name} never came to the checkpoint {checkpoint}")
        self.trial.record(Kind.CHECKPOINT, name=self.trial.text(checkpoint), value=self.identity)

    def run_for(self, limit_ms: float, checkpoint: str) -> bool:
        """Runs the trial until this client has done its step or stands at the checkpoint (true), or for so long."""
        lib, trial = library(), self.trial
        lib.conductor_arm(trial.conductor, self.strand, checkpoint.encode(), 1)
        trial.run([self], trial.mono_ns + int(limit_ms * 1_000_000))
        lib.conductor_arm(trial.conductor, self.strand, b"", 0)
        held = bool(lib.conductor_state(trial.conductor, self.strand) == StrandState.HELD)
        if held:
            trial.record(Kind.CHECKPOINT, name=trial.text(checkpoint), value=self.identity)
        return held

    def go_on(self) -> None:
        """Lets a client that is held at a checkpoint go on."""
        if library().conductor_state(self.trial.conductor, self.strand) == StrandState.HELD:
            library().conductor_continue(self.trial.conductor, self.strand)

    @property
    def state(self) -> StrandState:
        return StrandState(library().conductor_state(self.trial.conductor, self.strand))

    def hold_at(self, checkpoint: str, nth: int = 1) -> None:
        """The n-th passage of this checkpoint from now on (ANYWHERE: of any) will hold it; 0: none will."""
        library().conductor_arm(self.trial.conductor, self.strand, checkpoint.encode(), nth)

    @property
    def held_at(self) -> str:
        name: bytes = library().conductor_held_at(self.trial.conductor, self.strand)
        return name.decode()

    def wind_down(self) -> None:
        """Lets its workload be done after one more turn that is granted."""
        library().conductor_wind_down(self.trial.conductor, self.strand)

    def result(self) -> Result:
        raw: StepResult = library().conductor_result_of(self.trial.conductor, self.strand)
        error = bytes(raw.error).decode(errors="replace")
        return Result(Outcome(raw.outcome), raw.token, raw.value, raw.version, raw.turns, error)

    # --- inside ---

    def _start(self, kind: StepKind, **fields: int) -> None:
        state = self.state
        if state is not StrandState.IDLE:
            raise UsageError(f"{self.name} is {state.name.lower()}, it cannot take another step now")
        library().conductor_step(self.trial.conductor, self.strand, ctypes.byref(Step(kind=kind, **fields)))

    def _do(self, kind: StepKind, **fields: int) -> Result:
        self._start(kind, **fields)
        return self.finish()


class Trial:
    """Servers, clients, clock and history of one trial, in a private directory that goes when the trial closes."""

    def __init__(self, settings: TrialSettings) -> None:
        self.settings = settings
        self.lease_ms = settings.lease_ms
        self.reply_limit_ms = REPLY_LIMIT_MS
        self.control = settings.control
        usual_ms = BOUND_LEASES * settings.lease_ms + BOUND_NAP_MS
        self.bound_ms = settings.parameters.get("bound_ms", usual_ms)  # how long a free lock may go unnoticed
        self.verdict: dict[str, Any] | None = None
        self.elapsed_ms: dict[str, float] = {}
        self.resource = tagged(settings.resource) if settings.topology == "cluster" else settings.resource
        self.servers: list[RedisServer] = []  # the nodes that clients know: where a link leads that names one
        self.databases: list[PostgresServer] = []  # those nodes that are no redis-servers
        self.poolers: dict[str, PgBouncer] = {}  # database -> what stands before it
        self.table: PostgresServer | None = None  # where the resource is, if it is a table
        self.etcd: list[EtcdServer] = []  # or these
        self.ensemble: list[ZooKeeperServer] = []  # or these
        self.replicas: list[RedisServer] = []
        self.cluster: list[RedisServer] = []  # all masters and replicas of a cluster, but for those
        self.sentinels: list[Sentinel] = []
        self.proxy: Proxy | None = None
        self.fault_reason = ""  # why the driver could not do what a fault asked of it
        self._masters: dict[str, RedisServer] = {}  # node -> who is its master now, if not itself
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
        self._nursery = Nursery()
        self._exit.callback(self._nursery.close)
        self.history_path = self._nursery.directory / "history"
        stage = self._nursery.directory / "stage"
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
        return {process.pid for process in self._nursery.processes}

    @property
    def lock(self) -> dict[str, Any]:
        """The entry of this trial's lock in the table of locks."""
        return next(lock for lock in locks() if lock["name"] == self.settings.lock)

    @property
    def server(self) -> RedisServer:
        """The only node, or the first."""
        return self.servers[0]

    @property
    def database(self) -> PostgresServer:
        """The only node of a lock on PostgreSQL."""
        return self.databases[0]

    @property
    def node(self) -> RedisServer | PostgresServer:
        """The only node, or the first, whatever it is."""
        return self.database if self.databases else self.server

    def etcd_leader(self, without: EtcdServer | None = None) -> EtcdServer:
        """The leader of a lock's nodes on etcd, or of those but one; waits until there is one."""
        return leader_of([server for server in self.etcd if server is not without])

    def versions(self) -> dict[str, str]:
        """Which servers the lock lived on."""
        table = {"postgres": self.table.version()} if self.table else {}
        if self.etcd:
            return {"etcd": self.etcd[0].version(), **table}
        if self.databases:
            pooler = {"pgbouncer": pgbouncer_version()} if self.poolers else {}
            return {"postgres": self.database.version(), **pooler}
        if self.ensemble:
            return {"zookeeper": self.ensemble[0].version(), "java": java_version(), **table}
        return {"redis-server": self.server.version(), **table}

    def _start_proxy(self) -> None:
        self._links: Proxy | DirectLinks
        if self.settings.direct:
            self._links = DirectLinks(self._nursery)
            return
        message, actor = Message(), self.text("proxy")
        self.proxy = Proxy(self._nursery, self.history_path, self._stage, actor, self.settings.seed)
        self._links = self.proxy
        self._exit.callback(self.proxy.close)
        self._must(library().conductor_set_proxy(self.conductor, bytes(self.proxy.control), message), message)

    def link(self, name: str, target: Path) -> str:
        """Where somebody has to connect to reach the target: a link of the proxy, if there is one."""
        if name not in self._addresses:
            self._addresses[name] = self._links.link(name, target, option="STEPPED")
        return self._addresses[name]

    def _database_link(self, client: "Client", database: PostgresServer) -> str:
        """The socket where a client finds it; libpq wants to be told its directory, and knows its name."""
        name = f"{client.host}>{database.name}"
        if name not in self._addresses:
            reached = self.poolers.get(database.name, database)
            self._addresses[name] = self._links.link(name, reached.socket, option="PLAIN", file=SOCKET)
        return self._addresses[name]

    def _ensemble_link(self, client: "Client", server: ZooKeeperServer) -> str:
        """The address where a client finds it."""
        name = f"{client.host}>{server.name}"
        if name not in self._addresses:
            target = server.address
            self._addresses[name] = self._links.link(name, target, listen="127.0.0.1:0", option="PLAIN")
        return self._addresses[name]

    def _peer_port(self, name: str, port: int, client: str = "peers") -> int:
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

    def _start_server(self, name: str) -> RedisServer:
        message, topology, frozen = Message(), self.settings.topology, self.settings.time == "virtual"
        clock = self._nursery.directory / f"{name}.clock" if frozen or self.settings.settable_clocks else None
        socket, shown = self._nursery.directory / f"{name}.sock", bytes(clock) if clock else None
        number = library().conductor_add_server(self.conductor, shown, bytes(socket), message)
        self._must(number >= 0, message)
        network = Network(topology == "cluster", self._peer_port) if topology != "single" else None
        options = (*PERSISTENCE[self.settings.persistence], *self.settings.server_options)
        server = RedisServer(self._nursery, name, clock=clock, frozen=frozen, options=options, network=network)
        server.number = number
        self._exit.callback(server.close)
        return server

    def _check_topology(self) -> None:
        said = self.settings
        if said.topology == "single":
            return
        if said.time == "virtual":
            raise UsageError(f"the topology {said.topology} is for real time: elections are made of timeouts")
        if said.nodes != 1:
            one = "one master" if said.topology == "sentinel" else "one cluster"
            raise Inconclusive(f"{said.lock} needs {said.nodes} servers that know nothing of each other, not {one}")

    def _start_database(self, name: str) -> PostgresServer:
        """A PostgreSQL server, whose processes the conductor looks at instead of asking it."""
        message, frozen = Message(), self.settings.time == "virtual"
        if self.settings.settable_clocks and not frozen:
            raise Inconclusive("in real time nothing sets the clock of PostgreSQL: use virtual time")
        clock = self._nursery.directory / f"{name}.clock" if frozen else None
        database = PostgresServer(self._nursery, name, clock=clock)
        self._exit.callback(database.close)
        number = library().conductor_add_server(self.conductor, bytes(clock) if clock else None, None, message)
        self._must(number >= 0, message)
        database.number = number
        library().conductor_set_process(self.conductor, number, database.process.pid)
        if self.lock["waits"] == "in-server":
            # Each session has a process of its own: who asks first is queued first only if each is let arrive.
            library().conductor_set_unreliable(self.conductor)
        return database

    def _start_databases(self) -> None:
        """The node of a lock on PostgreSQL and the store, side by side."""
        said = self.settings
        if said.topology != "single" or said.replicas or said.persistence != "none" or said.server_options:
            raise Inconclusive(f"{said.lock} lives on PostgreSQL, and this story needs a redis-server")
        self.databases = [self._start_database(f"postgres-{each + 1}") for each in range(said.nodes)]
        store = self._start_store()
        for database in self.databases:
            database.ready()
            if said.pooled:
                self._start_pooler(database)
        self._await_store(store)

    def _start_pooler(self, database: PostgresServer) -> None:
        """PgBouncer, whose process the conductor looks at together with the server's."""
        message, name = Message(), f"pgbouncer-{database.number + 1}"
        pooler = PgBouncer(self._nursery, name, database, "session" if self.control else "transaction")
        pooler.ready()
        number = library().conductor_add_server(self.conductor, None, None, message)
        self._must(number >= 0, message)
        library().conductor_set_process(self.conductor, number, pooler.process.pid)
        self.poolers[database.name] = pooler

    def _etcd_link(self, client: "Client", server: EtcdServer) -> str:
        """The socket where a client finds it; what passes is HTTP."""
        name = f"{client.host}>{server.name}"
        if name not in self._addresses:
            self._addresses[name] = self._links.link(name, server.socket, option="PLAIN")
        return self._addresses[name]

    def _etcd_way(self, place: Path, server: EtcdServer, peer: EtcdServer) -> None:
        """Where one node finds another: a link of its own, if there is a proxy."""
        if self.proxy:
            self.proxy.link(f"{server.name}>{peer.name}", peer.peer_socket, listen=str(place), option="PLAIN")
        else:
            place.symlink_to(peer.peer_socket)

    def _start_etcd(self) -> None:
        """The nodes of a lock on etcd, one cluster, and the store, side by side."""
        said = self.settings
        check_lease(self.lock, said.lease_ms)
        if said.time == "virtual":
            raise UsageError(f"{said.lock} can only be tried in real time: {REAL_TIME_ONLY[self.lock['service']]}")
        if said.topology != "single" or said.replicas or said.persistence != "none" or said.server_options:
            raise Inconclusive(f"{said.lock} lives on etcd, and this story needs a redis-server")
        if said.settable_clocks:
            raise Inconclusive(f"nothing sets the clock of etcd: {REAL_TIME_ONLY[self.lock['service']]}")
        self.etcd = [EtcdServer(self._nursery, f"etcd-{each + 1}") for each in range(said.nodes)]
        for server in self.etcd:
            server.number = library().conductor_add_server(self.conductor, None, None, Message())
            server.meet(self.etcd, self._etcd_way)
        for server in self.etcd:
            server.start()
        store = self._start_store()
        for server in self.etcd:
            server.ready()
        self._await_store(store)

    def _start_ensemble(self) -> None:
        """The servers of a lock on ZooKeeper and the store, side by side."""
        said = self.settings
        if said.topology != "single" or said.replicas or said.persistence != "none" or said.server_options:
            raise Inconclusive(f"{said.lock} lives on ZooKeeper, and this story needs a redis-server")
        if said.settable_clocks and said.time == "real":
            raise Inconclusive("in real time nothing sets the clock of ZooKeeper: use virtual time")
        if said.nodes > 1 and said.time == "virtual":
            raise UsageError("several ZooKeeper servers are for real time: elections are made of timeouts")
        names = [f"zookeeper-{each + 1}" for each in range(said.nodes)]
        ports = {name: (free_port(), free_port()) for name in names} if said.nodes > 1 else {}
        self.ensemble = [self._start_member(name, ports) for name in names]
        # Whoever asks gives the turn back, or the client's other strand could not read the answer.
        library().conductor_set_unreliable(self.conductor)
        store = self._start_store()
        for server in self.ensemble:
            server.ready()
            self._watch_over(server)
        self._await_store(store)

    def _start_member(self, name: str, ports: Mapping[str, tuple[int, int]]) -> ZooKeeperServer:
        """`ports`: on which each listens for the others, for what its leader says and for elections."""
        message, frozen = Message(), self.settings.time == "virtual"
        clock = self._nursery.directory / f"{name}.clock" if frozen else None
        number = library().conductor_add_server(self.conductor, bytes(clock) if clock else None, None, message)
        self._must(number >= 0, message)
        peers = {peer: self._peer_address(name, peer, *ports[peer]) for peer in ports}
        server = ZooKeeperServer(self._nursery, name, clock=clock, peers=peers)
        server.number = number
        self._exit.callback(server.close)
        return server

    def _peer_address(self, name: str, peer: str, quorum: int, election: int) -> str:
        """Where one server finds another: behind a link of its own; itself where it is."""
        if name != peer:
            quorum = self._peer_port(f"{peer}-quorum", quorum, f"peer-{name}")
            election = self._peer_port(f"{peer}-election", election, f"peer-{name}")
        return f"127.0.0.1:{quorum}:{election}"

    def _watch_over(self, server: ZooKeeperServer) -> None:
        """The conductor looks at its threads instead of asking it. In real time nobody waits for that."""
        if self.settings.time == "real":
            return
        library().conductor_set_process(self.conductor, server.number, server.process.pid)
        library().conductor_set_timer(self.conductor, server.number, server.timer())
        server.calibrate(library().conductor_server_wall_us(self.conductor, server.number))

    @property
    def leader(self) -> ZooKeeperServer | None:
        """Which server of the ensemble says that it leads."""
        return next((server for server in self.ensemble if server.is_leader()), None)

    def restart_ensemble(self, server: ZooKeeperServer) -> None:
        """Kills a ZooKeeper server and starts it again with its data: its sessions go on."""
        library().conductor_set_process(self.conductor, server.number, 0)
        server.crash()
        server.restart()
        self._watch_over(server)
        self.settle()

    def _start_servers(self) -> None:
        """The nodes, their replicas and the store, side by side."""
        if is_table(self.settings.store):
            # By the machine's clock: it looks at none. And beside a lock's own server: what happens to that is no
            # matter of the resource.
            self.table = PostgresServer(self._nursery, "postgres-store", clock=None)
            self._exit.callback(self.table.close)
        if self.lock["service"] == "postgres":
            self._start_databases()
        elif self.lock["service"] == "etcd":
            self._start_etcd()
        elif self.lock["service"] == "zookeeper":
            self._start_ensemble()
        else:
            self._start_redis_servers()
        if self.settings.time == "virtual":
            self.prove_clock()

    def _start_redis_servers(self) -> None:
        self._check_topology()
        said = self.settings
        count = CLUSTER_MASTERS if said.topology == "cluster" else said.nodes
        replicas_each = said.replicas if said.topology == "single" else max(1, said.replicas)
        masters = [self._start_server(f"redis-{each + 1}") for each in range(count)]
        replicas = {
            self._start_server(f"{node.name}-replica-{each + 1}"): node
            for node in masters
            for each in range(replicas_each)
        }
        self.servers, self.replicas = masters, list(replicas)
        store = self._start_store()
        for server in (*masters, *replicas):
            server.ready()
            self._calibrate(server)
        if said.topology == "cluster":
            self._join_cluster(masters, replicas)
        else:
            for replica, node in replicas.items():
                self._follow_by_hand(replica, node)
                library().conductor_set_replicas(self.conductor, node.number, len(node.replicas))
        if said.topology == "sentinel":
            self.sentinels = watch(self._nursery, self.server, self._peer_port)
            for sentinel in self.sentinels:
                self._exit.callback(sentinel.close)
        self._await_store(store)

    def _join_cluster(self, masters: list[RedisServer], replicas: dict[RedisServer, RedisServer]) -> None:
        """Of a cluster's nodes, clients know the one that has the slot of the resource."""
        join(masters, replicas)
        slot = slot_of(self.resource)
        self.servers = [masters[each] for each, slots in enumerate(cluster_ranges()) if slot in slots]
        self.replicas = [replica for replica, node in replicas.items() if node is self.server]
        self.cluster = [server for server in (*masters, *replicas) if server not in (self.server, *self.replicas)]
        for replica in self.replicas:
            replica.await_link(self.server)

    def _start_store(self) -> Process:
        self.store_socket = self._nursery.directory / "store.sock"
        command = [paths.program("store"), "--history", str(self.history_path), "--stage", str(self._stage)]
        command += ["--socket", str(self.store_socket), "--mode", self.settings.store.removeprefix(TABLE)]
        command += ["--actor", str(self.text("store")), "--stranger", str(self.text("stranger"))]
        command += ["--counter", str(self.settings.counter)]
        if self.table:
            self.table.ready()
            command += ["--table", conninfo(self.table.sockets)]
        store = self._nursery.start("store", command)
        message = Message()
        number = library().conductor_add_server(self.conductor, None, bytes(self.store_socket), message)
        self._must(number >= 0, message)
        return store

    def _await_store(self, store: Process) -> None:
        deadline = real_time.monotonic() + 10
        while not self.store_socket.exists():
            if store.poll() is not None or real_time.monotonic() > deadline:
                raise Inconclusive(f"the store did not start: {self._nursery.log_tail('store')}")
            real_time.sleep(0.001)

    # --- who follows whom ---

    def master(self, node: RedisServer) -> RedisServer:
        """Where the links lead that name this node: itself, or who has taken its place."""
        return self._masters.get(node.name, node)

    def follow(self, server: RedisServer, master: RedisServer) -> bool:
        """The server becomes a replica of that master, with whoever followed the server, and they acknowledge what is
        written there. Sentinels and clusters see to it themselves."""
        moving = [*(replica for replica in server.replicas if replica is not master), server]
        for replica in moving:
            self.lose_replica(replica)
            if self.settings.topology == "single":
                self._follow_by_hand(replica, master)
            else:
                replica.await_link(master)
        library().conductor_set_replicas(self.conductor, master.number, len(master.replicas))
        return True

    def _follow_by_hand(self, replica: RedisServer, master: RedisServer) -> None:
        if not master.port:
            master.listen()
        by_itself = self.settings.topology == "single"  # sentinels want to see everybody at the address that they know
        link = self._peer_port(master.name, master.port, replica.name) if by_itself else master.announced
        replica.follow(master, link)

    def lose_replica(self, replica: RedisServer) -> bool:
        """The replica does not hear of its master's writes any more."""
        for node in self.every_server():
            if replica in node.replicas:
                node.replicas.remove(replica)
                library().conductor_set_replicas(self.conductor, node.number, len(node.replicas))
        return True

    def lead_clients(self, old: RedisServer, new: RedisServer) -> bool:
        """Links of clients that lead to a server lead to another from now on. False: none does."""
        nodes = [node for node in self.servers if self.master(node) is old]
        for node in nodes:
            self._masters[node.name] = new
            self._links.lead(f"client-*>{node.name}", new.socket)
        if self.cluster:
            new.link.config_resetstat()  # what it answered as a replica says nothing about keys (_look_for_crossing)
        return bool(nodes)

    def around(self, server: RedisServer) -> list[RedisServer | Sentinel]:
        """Who has to do with a server: its replicas first, then the other nodes of its cluster, or the sentinels."""
        if self.settings.topology == "single":
            return [*server.replicas]
        known: list[RedisServer | Sentinel] = [*server.replicas, *self.every_server(), *self.sentinels]
        return [each for each in dict.fromkeys(known) if each is not server]

    def every_server(self) -> list[RedisServer]:
        return [*self.servers, *self.replicas, *self.cluster]

    def server_numbered(self, number: int) -> RedisServer | EtcdServer:
        known: list[RedisServer | EtcdServer] = [*self.every_server(), *self.etcd]
        return next(server for server in known if server.number == number)

    def _calibrate(self, server: RedisServer) -> None:
        if not library().conductor_calibrate(self.conductor, server.number):
            raise Inconclusive(f"the clock of {server.name} could not be read")

    def database_numbered(self, number: int) -> PostgresServer:
        return next(database for database in self.databases if database.number == number)

    def restart_numbered(self, number: int) -> bool:
        """For a fault: starts a server again that has ended."""
        if any(database.number == number for database in self.databases):
            return self._restart_database(self.database_numbered(number))
        return self.restart_server(self.server_numbered(number))

    def _restart_database(self, database: PostgresServer) -> bool:
        database.restart()
        library().conductor_set_process(self.conductor, database.number, database.process.pid)
        return True

    def server_named(self, name: str) -> RedisServer:
        for server in self.every_server():
            if server.name == name:
                return server
        raise UsageError(f"this trial has no server called {name}")

    def restart_server(self, server: RedisServer | EtcdServer) -> bool:
        """For a fault: starts a server again that has ended."""
        server.restart()
        if isinstance(server, RedisServer):
            self._calibrate(server)
        return True

    def kill_server(self, server: RedisServer) -> None:
        """Ends a node or a replica, with its data: there is no persistence."""
        server.process.kill()
        server.process.wait()
        server.gone = True
        library().conductor_set_silent(self.conductor, server.number, True)
        self.lose_replica(server)

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
            "lock": self.settings.lock,
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
        command = [paths.program(program), *(f"--{key}={value}" for key, value in options.items())]
        nodes = [self.link(f"{client.host}>{node.name}", self.master(node).socket) for node in self.servers]
        nodes += [conninfo(Path(self._database_link(client, database)).parent) for database in self.databases]
        nodes += [self._etcd_link(client, server) for server in self.etcd]
        first = client.strand // 2 % max(1, len(self.ensemble))  # or all would come to the same server
        ensemble = [*self.ensemble[first:], *self.ensemble[:first]]
        nodes += [self._ensemble_link(client, server) for server in ensemble]
        command += [f"--node={node}" for node in nodes]
        command += ["--fixed-lease"] if self.settings.fixed_lease else []
        client.process = self._nursery.start(client.name, command, inherit=(turn, watchdog, yields))
        for strand in (client.strand, client.strand + 1):
            if not lib.conductor_watch(self.conductor, strand, client.pid):
                raise Inconclusive(f"{client.name} did not start: {self._nursery.log_tail(client.name)}")

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
        words = {node.name: RESP_PING for node in self.servers}
        words |= {node.name: POSTGRES_SSL_REQUEST for node in self.databases}
        words |= {node.name: HTTP_VERSION for node in self.etcd}
        words |= {node.name: ZOOKEEPER_WORD for node in self.ensemble}
        for name, word in words.items():
            with contextlib.closing(connect(self._addresses[f"{client.host}>{name}"])) as connection:
                connection.sendall(word)
                self.settle()

    @property
    def nodes_pattern(self) -> str:
        """Which servers are nodes of the lock, and not the resource."""
        return f"{self.lock['service']}-*"

    def _real_beyond_ms(self) -> int:
        has_lease = next(lock["lease"] for lock in locks() if lock["name"] == self.settings.lock)
        return REAL_BEYOND_MS if has_lease else REAL_BEYOND_NOTHING_MS

    def prove_clock(self) -> bool:
        """Reads TIME back from every node; a clock that is not where the trial has it ends the trial."""
        clocked: list[RedisServer | PostgresServer | ZooKeeperServer] = [
            *self.servers,
            *self.replicas,
            *self.databases,
            *self.ensemble,
        ]
        for server in clocked:
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
                if self.cluster:
                    self._look_for_crossing()
                return
            if outcome is RunResult.INTERRUPTED:
                continue  # Python has run its own handler by now; without an exception there is nothing to do
            raise Inconclusive(self._why(outcome, awaited))

    def _look_for_crossing(self) -> None:
        """A lock whose keys do not share a slot of the cluster is told so by every server, and is not what it is
        elsewhere. A master of the slot says MOVED for keys of other slots only."""
        for node in self.servers:
            with contextlib.suppress(redis.exceptions.ConnectionError):
                errors = self.master(node).link.info("errorstats")
                for name in ("CROSSSLOT", "MOVED"):
                    if f"errorstat_{name}" in errors:
                        lock = self.settings.lock
                        raise Inconclusive(f"{lock} cannot work in a cluster: {name}, its keys do not share a slot")

    def finish(self, *clients: Client) -> None:
        """Runs the trial until these clients have done their steps."""
        for client in clients:
            client.go_on()
        self.run(list(clients))

    def _why(self, outcome: RunResult, awaited: list[Client]) -> str:
        names = ", ".join(client.name for client in awaited) or "nobody"
        if outcome is RunResult.DIED:
            dead = library().conductor_dead(self.conductor)
            for client in self.every_client:
                if client.process and client.pid == dead:
                    status = client.process.wait()
                    return f"{client.name} ended (status {status}): {self._nursery.log_tail(client.name)}"
            return f"a client ended (process {dead})"
        if outcome is RunResult.LATE:
            return f"{names} did not come back within {self._patience_ms / 1000:g} s of the trial's time"
        if outcome is RunResult.QUIET:
            return f"nobody can go on: the trial waits for {names}, who waits for the trial"
        if outcome is RunResult.STUCK:
            return f"{names} did not come back within {self._limit_ms / 1000:g} s"
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
            raise Unanswered

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
        """How many commands the servers have run, but for those that the trial and replicas ask, too (TRIALS_OWN)."""
        return sum(count for server in self.servers for name, count in server.calls().items() if name not in TRIALS_OWN)

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
            if path and (written := self._nursery.logs()):
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
