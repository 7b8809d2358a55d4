"""pals on PostgreSQL: advisory locks, each with a connection of its own while it is held."""

import sys
from collections.abc import Callable
from importlib.metadata import version

from lockstorm.adapter_program.limited import within
from lockstorm.adapter_program.lines import Line, ThreadProgram

try:
    import pals
    import psycopg2  # noqa: F401 # the driver, by which SQLAlchemy connects
    import sqlalchemy
    from pals.core import Lock
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(69)

HELLO = {
    "name": "PALs",
    "version": version("PALs"),
    "source": "PALs, pals/core.py",
    "service": "postgres",
    "tcp": True,
    "waits": "in-server",
    "operations": [],
}
HELLO_2 = {
    "threads": 8,
    "owner": "object",
    "forms": [
        {"form": "acquire(blocking=False)", "wait": ["none"], "lease": ["endless"]},
        {"form": "acquire(acquire_timeout)", "wait": ["time"], "lease": ["endless"]},
    ],
}
POOL = 64  # connections: more than lock objects


class Library:
    def __init__(self) -> None:
        self.made = list[Lock]()  # a lock object that is collected releases what it holds

    def open(self, question: Line) -> None:
        node = question["nodes"][0]
        where = f"{node['host']}:{node['port']}/postgres?sslmode=disable&gssencmode=disable"
        url = f"postgresql+psycopg2://lockstorm@{where}"
        self.locker = pals.Locker(None, create_engine_callable=lambda: sqlalchemy.create_engine(url, pool_size=POOL))

    def make(self, resource: str, question: Line) -> Lock:
        lock = self.locker.lock(resource)
        self.made.append(lock)
        return lock

    def forget(self) -> None:  # each has a connection since its first acquire
        self.made.clear()

    def acquire(self, lock: Lock, question: Line) -> bool | Line:
        wait_ms = question.get("wait_ms")
        limit_s = 10 + (30000 if wait_ms is None else wait_ms) / 1000  # the library's own is 30 s
        return self.asked(question, limit_s, lambda: lock.acquire(wait_ms != 0, acquire_timeout=wait_ms))

    def release(self, lock: Lock, question: Line) -> bool | Line:
        return self.asked(question, 10, lock.release)

    def asked(self, question: Line, limit_s: float, call: Callable[[], bool]) -> bool | Line:
        """Without an answer of its server the library waits for ever. A client of version 1 gives up before it does."""
        return call() if "lock" in question else within(limit_s, call)


ThreadProgram(Library(), (), HELLO, HELLO_2).serve()
