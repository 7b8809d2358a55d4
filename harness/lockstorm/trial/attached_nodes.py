"""The node of a lock on a server that lockstorm did not start: reached through the gateway, never started or ended."""

import os
from collections.abc import Sequence
from pathlib import Path

from lockstorm.attach.gateway import Gateway, ask_server
from lockstorm.attach.leftovers import keys_with
from lockstorm.attach.server_survey import survey_server
from lockstorm.base.errors import UsageError
from lockstorm.process.process import Process
from lockstorm.results.lock_entry import LockEntry
from lockstorm.trial.client import Client
from lockstorm.trial.nodes import Nodes
from lockstorm.trial.settings import TrialSettings
from lockstorm.trial.trial_context import TrialContext


class AttachedServer:
    """`socket`: the gateway's, which leads to the server."""

    def __init__(self, name: str, socket: Path, number: int) -> None:
        self.name, self.socket, self.number = name, socket, number

    @property
    def process(self) -> Process:
        raise UsageError(f"lockstorm did not start {self.name}, so it cannot end or pause it: see attach --fault")

    def restart(self) -> None:
        raise UsageError(f"lockstorm did not start {self.name}, so it cannot restart it: see attach --fault")


def check_attachable(settings: TrialSettings, lock: LockEntry) -> None:
    """Raises UsageError for a trial that needs servers of its own."""
    if lock.service != "redis":
        raise UsageError(f"{lock.name} lives on {lock.service}, and attach works with Redis only")
    if settings.nodes != 1:
        raise UsageError(f"{lock.name} needs {settings.nodes} servers, and attach has one: try it by lockstorm run")
    is_special = settings.topology != "single" or settings.persistence != "none" or settings.settable_clocks
    if settings.replicas or settings.server_options or is_special:
        raise UsageError(f"{settings.scenario} with {lock.name} needs servers of its own: try it by lockstorm run")
    if settings.time == "virtual":
        raise UsageError(f"{settings.scenario} is in virtual time, and attached servers have a clock of their own")


class AttachedNodes(Nodes[AttachedServer]):
    title = "a server that lockstorm did not start"
    touch = b"*1\r\n$4\r\nPING\r\n"

    def __init__(self, trial: TrialContext) -> None:
        super().__init__(trial)
        assert trial.settings.attached
        self._gateway: Gateway = trial.settings.attached
        self._client = self._gateway.client()
        self._known: list[AttachedServer] = []
        self._version = ""

    @property
    def known(self) -> Sequence[AttachedServer]:
        return self._known

    def start(self) -> None:
        check_attachable(self.trial.settings, self.trial.lock)
        number = self.trial.scheduler.add_server(None, None)
        self._known = [AttachedServer("redis-1", self._gateway.socket, number)]
        self.trial.at_exit(self._client.close)

    def ready(self) -> None:
        self._gateway.begin_trial()
        self._version = survey_server(self._gateway).version

    def address(self, client: Client, node: AttachedServer) -> str:
        hosted = self.trial.lock.adapter
        listen = "127.0.0.1:0" if hosted and hosted.tcp else None
        return self.trial.links.link(f"{client.host}>{node.name}", node.socket, listen=listen)

    def versions(self) -> dict[str, str]:
        return {"redis-server": self._version}

    def remains(self) -> dict[bytes, int]:
        """The keys of this run."""
        keys = keys_with(self._client, self._gateway.run)
        return {key: int(ask_server(self._client, "PTTL", key)) for key in sorted(set(keys), key=os.fsdecode)}
