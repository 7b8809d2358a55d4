"""What faults can ask of a trial (struct fault_driver): functions of the scheduler, and functions here."""

import ctypes as c
from collections.abc import Callable
from typing import Any

from lockstorm.base.errors import Inconclusive
from lockstorm.native.library import FaultDriver, library
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

    return Inconclusive, RedisError


# Field of struct fault_driver -> the scheduler's function.
SCHEDULER_FUNCTIONS = {
    "process_stopped": "scheduler_set_process_stopped",
    "process_catch_up": "scheduler_catch_up",
    "stop_between_records": "scheduler_stop_between_records",
    "task_stopped": "scheduler_set_task_stalled",
    "task_stands": "scheduler_task_stands",
    "task_moves": "scheduler_task_moves",
    "server_silent": "scheduler_set_server_silent",
    "server_answers": "scheduler_server_answers",
    "server_busy": "scheduler_set_server_busy",
    "server_works": "scheduler_server_works",
    "settle": "scheduler_settle",
    "server_replicas": "scheduler_set_server_replicas",
    "server_clock": "scheduler_set_server_clock",
    "server_wall_us": "scheduler_server_wall_us",
    "server_clock_error": "scheduler_server_clock_error",
    "host_clock": "scheduler_set_host_clock",
    "host_clock_error": "scheduler_host_clock_error",
    "host_wall_ns": "scheduler_host_wall_ns",
    "host_mono_ns": "scheduler_host_mono_ns",
    "mono_ns": "scheduler_mono_ns",
    "wall_ns": "scheduler_wall_ns",
    "unreliable": "scheduler_set_unreliable",
}


class TrialDriver:
    """The `struct fault_driver` of one trial. `raw` is what C gets; it must live as long as C may use it.

    No exception can pass through C: a function here that fails leaves its reason in `reason`.
    """

    def __init__(self, trial: TrialContext, nodes: AnyNodes, clients: TrialClients) -> None:
        self.trial, self.nodes, self.clients = trial, nodes, clients
        self.reason = ""
        in_python: dict[str, Callable[..., object]] = {
            "server_restart": self._on_servers(nodes.restart),
            "replica_lost": self._on_servers(self._lose_replica),
            "clients_lead": self._on_servers(self._lead_clients),
            "server_follow": self._on_servers(self._follow),
            "client_restart": self._catching(self._restart_client),
            "server_query": self._query,
            "server_time_us": self._time_us,
            "process_ended": lambda _, pid: clients.process_ended(pid),
            "host_suspended": lambda _, task, suspended: clients.suspend(task, suspended),
        }
        self.raw = FaultDriver(scheduler=trial.scheduler.handle, virtual_time=trial.settings.time == "virtual")
        functions: dict[str, Any] = {field: kind for field, kind, *_ in FaultDriver._fields_[2:]}  # types of ctypes
        for field, kind in functions.items():  # no field stays NULL
            function = in_python.get(field)
            called = kind(function) if function else c.cast(getattr(library(), SCHEDULER_FUNCTIONS[field]), kind)
            setattr(self.raw, field, called)

    @property
    def masters(self) -> list[RedisServer]:
        """The nodes of the lock, if they are redis-servers."""
        return self.nodes.masters if isinstance(self.nodes, RedisNodes) else []

    def _catching(self, action: Callable[..., object]) -> Callable[..., bool]:
        """The action as C calls it: False if it fails."""

        def act(*numbers: int) -> bool:
            try:
                return bool(action(*numbers))
            except _failures() as reason:
                self.reason = str(reason)
                return False

        return act

    def _on_servers(self, action: Callable[..., object]) -> Callable[..., bool]:
        """The same for an action on servers, which C names by their numbers."""
        return self._catching(lambda *numbers: action(*(self.nodes.numbered(number) for number in numbers)))

    def _lose_replica(self, replica: RedisServer) -> bool:
        return self.nodes.as_kind(RedisNodes).lose_replica(replica)

    def _lead_clients(self, old: RedisServer, new: RedisServer) -> bool:
        return self.nodes.as_kind(RedisNodes).lead_clients(old, new)

    def _follow(self, server: RedisServer, master: RedisServer) -> bool:
        return self.nodes.as_kind(RedisNodes).follow(server, master)

    def _restart_client(self, task: int) -> bool:
        return bool(self.clients.restart(self.clients.latest_on(task)))

    def _query(self, number: int, statement: bytes) -> int:
        try:
            return int(self.nodes.as_kind(PostgresNodes).numbered(number).session.value(statement.decode()))
        except Inconclusive as reason:
            self.reason = str(reason)
            return NO_ANSWER

    def _time_us(self, number: int) -> int:
        node = self.nodes.numbered(number)
        try:
            return NO_ANSWER if isinstance(node, EtcdServer) else int(node.time_us())
        except (Inconclusive, OSError) as reason:
            self.reason = str(reason)
            return NO_ANSWER
