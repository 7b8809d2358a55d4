"""The links of a trial: each connection to a server leads through the proxy, or through a direct link without one."""

import contextlib
import socket
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from lockstorm.base.errors import Inconclusive, UsageError
from lockstorm.locks.adapter import is_adapter
from lockstorm.native.library import Message, library
from lockstorm.process.process import Sandbox
from lockstorm.trial.proxy import LINKS, Proxy, place_in
from lockstorm.trial.settings import TrialSettings
from lockstorm.trial.trial_recorder import TrialRecorder
from lockstorm.trial.trial_scheduler import TrialScheduler, must_succeed

# How the names of servers end whose links carry another protocol -> the option of the link. A ZooKeeper server that a
# new leader refuses, which may listen a moment later, asks it again. If a link ended at once it would elect again, and
# the servers could do so for a minute.
NOT_RESP = {"-bus": "PLAIN", "-quorum": "PATIENT", "-election": "PATIENT"}
CONNECT = "An adapter connects to the servers that `open` names (lockstorm docs adapters)"


class TrialLinks:
    """Starts the proxy, unless the settings ask for direct links. A link is named "client-1>redis-1"."""

    def __init__(
        self, sandbox: Sandbox, scheduler: TrialScheduler, recorder: TrialRecorder, settings: TrialSettings
    ) -> None:
        self._scheduler, self._recorder = scheduler, recorder
        self._addresses: dict[str, str] = {}  # link -> where clients connect
        self._peer_ports: dict[str, int] = {}  # link -> the port on which the proxy listens for it
        self._is_library = is_adapter(settings.lock)
        self._broken: dict[str, str] = {}  # pattern of links -> the fault that broke them, or the server behind them
        self.proxy: Proxy | None = None
        self._links: Proxy | DirectLinks
        if settings.direct:
            self._links = DirectLinks(sandbox)
            return
        message, actor = Message(), recorder.text("proxy")
        self._links = self.proxy = Proxy(sandbox, recorder.path, scheduler.page, actor)
        must_succeed(library().scheduler_set_proxy(scheduler, bytes(self.proxy.control), message), message)

    def close(self) -> None:
        if self.proxy:
            self.proxy.close()

    def link(
        self, name: str, target: Path | str, *, option: str = "STEPPED", listen: str | None = None, file: str = ""
    ) -> str:
        """The address at which the link is reached; the first call makes it. Proxy.link explains the arguments."""
        if name not in self._addresses:
            self._addresses[name] = self._links.link(name, target, listen=listen, option=option, file=file)
        return self._addresses[name]

    def lead(self, pattern: str, target: Path) -> None:
        self._links.lead(pattern, target)

    def peer_port(self, name: str, port: int, client: str = "peers") -> int:
        """The port on which other servers reach a server's port: that of a link, if there is a proxy."""
        if not self.proxy:
            return port
        link, target = f"{client}>{name}", f"127.0.0.1:{port}"
        if link in self._peer_ports:
            self.proxy.lead(link, target)
        else:
            option = next((option for end, option in NOT_RESP.items() if name.endswith(end)), "")
            address = self.proxy.link(link, target, listen="127.0.0.1:0", option=option)
            self._peer_ports[link] = int(address.rpartition(":")[2])
        return self._peer_ports[link]

    def touch(self, names: Iterable[str], message: bytes) -> None:
        """Sends a message along each of these links, on a connection of its own, and waits for no answer."""
        for name in names:
            with contextlib.closing(connect(self._addresses[name])) as connection:
                connection.sendall(message)
                self._scheduler.settle()

    @contextlib.contextmanager
    def rule(self, name: str, links: str, direction: str, *words: str | int | bytes) -> Iterator[Proxy]:
        """Adds a rule of the proxy (faults/proxy/README.md) that no fault has a name for; until the block ends."""
        if not self.proxy:
            raise UsageError("the links of this trial do not lead through the proxy")
        library().scheduler_set_unreliable(self._scheduler)
        self._recorder.is_disturbed = True
        self.proxy.rule(name, links, direction, *words)
        try:
            yield self.proxy
        finally:
            self.proxy.remove(name)
            self._scheduler.try_settle()

    def check_rules(self) -> None:
        """Raises Inconclusive if a rule of the proxy has matched nothing."""
        for rule in self.proxy.idle_rules() if self.proxy else ():
            raise Inconclusive(f"the rule {rule} of the proxy matched nothing: what it was to break went unbroken")

    def note_broken(self, fault: str, pattern: str) -> None:
        """A fault has broken what is behind these links."""
        self._broken[pattern] = fault

    def check_used(self) -> None:
        """Raises Inconclusive if a library sent nothing through links that a fault broke: it lives elsewhere, or has
        another server, so that it cannot have noticed."""
        if not self.proxy or not self._is_library:
            return
        carried = self.proxy.carried()
        for pattern, fault in self._broken.items():
            sent = {link: sent for link, sent in carried.items() if is_to_server(link) and fnmatchcase(link, pattern)}
            if sent and not any(sent.values()):
                servers = ", ".join(sorted({link.partition(">")[2] for link in sent}))
                broken = f"nothing of it went through the links that {fault} broke"
                raise Inconclusive(f"the lock does not use {servers}: {broken}. {CONNECT}")

    def is_elsewhere(self) -> bool:
        """Whether a library has sent nothing to any server of the lock."""
        if not self.proxy or not self._is_library:
            return False
        return not any(sent for link, sent in self.proxy.carried().items() if is_to_server(link))


def is_to_server(link: str) -> bool:
    """Whether the link leads a client to a server of the lock, not to the resource."""
    return link.startswith("client-") and not link.endswith(">store")


def connect(address: str) -> socket.socket:
    """Connects to a unix socket, or to a port of the loopback interface."""
    host, _, port = address.rpartition(":")
    if host and port.isdigit():
        return socket.create_connection((host, int(port)))
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address)
    return connection


class DirectLinks:
    """The part of the proxy's interface (harness/lockstorm/trial/proxy.py) that works without one."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._directory = sandbox.directory / LINKS
        self._directory.mkdir(mode=0o700)
        self._paths: dict[str, Path] = {}

    def link(
        self, name: str, target: Path | str, *, listen: str | None = None, option: str = "", file: str = ""
    ) -> str:
        """Where to connect: for a port the address itself, for a socket the path of a symbolic link to it. `file`: the
        last part of that path, which then lies in a directory of its own."""
        if isinstance(target, str):
            return target
        path = place_in(self._directory, len(self._paths) + 1, file)
        self._paths[name] = path
        path.symlink_to(target)
        return str(path)

    def lead(self, pattern: str, target: Path) -> int:
        """Points the links that match at another target; open connections stay as they are. Returns how many links
        match."""
        matching = [path for name, path in self._paths.items() if fnmatchcase(name, pattern)]
        for path in matching:
            beside = path.with_suffix(".new")
            beside.symlink_to(target)
            beside.rename(path)
        return len(matching)
