"""The servers that a lock lives on, of whatever kind: what a trial asks of all kinds alike.

There is a subclass for each service (redis_nodes, postgres_nodes, etcd_nodes, zookeeper_nodes), which also does what
only that kind can.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from harness.driver.errors import Inconclusive, UsageError
from harness.driver.library import Message, library
from harness.driver.process import Process

if TYPE_CHECKING:
    from harness.driver.client import Client
    from harness.driver.trial import Trial


class Server(Protocol):
    """One of them. `number`: among the conductor's servers."""

    name: str
    number: int
    process: Process

    def restart(self) -> None:
        """Starts it again after its process has ended; returns when it answers."""


class ClockedServer(Server, Protocol):
    """One that says what its clock shows, in steps of so many microseconds."""

    clock_step_us: int

    def time_us(self) -> int: ...


Node = TypeVar("Node", bound=Server)


class Nodes(ABC, Generic[Node]):
    """`start`, then `ready`; what else a trial starts meanwhile costs no time."""

    title: str  # of the service, in sentences
    touch: bytes  # what anybody may send to a node, and is answered
    remains_of: str = "key"  # what `remains` names

    def __init__(self, trial: "Trial") -> None:
        self.trial = trial

    @abstractmethod
    def start(self) -> None:
        """Starts the servers. Raises Inconclusive if they cannot be what the trial's settings ask for."""

    @abstractmethod
    def ready(self) -> None:
        """Returns when all answer and know each other."""

    @property
    @abstractmethod
    def known(self) -> Sequence[Node]:
        """Those that clients know by name, in their order: the nodes."""

    @property
    def every(self) -> Sequence[Node]:
        """All servers, replicas too."""
        return self.known

    @property
    def clocked(self) -> Sequence[ClockedServer]:
        """Those whose clocks are the trial's, and can be read."""
        return []

    @abstractmethod
    def address(self, client: "Client", node: Node) -> str:
        """Where a client finds a node, in the words of the client's --node."""

    def addresses(self, client: "Client") -> list[str]:
        """In the order in which the client is to try them."""
        return [self.address(client, node) for node in self.known]

    @abstractmethod
    def versions(self) -> dict[str, str]:
        """Of what runs: program -> version."""

    def restart(self, server: Node) -> bool:
        """For a fault: starts a server again that has ended."""
        server.restart()
        return True

    def commands(self) -> int:
        """How many the servers have run for clients; 0 if they do not count."""
        return 0

    def remains(self) -> dict[bytes, int]:
        """What is at the nodes of a lock, and for how long in ms; below 0: for ever."""
        return {}

    def master(self, node: Node) -> Node:
        """Where the links lead that name this node: itself, or who has taken its place."""
        return node

    def check(self) -> None:
        """After each run: raises Inconclusive if the servers have said that the lock cannot work on them."""

    def named(self, name: str) -> Node:
        for server in self.every:
            if server.name == name:
                return server
        raise UsageError(f"this trial has no server called {name}: {', '.join(server.name for server in self.every)}")

    def numbered(self, number: int) -> Node:
        return next(server for server in self.every if server.number == number)

    def enlist(self, clock: Path | None, socket: Path | None) -> int:
        """The number of a new one among the conductor's servers, which sets that clock and asks on that socket."""
        message, paths = Message(), (bytes(path) if path else None for path in (clock, socket))
        number = int(library().conductor_add_server(self.trial.conductor, *paths, message))
        if number < 0:
            raise Inconclusive(str(message))
        return number

    def refuse_redis_settings(self) -> None:
        """Raises Inconclusive if the settings are about redis-servers."""
        said = self.trial.settings
        if said.topology != "single" or said.replicas or said.persistence != "none" or said.server_options:
            raise Inconclusive(f"{said.lock} lives on {self.title}, and this story needs a redis-server")
