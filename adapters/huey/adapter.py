"""huey's lock_task with RedisHuey: a field of a hash, without an expiry."""

import sys
from importlib.metadata import version

from lockstorm.adapter_program.asked_again import asked_again
from lockstorm.adapter_program.lines import Line, ThreadProgram

try:
    from huey import RedisHuey
    from huey.api import TaskLock
    from huey.exceptions import TaskLockedException
    from redis import ConnectionPool, UnixDomainSocketConnection
    from redis.backoff import NoBackoff
    from redis.retry import Retry
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(69)

# Both try once. A task that was refused may be retried: so is a question that names no form.
FORMS = ["acquire()", "with lock"]
HELLO = {
    "name": "huey lock_task",
    "version": version("huey"),
    "source": "huey, huey/api.py",
    "waits": "polling",
    "operations": [],
}
HELLO_2 = {
    "threads": 8,
    "owner": "object",
    "forms": [{"form": form, "wait": ["none"], "lease": ["endless"]} for form in FORMS],
}


class Held:  # a lock object; release() does not ask who holds it: the adapter calls it of what was granted only
    def __init__(self, lock: TaskLock) -> None:
        self.lock, self.form = lock, ""


class Library:
    def open(self, question: Line) -> None:
        path, once = question["nodes"][0]["unix"], Retry(NoBackoff(), 0)
        pool = ConnectionPool(UnixDomainSocketConnection, path=path, socket_timeout=1, retry=once)
        self.huey = RedisHuey("lockstorm", connection_pool=pool)
        self.huey.storage.conn.ping()  # connects now, and not within the first acquire

    def make(self, resource: str, question: Line) -> Held:
        return Held(self.huey.lock_task(resource))

    def acquire(self, held: Held, question: Line) -> bool:
        return asked_again(lambda: self.is_granted(held, question.get("form", FORMS[0])), question.get("wait_ms"))

    def is_granted(self, held: Held, form: str) -> bool:
        try:
            held.lock.acquire() if form == FORMS[0] else held.lock.__enter__()
        except TaskLockedException:
            return False
        held.form = form
        return True

    def release(self, held: Held, question: Line) -> bool:
        form, held.form = held.form, ""
        if form == "with lock":
            return held.lock.__exit__(None, None, None) is None
        return bool(form) and bool(held.lock.release())


ThreadProgram(Library(), (), HELLO, HELLO_2).serve()
