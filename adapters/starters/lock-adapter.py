#!/usr/bin/env python3
"""A lock library for lockstorm. Change the three marked places; `lockstorm docs adapters` has the keys of serve()."""

from functools import cache

import redis  # 1. your library
from redis.backoff import NoBackoff
from redis.retry import Retry

from lockstorm import serve


@cache
def connected(url):  # 2. to the servers that lockstorm names, and to no other
    once = Retry(NoBackoff(), 0)  # by default redis-py resends a SET after a lost answer, and is refused
    return redis.Redis.from_url(url, socket_timeout=1, retry=once)


serve(  # 3. a lock object, and its calls; `wait` and `lease` are in seconds
    make=lambda urls, resource, lease: connected(urls[0]).lock(resource, timeout=lease, sleep=0.05),
    acquire=lambda lock, wait: lock.acquire(blocking_timeout=wait),
    release=lambda lock: lock.release(),
    renew=lambda lock: lock.reacquire(),
    is_held=lambda lock: lock.owned(),
    refused=redis.exceptions.LockError,  # raised if another client holds the lock
    owner="thread-object",  # who may release: a thread, an object, or a thread by its object
    lease_key="{resource}",  # the key at the server that ends with the lease
    name="my lock",
    version=redis.__version__,
)
