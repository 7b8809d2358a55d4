"""A trial: one lock, one scenario, one history.

with Trial(TrialSettings("set-nx-px", seed=7)) as trial:
    a, b = trial.clients(2)
    a.start_increment()
    with trial.pause(a, at="before-write"):
        b.increment()
    a.finish()
    print(trial.judge().sentence)
"""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from msgspec import structs

from lockstorm.base.atomic_file import write_text
from lockstorm.base.errors import Inconclusive, UsageError
from lockstorm.base.waiting_note import note_wait, somebody_listens
from lockstorm.locks.lock_names import lock_named
from lockstorm.locks.waiting import noticed_ms, recovered_ms
from lockstorm.native.library import TaskState
from lockstorm.process.cores import claimed_cores, on_core
from lockstorm.process.process import Sandbox
from lockstorm.results.event import Event
from lockstorm.results.verdict import Verdict
from lockstorm.servers.ensemble_settings import silence_of_leader_ms
from lockstorm.servers.postgres_server import PostgresServer
from lockstorm.servers.redis_server import RedisServer
from lockstorm.servers.services import check_built, check_installed
from lockstorm.servers.topology import tagged
from lockstorm.trial.attached_nodes import NODES, AttachedNodes
from lockstorm.trial.client import Client
from lockstorm.trial.client_groups import patience, served_ms
from lockstorm.trial.etcd_nodes import EtcdNodes
from lockstorm.trial.fault import TrialFaults
from lockstorm.trial.fault_driver import TrialDriver
from lockstorm.trial.nodes import AnyNodes
from lockstorm.trial.open_calls import open_calls
from lockstorm.trial.postgres_nodes import PostgresNodes
from lockstorm.trial.redis_nodes import RedisNodes
from lockstorm.trial.settings import REPLY_LIMIT_MS, VIRTUAL_LEASE_MS, TrialSettings, lease_late_in
from lockstorm.trial.stall_sentinel import StallSentinel
from lockstorm.trial.trial_clients import TrialClients
from lockstorm.trial.trial_clock import TrialClock
from lockstorm.trial.trial_context import TrialContext
from lockstorm.trial.trial_links import CONNECT, TrialLinks
from lockstorm.trial.trial_recorder import TrialRecorder
from lockstorm.trial.trial_residue import TrialResidue
from lockstorm.trial.trial_scheduler import TrialScheduler
from lockstorm.trial.trial_store import TrialStore
from lockstorm.trial.zookeeper_nodes import ZooKeeperNodes

ELSEWHERE = (
    "the lock does not use the servers of `open`: clients were granted it, and nothing of it reached them. What it "
    f"does use has no virtual time, so nothing can be said of it here (--time real). {CONNECT}"
)
BOUND_LEASES, BOUND_SLEEP_MS = 2, 2_000  # a lease that runs out, one of a wait that had just begun, a poller's sleep
QUIET_BEYOND_MS = 100
LOOK_AGAIN_S = 3  # reading a history takes time from those that write it
VAIN_ASKS = 5  # more than liveness asks for (checkers/properties/liveness.c)


