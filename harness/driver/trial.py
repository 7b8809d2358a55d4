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
import subprocess
import threading
import time as real_time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from harness.driver import paths
from harness.driver.errors import Inconclusive, UsageError
from harness.driver.library import (
    FOREVER,
    FULL,
    FaultTarget,
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
)
from harness.driver.process import Nursery, inheritable
from harness.driver.redis_server import RedisServer

Time = Literal["virtual", "real"]
Store = Literal["open", "fence-writes", "fence-reads-and-writes"]
TIMES: tuple[Time, ...] = ("virtual", "real")
STORES: tuple[Store, ...] = ("open", "fence-writes", "fence-reads-and-writes")

RESOURCE = b"account"  # the name of what the lock protects
VIRTUAL_LEASE_MS = 30_000
TURN_LIMIT_MS = 30_000  # virtual time: how long one strand may keep the turn before the trial is given up
RUN_LIMIT_MS = 180_000  # real time: how long a run may last, beyond a workload's own duration; 100 polls take 150 s
REAL_CONTROL_MS = 100  # a fault inside a lease of 10 s: not even a busy machine turns it into one past it
REAL_BEYOND_MS = 3_000  # past the lease: a poller may have just begun its longest sleep
FLAG_TEXT = 1


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
    permits: int = 1
    fixed_lease: bool = False  # no watchdog renews it
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

    def __init__(self, trial: "Trial", name: str, resource: bytes, strand: int) -> None:
        self.trial = trial
        self.name = name
        self.resource = resource  # the name of what its lock protects
        self.identity = trial.text(name)
        self.strand = strand
        self.process: subprocess.Popen[bytes] | None = None
        self.stopped = False

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

    def add(self, value: int, what: Object = Object.COUNTER) -> Result:
        """Lets the store add: atomic."""
        return self._do(StepKind.ADD, object=what, value=value)

    def work(self, work_ms: int) -> Result:
        return self._do(StepKind.SLEEP, work_ms=work_ms)

    def start_increment(self, by: int = 1, work_ms: int = 0) -> None:
        """acquire, read the counter, work, write the sum, release"""
        self._start(StepKind.WORKLOAD, object=Object.COUNTER, wait_ms=-1, value=by, work_ms=work_ms, turns=1)

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

    def go_on(self) -> None:
        """Lets a client that is held at a checkpoint go on."""
        if library().conductor_state(self.trial.conductor, self.strand) == StrandState.HELD:
            library().conductor_continue(self.trial.conductor, self.strand)

    def result(self) -> Result:
        raw: StepResult = library().conductor_result_of(self.trial.conductor, self.strand)
        error = bytes(raw.error).decode(errors="replace")
        return Result(Outcome(raw.outcome), raw.token, raw.value, raw.version, raw.turns, error)

    # --- inside ---

    def _start(self, kind: StepKind, **fields: int) -> None:
        state = StrandState(library().conductor_state(self.trial.conductor, self.strand))
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
        self.control = settings.control
        self.verdict: dict[str, Any] | None = None
        self.elapsed_ms: dict[str, float] = {}
        self.servers: list[RedisServer] = []  # the nodes that clients know
        self.replicas: list[RedisServer] = []
        self._texts: dict[str, int] = {}
        self._clients: list[Client] = []
        self._exit = contextlib.ExitStack()
        self._mark = real_time.perf_counter()
        run_limit_ms = RUN_LIMIT_MS + (settings.duration_ms or 0)
        self._limit_ms = TURN_LIMIT_MS if settings.time == "virtual" else run_limit_ms

    # --- life ---

    def __enter__(self) -> Self:
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
        self._watch_signals()
        self._begin_history()
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
        for key, word in words.items():
            self.record(Kind.PARAMETER, name=self.text(key), value=self.text(word), flags=FLAG_TEXT)
        numbers = {"seed": said.seed, "control": int(said.control), "lease_ms": said.lease_ms, "counter": said.counter}
        for key, number in {**numbers, **said.parameters}.items():
            self.record(Kind.PARAMETER, name=self.text(key), value=number)

    @property
    def server(self) -> RedisServer:
        """The only node, or the first."""
        return self.servers[0]

    def _start_server(self, name: str) -> RedisServer:
        message = Message()
        clock = self._nursery.directory / f"{name}.clock" if self.settings.time == "virtual" else None
        socket, shown = self._nursery.directory / f"{name}.sock", bytes(clock) if clock else None
        number = library().conductor_add_server(self.conductor, shown, bytes(socket), message)
        self._must(number >= 0, message)
        server = RedisServer(self._nursery, name, clock=clock)
        server.number = number
        self._exit.callback(server.close)
        return server

    def _start_servers(self) -> None:
        """The nodes, their replicas and the store, side by side."""
        names = [f"redis-{each + 1}" for each in range(self.settings.nodes)]
        self.servers = [self._start_server(name) for name in names]
        replicas = {
            self._start_server(f"{node.name}-replica-{each + 1}"): node
            for node in self.servers
            for each in range(self.settings.replicas)
        }
        self.replicas = list(replicas)
        self.store_socket = self._nursery.directory / "store.sock"
        command = [paths.program("store"), "--history", str(self.history_path), "--stage", str(self._stage)]
        command += ["--socket", str(self.store_socket), "--mode", self.settings.store]
        command += ["--actor", str(self.text("store")), "--stranger", str(self.text("stranger"))]
        command += ["--counter", str(self.settings.counter)]
        store = self._nursery.start("store", command)
        for server in (*self.servers, *self.replicas):
            server.ready()
        for replica, node in replicas.items():
            if not node.port:
                node.listen()
            replica.follow(node)
            library().conductor_set_replicas(self.conductor, node.number, len(node.replicas))
        deadline = real_time.monotonic() + 10
        while not self.store_socket.exists():
            if store.poll() is not None or real_time.monotonic() > deadline:
                raise Inconclusive(f"the store did not start: {self._nursery.log_tail('store')}")
            real_time.sleep(0.001)
        if self.settings.time == "virtual":
            self.prove_clock()

    def kill_server(self, server: RedisServer) -> None:
        """Ends a node or a replica, with its data: there is no persistence."""
        server.process.kill()
        server.process.wait()
        server.gone = True
        library().conductor_drop_server(self.conductor, server.number)
        for node in self.servers:
            if server in node.replicas:
                node.replicas.remove(server)
                library().conductor_set_replicas(self.conductor, node.number, len(node.replicas))

    def clients(self, count: int, resource: bytes | None = None) -> list[Client]:
        """Starts client-1 .. client-N, side by side; returns when each has opened its lock and waits for a step."""
        lib = library()
        names = [f"client-{len(self._clients) + 1 + each}" for each in range(count)]
        new = [self._client_place(name, resource or self.settings.resource) for name in names]
        for client in new:
            lib.conductor_expect(self.conductor, client.strand)
        for client in new:
            self._client_start(client)
        self._clients += new
        self.run(new)
        self._lap("clients")
        return new

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
            "permits": self.settings.permits,
            "store": self.store_socket,
            "actor": client.identity,
            "strand": client.strand,
            "turn-fd": turn,
            "watchdog-fd": watchdog,
            "yield-fd": yields,
        }
        command = [paths.program("client"), *(f"--{key}={value}" for key, value in options.items())]
        command += [f"--node={server.socket}" for server in self.servers]
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

    def advance(self, duration_ms: float) -> None:
        """Lets that much of the trial's time pass; whoever has something to do then does it."""
        self.run([], until_ns=self.mono_ns + int(duration_ms * 1_000_000))
        proved = self.settings.time == "real" or self.prove_clock()
        self.record(Kind.CLOCK, outcome=Outcome.OK if proved else Outcome.UNKNOWN, value=self.mono_ns)

    def outlast_lease(self, other: Client, checkpoint: str | None = None) -> None:
        """Lets time pass until the other client has done its step, or stands at a checkpoint; at most two leases (in
        real time one and some seconds), for a lock that never expires lets nobody in. In a control: time that is safely
        within the lease."""
        if self.control:
            self.advance(self.lease_ms / 3 if self.settings.time == "virtual" else REAL_CONTROL_MS)
            return
        beyond_ms = self.lease_ms if self.settings.time == "virtual" else REAL_BEYOND_MS
        lib, until_ns = library(), self.mono_ns + (self.lease_ms + beyond_ms) * 1_000_000
        if checkpoint:
            lib.conductor_arm(self.conductor, other.strand, checkpoint.encode(), 1)
        self.run([other], until_ns)
        lib.conductor_arm(self.conductor, other.strand, b"", 0)
        if lib.conductor_state(self.conductor, other.strand) == StrandState.HELD:
            self.record(Kind.CHECKPOINT, name=self.text(checkpoint or ""), value=other.identity)

    def prove_clock(self) -> bool:
        """Reads TIME back from every node; a clock that is not where the trial has it ends the trial."""
        for server in (*self.servers, *self.replicas):
            if server.gone:
                continue
            shown, meant = server.time_us(), library().conductor_server_wall_us(self.conductor, server.number)
            if shown != meant:
                raise Inconclusive(f"the clock of {server.name} stands at {shown} us instead of {meant} us")
        return True

    def run(self, awaited: list[Client], until_ns: int = FOREVER) -> None:
        """Runs the trial until all of these clients are parked or the clock reaches until_ns."""
        lib = library()
        strands = (ctypes.c_int * max(1, len(awaited)))(*(client.strand for client in awaited))
        while True:
            outcome = RunResult(lib.conductor_run(self.conductor, strands, len(awaited), until_ns, self._limit_ms))
            if outcome in (RunResult.DONE, RunResult.TIME):
                return
            if outcome is RunResult.INTERRUPTED:
                continue  # Python has run its own handler by now; without an exception there is nothing to do
            raise Inconclusive(self._why(outcome, awaited))

    def finish(self, *clients: Client) -> None:
        """Runs the trial until these clients have done their steps."""
        for client in clients:
            client.go_on()
        self.run(list(clients))

    def _why(self, outcome: RunResult, awaited: list[Client]) -> str:
        names = ", ".join(client.name for client in awaited) or "nobody"
        if outcome is RunResult.DIED:
            dead = library().conductor_dead(self.conductor)
            for client in self._clients:
                if client.process and client.pid == dead:
                    status = client.process.wait()
                    return f"{client.name} ended (status {status}): {self._nursery.log_tail(client.name)}"
            return f"a client ended (process {dead})"
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
            library().conductor_set_stopped(self.conductor, client.pid, True)
            try:
                yield
            finally:
                library().conductor_set_stopped(self.conductor, client.pid, False)
        client.go_on()

    @contextlib.contextmanager
    def fault(self, name: str, client: Client) -> Iterator[None]:
        """Injects a fault, proves it, and heals it when the block ends; each is a record."""
        lib, message, target = library(), Message(), FaultTarget(pid=client.pid)
        fault = lib.fault_find(name.encode())
        if not fault:
            raise UsageError(f"there is no fault called {name}")
        identity = self.text(name)

        def act(kind: Kind, action: Any) -> bool:
            done = bool(action(target, message))
            self.record(kind, outcome=Outcome.OK if done else Outcome.UNKNOWN, name=identity, value=client.identity)
            return done

        act(Kind.FAULT_INJECT, fault.contents.inject)
        try:
            if not act(Kind.FAULT_PROVE, fault.contents.prove):
                raise Inconclusive(f"the fault {name} did not take effect on {client.name}: {message}")
            yield
        finally:
            act(Kind.FAULT_HEAL, fault.contents.heal)

    # --- history ---

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
        actor = self._texts.get("driver", 0)
        record = Record(kind=kind, actor=actor, mono_ns=self.mono_ns, wall_ns=wall_ns, **fields)
        index = int(library().history_append(self._history, ctypes.byref(record)))
        return 0 if index == FULL else index

    def judge(self, require: str | None = None) -> dict[str, Any]:
        """Ends the history and has it judged: what `check` says, as docs/verdicts.md describes it."""
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

    def _lap(self, name: str) -> None:
        now = real_time.perf_counter()
        self.elapsed_ms[name] = self.elapsed_ms.get(name, 0.0) + (now - self._mark) * 1000
        self._mark = now

    @staticmethod
    def _must(good: Any, message: Message) -> Any:
        if not good:
            raise Inconclusive(str(message))
        return good


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
