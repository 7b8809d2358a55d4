"""redis-py's Lock (redis.lock.Lock): SET NX PX with a random value, which scripts compare."""

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
    def open(self, request: dict[str, Any]) -> dict[str, Any]:
        node = request["nodes"][0]
        # No retry by the connection: the trial tests what the lock does about a lost answer.
        link = redis.Redis(
            unix_socket_path=node["unix"], socket_timeout=1, retry=redis.retry.Retry(redis.backoff.NoBackoff(), 0)
        )
        self.lock = link.lock(request["resource"], timeout=request["lease_ms"] / 1000, sleep=0.05)
        return {"outcome": "ok"}

    def acquire(self, request: dict[str, Any]) -> dict[str, Any]:
        wait_ms = request["wait_ms"]
        granted = self.lock.acquire(blocking_timeout=None if wait_ms is None else wait_ms / 1000)
        return {"outcome": "ok" if granted else "refused"}

    def release(self, request: dict[str, Any]) -> dict[str, Any]:
        self.lock.release()
        return {"outcome": "ok"}

    def renew(self, request: dict[str, Any]) -> dict[str, Any]:
        self.lock.reacquire()
        return {"outcome": "ok"}

    def is_held(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"outcome": "ok" if self.lock.owned() else "refused"}

    def status(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"outcome": "ok", "held": self.lock.local.token is not None}

    def hello(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"outcome": "ok", **HELLO}


adapter = Adapter()
for line in sys.stdin:
    request = json.loads(line)
    try:
        answer = getattr(adapter, request["op"])(request)
    except LockError as error:
        answer = {"outcome": "refused", "error": str(error)}  # another client holds it
    except RedisError as error:
        answer = {"outcome": "unknown", "error": str(error)}  # the server may have executed the command
    print(json.dumps({"id": request["id"], **answer}), flush=True)
