"""A fault in a trial: injected, proved, healed, and each of that a record of the history."""

import ctypes as c
from collections.abc import Callable, Sequence
from enum import IntEnum
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import redis

from harness.driver.errors import Inconclusive, Unanswered, UsageError
from harness.driver.etcd_server import EtcdServer
from harness.driver.library import (
    ClientRestart,
    FaultMeans,
    FaultOption,
    FaultTarget,
    HostSuspended,
    Kind,
    Message,
    OneServer,
    OneServerLost,
    Outcome,
    ProcessEnded,
    ServerQuery,
    TwoServers,
    library,
)
from harness.driver.postgres_server import PostgresServer
from harness.driver.redis_server import RedisServer
from harness.driver.topology import Sentinel
from harness.driver.zookeeper_server import ZooKeeperServer

if TYPE_CHECKING:
    from harness.driver.trial import Client, Trial

OneTarget: TypeAlias = "Client | RedisServer | PostgresServer | EtcdServer | ZooKeeperServer | Sentinel | str | None"
Target: TypeAlias = "OneTarget | Sequence[Client]"


POSTGRES_FAULTS = ("clock-drift", "clock-jump", "crash-server", "partition", "pause-server")
NO_ANSWER = -(2**63)


class Moment(IntEnum):
    """When a fault can be proved (enum fault_moment)."""

    AT_ONCE = 0
    BEFORE_HEAL = 1
    AFTER_HEAL = 2


def means_of(trial: "Trial") -> FaultMeans:
    """What a fault may ask of this trial: the conductor's functions, and what only the driver can do."""

    def told(action: Callable[..., object]) -> Callable[..., bool]:
        """No exception can pass through C: its reason waits for Fault to take it."""

        def act(*numbers: int) -> bool:
            try:
                return bool(action(*numbers))
            except (Inconclusive, redis.exceptions.RedisError) as reason:
                trial.fault_reason = str(reason)
                return False

        return act

    def of_servers(action: Callable[..., object]) -> Callable[..., bool]:
        return told(lambda *numbers: action(*(trial.server_numbered(number) for number in numbers)))

    def query(number: int, statement: bytes) -> int:
        try:
            return int(trial.database_numbered(number).session.value(statement.decode()))
        except Inconclusive as reason:
            trial.fault_reason = str(reason)
            return NO_ANSWER

    means = FaultMeans(
        conductor=trial.conductor,
        virtual_time=trial.settings.time == "virtual",
        server_restart=OneServer(told(trial.restart_numbered)),
        replica_lost=OneServerLost(of_servers(trial.lose_replica)),
        clients_lead=TwoServers(of_servers(trial.lead_clients)),
        server_follow=TwoServers(of_servers(trial.follow)),
        client_restart=ClientRestart(told(lambda strand: trial.restart(trial.client_on(strand)))),
        server_query=ServerQuery(query),
        process_ended=ProcessEnded(lambda _, pid: trial.process_ended(pid)),
        host_suspended=HostSuspended(lambda _, strand, suspended: trial.suspend(strand, suspended)),
    )
    for field, function in {
        "process_stopped": "conductor_set_stopped",
        "stop_between_records": "conductor_stop_between_records",
        "strand_stopped": "conductor_set_stalled",
        "strand_stands": "conductor_stands",
        "strand_moves": "conductor_moves",
        "server_silent": "conductor_set_silent",
        "server_answers": "conductor_answers",
        "server_busy": "conductor_set_busy",
        "server_works": "conductor_server_works",
        "settle": "conductor_settle",
        "server_replicas": "conductor_set_replicas",
        "server_clock": "conductor_set_clock",
        "server_wall_us": "conductor_server_wall_us",
        "server_clock_error": "conductor_clock_error",
        "host_clock": "conductor_set_host_clock",
        "host_clock_error": "conductor_host_clock_error",
        "host_wall_ns": "conductor_host_wall_ns",
        "host_mono_ns": "conductor_host_mono_ns",
        "mono_ns": "conductor_mono_ns",
        "wall_ns": "conductor_wall_ns",
        "unreliable": "conductor_set_unreliable",
    }.items():
        setattr(means, field, c.cast(getattr(library(), function), c.c_void_p))
    return means


