"""aioredlock on three servers: a script sets a random value if the key is free, or sets its own value again."""

import asyncio
import sys
import warnings
from collections.abc import Awaitable
from typing import Any

from lockstorm.adapter_program.tasks import Line, TaskProgram

warnings.simplefilter("ignore", DeprecationWarning)
try:
    from aioredlock import Aioredlock
    from aioredlock.errors import LockAcquiringError
    from aioredlock.lock import Lock
    from hello import DELAY_MS, HELLO, HELLO_2
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(69)

LONGEST_S = 10  # of a call in version 1


class Resource:  # a lock object, and what it was granted
    def __init__(self, name: str) -> None:
        self.name = name
        self.granted: Lock | None = None


class Library:
    async def open(self, question: Line) -> None:
        self.opened, self.managers = question, dict[int, Aioredlock]()

    def manager(self, tries: int) -> Aioredlock:
        nodes, lease_s = [node["unix"] for node in self.opened["nodes"]], self.opened["lease_ms"] / 1000
        delay_s = {"retry_delay_min": DELAY_MS / 1000, "retry_delay_max": DELAY_MS / 1000}
        if tries not in self.managers:
            self.managers[tries] = Aioredlock(nodes, retry_count=tries, internal_lock_timeout=lease_s, **delay_s)
        return self.managers[tries]

    async def forget(self) -> None:
        for watchdogs in (manager._watchdogs for manager in self.managers.values()):
            for watchdog in watchdogs.values():
                watchdog.cancel()
            watchdogs.clear()

    def make(self, resource: str, question: Line) -> Resource:
        return Resource(resource)

    async def acquire(self, lock: Resource, question: Line) -> bool | Line:
        wait_ms, lease_ms = question.get("wait_ms"), question.get("lease_ms")
        if "lock" not in question and self.opened["fixed_lease"]:
            lease_ms = self.opened["lease_ms"]
        tries = 1_000_000_000 if wait_ms is None else 1 + wait_ms // DELAY_MS
        call = self.manager(tries).lock(lock.name, lease_ms and lease_ms / 1000)
        lock.granted = await self.asked(question, call)
        return True

    async def release(self, lock: Resource, question: Line) -> bool:
        granted, lock.granted = lock.granted, None
        return granted is not None and await self.asked(question, granted.release()) is None

    async def renew(self, lock: Resource, question: Line) -> bool:
        if not (granted := lock.granted):
            return False
        lease_ms = question.get("lease_ms")
        call = granted.lock_manager.extend(granted, lease_ms and lease_ms / 1000)
        return await self.asked(question, call) is None

    async def status(self, lock: Resource, question: Line) -> Line:
        return {"held": bool(lock.granted and lock.granted.valid)}

    async def asked(self, question: Line, call: Awaitable[Any]) -> Any:
        """Without an answer of its servers the library waits for ever. A client of version 1 gives up before that."""
        return await (call if "lock" in question else asyncio.wait_for(call, LONGEST_S))


asyncio.run(TaskProgram(Library(), LockAcquiringError, HELLO, HELLO_2).serve())
