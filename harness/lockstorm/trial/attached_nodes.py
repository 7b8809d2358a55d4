"""The node of a lock on a server that lockstorm did not start: reached through the gateway, never started or ended."""

from collections.abc import Mapping
from pathlib import Path

from lockstorm.attach.gateway import Gateway
from lockstorm.attach.server_address import SERVICE_NAMES, ServerAddress
from lockstorm.base.errors import Inconclusive, UsageError
from lockstorm.native.library import library
from lockstorm.process.process import Process
from lockstorm.results.lock_entry import LockEntry, Service
from lockstorm.servers.postgres_server import conninfo
from lockstorm.trial.client import Client
from lockstorm.trial.etcd_nodes import EtcdNodes
from lockstorm.trial.nodes import AnyNodes, Nodes
from lockstorm.trial.postgres_nodes import PostgresNodes
from lockstorm.trial.redis_nodes import RedisNodes
from lockstorm.trial.settings import TrialSettings
from lockstorm.trial.trial_context import TrialContext
from lockstorm.trial.zookeeper_nodes import ZooKeeperNodes

NODES: Mapping[Service, type[AnyNodes]] = {
    "redis": RedisNodes,
    "postgres": PostgresNodes,
    "etcd": EtcdNodes,
    "zookeeper": ZooKeeperNodes,
}


class AttachedServer:
    """`socket`: the gateway's, which leads to the server."""

    def __init__(self, name: str, socket: Path, number: int) -> None:
        self.name, self.socket, self.number = name, socket, number
        self.seen_version = ""

    @property
    def process(self) -> Process:
        raise UsageError(f"lockstorm did not start {self.name}, so it cannot end or pause it: see attach --fault")

    def version(self) -> str:
        return self.seen_version

    def restart(self) -> None:
        raise UsageError(f"lockstorm did not start {self.name}, so it cannot restart it: see attach --fault")


def check_service(address: ServerAddress, lock: LockEntry) -> None:
    """Raises UsageError if the lock lives on servers of another kind than those of the URL."""
    if lock.service == address.service:
        if lock.adapter and lock.service == "zookeeper":
            raise UsageError(
                "an adapter does not know the node below which a run keeps all that it writes to your ZooKeeper: try "
                "one of lockstorm's locks there by --lock, or yours in C by --plugin"
            )
        return
    raise UsageError(
        f"{lock.name} lives on {SERVICE_NAMES[lock.service]}, and {address.url} is {address.title}: "
        "`lockstorm locks` lists the locks of each service"
    )


def check_attachable(settings: TrialSettings, lock: LockEntry) -> None:
    """Raises UsageError for a trial that needs servers of its own."""
    if settings.nodes != 1:
        raise UsageError(f"{lock.name} needs {settings.nodes} servers, and attach has one: try it by lockstorm run")
    is_special = settings.topology != "single" or settings.persistence != "none" or settings.settable_clocks
    if settings.replicas or settings.server_options or is_special:
        raise UsageError(f"{settings.scenario} with {lock.name} needs servers of its own: try it by lockstorm run")
    if settings.time == "virtual":
        raise UsageError(f"{settings.scenario} is in virtual time, and attached servers have a clock of their own")


class AttachedNodes(Nodes[AttachedServer]):
    title = "a server that lockstorm did not start"

    def __init__(self, trial: TrialContext) -> None:
        super().__init__(trial)
        assert trial.settings.attached
        self._gateway: Gateway = trial.settings.attached
        like = NODES[self._gateway.address.service]
        self.program, self.touch, self.remains_of = like.program, like.touch, like.remains_of
        self.link_option, self.by_tcp = like.link_option, like.by_tcp

    def start(self) -> None:
        check_service(self._gateway.address, self.trial.lock)
        check_attachable(self.trial.settings, self.trial.lock)
        number = self.trial.scheduler.add_server(None, None)
        self.known = [AttachedServer(f"{self.trial.lock.service}-1", self._gateway.socket, number)]
        if self.trial.lock.service == "zookeeper":  # a client's other task reads the answers
            library().scheduler_set_unreliable(self.trial.scheduler)

    def ready(self) -> None:
        self._gateway.begin_trial()
        try:
            self.known[0].seen_version = self._gateway.survey().version
        except UsageError as reason:
            raise Inconclusive(str(reason)) from None

    def address(self, client: Client, node: AttachedServer) -> str:
        file = node.socket.name if self._gateway.address.service == "postgres" else ""
        address = self.link(client, node, node.socket, file=file)
        if self.trial.lock.adapter:
            return address
        return self._gateway.address_for_client(conninfo(Path(address).parent) if file else address)

    def remains(self) -> dict[bytes, int]:
        return self._gateway.remains()
