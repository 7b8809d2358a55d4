"""The faults of a trial. Each is injected, proved and healed, and each of these is a record of the history."""

import contextlib
import ctypes as c
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from lockstorm.trial.fault_driver import TrialDriver
from lockstorm.trial.redis_nodes import RedisNodes

OneTarget: TypeAlias = "Client | RedisServer | PostgresServer | EtcdServer | ZooKeeperServer | Sentinel | str | None"
Target: TypeAlias = "OneTarget | Sequence[Client]"


@dataclass(frozen=True)
class OtherServers:
    """What differs for servers other than redis-server."""

    title: str
    service: bytes  # its name in struct fault_target
    faults: tuple[str, ...]  # that apply to them


FAULTS_ELSEWHERE: dict[type, OtherServers] = {
    PostgresServer: OtherServers(
        "PostgreSQL", b"postgres", ("clock-drift", "clock-jump", "crash-server", "partition", "pause-server")
    ),
    EtcdServer: OtherServers("etcd", b"etcd", ("kill-server", "partition", "pause-server")),
    ZooKeeperServer: OtherServers(
        "ZooKeeper", b"zookeeper", ("clock-drift", "kill-server", "partition", "pause-server")
    ),
}


# The faults on a client that stop or end its whole process in another way than those can that share it.
BREAKS_LINKS = ("partition", "close-links")  # of a client, whatever goes through them; others wait for a message
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
        driver: TrialDriver,
        name: str,
        target: Target,
        other: RedisServer | None = None,
        **options: str | float | bytes,
    ) -> None:
        name = fault_on(name, isinstance(target, Client))
        found = library().fault_find(name.encode())
        if not found:
            raise UsageError(f"there is no fault called {name}")
        self.driver, self.trial, self.name = driver, driver.trial, name
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
            target = driver.clients.living
        several = [target] if isinstance(target, str) or not isinstance(target, Sequence) else target
        self._targets = [self._place(each) for each in several or [None]]
        struck = zip(several, self._targets, strict=False)  # nothing is struck where several is empty
        behind_links = name in BREAKS_LINKS
        self._broken_links = [
            place.links.decode() for each, place in struck if each and (behind_links or not isinstance(each, Client))
        ]
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
        around = self.driver.nodes.as_kind(RedisNodes).around(target) if isinstance(target, RedisServer) else []
        named = [first] if first else []
        places = [self._place(each) for each in (*named, *(each for each in around if each is not first))]
        for before, after in pairwise(places):
            before.other = c.pointer(after)
        return places

    def _place(self, target: OneTarget) -> FaultTarget:
        masters, proxy = self.driver.masters, self.trial.links.proxy
        place = FaultTarget(fault=c.pointer(self._fault), server=-1, task=-1, driver=c.pointer(self.driver.raw))
        if proxy:
            place.proxy = bytes(proxy.control)
        if isinstance(target, str):
            place.name = place.links = target.encode()
            for node in masters:  # a cut between a node and its replicas concerns a client that waits for those
                if any(fnmatchcase(f"{replica.name}>{node.name}", target) for replica in node.replicas):
                    place.server, place.socket = node.number, bytes(node.socket)
        elif isinstance(target, Client):
            place.name, place.task, place.shares_process = target.name.encode(), target.task, bool(target.group)
            place.pid = 0 if target.ended else target.pid
            place.links = f"{target.host}>*".encode()
            if masters:
                place.socket = bytes(masters[0].socket)
        elif target:
            place.name, place.pid, place.server = target.name.encode(), target.process.pid, target.number
            place.links = f"*>{target.name}".encode()
            if elsewhere := FAULTS_ELSEWHERE.get(type(target)):
                place.service = elsewhere.service
            if isinstance(target, (RedisServer, Sentinel)):
                place.probe = target.probe.encode()
            if isinstance(target, (RedisServer, Sentinel, PostgresServer)):
                place.socket = bytes(target.socket)
            if not isinstance(target, ZooKeeperServer):
                place.directory = bytes(target.directory)
            if isinstance(target, (PostgresServer, ZooKeeperServer)):
                place.clock_step_us = target.clock_step_us
        return place

    @property
    def prepares(self) -> bool:
        return bool(self._fault.prepare)

    def prepare(self) -> None:
        """Prepares the fault, if it has to be; clients go on until `inject`."""
        assert not self.prepared and not self.injected
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
        assert not self.injected and not self.healed  # its effect and its proof are those of one injection
        # Before C acts: if the call fails half-way, `heal` has to take back what it did.
        self.injected, self.undone = True, False
        if self._database:
            self._database.register_children()
        if not self._act(Kind.FAULT_INJECT, self._fault.inject):
            raise Inconclusive(f"the fault {self.name} did not take effect on {self.where}: {self.report}")
        for pattern in self._broken_links:
            self.trial.links.note_broken(self.name, pattern)
        if self._fault.moment == Moment.AT_ONCE:
            self._prove()

    def heal(self, *, prove: bool = True) -> None:
        """Undoes the fault. `prove` False: skips a proof that is due now or afterwards, for the trial has failed."""
        if self.healed or not (self.injected or self.prepared):
            return
        self.healed = True  # first: a heal that fails is not repeated when the trial closes
        if not self.injected:  # it had no effect yet, so nothing is recorded
            self.undone = self._call(self._fault.heal)
            return
        try:
            if prove and self._fault.moment == Moment.BEFORE_HEAL:
                self._prove()
        finally:  # also if the proof fails: what comes after must find healthy servers
            self.undone = self._call(self._fault.heal)
            # What the fault held back is recorded before FAULT_HEAL, by the store for example: otherwise the order of
            # these records would depend on how fast the store is.
            settled = self.trial.scheduler.try_settle()
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
        self._message.text, self.driver.reason = b"", ""  # each is written by a failure only
        done = not action or bool(action(self.target, self._message))  # there may be nothing to heal
        self.report = ": ".join(filter(None, (str(self._message), self.driver.reason)))
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
    elsewhere = FAULTS_ELSEWHERE.get(type(target))
    if elsewhere and name not in elsewhere.faults:
        raise UsageError(f"{name} applies to redis-servers; to {elsewhere.title}: {', '.join(elsewhere.faults)}")
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


