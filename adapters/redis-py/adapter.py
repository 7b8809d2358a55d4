"""redis-py's Lock (redis.lock.Lock): SET NX PX with a random value, which scripts compare. From version 2.10 on. The
argument is the topology of its servers: single, sentinel or cluster."""

import sys

from links import CONNECTED
from redis import __version__
from redis.exceptions import LockError
from redis.lock import Lock

from lockstorm.adapter_program.lines import Line, ThreadProgram

TOPOLOGY = sys.argv[1] if len(sys.argv) > 1 else "single"
LEASE = {"lease": ["given", "endless"]}  # Lock(timeout=...), Lock(timeout=None)
# Each form of acquire: how long it waits, and the call, which is given the wait in seconds.
FORMS = {
    "acquire()": (["forever"], lambda lock, wait_s: lock.acquire()),
    "acquire(blocking_timeout)": (["none", "time"], lambda lock, wait_s: lock.acquire(blocking_timeout=wait_s)),
    "acquire(blocking=False)": (["none"], lambda lock, wait_s: lock.acquire(blocking=False)),
    "with lock": (["forever"], lambda lock, wait_s: lock.__enter__() is lock),
}
OPERATIONS = {"renew": "reacquire", "is_held": "owned", "status": "acquire"}  # and the method that each needs
SLEEP_S = 0.05  # between two tries
REPLACES = "replace_ttl" in Lock.extend.__code__.co_varnames

HELLO = {
    "name": "redis-py" if TOPOLOGY == "single" else f"redis-py {TOPOLOGY}",
    "version": __version__,
    "source": "redis-py, redis/lock.py",
    "lease": True,
    "waits": "polling",
    "operations": [op for op, method in OPERATIONS.items() if hasattr(Lock, method)],
    **({"topology": TOPOLOGY, "tcp": True} if TOPOLOGY != "single" else {}),
}
HELLO_2 = {
    "threads": 8,
    "owner": "thread-object",
    "forms": [{"form": form, "wait": waits, **LEASE} for form, (waits, _) in FORMS.items()],
    "of_object": ["lease_ms"],
    "renew_lease": REPLACES,
    "lease_key": "{resource}",
    "poll_ms": int(SLEEP_S * 1000),
}


class Library:
    def open(self, question: Line) -> None:
        self.link = CONNECTED[TOPOLOGY](question)
        self.lease_ms = question["lease_ms"]

    def make(self, resource: str, question: Line) -> Lock:
        lease_ms = question.get("lease_ms", self.lease_ms)
        return self.link.lock(resource, timeout=lease_ms and lease_ms / 1000, sleep=SLEEP_S)

    def acquire(self, lock: Lock, question: Line) -> bool:
        wait_ms = question.get("wait_ms")
        usual = "acquire()" if wait_ms is None else "acquire(blocking_timeout)"
        _, call = FORMS[question.get("form", usual)]
        return call(lock, None if wait_ms is None else wait_ms / 1000)

    def release(self, lock: Lock, question: Line) -> bool:
        return lock.release() is None

    def renew(self, lock: Lock, question: Line) -> bool:
        lease_ms = question.get("lease_ms")
        return lock.extend(lease_ms / 1000, replace_ttl=True) if lease_ms else lock.reacquire()

    def is_held(self, lock: Lock, question: Line) -> bool:
        return lock.owned()

    def status(self, lock: Lock, question: Line) -> Line:
        return {"held": getattr(getattr(lock, "local", lock), "token", None) is not None}


ThreadProgram(Library(), LockError, HELLO, HELLO_2).serve()  # another client holds it
