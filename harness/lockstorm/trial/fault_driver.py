"""What faults can ask of a trial (struct fault_driver): functions of the scheduler, and functions here."""

import ctypes as c
from collections.abc import Callable
from typing import Any

from lockstorm.base.errors import Inconclusive
from lockstorm.native.library import SIGNATURES, FaultDriver, library
from lockstorm.servers.etcd_server import EtcdServer
from lockstorm.servers.redis_server import RedisServer
from lockstorm.trial.nodes import AnyNodes
from lockstorm.trial.postgres_nodes import PostgresNodes
from lockstorm.trial.redis_nodes import RedisNodes
from lockstorm.trial.trial_clients import TrialClients
from lockstorm.trial.trial_context import TrialContext

NO_ANSWER = -(2**63)


def _failures() -> tuple[type[Exception], ...]:
    """With which a function fails that a fault has called. Asked when one has failed: few trials load redis."""
    from redis.exceptions import RedisError

    return Inconclusive, OSError, RedisError


class TrialDriver:
    """The `struct fault_driver` of one trial. `raw` is what C gets; it must live as long as C may use it.

    No exception can pass through C: a function here that fails leaves its reason in `reason`.
    """

    def __init__(self, trial: TrialContext, nodes: AnyNodes, clients: TrialClients) -> None:
        self.trial, self.nodes, self.clients = trial, nodes, clients
        self.reason = ""
        in_python: dict[str, Callable[..., object]] = {
            "server_restart": self._on_servers(nodes.restart),
            "replica_lost": self._on_servers(lambda replica: self._redis.lose_replica(replica)),
            "clients_lead": self._on_servers(lambda old, new: self._redis.lead_clients(old, new)),
            "server_follow": self._on_servers(lambda server, master: self._redis.follow(server, master)),
            "client_restart": self._catching(lambda task: bool(clients.restart(clients.latest_on(task)))),
            "server_query": self._catching(self._query, NO_ANSWER),
            "server_time_us": self._on_servers(_time_us, NO_ANSWER),
            "process_ended": lambda _, pid: clients.process_ended(pid),
            "host_suspended": lambda _, task, suspended: clients.suspend(task, suspended),
        }
        self.raw = FaultDriver(scheduler=trial.scheduler.handle, virtual_time=trial.settings.time == "virtual")
        functions: dict[str, Any] = {field: kind for field, kind, *_ in FaultDriver._fields_[2:]}  # types of ctypes
        for field, kind in functions.items():  # no field stays NULL
            function = in_python.get(field)
            setattr(self.raw, field, kind(function) if function else c.cast(_function_of_scheduler(field), kind))

    @property
    def masters(self) -> list[RedisServer]:
        """The nodes of the lock, if they are redis-servers."""
        return list(self.nodes.known) if isinstance(self.nodes, RedisNodes) else []

    @property
    def _redis(self) -> RedisNodes:
        return self.nodes.as_kind(RedisNodes)

    def _catching(self, action: Callable[..., object], failed: object = False) -> Callable[..., object]:
        """The action as C calls it. `failed`: what it returns if it fails."""

        def act(*arguments: Any) -> object:
            try:
                return action(*arguments)
            except _failures() as reason:
                self.reason = str(reason)
                return failed

        return act

    def _on_servers(self, action: Callable[..., object], failed: object = False) -> Callable[..., object]:
        """The same for an action on servers, which C names by their numbers."""
        return self._catching(lambda *numbers: action(*map(self.nodes.numbered, numbers)), failed)

    def _query(self, number: int, statement: bytes) -> int:
        return int(self.nodes.as_kind(PostgresNodes).numbered(number).session.value(statement.decode()))


def _time_us(node: Any) -> int:
    return NO_ANSWER if isinstance(node, EtcdServer) else int(node.time_us())


def _function_of_scheduler(field: str) -> Any:
    """The function of a field of struct fault_driver, which has the field's name: scheduler_FIELD, or
    scheduler_set_FIELD."""
    name = f"scheduler_{field}"
    return getattr(library(), name if name in SIGNATURES else f"scheduler_set_{field}")
