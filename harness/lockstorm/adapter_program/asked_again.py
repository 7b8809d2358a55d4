"""Shared by the adapters of libraries that try once: a user who wants to wait asks them again."""

import time
from collections.abc import Callable

RETRY_S, LONGEST_S = 0.05, 3600.0


def asked_again(attempt: Callable[[], bool], wait_ms: int | None) -> bool:
    """Whether a try was granted: the first one, or another one within the wait; None: without a limit."""
    ends_s = time.monotonic() + (LONGEST_S if wait_ms is None else wait_ms / 1000)
    while not attempt():
        if time.monotonic() + RETRY_S > ends_s:
            return False
        time.sleep(RETRY_S)
    return True
