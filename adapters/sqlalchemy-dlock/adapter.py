"""sqlalchemy-dlock on PostgreSQL: advisory locks of a connection, exclusive or shared."""

import sys
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Any

from lockstorm.adapter_program.limited import OneThread
from lockstorm.adapter_program.lines import Line, ThreadProgram

try:
    import psycopg2  # noqa: F401 # the driver, by which SQLAlchemy connects
    import sqlalchemy
    from sqlalchemy_dlock import create_sadlock
    from sqlalchemy_dlock.lock.base import BaseSadLock
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(69)

URL = "postgresql+psycopg2://lockstorm@{host}:{port}/postgres?sslmode=disable&gssencmode=disable"
FORMS = {  # how each waits, and the call
    "acquire()": ("forever", lambda lock, wait_s: lock.acquire()),
    "acquire(block=False)": ("none", lambda lock, wait_s: lock.acquire(block=False)),
    "acquire(timeout, interval)": ("time", lambda lock, wait_s: lock.acquire(timeout=wait_s, interval=0.1)),
    "with lock": ("forever", lambda lock, wait_s: lock.__enter__() is lock),
}
USUAL = {wait: form for form, (wait, _) in reversed(FORMS.items())}
SOURCE = {"version": version("sqlalchemy-dlock"), "source": "sqlalchemy-dlock, lock/postgresql.py"}
HELLO = {"name": "sqlalchemy-dlock", **SOURCE, "service": "postgres", "tcp": True, "waits": "in-server"}
OFFERED = [{"form": form, "wait": [wait], "lease": ["endless"]} for form, (wait, _) in FORMS.items()]
HELLO_2 = {"threads": 8, "owner": "thread-object", "modes": ["read", "write"], "timer_ms": 100, "forms": OFFERED}


class Library:
    def __init__(self) -> None:
        self.made, self.holding, self.thread = dict[Any, BaseSadLock](), set[BaseSadLock](), OneThread()

    def open(self, question: Line) -> None:
        url = URL.format(**question["nodes"][0])
        self.engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool, isolation_level="AUTOCOMMIT")

    def make(self, resource: str, question: Line) -> str:
        return resource

    def lock(self, resource: str, question: Line) -> BaseSadLock:  # with a connection, which is for one thread
        key = _, _, mode = question.get("lock", 1), question.get("thread", 1), question.get("mode", "write")
        if key not in self.made:
            self.made[key] = create_sadlock(self.engine.connect(), resource, shared=mode == "read")
        return self.made[key]

    def acquire(self, resource: str, question: Line) -> bool | Line:
        wait_ms = question.get("wait_ms")
        _, call = FORMS[question.get("form", USUAL["forever" if wait_ms is None else "time" if wait_ms else "none"])]
        return self.asked(resource, question, lambda lock: call(lock, wait_ms and wait_ms / 1000), True)

    def release(self, resource: str, question: Line) -> bool | Line:
        return self.asked(resource, question, lambda lock: lock.release() is None, False)

    def asked(self, resource: str, question: Line, call: Callable[[BaseSadLock], bool], holds: bool) -> bool | Line:
        """psycopg2 waits for an answer for ever. A client of version 1 gives up before it does."""
        limit_s = 10 + (40_000 if question.get("wait_ms", 0) is None else question.get("wait_ms", 0)) / 1000
        work = partial(self.called, resource, question, call, holds)
        return work() if "lock" in question else self.thread.within(limit_s, work)

    def called(self, resource: str, question: Line, call: Callable[[BaseSadLock], bool], holds: bool) -> bool:
        lock = self.lock(resource, question)
        self.holding.add(lock)  # unless it is refused, or given back
        if (done := call(lock)) is not holds:
            self.holding.remove(lock)
        return done

    def forget(self) -> None:  # gives nothing back that may be held
        for lock in set(self.made.values()) - self.holding:
            lock.connection_or_session.close()
        self.made = {}


ThreadProgram(Library(), ValueError, HELLO, HELLO_2).serve()  # invoked on an unlocked lock
