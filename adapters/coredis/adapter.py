"""coredis's Lock: SET NX PX with a random value, which scripts compare."""

import asyncio
import sys
from importlib.metadata import version

from lockstorm.adapter_program.tasks import Line, TaskProgram

try:
    from coredis import Redis
    from coredis.exceptions import LockError
    from coredis.patterns.lock import Lock
    from coredis.retry import NoRetryPolicy
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(69)

RETRY_S = 0.05
FORMS = ["acquire()", "async with lock"]
OFFER = {"wait": ["none", "time", "forever"], "lease": ["given", "endless"]}
HELLO = {
    "name": "coredis",
    "version": version("coredis"),
    "source": "coredis, coredis/patterns/lock",
    "lease": True,
    "waits": "polling",
    "operations": [],  # extend() adds to what is left of the lease
}
HELLO_2 = {
    "threads": 8,
    "owner": "thread-object",  # its token is in a variable of the context, which tasks do not share
    "cancel": True,
    "forms": [{"form": form, **OFFER} for form in FORMS],
    "of_object": ["lease_ms", "wait_ms"],
    "lease_key": "{resource}",
    **dict.fromkeys(("timer_ms", "poll_ms"), int(RETRY_S * 1000)),
}


class Library:
    def __init__(self) -> None:
        self.made = list[Lock]()  # a lock object that is collected after `async with` releases what it holds
        self.entered = set[tuple[Lock, int]]()  # and by which thread

    async def open(self, question: Line) -> None:
        path = question["nodes"][0]["unix"]
        self.link = Redis(unix_socket_path=path, stream_timeout=1, connect_timeout=1, retry_policy=NoRetryPolicy())
        await self.link.__aenter__()
        self.lease_ms = question["lease_ms"]

    def make(self, resource: str, question: Line) -> Lock:
        lease_ms = question.get("lease_ms", self.lease_ms)
        lock = self.link.lock(resource, timeout=lease_ms and lease_ms / 1000, sleep=RETRY_S)
        self.made.append(lock)
        return self.waiting(lock, question)

    def waiting(self, lock: Lock, question: Line) -> Lock:
        wait_ms = question.get("wait_ms")
        lock.blocking, lock.blocking_timeout = wait_ms != 0, wait_ms and wait_ms / 1000
        return lock

    async def acquire(self, lock: Lock, question: Line) -> bool:
        if "lock" not in question:  # in version 1 each acquire may wait for another time
            self.waiting(lock, question)
        if question.get("form") != FORMS[1]:
            return await lock.acquire()
        entered = await lock.__aenter__() is lock
        self.entered.add((lock, question.get("thread", 1)))
        return entered

    async def release(self, lock: Lock, question: Line) -> bool:
        if (entered := (lock, question.get("thread", 1))) not in self.entered:
            return await lock.release() is None
        self.entered.remove(entered)
        return not await lock.__aexit__(None, None, None)


asyncio.run(TaskProgram(Library(), LockError, HELLO, HELLO_2).serve())
