"""What operations leave at the nodes of a trial: looked at before and after, and recorded as residue."""

import os
from collections.abc import Mapping

from lockstorm.native.library import Kind
from lockstorm.trial.nodes import AnyNodes
from lockstorm.trial.trial_context import TrialContext


class TrialResidue:
    """Looks at the nodes, and records what must not be there."""

    def __init__(self, trial: TrialContext, nodes: AnyNodes) -> None:
        self._trial, self._nodes = trial, nodes

    def traces(self) -> dict[bytes, int]:
        """What clients have at the nodes now, by name: keys with their number of elements, subscriptions."""
        return self._nodes.traces()

    def compare(self, before: Mapping[bytes, int]) -> None:
        """Records what is at the nodes now beyond what was there before: what the operations in between have left."""
        after = self.traces()
        self._record({name: count - before.get(name, 0) for name, count in after.items()}, "nothing")

    def expiries(self) -> dict[bytes, int]:
        """The keys that expire: name -> ms until then."""
        return {name: left_ms for name, left_ms in self._nodes.remains().items() if left_ms >= 0}

    def compare_expiries(self, before: Mapping[bytes, int]) -> None:
        """Records by how many ms the leases have become longer since `before`, for which no client that may do so has
        asked."""
        after = self.expiries()
        self._record({b"ms more for " + name: after[name] - before[name] for name in after.keys() & before}, "no time")

    def commands(self, count: int) -> None:
        """Records the number of commands that the nodes have run although no client had a reason to send one."""
        self._record({b"commands": count}, "commands")

    def _record(self, found: Mapping[bytes, int], none: str) -> None:
        """One record for each that is left; if nothing is, one that says so."""
        recorder = self._trial.recorder
        left = {name: count for name, count in sorted(found.items()) if count > 0}
        for name, count in left.items():
            recorder.record(Kind.RESIDUE, name=recorder.text(os.fsdecode(name)), value=count)
        if not left:
            recorder.record(Kind.RESIDUE, name=recorder.text(none), value=0)
