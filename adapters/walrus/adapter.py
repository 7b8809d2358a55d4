"""walrus's Lock: SETNX and PEXPIRE in a script, with a random owner, which scripts compare; waiters sleep in BLPOP."""

import sys
from importlib.metadata import version

from lockstorm.adapter_program.asked_again import asked_again
from lockstorm.adapter_program.lines import Line, ThreadProgram

try:
    from redis.backoff import NoBackoff
    from redis.retry import Retry
    from walrus import Database
    from walrus.lock import Lock
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(69)

WAITS = {"acquire()": "forever", "acquire(block=False)": "none", "with lock": "forever"}
LEASE = {"lease": ["given", "endless"]}  # Database.lock(ttl=...), Database.lock(ttl=None)
HELLO = {
    "name": "walrus",
    "version": version("walrus"),
    "source": "walrus, walrus/lock.py",
    "lease": True,
    "waits": "blocking-pop",
    "operations": [],
}
HELLO_2 = {
    "threads": 8,
    "owner": "object",
    "forms": [{"form": form, "wait": [wait], **LEASE} for form, wait in WAITS.items()],
    "of_object": ["lease_ms"],
    "lease_key": "lock:{resource}",
    "keeps": ["lock.event:{resource}"],
}


class Library:
    def open(self, question: Line) -> None:
        self.opened, self.links = question, dict[int, Database]()

    def make(self, resource: str, question: Line) -> Lock:
        lease_ms = question.get("lease_ms", self.opened["lease_ms"])
        wait_s = (lease_ms or 1000) // 1000  # for which a waiter sleeps in BLPOP, 0: for ever
        if wait_s not in self.links:  # its connection's limit must be longer
            path, once = self.opened["nodes"][0]["unix"], Retry(NoBackoff(), 0)
            limit_s = wait_s + 1 if wait_s else None
            self.links[wait_s] = Database(unix_socket_path=path, socket_timeout=limit_s, retry=once)
        return self.links[wait_s].lock(resource, ttl=lease_ms)

    def acquire(self, lock: Lock, question: Line) -> bool:
        if question.get("form") == "with lock":
            return lock.__enter__() is None
        if (wait_ms := question.get("wait_ms")) is None:
            return lock.acquire()
        return asked_again(lambda: lock.acquire(block=False), wait_ms)  # it waits for no limited time

    def release(self, lock: Lock, question: Line) -> bool:
        return lock.release()


ThreadProgram(Library(), (), HELLO, HELLO_2).serve()
