"""A fault in a trial: it is injected, proved and healed, and each of these is a record of the history."""

import ctypes as c
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import TypeAlias

from lockstorm.base.errors import Inconclusive, Unanswered, UsageError
from lockstorm.native.fault_names import fault_on
from lockstorm.native.library import FaultOption, FaultTarget, Kind, Message, Moment, Outcome, library
from lockstorm.servers.etcd_server import EtcdServer
from lockstorm.servers.postgres_server import PostgresServer
from lockstorm.servers.redis_server import RedisServer
from lockstorm.servers.topology import Sentinel
from lockstorm.servers.zookeeper_server import ZooKeeperServer
from lockstorm.trial.client import Client
from lockstorm.trial.fault_means import TrialMeans
from lockstorm.trial.redis_nodes import RedisNodes

OneTarget: TypeAlias = "Client | RedisServer | PostgresServer | EtcdServer | ZooKeeperServer | Sentinel | str | None"
Target: TypeAlias = "OneTarget | Sequence[Client]"


# The faults that apply to servers other than redis-server, with the service's name for messages.
FAULTS_ELSEWHERE: dict[type, tuple[str, tuple[str, ...]]] = {
    PostgresServer: ("PostgreSQL", ("clock-drift", "clock-jump", "crash-server", "partition", "pause-server")),
    EtcdServer: ("etcd", ("kill-server", "partition", "pause-server")),
    ZooKeeperServer: ("ZooKeeper", ("clock-drift", "kill-server", "partition", "pause-server")),
}


# The faults on a client that stop or end its whole process in another way than those can that share it.
STRIKES_PROCESS = ("kill-client", "suspend-host")


