"""Writes adapters that speak version 2 of the protocol, for tests: a lock of all modes in a Redis hash, with the
mistake that a test plants."""

import sys
from pathlib import Path

RIGHT_CALLS = r'''#!{python}
import json, os, queue, sys, threading, time
import redis
HELLO = {"name": "planted calls", "lease": True, "operations": ["renew", "is_held"]}
HELLO_2 = {
    "operations": ["renew", "is_held", "token"], "token": True, "validity": True, "threads": 4,
    "owner": "thread-object", "lease_key": "{resource}", "renew_lease": True, "keeps": ["tokens"],
    "modes": ["exclusive", "read", "write", "permits"], "reenters": ["same", "write-read"], "cancel": True,
    "forms": [
        {"form": "try", "wait": ["none", "time"], "lease": ["given", "endless"]},
        {"form": "lock", "wait": ["forever"], "lease": ["default"]},
    ],
}
ACQUIRE = """
local all, held, others, writers, mode = redis.call('hgetall', KEYS[1]), 0, 0, 0, ARGV[2]
for i = 1, #all, 2 do
  held = held + all[i + 1]
  if not string.find(all[i], ARGV[1] .. '|', 1, true) then
    others = others + 1
    if not string.find(all[i], '|read', 1, true) then writers = writers + 1 end
  end
end
if mode == 'permits' and held >= tonumber(ARGV[4]) then return 0 end
if mode == 'read' and writers > 0 then return 0 end
if (mode == 'exclusive' or mode == 'write') and others > 0 then return 0 end
redis.call('hincrby', KEYS[1], ARGV[1] .. '|' .. mode, 1)
if ARGV[3] == '0' then redis.call('persist', KEYS[1]) else redis.call('pexpire', KEYS[1], ARGV[3]) end
return 1
"""
RELEASE = """
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return 0 end
if redis.call('hincrby', KEYS[1], ARGV[1], -1) == 0 then redis.call('hdel', KEYS[1], ARGV[1]) end
return 1
"""
OK, REFUSED = {"outcome": "ok"}, {"outcome": "refused"}
opened, threads, resources, tokens, under_way, cancelled = {}, {}, {}, {}, set(), set()
generation, protocol, writing = 0, 1, threading.Lock()
def write(asked, answer):
    with writing:
        under_way.discard(asked["id"])
        os.write(1, json.dumps({"id": asked["id"], **answer}).encode() + b"\n")
def acquire(asked, resource, owner, mode):
    wait_ms = asked["wait_ms"]
    until = None if wait_ms is None else time.monotonic() + wait_ms / 1000
    lease_ms = asked.get("lease_ms", opened["lease_ms"])
    if lease_ms is None:
        lease_ms = 0 if asked.get("form") == "try" else opened["lease_ms"]
    while not link.eval(ACQUIRE, 1, resource, owner, mode, lease_ms, opened["permits"]):
        if asked["id"] in cancelled:
            return {"outcome": "refused", "cancelled": True}
        if until is not None and time.monotonic() >= until:
            return REFUSED
        time.sleep(0.01)
    tokens[resource] = link.incr("tokens")
    if protocol == 1:
        return OK
    return {**OK, "token": tokens[resource], "valid_until_ms": time.monotonic() * 1000 + lease_ms}
def call(asked):
    lock, thread, mode = asked.get("lock", 1), asked.get("thread", 1), asked.get("mode", "exclusive")
    resource = resources.setdefault(lock, asked.get("resource", opened["resource"]))
    owner = f"{os.getpid()}:{generation}:{thread}:{lock}"
    if asked["op"] == "acquire":
        return acquire(asked, resource, owner, mode)
    if asked["op"] == "token":
        return {**OK, "token": tokens[resource]}
    if asked["op"] == "release":
        return OK if link.eval(RELEASE, 1, resource, owner + "|" + mode) else REFUSED
    if not link.hexists(resource, owner + "|" + mode):
        return REFUSED
    if asked["op"] == "renew":
        link.pexpire(resource, asked.get("lease_ms", opened["lease_ms"]))
    return OK
def answer(asked):
    try:
        write(asked, call(asked))
    except redis.exceptions.RedisError as error:
        write(asked, {"outcome": "unknown", "error": str(error)})
def run(questions):
    while (asked := questions.get()) is not None:
        answer(asked)
def forget():
    global generation
    for questions in threads.values():
        questions.put(None)
    threads.clear(), resources.clear()
    generation += 1
    return OK
for asked in map(json.loads, sys.stdin):
    under_way.add(asked["id"])
    if asked["op"] == "hello":
        protocol = min(2, asked["protocol"])
        write(asked, {**OK, "protocol": protocol, **HELLO, **(HELLO_2 if protocol == 2 else {})})
    elif asked["op"] == "open":
        opened.update(asked)
        link = redis.Redis(unix_socket_path=asked["nodes"][0]["unix"], socket_timeout=1,
            retry=redis.retry.Retry(redis.backoff.NoBackoff(), 0))
        write(asked, OK)
    elif asked["op"] == "cancel":
        known = asked["call"] in under_way
        cancelled.add(asked["call"])
        write(asked, OK if known else REFUSED)
    elif asked["op"] == "forget":
        write(asked, forget())
    elif protocol == 1:
        answer(asked)
    else:
        thread = asked.get("thread", 1)
        if thread not in threads:
            threads[thread] = queue.SimpleQueue()
            threading.Thread(target=run, args=[threads[thread]], daemon=True).start()
        threads[thread].put(asked)
'''


def plant_calls(directory: Path, was: str = "", becomes: str = "") -> str:
    """Writes the right program, with each occurrence of `was` replaced, and returns its path. There has to be one."""
    assert was in RIGHT_CALLS, was
    text = RIGHT_CALLS.replace(was, becomes) if was else RIGHT_CALLS
    path = directory / f"calls-{len(list(directory.iterdir()))}"
    path.write_text(text.replace("{python}", sys.executable))
    path.chmod(0o755)
    return str(path)
