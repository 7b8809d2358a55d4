#!/usr/bin/env python3
"""A lock library for lockstorm, through an adapter: change the five marked places to use your own."""

import json
import sys

import redis  # 1. your library
from redis.backoff import NoBackoff
from redis.retry import Retry

HELLO = {
    "protocol": 1,
    "name": "my lock",  # 2. what it is; docs/adapters.md has all keys
    "version": redis.__version__,
    "lease": True,
    "operations": ["renew", "is_held"],
}


def opened(asked):
    """3. A lock object. The nodes are where the trial's proxy listens: connect there and nowhere else."""
    once = Retry(NoBackoff(), 0)  # by itself redis-py sends a SET whose answer is lost again, and is then refused
    link = redis.Redis(unix_socket_path=asked["nodes"][0]["unix"], socket_timeout=1, retry=once)
    return link.lock(asked["resource"], timeout=asked["lease_ms"] / 1000, sleep=0.05)


def answered(lock, verb, asked):
    """4. One question: true it is so, false it is not. An exception is for the loop below."""
    if verb == "acquire":
        wait_ms = asked["wait_ms"]  # None: as long as the library waits by itself
        return lock.acquire(blocking_timeout=None if wait_ms is None else wait_ms / 1000)
    if verb == "release":
        return lock.release() is None
    if verb == "renew":
        return lock.reacquire()
    return lock.owned()


lock = None
for line in sys.stdin:
    asked = json.loads(line)
    answer = {"id": asked["id"], "outcome": "ok"}
    try:
        if asked["op"] == "hello":
            answer.update(HELLO)
        elif asked["op"] == "open":
            lock = opened(asked)
        elif not answered(lock, asked["op"], asked):
            answer["outcome"] = "refused"
    except redis.exceptions.LockError as error:  # 5. what your library raises when the lock is not ours (any more)
        answer.update(outcome="refused", error=str(error))
    except Exception as error:  # whatever else goes wrong: nobody knows whether it was carried out
        answer.update(outcome="unknown", error=str(error))
    print(json.dumps(answer), flush=True)