class Fault:
    """One fault on one target. `heal` may be called twice; a proof that fails raises Inconclusive.

    `target`: a client, a server, a pattern of links ("client-2>redis-*"), several clients, or None where the fault
    needs none (for a fault on clients that means all). `other`: a server that takes part, such as the replica of a
    failover; a server's replicas, sentinels and cluster take part without being named. `lockstorm faults NAME` lists
    the options.
    """

    def __init__(
        self,
        means: TrialMeans,
        name: str,
        target: Target,
        other: RedisServer | None = None,
        **options: str | float | bytes,
    ) -> None:
        name = fault_on(name, isinstance(target, Client))
        found = library().fault_find(name.encode())
        if not found:
            raise UsageError(f"there is no fault called {name}")
        self.means, self.trial, self.name = means, means.trial, name
        self.prepared = self.injected = self.proved = self.healed = False
        self.undone = True  # no effect of it is left
        self.report = ""  # what the last action of the fault observed
        self.doubt = ""  # why it could not be proved
        self.proof = ""  # what the last proof that succeeded observed
        _check_service(target, name, options)
        _check_group(target, name)
        self._database = target if isinstance(target, PostgresServer) else None
        self._fault = found.contents
        self._message = Message()
        self._others = self._chain(target, other)  # kept: C points to them
        self._options = (FaultOption * max(1, len(options)))(
            *(FaultOption(word.replace("_", "-").encode(), as_bytes(value)) for word, value in options.items())
        )
        if target is None and self._fault.target == b"clients":
            target = means.clients.living
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
        """The servers that take part, each with the next in its `other`: the one that was named, then those around the
        target."""
        around = self.means.nodes.as_kind(RedisNodes).around(target) if isinstance(target, RedisServer) else []
        named = [first] if first else []
        places = [self._place(each) for each in (*named, *(each for each in around if each is not first))]
        for before, after in pairwise(places):
            before.other = c.pointer(after)
        return places

    def _place(self, target: OneTarget) -> FaultTarget:
        masters, proxy = self.means.masters, self.trial.links.proxy
        place = FaultTarget(fault=c.pointer(self._fault), server=-1, task=-1, means=c.pointer(self.means.raw))
        if proxy:
            place.proxy = bytes(proxy.control)
        if isinstance(target, str):
            place.name = place.links = target.encode()
            for node in masters:  # a cut between a node and its replicas concerns a client that waits for those
                if any(fnmatchcase(f"{replica.name}>{node.name}", target) for replica in node.replicas):
                    place.server, place.socket = node.number, bytes(node.socket)
        elif isinstance(target, (RedisServer, Sentinel)):
            place.name, place.pid, place.server = target.name.encode(), target.process.pid, target.number
            place.socket, place.directory = bytes(target.socket), bytes(target.directory)
            place.links, place.probe = f"*>{target.name}".encode(), target.probe.encode()
        elif isinstance(target, PostgresServer):
            place.name, place.pid, place.server = target.name.encode(), target.process.pid, target.number
            place.service, place.socket, place.directory = b"postgres", bytes(target.socket), bytes(target.directory)
            place.clock_step_us = target.clock_step_us
            place.links = f"*>{target.name}".encode()
        elif isinstance(target, EtcdServer):
            place.name, place.pid, place.server = target.name.encode(), target.process.pid, target.number
            place.service, place.directory = b"etcd", bytes(target.directory)
            place.links = f"*>{target.name}".encode()
        elif isinstance(target, ZooKeeperServer):
            place.name, place.pid, place.server = target.name.encode(), target.process.pid, target.number
            place.service, place.clock_step_us = b"zookeeper", target.clock_step_us
            place.links = f"*>{target.name}".encode()
        elif target:
            place.name, place.task, place.shares_process = target.name.encode(), target.task, bool(target.group)
            place.pid = 0 if target.ended else target.pid
            place.links = f"{target.host}>*".encode()
            if masters:
                place.socket = bytes(masters[0].socket)
        return place

    @property
    def prepares(self) -> bool:
        """Whether the fault has to be prepared some time before it is injected."""
        return bool(self._fault.prepare)

    def prepare(self) -> None:
        """Prepares the fault, if it has to be; clients go on until `inject`."""
        self.prepared, self.undone = True, False
        if self.prepares and not self._call(self._fault.prepare):
            raise Inconclusive(f"the fault {self.name} could not be prepared on {self.where}: {self.report}")

    def attempt(self, step: Callable[[], None]) -> bool:
        """Runs `prepare` or `inject` where one fault of many may fail; False: it failed and was undone."""
        try:
            step()
        except Inconclusive:
            self.doubt = self.report
            self.heal(prove=False)
            self._undo()
            return False
        return True

    def conclude(self) -> bool:
        """Heals a fault that was attempted. True if it was proved; if not, it was undone."""
        try:
            self.heal()
        except Inconclusive:
            if self.proved:
                raise
            self._undo()
        return self.proved

    def _undo(self) -> None:
        """Records that the fault was not proved, and that no effect of it is left. If one is left, the rest of the
        trial proves nothing: raises Inconclusive."""
        if not self.undone:
            raise Inconclusive(f"the fault {self.name} could not be taken back from {self.where}: {self.report}")
        self.trial.scheduler.settle()
        if self.injected:
            self._note(Kind.FAULT_PROVE, Outcome.REFUSED)

    def inject(self) -> None:
        """Injects the fault, and proves it if it can be proved at once."""
        self.injected, self.undone = True, False
        if self._database:
            self._database.register_children()
        if not self._act(Kind.FAULT_INJECT, self._fault.inject):
            raise Inconclusive(f"the fault {self.name} did not take effect on {self.where}: {self.report}")
        if self._fault.moment == Moment.AT_ONCE:
            self._prove()

    def heal(self, *, prove: bool = True) -> None:
        """Undoes the fault. `prove` False: skips a proof that is due now or afterwards, for the trial has failed."""
        if self.healed or not (self.injected or self.prepared):
            return
        self.healed = True
        if not self.injected:  # it had no effect yet, so nothing is recorded
            self.undone = self._call(self._fault.heal)
            return
        try:
            if prove and self._fault.moment == Moment.BEFORE_HEAL:
                self._prove()
        finally:
            self.undone = self._call(self._fault.heal)
            settled = self.trial.scheduler.try_settle()  # what it held back is recorded first, by the store for example
            self._note(Kind.FAULT_HEAL, Outcome.OK if self.undone else Outcome.UNKNOWN)
        if prove and not self.undone:
            raise Inconclusive(f"the fault {self.name} could not be healed on {self.where}: {self.report}")
        if prove and not settled:
            raise Unanswered(self.trial.scheduler.unanswered)
        if prove and self._fault.moment == Moment.AFTER_HEAL:
            self._prove()

    def _prove(self) -> None:
        self.proved = self._act(Kind.FAULT_PROVE, self._fault.prove)
        if not self.proved:
            self.doubt = self.report
            raise Inconclusive(f"the fault {self.name} did not take effect on {self.where}: {self.report}")
        self.proof = self.report

    def _call(self, action: "c._FuncPointer") -> bool:
        self._message.text, self.means.reason = b"", ""
        done = bool(action(self.target, self._message))
        self.report = ": ".join(filter(None, (str(self._message), self.means.reason)))
        return done

    def _act(self, kind: Kind, action: "c._FuncPointer") -> bool:
        done = self._call(action)
        self._note(kind, Outcome.OK if done else Outcome.UNKNOWN)
        return done

    def _note(self, kind: Kind, outcome: Outcome) -> None:
        recorder = self.trial.recorder
        recorder.record(kind, outcome=outcome, name=recorder.text(self.name), value=recorder.text(self.where))


def _check_service(target: Target, name: str, options: Mapping[str, object]) -> None:
    """Raises UsageError for a fault that does not apply to a server other than redis-server."""
    for kind, (called, faults) in FAULTS_ELSEWHERE.items():
        if isinstance(target, kind) and name not in faults:
            raise UsageError(f"{name} applies to redis-servers; to {called}: {', '.join(faults)}")
    if isinstance(target, ZooKeeperServer) and name == "clock-drift" and options.get("keep") != "yes":
        raise UsageError("ZooKeeper goes by a monotonic clock, which is never set back: keep=yes")


def _check_group(target: Target, name: str) -> None:
    """Raises UsageError for a fault that would strike the other clients in the process of a client, too."""
    every = target if isinstance(target, Sequence) and not isinstance(target, str) else [target]
    for each in every:
        if isinstance(each, Client) and each.group and name in STRIKES_PROCESS:
            raise UsageError(f"{name} would strike every client of {each.group}, which is one process: pause-client")


def as_bytes(value: str | float | bytes) -> bytes:
    if isinstance(value, bytes):
        return value
    return ("yes" if value else "no").encode() if isinstance(value, bool) else str(value).encode()
