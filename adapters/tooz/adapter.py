"""tooz's locks, by the driver that a word names: etcd3gw, with a heart that beats, or postgresql."""

import os
import sys
from importlib.metadata import version

from lockstorm.adapter_program.limited import within
from lockstorm.adapter_program.lines import Line, ThreadProgram

try:
    from tooz import coordination
    from tooz.locking import Lock
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(69)

IS_ETCD = sys.argv[-1] == "etcd"
ETCD = "etcd3+http://{host}:{port}?api_version=v3&timeout=1&lock_timeout={lease_s}&membership_timeout={lease_s}"
URL = ETCD if IS_ETCD else "postgresql://lockstorm@{host}:{port}?dbname=postgres"
FORMS = {  # how each waits, and the call
    "acquire()": ("forever", lambda lock, wait_s: lock.acquire()),
    "acquire(blocking=False)": ("none", lambda lock, wait_s: lock.acquire(blocking=False)),
    "acquire(blocking=seconds)": ("time", lambda lock, wait_s: lock.acquire(blocking=wait_s)),
    "with lock": ("forever", lambda lock, wait_s: lock.__enter__() is lock),
}
USUAL = {wait: form for form, (wait, _) in reversed(FORMS.items())}
LEASE = {"lease": ["renewed" if IS_ETCD else "endless"]}
OFFERED = [{"form": form, "wait": [wait], **LEASE} for form, (wait, _) in FORMS.items()]
if IS_ETCD:
    FORMS["acquire(timeout)"] = ("time", lambda lock, wait_s: lock.acquire(timeout=int(wait_s)))
    OFFERED.append({"form": "acquire(timeout)", "wait": ["time"], "wait_unit_ms": 1000, **LEASE})

HELLO = {
    "name": f"tooz with {sys.argv[-1]}",
    "version": version("tooz"),
    "source": f"tooz, drivers/{'etcd3gw' if IS_ETCD else 'pgsql'}.py",
    "service": sys.argv[-1],
    "lease_unit_ms": 1000 if IS_ETCD else 1,
    **dict.fromkeys(("lease", "renews"), IS_ETCD),
    "tcp": True,
    "waits": "polling" if IS_ETCD else "in-server",
    "operations": ["status"],
}
HELLO_2 = {"threads": 8, "owner": "object", "forms": OFFERED, "watchdog_divisor": 2}


class Library:
    def open(self, question: Line) -> Line:
        os.environ |= {"PGSSLMODE": "disable", "PGGSSENCMODE": "disable"}  # the driver passes no such option on
        url = URL.format(lease_s=question["lease_ms"] // 1000, **question["nodes"][0])
        try:
            self.coordinator = coordination.get_coordinator(url, b"lockstorm")
            self.coordinator.start(start_heart=True)
        except Exception as error:  # each driver has its own
            return {"outcome": "unknown", "error": str(error)}
        return {}

    def make(self, resource: str, question: Line) -> Lock:
        return self.coordinator.get_lock(resource.encode())

    def acquire(self, lock: Lock, question: Line) -> bool | Line:
        wait_ms = question.get("wait_ms")
        usual = USUAL["forever" if wait_ms is None else "time" if wait_ms else "none"]
        _, call = FORMS[question.get("form", usual)]
        limit_s = 50 if wait_ms is None else wait_ms / 1000 + 10
        return self.asked(question, limit_s, lambda: call(lock, None if wait_ms is None else wait_ms / 1000))

    def release(self, lock: Lock, question: Line) -> bool | Line:
        return self.asked(question, 10, lock.release)

    def asked(self, question, limit_s, call) -> bool | Line:
        """psycopg2 waits for an answer for ever. A client of version 1 gives up before it does."""
        return call() if "lock" in question else within(limit_s, call)

    def status(self, lock: Lock, question: Line) -> Line:
        return {"held": lock.acquired}


ThreadProgram(Library(), (), HELLO, HELLO_2).serve()
