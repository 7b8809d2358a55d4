"""On which cores processes run. In virtual time one process of a trial runs at a time, so all of them stay on one core;
two trials that share one wait for each other while another core may have nothing to do. Decision 0098."""

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

CLAIM = "\0lockstorm-core-{}"  # in the abstract namespace, so it is no file


@contextlib.contextmanager
def on_core(core: int) -> Iterator[None]:
    """Processes that are started in the block stay on that core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextlib.contextmanager
def claimed_cores(count: int) -> Iterator[list[int]]:
    """So many of the cores on which this process may run: first those that no other driver has claimed, the one on
    which it runs before the others. If there are fewer, they are named more than once."""
    own = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[36])  # where this process runs
    cores = sorted(os.sched_getaffinity(0), key=lambda core: (core != own, core))
    with contextlib.ExitStack() as claims:
        free: list[int] = []
        for core in cores:
            claim = _claim(core) if len(free) < count else None
            if claim:
                free.append(core)
                claims.enter_context(claim)
        chosen = free + [core for core in cores if core not in free]
        yield [chosen[each % len(chosen)] for each in range(count)]


def _claim(core: int) -> socket.socket | None:
    """None if another driver has claimed the core. A claim ends with this process, however that ends."""
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        claim.bind(CLAIM.format(core))
    except OSError:
        claim.close()
        return None
    return claim
