"""Writes adapters of a small Redis lock that was made outside of lockstorm, for tests: SET NX PX, a watchdog, a waiter
that a release wakes; with the mistakes that a test plants."""

import sys
from collections.abc import Mapping
from pathlib import Path

from lockstorm.base import paths

WATCHED_LOCK = r"""#!{python}
import sys, threading, time, uuid
sys.path.insert(0, "{lines}")
from lockstorm.adapter_program.lines import ThreadProgram
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry
OWNS = "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end "
RENEW = OWNS + "return redis.call('pexpire', KEYS[1], ARGV[2])"
RELEASE = OWNS + "redis.call('del', KEYS[1]) redis.call('publish', KEYS[1], 'free') return 1"
class WatchedLock:
    def __init__(self, link, name, lease_ms):
        self.link, self.name, self.lease_ms, self.over = link, name, lease_ms, None
    def tries(self):
        return self.link.set(self.name, self.value, nx=True, px=self.lease_ms)
    def acquire(self, wait_ms):
        self.value, ends = uuid.uuid4().hex, None if wait_ms is None else time.monotonic() + wait_ms / 1000
        if self.tries() or (wait_ms != 0 and self.waits(ends)):
            self.over = threading.Event()
            threading.Thread(target=self.keeps, args=(self.value, self.over), daemon=True).start()
            return True
        return False
    def waits(self, ends):
        ears = self.link.pubsub()
        try:
            ears.subscribe(self.name)
            ears.get_message(timeout=1)
            while not self.tries():
                rest = max(self.link.pttl(self.name), 1) / 1000
                if ends is not None:
                    rest = min(rest, ends - time.monotonic())
                if rest <= 0:
                    return False
                ears.get_message(timeout=rest)
            return True
        finally:
            ears.close()
    def keeps(self, value, over):
        while not over.wait(self.lease_ms / 3000):
            try:
                if not self.link.eval(RENEW, 1, self.name, value, self.lease_ms): return
            except Exception: pass  # it tries again
    def release(self):
        self.over.set()
        return self.link.eval(RELEASE, 1, self.name, self.value)
class Library:
    def open(self, asked):
        self.link = Redis(unix_socket_path=asked["nodes"][0]["unix"], socket_timeout=1, retry=Retry(NoBackoff(), 0))
        self.lease_ms = asked["lease_ms"]
    def make(self, resource, asked): return WatchedLock(self.link, resource, self.lease_ms)
    def acquire(self, lock, asked): return lock.acquire(asked["wait_ms"])
    def release(self, lock, asked): return lock.release()
HELLO = {"name": "watched lock", "version": "1", "lease": True, "renews": True, "waits": "push"}
HELLO_2 = {
    "threads": 4, "owner": "object", "lease_key": "{resource}",
    "forms": [{"form": "acquire", "wait": ["none", "time", "forever"], "lease": ["renewed"]}],
}
ThreadProgram(Library(), (), HELLO, HELLO_2).serve()
"""


def plant_watched(directory: Path, changes: Mapping[str, str] | None = None) -> str:
    """Writes the right program with these texts replaced, and returns its path. Each has to be there."""
    return plant_program(directory, WATCHED_LOCK, changes)


def plant_program(directory: Path, text: str, changes: Mapping[str, str] | None) -> str:
    for was, becomes in (changes or {}).items():
        assert was in text, was
        text = text.replace(was, becomes)
    path = directory / f"planted-{len(list(directory.iterdir()))}"
    path.write_text(text.replace("{python}", sys.executable).replace("{lines}", str(paths.PACKAGE.parent)))
    path.chmod(0o755)
    return str(path)
