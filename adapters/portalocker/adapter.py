"""portalocker's RedisLock: a subscription is the lock. A client that wants it asks all subscribers of its channel for
their state; the connection of one that is silent for a second is killed, and with it goes its lock."""

import logging
import sys
from importlib.metadata import version

from lockstorm.adapter_program.lines import Line, ThreadProgram

try:
    from portalocker import AlreadyLocked, LockFlags, RedisLock
    from redis.backoff import NoBackoff
    from redis.retry import Retry
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(69)

MODES = {"exclusive": LockFlags.EXCLUSIVE, "read": LockFlags.SHARED, "write": LockFlags.EXCLUSIVE}
SILENCE_MS = 1000  # unavailable_timeout
logging.disable()
HELLO = {
    "name": "portalocker",
    "version": version("portalocker"),
    "source": "portalocker, portalocker/redis.py",
    "waits": "polling",
    "operations": [],
}
HELLO_2 = {
    "threads": 8,
    "owner": "object",
    "modes": list(MODES),
    "timer_ms": 3 * SILENCE_MS,  # an acquire may take longer than its timeout: two such waits, and pauses between them
    "forms": [
        {"form": "acquire(timeout=0, fail_when_locked)", "wait": ["none"], "lease": ["endless"]},
        {"form": "acquire(timeout)", "wait": ["time", "forever"], "lease": ["endless"]},
    ],
}
HELLO_3 = {"silence_ms": SILENCE_MS}


class Library:
    def __init__(self) -> None:
        self.made = list[RedisLock]()  # for good: a lock object that is collected is released

    def open(self, question: Line) -> None:
        self.path = question["nodes"][0]["unix"]

    def make(self, resource: str, question: Line) -> dict[str, RedisLock]:
        locks: dict[str, RedisLock] = {}
        once = {"unix_socket_path": self.path, "socket_timeout": 2, "retry": Retry(NoBackoff(), 0)}
        told = {"on_lost": lambda _: self.lost(locks), "interrupt_on_lost": False}  # by default a signal tells it, too
        locks |= {mode: RedisLock(resource, redis_kwargs=once, flags=flag, **told) for mode, flag in MODES.items()}
        self.made += locks.values()
        return locks

    def acquire(self, locks: dict[str, RedisLock], question: Line) -> bool:
        lock, wait_ms = locks[question.get("mode", "exclusive")], question.get("wait_ms")
        if wait_ms == 0:
            return lock.acquire(timeout=0, fail_when_locked=True) is lock
        return lock.acquire(timeout=float("inf") if wait_ms is None else wait_ms / 1000) is lock

    def release(self, locks: dict[str, RedisLock], question: Line) -> bool:
        lock = locks[question.get("mode", "exclusive")]
        is_held = lock.pubsub is not None and not lock.lost
        lock.release()
        return is_held


ThreadProgram(Library(), AlreadyLocked, HELLO, HELLO_2, HELLO_3).serve()