class Trial:
    """Servers, clients, clock and history of one trial, in a private directory that is removed when the trial closes.

    The work is done by its parts: `sandbox`, `scheduler` and `clock`, `recorder`, `links`, `nodes` and `store`,
    `client_processes`, `faults`, `residue`. Scenarios call the most usual of their methods on the trial (`_open`).

    In virtual time all processes of the trial stay on the core where it was opened. One process works at a time, so
    nothing is lost. On two cores, a packet that one has taken from its queue and not delivered yet is invisible to the
    other: a server that is about to receive something would look idle (harness/scheduler/quiescence.h).
    """

    def __init__(self, settings: TrialSettings) -> None:
        self.settings = settings
        self.lock = lock_named(settings.lock)
        self.lease_ms = settings.lease_ms or VIRTUAL_LEASE_MS
        self.control = settings.control
        self.resource = tagged(settings.resource) if settings.topology == "cluster" else settings.resource
        usual_ms = BOUND_LEASES * self.lease_ms + BOUND_SLEEP_MS + lease_late_in(settings, self.lock)
        self.bound_ms = settings.parameters.get("bound_ms", usual_ms)  # how long a free lock may stay unclaimed
        self.bound_ms += (settings.pace - 1) * REPLY_LIMIT_MS
        self.steps_must_end = False  # before judge(), unless a quiet phase showed that they do not
        self.patience_ms = self.bound_ms  # of a quiet phase: longer than any promise, to see who is late
        self.verdict: Verdict | None = None
        self.elapsed_ms: dict[str, float] = {}
        self._sentinel: StallSentinel | None = None  # in real time
        self._look_again_ns = 0  # in real time: for calls that do not come back
        self._store_mode = settings.store or "open"
        self._exit = contextlib.ExitStack()
        self._mark = time.perf_counter()

    # --- life ---

    def __enter__(self) -> Self:
        if self.settings.attached:
            check_built(self.lock, self._store_mode)
        else:
            check_installed(self.lock, self._store_mode, pooled=self.settings.pooled)
        try:
            self._open()
        except BaseException:
            self._exit.close()
            raise
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        with self._exit:
            self.explain_by_stall(error)
            if isinstance(error, Inconclusive) and (said := self._adapter_error()):
                error.args = (f"{error}; {said}",)

    def _open(self) -> None:
        self.context = self._open_context()
        self.sandbox, self.scheduler = self.context.sandbox, self.context.scheduler
        self.recorder, self.links = self.context.recorder, self.context.links
        kind: type[AnyNodes] = AttachedNodes if self.settings.attached else NODES[self.lock.service]
        self.nodes = self.context.nodes = kind(self.context)
        self.store = TrialStore(self.context, self._store_mode)
        self.clock = TrialClock(self.context, self.nodes)
        self.client_processes = TrialClients(self.context, self.nodes, self.store.socket)
        self.faults = TrialFaults(TrialDriver(self.context, self.nodes, self.client_processes))
        self.residue = TrialResidue(self.context, self.nodes)
        self.scheduler.after_run = self.nodes.check
        self.scheduler.explain_death = self.client_processes.explain_death
        # What scenarios are written in.
        self.run, self.settle, self.restart = self.scheduler.run, self.scheduler.settle, self.client_processes.restart
        self.advance, self.wall_ms = self.clock.advance, self.clock.host_wall_ms
        self.approach_lease_end, self.outlast_lease = self.clock.approach_lease_end, self.clock.outlast_lease
        self.pause, self.kill, self.fault = self.faults.pause, self.faults.kill, self.faults.fault
        self.fault_unless_control = self.faults.fault_unless_control
        self.inject, self.prepare = self.faults.inject, self.faults.prepare
        self.rule, self.note, self.commands = self.links.rule, self.recorder.note, self.nodes.commands
        self.story, self.save = self.recorder.read, self.recorder.save
        self._start_servers()
        self._lap("start")

    def _open_context(self) -> TrialContext:
        settings = self.settings
        if settings.time == "virtual":
            (core,) = self._exit.enter_context(claimed_cores(1))
            self._exit.enter_context(on_core(core))
        sandbox = Sandbox(near=settings.time == "virtual")
        self._exit.callback(sandbox.close)
        plugin = settings.lock if self.lock.plugin else ""
        scheduler = TrialScheduler(sandbox.directory / "page", settings, self.lease_ms, plugin)
        self._exit.callback(scheduler.close)
        recorder = TrialRecorder(sandbox.directory / "history", scheduler, settings)
        self._exit.callback(recorder.close)
        recorder.begin(
            settings,
            store=self._store_mode,
            service=self.lock.service,
            lease_ms=self.lease_ms,
            bound_ms=self.bound_ms,
        )
        links = TrialLinks(sandbox, scheduler, recorder, settings)
        self._exit.callback(links.close)
        lock, lease_ms, resource = self.lock, self.lease_ms, self.resource
        context = TrialContext(settings, lock, lease_ms, resource, sandbox, scheduler, recorder, links, self._exit)
        context.reply_limit_ms *= settings.pace * patience(settings.grouped_clients)
        return context

    def _start_servers(self) -> None:
        self.store.start_table()
        self.nodes.start()
        self.store.start()
        self.nodes.ready()
        self.store.ready()
        if self.settings.time == "virtual":
            self.clock.prove()
        else:
            self._watch_for_stalls()

    def _watch_for_stalls(self) -> None:
        times_ms = {"lease": self.lease_ms, "bound": self.bound_ms, "limit of an answer": self.reply_limit_ms}
        shortest = min(times_ms, key=lambda name: times_ms[name])
        self._sentinel = StallSentinel(times_ms[shortest], shortest)
        self._exit.callback(self._sentinel.stop)
        self.scheduler.while_waiting = self._while_waiting

    def _while_waiting(self) -> None:
        self.must_not_stall()
        if self.mono_ns >= self._look_again_ns and somebody_listens():
            self._look_again_ns = self.mono_ns + LOOK_AGAIN_S * 1_000_000_000
            if waits := open_calls(self.story(), self.mono_ns):
                note_wait(waits)

    def must_not_stall(self) -> None:
        """Raises Stalled if the machine stood still for longer than the trial could bear (in real time)."""
        if self._sentinel:
            self._sentinel.must_not_stall()

    def explain_by_stall(self, error: BaseException | None) -> None:
        """Raises Stalled in the place of an error, if the machine stood still before (in real time)."""
        if self._sentinel:
            self._sentinel.explain(error)

    def clients(self, count: int, resource: bytes | None = None) -> list[Client]:
        """Starts client-1 .. client-N side by side; returns when each has opened its lock and waits for a step."""
        new = self.client_processes.start(count, resource or self.resource)
        self._lap("clients")
        return new

    def begin_quiet(self) -> None:
        """Begins a phase in which nothing is broken, and records how long a free lock may stay unclaimed in it: what
        its pattern promises, and more if something was broken before (harness/lockstorm/locks/waiting.py)."""
        if "bound_ms" not in self.settings.parameters and self.settings.time == "virtual":
            promised_ms = None if self.recorder.is_disturbed else noticed_ms(self.lock)
            healed_ms = recovered_ms(self.lock, self.lease_ms, self.reply_limit_ms)
            self.bound_ms = min(self.patience_ms, healed_ms if promised_ms is None else promised_ms)
            self.recorder.number("bound_ms", self.bound_ms)
        self.recorder.phase("quiet")

    def quiet(self, *clients: Client) -> None:
        """Plays the last phase: heals every fault, then has each of these clients that lives served once more. A client
        without a step increments; if all have one, the first one does so when it has done its step. Ends when all are
        served, or when it is certain that one never will be: that is the finding, and no error. Raises UsageError if
        none of them lives, because nobody could find out then whether the lock is free."""
        living = [client for client in clients if not client.ended]
        if not living:
            raise UsageError("quiet() needs a client that lives: a scenario must leave one that can be served")
        self.faults.heal()
        self.begin_quiet()
        self.steps_must_end = False
        idle = [client for client in living if client.state is TaskState.IDLE]
        for client in living:
            client.go_on()
            if client in idle:
                client.start_increment()
        held_ms = self.lease_ms if self.lock.lease else self.patience_ms  # by a client that is dead
        many_ms = served_ms(self.settings.grouped_clients)
        limit_ns = (held_ms + self.patience_ms + QUIET_BEYOND_MS + many_ms) * 1_000_000
        self.run(living, self.mono_ns + limit_ns)
        if not idle and living[0].state is TaskState.IDLE:  # none has asked for the lock in this phase
            living[0].start_increment()
            self.run(living[:1], self.mono_ns + limit_ns)
        self.clock.note()

    def asks_in_vain(self) -> str:
        """Of a library that was asked for its lock and has granted nothing, although nothing was broken: has a client
        ask for it until liveness can be judged. Then returns why it is not granted; empty: somebody was granted it."""
        asked = [client for client in self.client_processes.living if client.state is TaskState.IDLE]
        unserved = asked and not any(client.result().ok or client.result().turns for client in asked)
        if not self.lock.adapter or self.recorder.is_disturbed or not unserved or self._was_granted():
            return ""
        self.begin_quiet()
        for _ in range(VAIN_ASKS):
            if asked[0].acquire().ok:
                return ""
            self.advance(self.bound_ms / (VAIN_ASKS - 2))
        vain = f"{VAIN_ASKS} acquires by a client that was alone were {asked[0].result().outcome.name.lower()}"
        return f"{vain}; {said}" if (said := self._adapter_error()) else vain

    def _adapter_error(self) -> str:
        """Of a library that was never granted its lock: what its adapter said last about that; empty: nothing."""
        if not self.lock.adapter or not (said := self.client_processes.adapter_error()) or self._was_granted():
            return ""
        return f"its adapter says: {said}"

    def _was_granted(self) -> bool:
        return any(event.kind == "acquire-return" and event.outcome == "ok" for event in self.story())

    def judge(
        self, require: str | None = None, story_to: list[Event] | None = None, save: Path | None = None
    ) -> Verdict:
        """Ends the trial and judges its history: the result of `check` (docs/verdicts.md). `story_to` receives the
        history's records; `save`: where to write it. Raises Stalled if the machine stood still for longer than the
        trial could bear, UsageError if a client has a step under way that must end (issue #55): what it would have done
        is not in the history; and Inconclusive if a library is granted its lock in virtual time without its servers."""
        busy = [it.name for it in self.client_processes.living if it.state not in (TaskState.IDLE, TaskState.GONE)]
        if self.steps_must_end and busy:
            raise UsageError(f"judge: {', '.join(busy)} has a step under way: let it end, as finish() and quiet() do")
        self.faults.heal()
        self.links.check_rules()
        self.links.check_used()
        if self.settings.time == "real":
            self.client_processes.stop_between_records()
        self.scheduler.settle()
        self.recorder.end()
        self._lap("scenario")
        self.must_not_stall()
        self.verdict = self.recorder.judge(require)
        if self.settings.also_require and not require:
            required = dict.fromkeys((*self.verdict.required, *self.settings.also_require))
            self.verdict = self.recorder.judge(",".join(required))
        if self.links.is_elsewhere() and self.verdict.grants:
            if self.settings.time == "virtual":
                raise Inconclusive(ELSEWHERE)
            self.verdict = structs.replace(self.verdict, elsewhere=True)
        self._lap("judge")
        if story_to is not None:
            story_to.extend(self.recorder.read())
        if save:
            self.recorder.save(save)
        return self.verdict

    @contextlib.contextmanager
    def logs_kept(self, path: Path | None) -> Iterator[None]:
        """Writes what the trial's processes have logged to a file when the block ends, also if it fails."""
        try:
            yield
        finally:
            if path and (written := self.sandbox.logs()):
                write_text(path, "".join(f"== {name}\n{text}" for name, text in written.items()))

    def _lap(self, name: str) -> None:
        now = time.perf_counter()
        self.elapsed_ms[name] = self.elapsed_ms.get(name, 0.0) + (now - self._mark) * 1000
        self._mark = now

    # --- what it consists of ---

    @property
    def reply_limit_ms(self) -> int:
        """How long a client waits for an ordinary answer."""
        return self.context.reply_limit_ms

    def versions(self) -> dict[str, str]:
        """The versions of the servers that the lock and the resource live on, and of the lock's library."""
        table = {"postgres": self.store.table.version()} if self.store.table else {}
        hosted = self.lock.adapter or self.lock.plugin
        library = {hosted.name: hosted.version} if hosted else {}
        return {**self.nodes.versions(), **table, **library}

    # --- nodes ---

    @property
    def redis(self) -> RedisNodes:
        return self.nodes.as_kind(RedisNodes)

    @property
    def postgres(self) -> PostgresNodes:
        return self.nodes.as_kind(PostgresNodes)

    @property
    def etcd(self) -> EtcdNodes:
        return self.nodes.as_kind(EtcdNodes)

    @property
    def zookeeper(self) -> ZooKeeperNodes:
        return self.nodes.as_kind(ZooKeeperNodes)

    @property
    def servers(self) -> list[RedisServer]:
        """The nodes, if they are redis-servers."""
        return self.faults.driver.masters

    @property
    def server(self) -> RedisServer:
        """The first of them, or the only one."""
        return self.redis.known[0]

    @property
    def replicas(self) -> list[RedisServer]:
        return self.redis.replicas

    @property
    def database(self) -> PostgresServer:
        return self.postgres.known[0]

    @property
    def data_after_crash(self) -> str:
        """What a redis-server remembers after a crash (an option of crash-server): nothing; what its settings have
        brought to the disk, if a deployment says how it is configured; all, in the control of a restart."""
        deployment = self.settings.deployment
        if self.control and self.settings.persistence == "aof":
            return "kept"
        return "configured" if deployment and deployment.is_redis_configured else "none"

    @property
    def election_options(self) -> dict[str, int]:
        """Options of failover-sentinel and failover-cluster: how long a deployment waits for a silent master."""
        return self.settings.elections.fault_options(self.settings.topology)

    @property
    def silence_ms(self) -> int:
        """How much longer than usual servers with a team's settings wait for a silent leader."""
        deployment, service = self.settings.deployment, self.lock.service
        return silence_of_leader_ms(service, deployment.given(service)) if deployment else 0

    @property
    def nodes_pattern(self) -> str:
        """The names of the lock's nodes, as a pattern; the resource's server does not match."""
        return f"{self.lock.service}-*"

    # --- clients and time ---

    def finish(self, *clients: Client) -> None:
        """Runs the trial until these clients have done their steps."""
        for client in clients:
            client.go_on()
        self.run(list(clients))

    @property
    def mono_ns(self) -> int:
        return self.scheduler.mono_ns

    # --- faults ---

    def touch_links(self, client: Client) -> None:
        """Sends a small message along each of a client's links to its nodes, on connections of its own, as a connection
        pool does: a cut then swallows something even if the client is silent."""
        self.links.touch((f"{client.host}>{node.name}" for node in self.nodes.known), self.nodes.touch)
