#!/usr/bin/env python3
"""A lock library for lockstorm, through an adapter: change the five marked places to use your own."""

import json
import sys

import redis  # 1. your library
from redis.backoff import NoBackoff
from redis.retry import Retry

HELLO = {
    "protocol": 1,
    "name": "my lock",  # 2. its description; docs/adapters.md has all keys
    "version": redis.__version__,
    "lease": True,
    "operations": ["renew", "is_held"],
}


def opened(request):
    """3. A lock object. The proxy of the trial listens at the nodes: connect to these addresses only."""
    once = Retry(NoBackoff(), 0)  # by default redis-py resends a SET after a lost answer, and is refused
    link = redis.Redis(unix_socket_path=request["nodes"][0]["unix"], socket_timeout=1, retry=once)
    return link.lock(request["resource"], timeout=request["lease_ms"] / 1000, sleep=0.05)


def answered(lock, verb, request):
    """4. One request: True it succeeded, False it was refused. The loop below handles exceptions."""
    if verb == "acquire":
        wait_ms = request["wait_ms"]  # None: the default of the library
        return lock.acquire(blocking_timeout=None if wait_ms is None else wait_ms / 1000)
    if verb == "release":
        return lock.release() is None
    if verb == "renew":
        return lock.reacquire()
    return lock.owned()


lock = None
for line in sys.stdin:
    request = json.loads(line)
    answer = {"id": request["id"], "outcome": "ok"}
    try:
        if request["op"] == "hello":
            answer.update(HELLO)
        elif request["op"] == "open":
            lock = opened(request)
        elif not answered(lock, request["op"], request):
            answer["outcome"] = "refused"
    except redis.exceptions.LockError as error:  # 5. what your library raises if another holds the lock
        answer.update(outcome="refused", error=str(error))
    except Exception as error:  # any other error: the server may have executed it
        answer.update(outcome="unknown", error=str(error))
    print(json.dumps(answer), flush=True)