class TrialFaults:
    """Injects faults and keeps those that may still have to be healed."""

    def __init__(self, driver: TrialDriver) -> None:
        self.driver = driver
        self.every: list[Fault] = []  # since the last `heal`, also those that a block has healed

    @contextlib.contextmanager
    def pause(self, client: Client, at: str | None = None) -> Iterator[None]:
        """Stops a client's whole process, at a checkpoint or now, until the block ends."""
        if at:
            client.run_to(at)
        with self.fault("pause-client", client):
            yield
        client.go_on()

    def kill(self, client: Client, at: str | None = None) -> None:
        """Ends a client's process, at a checkpoint or now."""
        if at:
            client.run_to(at)
        self.inject("kill-client", client)

    @contextlib.contextmanager
    def fault(
        self, name: str, target: Target = None, other: RedisServer | None = None, **options: str | float | bytes
    ) -> Iterator[Fault]:
        """Injects a fault, proves it, and heals it when the block ends; each of these is recorded."""
        fault = self.inject(name, target, other, **options)
        try:
            yield fault
        except BaseException:
            fault.heal(prove=False)
            raise
        fault.heal()

    def fault_unless_control(
        self, name: str, target: Target = None, **options: str | float | bytes
    ) -> contextlib.AbstractContextManager[object]:
        """The same; in a control the block runs without the fault."""
        is_control = self.driver.trial.settings.control
        return contextlib.nullcontext() if is_control else self.fault(name, target, None, **options)

    def inject(
        self, name: str, target: Target = None, other: RedisServer | None = None, **options: str | float | bytes
    ) -> Fault:
        """Injects a fault that lasts until its `heal` is called or the trial ends."""
        fault = self._create(name, target, other, **options)
        try:
            fault.inject()
        except BaseException:
            fault.heal(prove=False)
            raise
        return fault

    def prepare(
        self, name: str, target: Target = None, other: RedisServer | None = None, **options: str | float | bytes
    ) -> Fault:
        """Prepares a fault; the caller then calls its `inject` and `heal`. What clients write in between is what a
        failover loses."""
        fault = self._create(name, target, other, **options)
        fault.prepare()
        return fault

    def _create(
        self, name: str, target: Target, other: RedisServer | None = None, **options: str | float | bytes
    ) -> Fault:
        fault = Fault(self.driver, name, target, other, **options)
        self.driver.trial.recorder.is_disturbed = True
        self.every.append(fault)
        return fault

    def heal(self) -> None:
        """Heals every fault that is not healed yet, the last one first."""
        while self.every:
            self.every.pop().heal()
