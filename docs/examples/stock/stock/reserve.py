"""Reserves items of a warehouse. Several workers do so; a lock in Redis gives each article to one of them at a time."""

import sqlite3
import uuid

import redis

LEASE_MS = 30_000
RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"


def reserve(locks: redis.Redis, warehouse: sqlite3.Connection, article: str, count: int) -> bool:
    """Takes `count` of an article out of the stock, if there are so many; False: try again, or there are not."""
    mine = str(uuid.uuid4())
    if not locks.set(f"lock:{article}", mine, nx=True, px=LEASE_MS):
        return False
    try:
        (left,) = warehouse.execute("SELECT left_over FROM stock WHERE article = ?", (article,)).fetchone()
        if left < count:
            return False
        warehouse.execute("UPDATE stock SET left_over = ? WHERE article = ?", (left - count, article))
        warehouse.commit()
        return True
    finally:
        locks.eval(RELEASE, 1, f"lock:{article}", mine)
