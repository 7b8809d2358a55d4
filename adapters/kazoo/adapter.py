"""kazoo's Lock on ZooKeeper: the first of the sequential nodes, each of its client's session."""

import sys

from limited import within
from lines import Line, Program

try:
    from kazoo.client import KazooClient
    from kazoo.exceptions import CancelledError, LockTimeout
    from kazoo.recipe.lock import Lock
    from kazoo.version import __version__
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(69)

WAITS = {"acquire()": "forever", "acquire(timeout)": "time", "acquire(blocking=False)": "none", "with lock": "forever"}
HELLO = {
    "name": "kazoo",
    "version": __version__,
    "source": "kazoo, recipe/lock.py",
    "service": "zookeeper",
    "tcp": True,
    "lease": True,
    "renews": True,
    "waits": "push",
    "operations": ["status"],
}
HELLO_2 = {
    "threads": 8,
    "owner": "object",
    "cancel": True,
    "forms": [{"form": form, "wait": [wait], "lease": ["renewed"]} for form, wait in WAITS.items()],
    "keeps": ["/{resource}"],
}


class Library:
    def open(self, question: Line) -> Line:
        node = question["nodes"][0]
        self.client = KazooClient(f"{node['host']}:{node['port']}", timeout=question["lease_ms"] / 1000)
        ready = self.client.start_async()
        return {"outcome": "ok" if ready.wait(15) else "unknown"}

    def make(self, resource: str, question: Line) -> Lock:
        return self.client.Lock(f"/{resource}")

    def acquire(self, lock: Lock, question: Line) -> bool | Line:
        """Without an answer of its servers the library asks for ever. A client of version 1 gives up before it does."""
        if "lock" in question:
            return self.acquire_as_asked(lock, question)
        limit_s = question["wait_ms"] / 1000 + 10 if question.get("wait_ms") is not None else 50
        return within(limit_s, lambda: self.acquire_as_asked(lock, question))

    def acquire_as_asked(self, lock: Lock, question: Line) -> bool | Line:
        wait_ms = question.get("wait_ms")
        try:
            if question.get("form") == "with lock":
                return lock.__enter__() is None
            return lock.acquire(blocking=wait_ms != 0, timeout=(wait_ms and wait_ms / 1000) or None)
        except LockTimeout:
            return False
        except CancelledError as error:
            return {"outcome": "refused", "cancelled": True, "error": str(error)}

    def cancel(self, lock: Lock) -> None:
        lock.cancel()

    def release(self, lock: Lock, question: Line) -> bool:
        return lock.release()

    def status(self, lock: Lock, question: Line) -> Line:
        return {"held": lock.is_acquired}


Program(Library(), (), HELLO, HELLO_2).serve()
