"""Plays the trials of a policy with [attach], on servers that are there already."""

import contextlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

from msgspec import structs

from lockstorm.attach.gateway import Gateway
from lockstorm.base.atomic_file import write_json
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
            yield number, self._play(kept_job)

    def _play(self, kept_job: KeptJob) -> TrialResult:
        job, directory, begun = kept_job.job, Path(kept_job.directory), time.monotonic()
        scenario = attached_scenarios()[job.request.scenario]
        settings = self._servers.settings_for(job.request, scenario)
        history, logs = directory / f"{job.name}.history", directory / f"{job.name}.log"
        result = self._servers.play(scenario, settings, history, logs)
        result = structs.replace(result, took_s=round(time.monotonic() - begun, 3))
        write_json(directory / f"{job.name}.json", result)
        return result
