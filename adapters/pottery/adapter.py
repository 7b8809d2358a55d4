"""pottery's Redlock on one server: SET NX PX with an owner of each acquire, which scripts compare."""

import sys
from collections.abc import Callable
from importlib.metadata import version

from lockstorm.adapter_program.lines import Line, ThreadProgram

try:
    from pottery import ExtendUnlockedLock, Redlock, ReleaseUnlockedLock, TooManyExtensions
    from redis import Redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(69)

WAITS = {"acquire()": "forever", "acquire(timeout)": "time", "acquire(blocking=False)": "none", "with lock": "forever"}
HELLO = {
    "name": "pottery",
    "version": version("pottery"),
    "source": "pottery, pottery/redlock.py",
    "lease": True,
    "waits": "polling",
    "operations": ["renew", "is_held"],
}
HELLO_2 = {
    "threads": 8,
    "owner": "object",
    "forms": [{"form": form, "wait": [wait], "lease": ["given"]} for form, wait in WAITS.items()],
    **dict.fromkeys(("timer_ms", "poll_ms"), 200),  # it sleeps for up to so long after a try, also beyond its wait
    "of_object": ["lease_ms"],
    "lease_key": "redlock:{resource}",
}


class Library:
    def open(self, question: Line) -> None:
        path, once = question["nodes"][0]["unix"], Retry(NoBackoff(), 0)
        self.link = Redis(unix_socket_path=path, socket_timeout=1, retry=once)
        self.lease_ms = question["lease_ms"]

    def make(self, resource: str, question: Line) -> Redlock:
        lease_s = question.get("lease_ms", self.lease_ms) / 1000
        return Redlock(key=resource, masters={self.link}, auto_release_time=lease_s, num_extensions=1000)

    def acquire(self, lock: Redlock, question: Line) -> bool:
        wait_ms = question.get("wait_ms")
        if question.get("form") == "with lock":
            return lock.__enter__() is lock
        if wait_ms is None:
            return lock.acquire()
        return lock.acquire(timeout=wait_ms / 1000) if wait_ms else lock.acquire(blocking=False)

    def release(self, lock: Redlock, question: Line) -> bool:
        return self.asked(lock.release)

    def renew(self, lock: Redlock, question: Line) -> bool:
        return self.asked(lock.extend)

    def asked(self, call: Callable[[], None]) -> bool:
        """An exception that has errors of servers in it says nothing of the lock."""
        try:
            return call() is None
        except (ExtendUnlockedLock, ReleaseUnlockedLock) as refusal:
            if refusal.redis_errors:
                raise refusal.redis_errors[0] from refusal
            return False

    def is_held(self, lock: Redlock, question: Line) -> bool:
        return bool(lock.locked())


ThreadProgram(Library(), TooManyExtensions, HELLO, HELLO_2).serve()
