"""python-redis-lock's Lock: SET NX EX, waiters sleep in BLPOP; with argument auto-renewal a thread extends it."""

import math
import sys

import redis

from lockstorm.adapter_program.lines import Line, ThreadProgram

try:
    import redis_lock
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(69)

UNITS = {"lease_unit_ms": 1000, "wait_unit_ms": 1000}  # it takes whole seconds
RENEWS = sys.argv[1:] == ["auto-renewal"]
# Or Lock(expire=None). Without a limit nobody waits for one without an end: its connection's limit would end the BLPOP.
LEASES = ["given", "renewed" if RENEWS else "endless"]
WAITS = {"acquire()": "forever", "acquire(timeout)": "time", "acquire(blocking=False)": "none", "with lock": "forever"}
FORMS = [{"form": f, "wait": [w], "lease": LEASES[: 1 + (RENEWS or w != "forever")], **UNITS} for f, w in WAITS.items()]
EXTENDS = ["renew"] if hasattr(redis_lock.Lock, "extend") else []  # from version 3 on

HELLO = {
    "name": "python-redis-lock with auto_renewal" if RENEWS else "python-redis-lock",
    "version": redis_lock.__version__,
    "source": "python-redis-lock, src/redis_lock/__init__.py",
    "lease": True,
    "renews": RENEWS,
    "waits": "blocking-pop",
    "operations": [*EXTENDS, "is_held", "status"],
    "lease_unit_ms": 1000,
}
HELLO_2 = {
    "threads": 8,
    "owner": "object",
    "forms": FORMS,
    "of_object": ["lease_ms"],
    "renew_lease": bool(EXTENDS),
    "lease_key": "lock:{resource}",
    "watchdog_divisor": 1,  # rounded down: it renews after two thirds of a lease
}


class Library:
    def open(self, question: Line) -> None:
        self.opened, self.links = question, dict[int, redis.Redis]()

    def make(self, resource: str, question: Line) -> redis_lock.Lock:
        lease_s = ((given_ms := question.get("lease_ms")) or self.opened["lease_ms"]) // 1000
        if lease_s not in self.links:  # a waiter sleeps in BLPOP for a lease: its connection's limit must be longer
            path, once = self.opened["nodes"][0]["unix"], redis.retry.Retry(redis.backoff.NoBackoff(), 0)
            self.links[lease_s] = redis.Redis(unix_socket_path=path, socket_timeout=lease_s + 1, retry=once)
        renews = RENEWS and not (given_ms or self.opened["fixed_lease"])
        expire_s = lease_s if RENEWS or question.get("lease_ms", lease_s) else None
        lock = redis_lock.Lock(self.links[lease_s], resource, expire=expire_s, auto_renewal=renews)
        lock.longest_wait_s = lease_s
        return lock

    def acquire(self, lock: redis_lock.Lock, question: Line) -> bool:
        if (wait_ms := question.get("wait_ms")) is None:
            return lock.__enter__() is lock if question.get("form") == "with lock" else lock.acquire()
        limit_s = min(lock.longest_wait_s, math.ceil(wait_ms / 1000))
        return lock.acquire(timeout=limit_s) if wait_ms else lock.acquire(blocking=False)

    def release(self, lock: redis_lock.Lock, question: Line) -> bool:
        return lock.release() is None

    def renew(self, lock: redis_lock.Lock, question: Line) -> bool:
        return lock.extend((question.get("lease_ms") or 0) // 1000) is None

    def is_held(self, lock: redis_lock.Lock, question: Line) -> bool:
        return lock.get_owner_id() == lock.id

    def status(self, lock: redis_lock.Lock, question: Line) -> Line:
        return {"held": None}  # the object asks the server


REFUSALS = redis_lock.NotAcquired, redis_lock.AlreadyAcquired, redis_lock.AlreadyStarted
ThreadProgram(Library(), REFUSALS, HELLO, HELLO_2).serve()
