"""redis-py's Lock (redis.lock.Lock): SET NX PX with a random value, and scripts that compare it."""

import json
import sys
from typing import Any

import redis
from redis.exceptions import LockError, RedisError

HELLO = {
    "protocol": 1,
    "name": "redis-py",
    "version": redis.__version__,
    "source": "redis-py, redis/lock.py",
    "lease": True,
    "waits": "polling",
    "operations": ["renew", "is_held", "status"],
}


class Adapter:
    def open(self, asked: dict[str, Any]) -> dict[str, Any]:
        node = asked["nodes"][0]
        # No second try: what an answer that is lost means is the question here.
        link = redis.Redis(
            unix_socket_path=node["unix"], socket_timeout=1, retry=redis.retry.Retry(redis.backoff.NoBackoff(), 0)
        )
        self.lock = link.lock(asked["resource"], timeout=asked["lease_ms"] / 1000, sleep=0.05)
        return {"outcome": "ok"}

    def acquire(self, asked: dict[str, Any]) -> dict[str, Any]:
        wait_ms = asked["wait_ms"]
        granted = self.lock.acquire(blocking_timeout=None if wait_ms is None else wait_ms / 1000)
        return {"outcome": "ok" if granted else "refused"}

    def release(self, asked: dict[str, Any]) -> dict[str, Any]:
        self.lock.release()
        return {"outcome": "ok"}

    def renew(self, asked: dict[str, Any]) -> dict[str, Any]:
        self.lock.reacquire()
        return {"outcome": "ok"}

    def is_held(self, asked: dict[str, Any]) -> dict[str, Any]:
        return {"outcome": "ok" if self.lock.owned() else "refused"}

    def status(self, asked: dict[str, Any]) -> dict[str, Any]:
        return {"outcome": "ok", "held": self.lock.local.token is not None}

    def hello(self, asked: dict[str, Any]) -> dict[str, Any]:
        return {"outcome": "ok", **HELLO}


adapter = Adapter()
for line in sys.stdin:
    asked = json.loads(line)
    try:
        answer = getattr(adapter, asked["op"])(asked)
    except LockError as error:
        answer = {"outcome": "refused", "error": str(error)}  # not ours, or not any more
    except RedisError as error:
        answer = {"outcome": "unknown", "error": str(error)}  # nobody knows whether it was carried out
    print(json.dumps({"id": asked["id"], **answer}), flush=True)
