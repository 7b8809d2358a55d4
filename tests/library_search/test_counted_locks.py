"""A re-entrant lock counts at the server how often its owner holds it. A request that is sent again, because its reply
was lost, counts once; one that counts twice leaves the key behind after the release (issue #55)."""

from pathlib import Path

import pytest

from tests.helpers.planting_watched import plant_program
from tests.helpers.searching import searched

COUNTED_LOCK = r"""#!{python}
import sys, time, uuid
sys.path.insert(0, "{lines}")
from lockstorm.adapter_program.lines import ThreadProgram
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry
ASKED_AGAIN = "if redis.call('hget', KEYS[1], 'latest') == ARGV[3] then return 1 end "
ACQUIRE = '''if redis.call('exists', KEYS[1]) == 1 and redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call('hincrby', KEYS[1], ARGV[1], 1)
redis.call('hset', KEYS[1], 'latest', ARGV[3])
redis.call('pexpire', KEYS[1], ARGV[2])
return 1'''
RELEASE = '''if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return 0 end
if redis.call('hincrby', KEYS[1], ARGV[1], -1) < 1 then redis.call('del', KEYS[1]) end
return 1'''
class CountedLock:
    def __init__(self, link, name): self.link, self.name, self.owner = link, name, uuid.uuid4().hex
    def tries(self, lease_ms):
        return self.link.eval(ASKED_AGAIN + ACQUIRE, 1, self.name, self.owner, lease_ms, uuid.uuid4().hex)
    def acquire(self, wait_ms, lease_ms):
        ends = None if wait_ms is None else time.monotonic() + wait_ms / 1000
        while not self.tries(lease_ms):
            if ends is not None and time.monotonic() >= ends: return False
            time.sleep(0.05)
        return True
    def release(self): return self.link.once.eval(RELEASE, 1, self.name, self.owner)
class Library:
    def open(self, asked):
        def linked(retries):
            again = Retry(NoBackoff(), retries)
            return Redis(unix_socket_path=asked["nodes"][0]["unix"], socket_timeout=1, retry=again)
        self.link = linked(3)
        self.link.once = linked(0)  # a release that is sent again would be refused
    def make(self, resource, asked): return CountedLock(self.link, resource)
    def acquire(self, lock, asked): return lock.acquire(asked["wait_ms"], asked["lease_ms"])
    def release(self, lock, asked): return lock.release()
HELLO = {"name": "counted lock", "version": "1", "lease": True, "reentrant": True, "waits": "polling"}
HELLO_2 = {
    "threads": 4, "owner": "object", "reenters": ["same"], "lease_key": "{resource}",
    "forms": [{"form": "acquire", "wait": ["none", "time", "forever"], "lease": ["given"]}],
}
ThreadProgram(Library(), (), HELLO, HELLO_2).serve()
"""
TWICE = {"ASKED_AGAIN + ACQUIRE,": "ACQUIRE,"}


@pytest.mark.lengthy("plays some hundred schedules")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_repeated_acquire_that_counts_twice_is_found(tmp_path: Path, seed: int) -> None:
    result = searched(plant_program(tmp_path, COUNTED_LOCK, TWICE), schedules=300, seed=seed, faults="lose-reply")
    assert result["exit"] == 1 and result["found"]["violates"] == ["residue"], result["sentence"]


@pytest.mark.lengthy("plays some hundred schedules")
def test_a_repeated_acquire_that_counts_once_is_not_accused(tmp_path: Path) -> None:
    result = searched(plant_program(tmp_path, COUNTED_LOCK, {}), schedules=300, faults="lose-reply")
    assert result["found"] is None and result["exit"] == 0, result["sentence"]
