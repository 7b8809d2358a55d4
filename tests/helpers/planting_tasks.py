"""Writes adapters that speak version 3 of the protocol, for tests: a lock of asyncio's tasks on Redis, with the mistake
that a test plants."""

import sys
from pathlib import Path

from lockstorm.base import paths

RIGHT_TASKS = r"""#!{python}
import asyncio, sys, uuid
sys.path.insert(0, "{adapters}")
from lockstorm.adapter_program.tasks import TaskProgram
from redis.asyncio import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry
HELLO = {"name": "planted tasks", "lease": True, "operations": ["renew", "is_held"]}
HELLO_2 = {
    "threads": 8, "owner": "object", "cancel": True, "renew_lease": True, "lease_key": "{resource}",
    "timer_ms": 250,  # it polls
    "forms": [{"form": "lock", "wait": ["none", "time", "forever"], "lease": ["given", "default"]},
              {"form": "watched", "wait": ["none", "time", "forever"], "lease": ["renewed"], "operations": []}],
}
HELLO_3 = {
    "holds_two": True,
    "settings": [{"name": "capacity", "values": [100, 1]}], "loss_notice": "renewal",
    "cancels": ["release", "renew"], "over": ["acquire", "release", "renew"],
}
DELETE = "return redis.call('get', KEYS[1]) == ARGV[1] and redis.call('del', KEYS[1]) or 0"
EXTEND = "return redis.call('get', KEYS[1]) == ARGV[1] and redis.call('pexpire', KEYS[1], ARGV[2]) or 0"
class NotHeld(Exception):
    pass
class Lock:
    def __init__(self, library, name):
        self.library, self.name, self.token, self.watchdog = library, name, None, None
    async def acquire(self, wait_ms, lease_ms):
        token = uuid.uuid4().hex
        until = None if wait_ms is None else asyncio.get_running_loop().time() + wait_ms / 1000
        try:
            while not await self.library.ask("set", self.name, token, nx=True, px=lease_ms):
                if until is not None and asyncio.get_running_loop().time() >= until:
                    return False
                await asyncio.sleep(0.25)
        except asyncio.CancelledError:
            self.library.give_back(self.name, token)
            raise
        self.token = token
        self.library.cache(self)
        return True
    def watch(self, lease_ms):
        self.watchdog = asyncio.create_task(self.renew(lease_ms))
    def stop(self):
        if self.watchdog:
            self.watchdog.cancel()
    async def renew(self, lease_ms):
        while True:
            await asyncio.sleep(lease_ms / 3000)
            try:
                kept = await self.library.ask("eval", EXTEND, 1, self.name, self.token, lease_ms)
            except Exception:
                continue  # the next one may reach the server
            if not kept:
                self.token = None
                self.library.lost(self)
                return
    async def release(self):
        token = self.held()
        self.stop()
        done = await self.library.ask("eval", DELETE, 1, self.name, token)
        self.token = None
        return done
    async def extend(self, lease_ms):
        return await self.library.ask("eval", EXTEND, 1, self.name, self.held(), lease_ms)
    def held(self):
        if self.token is None:
            raise NotHeld("this object has no lock")
        return self.token
class Library:
    async def open(self, question):
        self.path, self.lease_ms, self.tasks = question["nodes"][0]["unix"], question["lease_ms"], set()
        self.locks, self.cached = [], []
        self.capacity = question.get("settings", {}).get("capacity", 100)
    def cache(self, lock):
        self.cached = [each for each in self.cached if each is not lock] + [lock]
        while len(self.cached) > self.capacity and (idle := [each for each in self.cached if each.token is None]):
            self.cached.remove(idle[0])
    async def ask(self, command, *words, **options):  # a connection for each call
        async with Redis(unix_socket_path=self.path, socket_timeout=1, retry=Retry(NoBackoff(), 0)) as link:
            return await getattr(link, command)(*words, **options)
    def make(self, resource, question):
        self.locks.append(Lock(self, resource))
        return self.locks[-1]
    async def forget(self):
        for lock in self.locks:
            lock.stop()
        self.locks.clear(), self.cached.clear()
    def give_back(self, name, token):
        task = asyncio.create_task(self.delete(name, token))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
    async def delete(self, name, token):
        while True:
            try:
                return await self.ask("eval", DELETE, 1, name, token)
            except Exception:
                await asyncio.sleep(0.25)
    async def acquire(self, lock, question):
        granted = await lock.acquire(question.get("wait_ms"), question.get("lease_ms") or self.lease_ms)
        if granted and question.get("form") == "watched":
            lock.watch(self.lease_ms)
        return granted
    async def release(self, lock, question):
        return await lock.release()
    async def renew(self, lock, question):
        return await lock.extend(question.get("lease_ms") or self.lease_ms)
    async def is_held(self, lock, question):
        return lock.token is not None and await self.ask("get", lock.name) == lock.token.encode()
asyncio.run(TaskProgram(Library(), NotHeld, HELLO, HELLO_2, HELLO_3).serve())
"""

VERSION_2 = ("HELLO, HELLO_2, HELLO_3", "HELLO, HELLO_2")
ASKS = 'await self.library.ask("eval", '
EVICTS = (  # spring-integration #11044: a full cache forgets what is held
    "if each.token is None]):\n            self.cached.remove(idle[0])\n",
    "]):\n            self.cached.remove(idle[0])\n            idle[0].token = None\n",
)
MUTE = ("                self.library.lost(self)\n", "")  # the watchdog ends without a word
FORGETS = (  # redis-py #3847: the token is given up before the server has confirmed the release
    f"        done = {ASKS}DELETE, 1, self.name, token)\n        self.token = None\n",
    f"        self.token = None\n        done = {ASKS}DELETE, 1, self.name, token)\n",
)


def plant_tasks(directory: Path, *changes: tuple[str, str]) -> str:
    """Writes the right program, with each first text replaced by the second one, and returns its path."""
    text = RIGHT_TASKS
    for was, becomes in changes:
        assert was in text, was
        text = text.replace(was, becomes)
    path = directory / f"tasks-{len(list(directory.iterdir()))}"
    home = str(paths.PACKAGE.parent)
    path.write_text(text.replace("{python}", sys.executable).replace("{adapters}", home))
    path.chmod(0o755)
    return str(path)
