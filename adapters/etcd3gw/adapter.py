"""etcd3gw's Lock: a key that is created only if it is absent, tied to a lease, through etcd's JSON gateway."""

import sys
import time
from importlib.metadata import version

from lockstorm.adapter_program.lines import Line, ThreadProgram

try:
    import etcd3gw
    from etcd3gw.lock import Lock
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(69)

HELLO = {
    "name": "etcd3gw",
    "version": version("etcd3gw"),
    "source": "etcd3gw, etcd3gw/lock.py",
    "service": "etcd",
    "tcp": True,
    "lease": True,
    "lease_unit_ms": 1000,
    "waits": "polling",  # by the adapter, as the library's user has to: acquire() tries once
    "operations": ["renew", "is_held"],
}
HELLO_2 = {
    "threads": 8,
    "owner": "object",
    "forms": [{"form": form, "wait": ["none"], "lease": ["given"]} for form in ("acquire()", "with lock")],
    "of_object": ["lease_ms"],
}


PERIOD_S = 0.05


class Library:
    def open(self, question: Line) -> None:
        node = question["nodes"][0]
        self.client = etcd3gw.client(host=node["host"], port=node["port"], timeout=1, api_path="/v3/")
        self.lease_ms = question["lease_ms"]

    def make(self, resource: str, question: Line) -> Lock:
        return self.client.lock(resource, ttl=question.get("lease_ms", self.lease_ms) // 1000)

    def acquire(self, lock: Lock, question: Line) -> bool:
        if question.get("form") == "with lock":
            return lock.__enter__() is lock
        wait_ms, began = question.get("wait_ms"), time.monotonic()
        while not (granted := lock.acquire()):
            if wait_ms is not None and time.monotonic() - began >= wait_ms / 1000:
                break
            time.sleep(PERIOD_S)
        return granted

    def release(self, lock: Lock, question: Line) -> bool:
        return lock.release()

    def renew(self, lock: Lock, question: Line) -> bool:
        return lock.refresh() > 0

    def is_held(self, lock: Lock, question: Line) -> bool:
        return lock.is_acquired()


ThreadProgram(Library(), (), HELLO, HELLO_2).serve()
