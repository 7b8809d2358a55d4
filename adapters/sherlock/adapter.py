"""sherlock's RedisLock: SETNX and EXPIRE in one script, with a random owner, which scripts compare."""

import os
import sys
from importlib.metadata import version

from lockstorm.adapter_program.lines import Line, ThreadProgram

try:
    from redis import Redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry
    from sherlock import LockException, LockTimeoutException, RedisLock
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(69)

WAITS = {"acquire()": "time", "acquire(blocking=False)": "none"}
# RedisLock(expire=None) is not asked of old releases, whose published bugs it would hide: none keeps its promise.
LEASES = ["given"] if os.environ.get("LOCKSTORM_LIBRARY_VERSION") else ["given", "endless"]
LEASE = {"lease": LEASES, "lease_unit_ms": 1000}
RETRY_S = 0.05  # between two tries
LONGEST_S = 3600.0  # the library waits for a time in any case
HELLO = {
    "name": "sherlock",
    "version": version("sherlock"),
    "source": "sherlock, sherlock/lock.py",
    "lease": True,
    "lease_unit_ms": 1000,
    "waits": "polling",
    "operations": ["renew"],
}
HELLO_2 = {
    "threads": 8,
    "owner": "object",
    "forms": [{"form": form, "wait": [wait], **LEASE} for form, wait in WAITS.items()],
    "of_object": ["lease_ms", "wait_ms"],
    "lease_key": "{resource}",
    "poll_ms": int(RETRY_S * 1000),
}


class Library:
    def __init__(self) -> None:
        self.made = list[RedisLock]()  # a lock object that is collected releases what it holds

    def open(self, question: Line) -> None:
        self.link = Redis(unix_socket_path=question["nodes"][0]["unix"], socket_timeout=1, retry=Retry(NoBackoff(), 0))
        self.lease_ms = question["lease_ms"]

    def make(self, resource: str, question: Line) -> RedisLock:
        wait_ms, lease_ms = question.get("wait_ms"), question.get("lease_ms", self.lease_ms)
        wait_s = LONGEST_S if wait_ms is None else wait_ms / 1000
        expire_s = None if lease_ms is None else lease_ms // 1000
        lock = RedisLock(resource, client=self.link, expire=expire_s, timeout=wait_s, retry_interval=RETRY_S)
        self.made.append(lock)
        return lock

    def acquire(self, lock: RedisLock, question: Line) -> bool:
        wait_ms = question.get("wait_ms")
        if "lock" not in question:  # in version 1 each acquire may wait for another time
            lock.timeout = LONGEST_S if wait_ms is None else wait_ms / 1000
        return lock.acquire(blocking=wait_ms != 0)

    def release(self, lock: RedisLock, question: Line) -> bool:
        return lock.release() is None

    def renew(self, lock: RedisLock, question: Line) -> bool:
        return lock.renew()


ThreadProgram(Library(), (LockException, LockTimeoutException), HELLO, HELLO_2).serve()
