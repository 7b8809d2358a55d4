"""The servers that a lock lives on: the interface that they have for a trial, whatever their kind.

Each service has a subclass (redis_nodes, postgres_nodes, etcd_nodes, zookeeper_nodes) with the methods that only this
kind has.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from lockstorm.base.errors import Inconclusive, UsageError
from lockstorm.process.process import Process
from lockstorm.trial.client import Client
from lockstorm.trial.trial_context import TrialContext


class Server(Protocol):
    """One of them. `number`: its number in the scheduler."""

    name: str
    number: int

    @property
    def process(self) -> Process: ...

    def version(self) -> str: ...

    def restart(self) -> None:
        """Starts it again after its process has ended; returns when it answers."""


class ClockedServer(Server, Protocol):
    """A server whose clock can be read, in steps of clock_step_us."""

    clock_step_us: int

    def time_us(self) -> int:
        """The clock, in us since 1970."""


Node = TypeVar("Node", bound=Server)
OneKind = TypeVar("OneKind", bound="Nodes[Any]")


class Nodes(ABC, Generic[Node]):
    """`start`, then `ready`; the trial starts other processes in between, so that they start side by side."""

    title: str  # the service's name in messages
    program: str  # of the servers, in a result's versions
    link_option = "PLAIN"  # of a client's link, for the proxy (Proxy.link)
    by_tcp = False  # its clients know no unix sockets
    touch: bytes  # a message that a node answers without a login
    remains_of: str = "key"  # what `remains` names

    def __init__(self, trial: TrialContext) -> None:
        self.trial = trial
        self.known: Sequence[Node] = []  # the nodes: the servers whose names clients know, in order
        self._successors: dict[str, Node] = {}  # node -> its successor as master, if it has one

    @abstractmethod
    def start(self) -> None:
        """Starts the servers. Raises Inconclusive if they cannot be what the trial's settings ask for."""

    @abstractmethod
    def ready(self) -> None:
        """Returns when all servers answer and know each other."""

    @property
    def every(self) -> Sequence[Node]:
        """All servers, including replicas."""
        return self.known

    @property
    def clocked(self) -> Sequence[ClockedServer]:
        """The servers whose clocks the trial sets, and can read."""
        return []

    @abstractmethod
    def address(self, client: Client, node: Node) -> str:
        """The address of a node for a client, as its option --node."""

    def addresses(self, client: Client) -> list[str]:
        """The addresses in the order in which the client tries them."""
        return [self.address(client, node) for node in self.known]

    def versions(self) -> dict[str, str]:
        """Program -> version of the running servers."""
        return {self.program: self.known[0].version()}

    def restart(self, server: Node) -> bool:
        server.restart()
        return True

    def commands(self) -> int:
        """The number of commands that the servers have run for clients; 0 if they do not count them."""
        return 0

    def remains(self) -> dict[bytes, int]:
        """What locks have left at the nodes: name -> time until it expires in ms; below 0: never."""
        return {}

    def contents(self) -> list[dict[bytes, bytes]]:
        """What locks have at each node that the trial can look into: name -> value, without the time that is left."""
        return [dict.fromkeys(self.remains(), b"")]

    def asked(self) -> int:
        """The number of commands of clients by which one can take a lock, as far as servers have carried them out
        without an error and count them; other than those in which a server lets its client wait."""
        return 0

    def traces(self) -> dict[bytes, int]:
        """What clients have at the nodes, by name: keys with their number of elements, subscriptions."""
        return {self.remains_of.encode() + b" " + name: 1 for name in self.remains()}

    def master(self, node: Node) -> Node:
        """The server that the links to this node reach: the node, or its successor."""
        return self._successors.get(node.name, node)

    def link(self, client: Client, node: Node, target: Path | str, *, option: str = "", file: str = "") -> str:
        """The address of a client's link to this node. A library may want a host and a port. Proxy.link explains
        `option`, if it is not the usual one, and `file`."""
        hosted, option = self.trial.lock.adapter, option or self.link_option
        listen = "127.0.0.1:0" if self.by_tcp or (hosted and hosted.tcp) else None
        if hosted and option == "PLAIN":
            option = "PLAIN-STEPPED"  # a program's turn lasts until it waits: no answer may come before
        name = f"{client.host}>{node.name}"
        return self.trial.links.link(name, target, listen=listen, option=option, file=file)

    def check(self) -> None:
        """Called after each run. Raises Inconclusive if the servers have reported that the lock cannot work on them."""

    def as_kind(self, kind: type[OneKind]) -> OneKind:
        """These nodes, if they are of this kind; raises UsageError if not."""
        if not isinstance(self, kind):
            raise UsageError(f"{self.trial.settings.lock} lives on {self.title}, not on {kind.title}")
        return self

    def named(self, name: str) -> Node:
        for server in self.every:
            if server.name == name:
                return server
        raise UsageError(f"this trial has no server called {name}: {', '.join(server.name for server in self.every)}")

    def numbered(self, number: int) -> Node:
        return next(server for server in self.every if server.number == number)

    def refuse_redis_settings(self, replicas_most: int = 0) -> None:
        """Raises Inconclusive if the settings need a redis-server."""
        settings = self.trial.settings
        if (
            settings.topology != "single"
            or settings.replicas > replicas_most
            or settings.persistence != "none"
            or settings.server_options
        ):
            raise Inconclusive(f"{settings.lock} lives on {self.title}, and this story needs a redis-server")


AnyNodes: TypeAlias = "Nodes[Any]"
