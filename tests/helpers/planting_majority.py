"""Writes adapters of a small lock of a majority of three redis-servers, with the mistakes that a test plants."""

from collections.abc import Mapping
from pathlib import Path

from tests.helpers.planting_watched import plant_program

MAJORITY_LOCK = r"""#!{python}
import random, sys, time, uuid
sys.path.insert(0, "{lines}")
from lockstorm.adapter_program.lines import ThreadProgram
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry
RELEASE = "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end return redis.call('del', KEYS[1])"
class MajorityLock:
    def __init__(self, links, name, lease_ms):
        self.links, self.name, self.lease_ms, self.value = links, name, lease_ms, ""
    def votes(self, asks):
        done = 0
        for link in self.links:
            try:
                done += bool(asks(link))
            except RedisError:
                pass
        return done
    def tries(self):
        self.value, began = uuid.uuid4().hex, time.monotonic()
        votes = self.votes(lambda link: link.set(self.name, self.value, nx=True, px=self.lease_ms))
        if votes > len(self.links) // 2 and (time.monotonic() - began) * 1000 < self.lease_ms * 0.9:
            return True
        self.release()
        return False
    def acquire(self, wait_ms):
        ends = None if wait_ms is None else time.monotonic() + wait_ms / 1000
        while not self.tries():
            rest = 1 if ends is None else ends - time.monotonic()
            if rest <= 0:
                return False
            time.sleep(min(rest, random.uniform(0.02, 0.05)))
        return True
    def release(self):
        return self.votes(lambda link: link.eval(RELEASE, 1, self.name, self.value)) > len(self.links) // 2
class Library:
    def open(self, asked):
        once = {"socket_timeout": 0.2, "retry": Retry(NoBackoff(), 0)}
        self.links = [Redis(unix_socket_path=node["unix"], **once) for node in asked["nodes"]]
        self.lease_ms = asked["lease_ms"]
    def make(self, resource, asked): return MajorityLock(self.links, resource, asked.get("lease_ms") or self.lease_ms)
    def acquire(self, lock, asked): return lock.acquire(asked["wait_ms"])
    def release(self, lock, asked): return lock.release()
HELLO = {"name": "majority lock", "version": "1", "lease": True, "waits": "polling", "nodes": 3}
HELLO_2 = {
    "threads": 4, "owner": "object", "lease_key": "{resource}", "poll_ms": 50, "of_object": ["lease_ms"],
    "forms": [{"form": "acquire", "wait": ["none", "time", "forever"], "lease": ["given"]}],
}
ThreadProgram(Library(), (), HELLO, HELLO_2).serve()
"""


def plant_majority(directory: Path, changes: Mapping[str, str] | None = None) -> str:
    """Writes the right program with these texts replaced, and returns its path. Each has to be there."""
    return plant_program(directory, MAJORITY_LOCK, changes)
