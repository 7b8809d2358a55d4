"""A lock behind serve() whose release deletes the key also of another holder."""

import sys

BLIND_DELETE = f"""#!{sys.executable}
import functools, time, redis
from lockstorm import serve
connected = functools.cache(lambda url: redis.Redis.from_url(url, socket_timeout=1, retry=None))
def acquire(lock, wait):
    server, name, lease = lock
    until = time.monotonic() + (3600 if wait is None else wait)
    while not server.set(name, "x", nx=True, px=int(lease * 1000)):
        if time.monotonic() >= until:
            return False
        time.sleep(0.05)
    return True
serve(make=lambda urls, name, lease: (connected(urls[0]), name, lease), acquire=acquire,
      release=lambda lock: bool(lock[0].delete(lock[1])))
"""
