"""What the parts of a trial share: its settings, directory, scheduler, history and links."""

import contextlib
from dataclasses import dataclass, field
from typing import Protocol

from lockstorm.process.process import Sandbox
from lockstorm.results.lock_entry import LockEntry
from lockstorm.trial.settings import REPLY_LIMIT_MS, TrialSettings
from lockstorm.trial.trial_links import TrialLinks
from lockstorm.trial.trial_recorder import TrialRecorder
from lockstorm.trial.trial_scheduler import TrialScheduler


class HeldAt(Protocol):
    """What servers tell of where a library is (harness/lockstorm/trial/nodes.py)."""

    def contents(self) -> list[dict[bytes, bytes]]: ...

    def asked(self) -> int: ...


@dataclass
class TrialContext:
    """Made when the trial opens; servers, clients, clock and faults are built on it."""

    settings: TrialSettings
    lock: LockEntry  # the entry of the table of locks, or what the adapter or plug-in describes
    lease_ms: int
    resource: bytes  # the name of what the lock protects
    sandbox: Sandbox
    scheduler: TrialScheduler
    recorder: TrialRecorder
    links: TrialLinks
    on_exit: contextlib.ExitStack  # closed with the trial; the last one comes first
    nodes: "HeldAt" = field(init=False)  # the lock's servers, for clients that are held inside a library
    reply_limit_ms: int = REPLY_LIMIT_MS  # of clients that are started from now on
