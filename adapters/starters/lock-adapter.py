#!/usr/bin/env python3
"""A lock library for lockstorm, through an adapter: change the five marked places to use your own."""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

import redis  # 1. your library
from redis.backoff import NoBackoff
from redis.retry import Retry

# 2. Its description; docs/adapters.md has all keys. HELLO_2: for calls of several threads about several lock objects.
HELLO = {"name": "my lock", "version": redis.__version__, "lease": True, "operations": ["renew", "is_held"]}
FORMS = [{"form": "acquire(blocking_timeout)", "wait": ["none", "time", "forever"], "lease": ["given"]}]
HELLO_2 = {"threads": 8, "owner": "thread-object", "forms": FORMS, "of_object": ["lease_ms"], "lease_key": "{resource}"}


def connected(nodes):
    """3. A connection, and a lock object. The trial's proxy listens at the nodes: connect to these addresses only."""
    once = Retry(NoBackoff(), 0)  # by default redis-py resends a SET after a lost answer, and is refused
    return redis.Redis(unix_socket_path=nodes[0]["unix"], socket_timeout=1, retry=once)


def made(link, resource, lease_ms):
    return link.lock(resource, timeout=lease_ms / 1000, sleep=0.05)


def answered(lock, verb, question):
    """4. One question: True it succeeded, False it was refused. `outcome` handles exceptions."""
    if verb == "acquire":
        wait_ms = question["wait_ms"]  # None: the default of the library
        return lock.acquire(blocking_timeout=None if wait_ms is None else wait_ms / 1000)
    if verb == "release":
        return lock.release() is None
    return lock.reacquire() if verb == "renew" else lock.owned()


def outcome(question):
    try:
        with making:  # the first question about a lock object makes it
            if (number := question.get("lock", 1)) not in locks:
                resource = question.get("resource", opened["resource"])
                locks[number] = made(link, resource, question.get("lease_ms") or opened["lease_ms"])
        return {"outcome": "ok" if answered(locks[number], question["op"], question) else "refused"}
    except redis.exceptions.LockError as error:  # 5. what your library raises if another holds the lock
        return {"outcome": "refused", "error": str(error)}
    except Exception as error:  # any other error: the server may have executed it
        return {"outcome": "unknown", "error": str(error)}


def write(question, answer):
    with writing:
        under_way.discard(question["id"])
        os.write(1, json.dumps({"id": question["id"], "outcome": "ok", **answer}).encode() + b"\n")


locks, threads, under_way, protocol, making, writing = {}, {}, set(), 1, Lock(), Lock()
for question in map(json.loads, sys.stdin):
    if question["op"] == "hello":
        protocol = min(2, question["protocol"])
        write(question, {"protocol": protocol, **HELLO, **(HELLO_2 if protocol == 2 else {})})
    elif question["op"] == "open":
        opened, link = question, connected(question["nodes"])
        write(question, {})
    elif question["op"] == "forget":  # makes new threads and lock objects, unless a call is under way
        for thread in [] if under_way else threads.values():
            thread.shutdown()
        threads, locks = (threads, locks) if under_way else ({}, {})
        write(question, {"outcome": "refused" if under_way else "ok"})
    elif protocol == 1:
        write(question, outcome(question))
    else:
        under_way.add(question["id"])
        thread = threads.setdefault(question.get("thread", 1), ThreadPoolExecutor(1))
        thread.submit(lambda asked: write(asked, outcome(asked)), question)
os._exit(0)  # ends the threads, too
