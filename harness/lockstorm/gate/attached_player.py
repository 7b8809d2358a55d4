"""Plays the trials of a policy with [attach], on servers that are there already."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

from lockstorm.attach.gateway import Gateway
from lockstorm.gate.gate_plan import GateJob
from lockstorm.gate.gate_policy import AttachChoice
from lockstorm.gate.worker import KeptJob
from lockstorm.results.verdict import TrialResult
from lockstorm.scenario.attached_play import AttachedServers, attached_scenarios


@contextlib.contextmanager
def attached_servers(choice: AttachChoice | None) -> Iterator[AttachedServers | None]:
    """The servers of a policy while its trials are played. Raises UsageError if they cannot be reached, or are not
    empty and may not be used so."""
    if not choice:
        yield None
        return
    with Gateway(choice.address, choice.files) as gateway:
        servers = AttachedServers(gateway)
        servers.look()
        if not choice.yes:
            servers.check_touchable("add yes = true to [attach]")
        yield servers


class AttachedPlayer:
    """Plays trials one after the other, in this process: they share the servers. In the place of a worker pool."""

    def __init__(self, servers: AttachedServers) -> None:
        self._servers = servers

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Every trial has ended."""

    def play_all(self, kept_jobs: Sequence[KeptJob]) -> Iterator[tuple[int, TrialResult]]:
        """The number of each job and its result."""
        for number, kept_job in enumerate(kept_jobs):
            yield number, kept_job.play(self._play)

    def _play(self, job: GateJob, history: Path, logs: Path) -> TrialResult:
        scenario = attached_scenarios()[job.request.scenario]
        settings = self._servers.settings_for(job.request, scenario)
        return self._servers.play(scenario, settings, history, logs)
