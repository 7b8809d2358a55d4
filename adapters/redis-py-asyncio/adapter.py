"""redis-py's Lock for asyncio (redis.asyncio.lock.Lock): SET NX PX with a random value, which scripts compare."""

import asyncio

from redis import __version__
from redis.asyncio import Redis
from redis.asyncio.lock import Lock
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import LockError

from lockstorm.adapter_program.tasks import Line, TaskProgram

LEASE = {"lease": ["given", "endless"]}  # Lock(timeout=...), Lock(timeout=None)
SLEEP_S = 0.05  # between two tries
# Each form of acquire, and how long it waits.
FORMS = {
    "acquire()": ["forever"],
    "acquire(blocking_timeout)": ["none", "time"],
    "acquire(blocking=False)": ["none"],
    "async with lock": ["forever"],
}
HELLO = {
    "name": "redis-py asyncio",
    "version": __version__,
    "source": "redis-py, redis/asyncio/lock.py",
    "lease": True,
    "waits": "polling",
    "operations": ["renew", "is_held", "status"],
}
HELLO_2 = {
    "threads": 8,
    "owner": "object",  # its token is in a variable of the thread, which all tasks share
    "cancel": True,
    "forms": [{"form": form, "wait": waits, **LEASE} for form, waits in FORMS.items()],
    "of_object": ["lease_ms"],
    "renew_lease": True,
    "lease_key": "{resource}",
    "poll_ms": int(SLEEP_S * 1000),
}

HELLO_3 = {"cancels": ["release", "renew"], "over": ["acquire", "release", "renew"]}


class Library:
    async def open(self, question: Line) -> None:
        path, once = question["nodes"][0]["unix"], Retry(NoBackoff(), 0)
        self.link = Redis(unix_socket_path=path, socket_timeout=1, retry=once)
        self.lease_ms = question["lease_ms"]

    def make(self, resource: str, question: Line) -> Lock:
        lease_ms = question.get("lease_ms", self.lease_ms)
        return self.link.lock(resource, timeout=lease_ms and lease_ms / 1000, sleep=SLEEP_S)

    async def acquire(self, lock: Lock, question: Line) -> bool:
        wait_ms = question.get("wait_ms")
        if question.get("form") == "async with lock":
            return await lock.__aenter__() is lock
        if question.get("form") == "acquire(blocking=False)":
            return await lock.acquire(blocking=False)
        return await lock.acquire(blocking_timeout=None if wait_ms is None else wait_ms / 1000)

    async def release(self, lock: Lock, question: Line) -> bool:
        return await lock.release() is None

    async def renew(self, lock: Lock, question: Line) -> bool:
        lease_ms = question.get("lease_ms")
        return await (lock.extend(lease_ms / 1000, replace_ttl=True) if lease_ms else lock.reacquire())

    async def is_held(self, lock: Lock, question: Line) -> bool:
        return await lock.owned()

    async def status(self, lock: Lock, question: Line) -> Line:
        return {"held": lock.local.token is not None}


asyncio.run(TaskProgram(Library(), LockError, HELLO, HELLO_2, HELLO_3).serve())