class Fault:
    """One fault on one target. `heal` may be called twice; a proof that fails raises Inconclusive.

    `target`: a client, a server, a pattern of links ("client-2>redis-*"), several clients, or None where the fault
    needs none (of a fault on clients that means all). `other`: a server that takes part, as the replica of a failover;
    a server's replicas, sentinels or cluster do without being named. Options are the fault's own; `lockstorm faults
    NAME` lists them.
    """

    def __init__(
        self,
        trial: "Trial",
        name: str,
        target: Target,
        other: RedisServer | None = None,
        **options: str | float | bytes,
    ) -> None:
        found = library().fault_find(name.encode())
        if not found:
            raise UsageError(f"there is no fault called {name}")
        self.trial, self.name = trial, name
        self.prepared = self.injected = self.proved = self.healed = False
        self.undone = True  # nothing of it is left
        self.report = ""  # what the last action saw
        self.doubt = ""  # why it was not seen to take effect
        self.proof = ""  # what the last good proof saw
        if isinstance(target, PostgresServer) and name not in POSTGRES_FAULTS:
            raise UsageError(f"{name} happens to redis-servers; to PostgreSQL: {', '.join(POSTGRES_FAULTS)}")
        self._database = target if isinstance(target, PostgresServer) else None
        self._fault = found.contents
        self._message = Message()
        self._others = self._chain(target, other)  # kept: C points to them
        self._options = (FaultOption * max(1, len(options)))(
            *(FaultOption(word.replace("_", "-").encode(), as_bytes(value)) for word, value in options.items())
        )
        if target is None and self._fault.target == b"clients":
            target = [client for client in trial.every_client if not client.ended]
        several = [target] if isinstance(target, str) or not isinstance(target, Sequence) else target
        self._targets = [self._place(each) for each in several or [None]]
        for before, after in pairwise(self._targets):
            before.next = c.pointer(after)
        self.target = self._targets[0]
        self.target.options, self.target.option_count = self._options, len(options)
        if self._others:
            self.target.other = c.pointer(self._others[0])
        self.where = ", ".join(place.name.decode() for place in self._targets if place.name) or name
        if not library().fault_check_options(found, self.target, self._message):
            raise UsageError(str(self._message))

    def _chain(self, target: Target, first: RedisServer | None) -> list[FaultTarget]:
        """Who takes part, each with the next in its `other`: the one that was named, then whoever has to do with it."""
        around = self.trial.around(target) if isinstance(target, RedisServer) else []
        named = [first] if first else []
        places = [self._place(each) for each in (*named, *(each for each in around if each is not first))]
        for before, after in pairwise(places):
            before.other = c.pointer(after)
        return places

    def _place(self, target: OneTarget) -> FaultTarget:
        trial = self.trial
        place = FaultTarget(server=-1, strand=-1, means=c.pointer(trial.means))
        if trial.proxy:
            place.proxy = bytes(trial.proxy.control)
        if isinstance(target, str):
            place.name = place.links = target.encode()
            for node in trial.servers:  # a cut between a node and its replicas concerns whoever waits for those
                if any(fnmatchcase(f"{replica.name}>{node.name}", target) for replica in node.replicas):
                    place.server, place.socket = node.number, bytes(node.socket)
        elif isinstance(target, (RedisServer, Sentinel)):
            place.name, place.pid, place.server = target.name.encode(), target.process.pid, target.number
            place.socket, place.directory = bytes(target.socket), bytes(target.directory)
            place.links, place.probe = f"*>{target.name}".encode(), target.probe.encode()
        elif isinstance(target, PostgresServer):
            place.name, place.pid, place.server = target.name.encode(), target.process.pid, target.number
            place.service, place.socket, place.directory = b"postgres", bytes(target.socket), bytes(target.directory)
            place.links = f"*>{target.name}".encode()
        elif isinstance(target, EtcdServer):
            place.name, place.pid, place.server = target.name.encode(), target.process.pid, target.number
            place.directory, place.links = bytes(target.directory), f"*>{target.name}".encode()
        elif isinstance(target, ZooKeeperServer):
            place.name, place.pid, place.server = target.name.encode(), target.process.pid, target.number
            place.links = f"*>{target.name}".encode()
        elif target:
            place.name, place.strand = target.name.encode(), target.strand
            place.pid = 0 if target.ended else target.pid
            place.links = f"{target.host}>*".encode()
            if trial.servers:
                place.socket = bytes(trial.server.socket)
        return place

    @property
    def prepares(self) -> bool:
        """Whether something must be so for a while before it is injected."""
        return bool(self._fault.prepare)

    def prepare(self) -> None:
        """What must be so before the moment of `inject`, for faults that have such a thing: clients act in between."""
        self.prepared, self.undone = True, False
        if self.prepares and not self._told(self._fault.prepare):
            raise Inconclusive(f"the fault {self.name} could not be prepared on {self.where}: {self.report}")

    def attempt(self, step: Callable[[], None]) -> bool:
        """Prepares or injects it where one fault among many may come to nothing; False: it did, and was taken back."""
        try:
            step()
        except Inconclusive:
            self.doubt = self.report
            self.heal(prove=False)
            self._take_back()
            return False
        return True

    def conclude(self) -> bool:
        """Heals what was attempted. Whether it was proved; if not, it was taken back."""
        try:
            self.heal()
        except Inconclusive:
            if self.proved:
                raise
            self._take_back()
        return self.proved

    def _take_back(self) -> None:
        """The history says that this one was not seen to take effect, and that nothing of it is left. If something is,
        nobody knows what the rest of the trial shows."""
        if not self.undone:
            raise Inconclusive(f"the fault {self.name} could not be taken back from {self.where}: {self.report}")
        self.trial.settle()
        if self.injected:
            self._note(Kind.FAULT_PROVE, Outcome.REFUSED)

    def inject(self) -> None:
        """Does it, and proves it if that can be seen at once."""
        self.injected, self.undone = True, False
        if self._database:
            self._database.entrust()
        if not self._act(Kind.FAULT_INJECT, self._fault.inject):
            raise Inconclusive(f"the fault {self.name} did not take effect on {self.where}: {self.report}")
        if self._fault.moment == Moment.AT_ONCE:
            self._prove()

    def heal(self, *, prove: bool = True) -> None:
        """Undoes it. Without `prove`, a proof that is due now or afterwards is not looked for: the trial has failed."""
        if self.healed or not (self.injected or self.prepared):
            return
        self.healed = True
        if not self.injected:  # nothing has happened that anybody could have seen
            self.undone = self._told(self._fault.heal)
            return
        try:
            if prove and self._fault.moment == Moment.BEFORE_HEAL:
                self._prove()
        finally:
            self.undone = self._told(self._fault.heal)
            settled = self.trial.settles()  # what it let go is recorded, by the store for instance, before this is
            self._note(Kind.FAULT_HEAL, Outcome.OK if self.undone else Outcome.UNKNOWN)
        if prove and not self.undone:
            raise Inconclusive(f"the fault {self.name} could not be healed on {self.where}: {self.report}")
        if prove and not settled:
            raise Unanswered
        if prove and self._fault.moment == Moment.AFTER_HEAL:
            self._prove()

    def _prove(self) -> None:
        self.proved = self._act(Kind.FAULT_PROVE, self._fault.prove)
        if not self.proved:
            self.doubt = self.report
            raise Inconclusive(f"the fault {self.name} did not take effect on {self.where}: {self.report}")
        self.proof = self.report

    def _told(self, action: "c._FuncPointer") -> bool:
        self._message.text, self.trial.fault_reason = b"", ""
        done = bool(action(self.target, self._message))
        self.report = ": ".join(filter(None, (str(self._message), self.trial.fault_reason)))
        return done

    def _act(self, kind: Kind, action: "c._FuncPointer") -> bool:
        done = self._told(action)
        self._note(kind, Outcome.OK if done else Outcome.UNKNOWN)
        return done

    def _note(self, kind: Kind, outcome: Outcome) -> None:
        trial = self.trial
        trial.record(kind, outcome=outcome, name=trial.text(self.name), value=trial.text(self.where))


def as_bytes(value: str | float | bytes) -> bytes:
    if isinstance(value, bytes):
        return value
    return ("yes" if value else "no").encode() if isinstance(value, bool) else str(value).encode()
