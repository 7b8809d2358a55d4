"""redlock-py's Redlock: SET NX PX at a majority of nodes, with what is left of the lease."""

import builtins
import sys
import time
from functools import cache
from importlib.metadata import version

from lockstorm.adapter_program.lines import Line, ThreadProgram

builtins.basestring = str  # type: ignore[attr-defined] # releases before 1.0.5 were made for Python 2
try:
    from redis.backoff import NoBackoff
    from redis.retry import Retry
    from redlock import Redlock
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(69)

DELAY_MS = 50  # between two tries, and after the last one
SILENT_S = 1.0  # after which a node is given up
HELLO = {
    "name": "redlock-py",
    "version": version("redlock-py"),
    "source": "redlock-py, redlock/__init__.py",
    "lease": True,
    "waits": "polling",
    "nodes": 3,
    "operations": [],
}
HELLO_2 = {
    "threads": 8,
    "owner": "object",
    "forms": [
        {"form": "lock, retry_count 1", "wait": ["none"], "lease": ["given"]},
        {"form": "lock, retry_count", "wait": ["time"], "lease": ["given"], "wait_unit_ms": DELAY_MS},
    ],
    "of_object": ["wait_ms"],
    "validity": True,
    "lenient_release": True,
    "timer_ms": DELAY_MS,
    "poll_ms": DELAY_MS,
}


class Library:
    def open(self, question: Line) -> None:
        once = {"socket_timeout": SILENT_S, "retry": Retry(NoBackoff(), 0)}
        self.nodes = [{"unix_socket_path": node["unix"], **once} for node in question["nodes"]]
        self.lease_ms = question["lease_ms"]

    @cache  # noqa: B019 # there is one Library
    def manager(self, tries: int) -> Redlock:
        return Redlock(self.nodes, retry_count=tries, retry_delay=DELAY_MS / 1000)

    def make(self, resource: str, question: Line) -> Line:
        return {"resource": resource}

    def acquire(self, lock: Line, question: Line) -> Line:
        wait_ms = question.get("wait_ms")
        tries = 1_000_000 if wait_ms is None else max(1, wait_ms // DELAY_MS)
        lock["manager"], began_s = self.manager(tries), time.monotonic()
        granted = lock["manager"].lock(lock["resource"], question.get("lease_ms") or self.lease_ms)
        if not granted:  # the library does not say whether a node was silent: one that was took a second
            is_silent = tries == 1 and time.monotonic() - began_s >= SILENT_S
            return {"outcome": "unknown" if is_silent else "refused"}
        lock["granted"] = granted
        return {"valid_until_ms": time.monotonic() * 1000 + granted.validity}

    def release(self, lock: Line, question: Line) -> bool:
        granted = lock.pop("granted", None)
        return granted is not None and lock["manager"].unlock(granted) is None


ThreadProgram(Library(), (), HELLO, HELLO_2).serve()
