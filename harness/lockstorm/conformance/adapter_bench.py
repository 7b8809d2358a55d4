"""The bench of an adapter's checks: real servers of its service, a resource that no other check uses, copies of the
program."""

import contextlib
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from lockstorm.locks.adapter import AdapterProgram, adapter_facts
from lockstorm.locks.adapter_lines import AdapterAnswer, AdapterFacts, ProtocolError
from lockstorm.locks.adapter_questions import Node, TcpNode, UnixNode
from lockstorm.process.process import Sandbox
from lockstorm.results.lock_entry import LockEntry
from lockstorm.servers.etcd_server import EtcdServer
from lockstorm.servers.postgres_server import PostgresServer
from lockstorm.servers.redis_server import Network, RedisServer
from lockstorm.servers.services import lease_at_least
from lockstorm.servers.topology import CLUSTER_MASTERS, Sentinel, join, watch
from lockstorm.servers.zookeeper_server import ZooKeeperServer

LEASE_MS = 1_000
LONG_LEASE_MS = 60_000
WAIT_MS = 300
ANSWER_LIMIT_S = 15.0
NO_KEY = -2  # as PTTL answers
PROMPT_S = 5.0  # limit of an operation that does not wait, even on a busy machine


BenchServer = RedisServer | EtcdServer | PostgresServer | ZooKeeperServer


def bench_server(entry: LockEntry, sandbox: Sandbox, name: str) -> BenchServer:
    """Starts a server for this adapter, without waiting for it."""
    if entry.service == "etcd":
        server = EtcdServer(sandbox, name, port=sandbox.hold_port() if entry.library.tcp else 0)
        server.meet([server], lambda *_: None)
        server.start()
        return server
    if entry.service == "postgres":
        return PostgresServer(sandbox, name, clock=None, port=sandbox.hold_port())
    if entry.service == "zookeeper":
        return ZooKeeperServer(sandbox, name, clock=None, peers={})
    return RedisServer(sandbox, name, clock=None)


def bench_servers(entry: LockEntry, sandbox: Sandbox) -> tuple[Sequence[BenchServer], Sequence[BenchServer | Sentinel]]:
    """Starts the servers of an adapter; they are ready. Those that keep the lock, and those whose addresses it is
    given."""
    topology = entry.library.topology
    if topology == "single":
        servers = [bench_server(entry, sandbox, f"{entry.service}-{each + 1}") for each in range(entry.nodes)]
        for server in servers:
            server.ready()
            if entry.library.tcp and isinstance(server, RedisServer):
                server.listen()
        return servers, servers
    network = Network(topology == "cluster", _own_port)
    count = CLUSTER_MASTERS if topology == "cluster" else 1
    masters = [RedisServer(sandbox, f"redis-{each + 1}", clock=None, network=network) for each in range(count)]
    for master in masters:
        master.ready()
    if topology == "cluster":
        join(masters, {})
    return masters, masters if topology == "cluster" else watch(sandbox, masters[0], _own_port)


def _own_port(name: str, port: int) -> int:
    return port


@dataclass
class AdapterBench:
    """The input of a check: the lock's entry, its servers, and a resource that no other check uses. `pace`: of a check
    that is made again because the machine stood still, as of a trial."""

    entry: LockEntry
    servers: Sequence[BenchServer]
    resource: str = ""
    programs: list[AdapterProgram] = field(default_factory=list)
    pace: int = 1
    known: Sequence[BenchServer | Sentinel] = ()  # whose addresses it is given; without any: the servers

    @cached_property
    def facts(self) -> AdapterFacts | None:
        """What its hello of version 2 says; None: it speaks version 1."""
        return adapter_facts(self.entry.library.path)

    @cached_property
    def only_tries(self) -> bool:
        """Whether its hello says that the lock cannot wait."""
        return self.entry.waits == "not" or self._waits() == {"none"}

    @cached_property
    def try_ms(self) -> int | None:
        """The shortest wait that it can be asked for, as wait_ms; None: it can only wait without a limit."""
        waits = self._waits()
        return 0 if "none" in waits else WAIT_MS if "time" in waits else None

    def _waits(self) -> set[str]:
        every = {"none", "time", "forever"}
        return {wait for form in self.facts.forms for wait in form.wait} if self.facts else every

    @property
    def lease_ms(self) -> int:
        """Of checks that wait for its end."""
        return lease_at_least(self.entry, LEASE_MS * self.pace)

    def start(self, lease_ms: int = LONG_LEASE_MS, nodes: list[Node] | None = None) -> AdapterProgram:
        """Starts another copy of the program and opens its lock."""
        program = self.start_bare()
        program.hello()
        answer = program.ask("open", ANSWER_LIMIT_S, **self.options(lease_ms, nodes))
        if answer.outcome != "ok" and nodes is None:
            raise ProtocolError(
                f"it answered open with {answer_text(answer)}: the nodes are there, and the lock is free"
            )
        return program

    def options(
        self, lease_ms: int = LONG_LEASE_MS, nodes: list[Node] | None = None, permits: int = 1
    ) -> dict[str, object]:
        """The keys of a request to open. `nodes`: others than those that are there."""
        named = {"master": self.servers[0].name} if self.entry.library.topology == "sentinel" else {}
        return {
            "resource": self.resource,
            "lease_ms": lease_at_least(self.entry, lease_ms),
            "permits": permits,
            "fixed_lease": False,
            "nodes": self.nodes() if nodes is None else nodes,
            **named,
        }

    def start_bare(self) -> AdapterProgram:
        program = AdapterProgram(self.entry.library.path)
        self.programs.append(program)
        return program

    def nodes(self) -> list[Node]:
        return [self._node(server) for server in self.known or self.servers]

    def _node(self, server: BenchServer | Sentinel) -> Node:
        if isinstance(server, ZooKeeperServer) or self.entry.library.tcp:
            return TcpNode("127.0.0.1", server.port)
        return UnixNode(str(server.socket))

    def lease_left_ms(self, key: str) -> int:
        """The longest remaining time of a key of redis-servers; -1: it has no end. Those of a cluster answer for their
        own slots only."""
        import redis

        left_ms = [NO_KEY]
        for server in self.servers:
            with contextlib.suppress(redis.exceptions.ResponseError):
                left_ms.append(int(server.link.pttl(key)) if isinstance(server, RedisServer) else NO_KEY)
        return max(left_ms)

    def delete_key(self, key: str) -> None:
        """Takes the lock away from its holder."""
        for server in self.servers:
            if isinstance(server, RedisServer):
                server.link.delete(key)

    def end(self) -> None:
        for program in self.programs:
            program.close()
        self.programs.clear()


Check = Callable[[AdapterBench], None]


def answer_text(answer: AdapterAnswer) -> str:
    return f"{answer.outcome} ({answer.error})" if answer.error else answer.outcome


def must_answer(answer: AdapterAnswer, outcome: str, reason: str) -> AdapterAnswer:
    if answer.outcome != outcome:
        raise ProtocolError(f"it answered {answer_text(answer)}: {reason}")
    return answer


@contextlib.contextmanager
def silent(servers: Sequence[BenchServer]) -> Iterator[None]:
    pids: list[int] = []
    for server in servers:
        pids += server.pids() if isinstance(server, PostgresServer) else [server.process.pid]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
