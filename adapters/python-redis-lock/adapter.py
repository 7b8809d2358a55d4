"""python-redis-lock's Lock: SET NX EX, waiters sleep in BLPOP; with argument auto-renewal a thread extends it."""

import json
import math
import sys
from typing import Any

try:
    import redis_lock
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(69)
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

RENEWS = sys.argv[1:] == ["auto-renewal"]
HELLO = {
    "protocol": 1,
    "name": "python-redis-lock with auto_renewal" if RENEWS else "python-redis-lock",
    "version": redis_lock.__version__,
    "source": "python-redis-lock, src/redis_lock/__init__.py",
    "lease": True,
    "lease_unit_ms": 1000,
    "renews": RENEWS,
    "waits": "blocking-pop",
    "operations": ["renew", "is_held", "status"],
}


class Adapter:
    def open(self, request: dict[str, Any]) -> dict[str, Any]:
        lease_s = request["lease_ms"] // 1000
        # A waiter sleeps in BLPOP for a lease: the timeout of its connection must be longer.
        link = Redis(
            unix_socket_path=request["nodes"][0]["unix"], socket_timeout=lease_s + 1, retry=Retry(NoBackoff(), 0)
        )
        renews = RENEWS and not request["fixed_lease"]
        self.lock = redis_lock.Lock(link, request["resource"], expire=lease_s, auto_renewal=renews)
        self.longest_wait_s = lease_s
        return {"outcome": "ok"}

    def acquire(self, request: dict[str, Any]) -> dict[str, Any]:
        wait_ms = request["wait_ms"]
        if wait_ms == 0:
            granted = self.lock.acquire(blocking=False)
        else:  # the library takes whole seconds, at most the lease
            granted = self.lock.acquire(timeout=wait_ms and min(self.longest_wait_s, math.ceil(wait_ms / 1000)))
        return {"outcome": "ok" if granted else "refused"}

    def release(self, request: dict[str, Any]) -> dict[str, Any]:
        self.lock.release()
        return {"outcome": "ok"}

    def renew(self, request: dict[str, Any]) -> dict[str, Any]:
        self.lock.extend()
        return {"outcome": "ok"}

    def is_held(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"outcome": "ok" if self.lock.get_owner_id() == self.lock.id else "refused"}

    def status(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"outcome": "ok", "held": None}  # null: the object asks the server

    def hello(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"outcome": "ok", **HELLO}


adapter = Adapter()
for line in sys.stdin:
    request = json.loads(line)
    try:
        answer = getattr(adapter, request["op"])(request)
    except (redis_lock.NotAcquired, redis_lock.AlreadyAcquired) as error:
        answer = {"outcome": "refused", "error": str(error)}
    except (RedisError, redis_lock.AlreadyStarted) as error:  # the server may have executed the command
        answer = {"outcome": "unknown", "error": str(error)}
    print(json.dumps({"id": request["id"], **answer}), flush=True)
