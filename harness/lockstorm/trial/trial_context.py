"""What the parts of a trial share: its settings, directory, scheduler, history and links."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from lockstorm.process.process import Sandbox
from lockstorm.results.lock_entry import LockEntry
from lockstorm.trial.settings import REPLY_LIMIT_MS, TrialSettings
from lockstorm.trial.trial_links import TrialLinks
from lockstorm.trial.trial_recorder import TrialRecorder
from lockstorm.trial.trial_scheduler import TrialScheduler


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
    is_at_every_node: Callable[[], bool] = lambda: False  # whether clients have something at each node
    reply_limit_ms: int = REPLY_LIMIT_MS  # of clients that are started from now on
