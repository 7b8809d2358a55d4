"""The faults of a trial: injected until a block ends, or until the trial heals them."""

import contextlib
from collections.abc import Iterator

from lockstorm.servers.redis_server import RedisServer
from lockstorm.trial.client import Client
from lockstorm.trial.fault import Fault, Target
from lockstorm.trial.fault_means import TrialMeans


class TrialFaults:
    """Injects faults and keeps those that may still have to be healed."""

    def __init__(self, means: TrialMeans) -> None:
        self.means = means
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

    @contextlib.contextmanager
    def fault_unless_control(self, name: str, target: Target = None, **options: str | float | bytes) -> Iterator[None]:
        """The same; in a control the block runs without the fault."""
        if self.means.trial.settings.control:
            yield
            return
        with self.fault(name, target, None, **options):
            yield

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
        fault = Fault(self.means, name, target, other, **options)
        self.means.trial.recorder.is_disturbed = True
        self.every.append(fault)
        return fault

    def heal(self) -> None:
        """Heals every fault that is not healed yet, the last one first."""
        while self.every:
            self.every.pop().heal()
