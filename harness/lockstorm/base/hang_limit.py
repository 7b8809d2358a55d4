"""Limits that only guard against hanging: whether a server starts, a program answers, a process ends.

They count time in which this process ran. Between two looks at the clock at most LOOK_S counts, so neither a machine
that stood still nor one that ran other processes is taken for something that hangs. The same in C:
harness/scheduler/hang_limit.h.
"""

import select
import time
from collections.abc import Sequence

LOOK_S = 0.1
START_LIMIT_S = 120.0  # until a server answers or has found its peers: on a busy machine a Java machine takes a minute
# Of a connection that cannot be asked whether it hangs: longer than machines were seen to stand still.
CONNECTION_LIMIT_S = 120.0


class HangLimit:
    """Begins when it is made. Who waits looks again and again, at least every `look_s`; a look that takes longer counts
    as `look_s`."""

    def __init__(self, limit_s: float, look_s: float = LOOK_S) -> None:
        self._left_s, self._look_s = limit_s, look_s
        self._looked_s = time.monotonic()

    def is_over(self) -> bool:
        return self.left_s() <= 0

    def left_s(self) -> float:
        """What is left of the limit; a look."""
        now_s = time.monotonic()
        self._left_s -= min(now_s - self._looked_s, self._look_s)
        self._looked_s = now_s
        return max(0.0, self._left_s)


def await_readable(descriptors: Sequence[int], limit: HangLimit) -> list[int]:
    """Those of the descriptors that can be read; waits until there is one, or the limit is over: then none."""
    while True:
        left_s = limit.left_s()
        ready = select.select(descriptors, [], [], min(left_s, LOOK_S))[0]
        if ready or left_s <= 0:
            return ready
