"""A small service in FastAPI, with redis-py and psycopg. Each /wrong route has a mistake with locks; its /right twin
follows. A holder may be paused for longer than its lease, so a lease alone protects no data: each twin also has a guard
in the database. ../README.md explains the mistakes."""

import asyncio
import os
import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import uvicorn
from fastapi import FastAPI, HTTPException
from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool
from redis.asyncio import Redis
from redis.asyncio.lock import Lock
from redis.exceptions import LockError

redis = Redis.from_url(os.environ["REDIS_URL"])
pool = AsyncConnectionPool(os.environ["DATABASE_URL"], min_size=4, max_size=4, open=False)


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    async with pool:
        yield


app = FastAPI(lifespan=lifespan)
busy = HTTPException(409, "busy")
changed = HTTPException(409, "somebody else has changed it")
none_left = HTTPException(409, "none is left")


@app.get("/health")
async def health() -> str:
    return "ready"


# --- what the routes share ---

RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"


@asynccontextmanager
async def locked(name: str) -> AsyncIterator[None]:
    """Holds the lock for at most two seconds."""
    lock = redis.lock(name, timeout=2)
    if not await lock.acquire(blocking_timeout=5):
        raise busy
    try:
        yield
    finally:
        with suppress(LockError):  # the lease has ended
            await lock.release()


async def value(db: AsyncConnection, statement: str, *values: Any) -> Any:
    """The first value of the first row."""
    row = await (await db.execute(statement, values)).fetchone()
    return row[0] if row else None


async def spend(db: AsyncConnection) -> None:
    """Needs a lock: two at once read the same number."""
    credits = await value(db, "SELECT credits FROM users WHERE id = 1")
    if credits < 1:
        raise none_left
    await db.execute("UPDATE users SET credits = %s WHERE id = 1", (credits - 1,))


async def spend_if_unchanged(db: AsyncConnection) -> None:
    """Needs no lock: the second one finds another number than it has read, and changes nothing."""
    credits = await value(db, "SELECT credits FROM users WHERE id = 1")
    if credits < 1:
        raise none_left
    done = await db.execute("UPDATE users SET credits = %s WHERE id = 1 AND credits = %s", (credits - 1, credits))
    if done.rowcount == 0:
        raise changed


# --- unlock-before-commit: the lock is inside of the transaction ---


@app.post("/unlock-before-commit/wrong")
async def unlock_before_commit_wrong() -> None:
    async with pool.connection() as db, locked("user:1"):  # releases the lock, and then commits
        await spend(db)


@app.post("/unlock-before-commit/right")
async def unlock_before_commit_right() -> None:
    async with locked("user:1"), pool.connection() as db:  # commits, and then releases the lock
        await spend_if_unchanged(db)


# --- snapshot-before-lock: what is read under the lock is as old as the transaction's first statement ---


@app.post("/snapshot-before-lock/wrong")
async def snapshot_before_lock_wrong() -> None:
    async with pool.connection() as db:
        await db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        seats = await value(db, "SELECT seats FROM events WHERE id = 1")
        async with locked("event:1"):
            if await value(db, "SELECT count(*) FROM bookings") >= seats:
                raise none_left
            await db.execute("INSERT INTO bookings DEFAULT VALUES")
            await db.commit()


@app.post("/snapshot-before-lock/right")
async def snapshot_before_lock_right() -> None:
    async with locked("event:1"), pool.connection() as db:  # READ COMMITTED: each statement reads anew
        seats = await value(db, "SELECT seats FROM events WHERE id = 1 FOR UPDATE")
        if await value(db, "SELECT count(*) FROM bookings") >= seats:
            raise none_left
        await db.execute("INSERT INTO bookings DEFAULT VALUES")


# --- read-before-lock: the lock is taken after the decision ---


@app.post("/read-before-lock/wrong")
async def read_before_lock_wrong() -> None:
    async with pool.connection() as db:
        stock = await value(db, "SELECT stock FROM articles WHERE id = 1")
    if stock < 1:
        raise none_left
    async with locked("article:1"), pool.connection() as db:
        await db.execute("UPDATE articles SET stock = stock - 1 WHERE id = 1")


@app.post("/read-before-lock/right")
async def read_before_lock_right() -> None:
    async with locked("article:1"), pool.connection() as db:
        done = await db.execute("UPDATE articles SET stock = stock - 1 WHERE id = 1 AND stock > 0")
        if done.rowcount == 0:
            raise none_left


# --- other-key: not everybody who writes the row takes the same lock ---


@app.post("/other-key/wrong/consume")
async def other_key_wrong_consume() -> None:
    async with locked("user:1"), pool.connection() as db:
        await spend(db)


@app.post("/other-key/wrong/refund")
async def other_key_wrong_refund() -> None:
    async with locked("users:1"), pool.connection() as db:
        credits = await value(db, "SELECT credits FROM users WHERE id = 1")
        await db.execute("UPDATE users SET credits = %s WHERE id = 1", (credits + 5,))


@app.post("/other-key/right/consume")
async def other_key_right_consume() -> None:
    async with locked("user:1"), pool.connection() as db:
        await spend_if_unchanged(db)


@app.post("/other-key/right/refund")
async def other_key_right_refund() -> None:
    async with locked("user:1"), pool.connection() as db:
        await db.execute("UPDATE users SET credits = credits + 5 WHERE id = 1")


# --- row-lock-outside-transaction: FOR UPDATE ends with its statement ---


async def query(statement: str, *values: Any) -> Any:
    """In a transaction of its own."""
    async with pool.connection() as db:
        cursor = await db.execute(statement, values)
        return await cursor.fetchone() if cursor.description else None


@app.post("/row-lock-outside-transaction/wrong")
async def row_lock_outside_transaction_wrong() -> None:
    (credits,) = await query("SELECT credits FROM users WHERE id = 1 FOR UPDATE")
    if credits < 1:
        raise none_left
    await query("UPDATE users SET credits = %s WHERE id = 1", credits - 1)


@app.post("/row-lock-outside-transaction/right")
async def row_lock_outside_transaction_right() -> None:
    async with pool.connection() as db:
        credits = await value(db, "SELECT credits FROM users WHERE id = 1 FOR UPDATE")
        if credits < 1:
            raise none_left
        await db.execute("UPDATE users SET credits = %s WHERE id = 1", (credits - 1,))


# --- beyond-the-lease: the work takes three seconds, the lease two ---


async def ask_the_bank(seconds: float) -> None:
    await asyncio.sleep(seconds)


@app.post("/beyond-the-lease/wrong")
async def beyond_the_lease_wrong() -> None:
    async with locked("user:1"), pool.connection() as db:
        credits = await value(db, "SELECT credits FROM users WHERE id = 1")
        await ask_the_bank(3)
        await db.execute("UPDATE users SET credits = %s WHERE id = 1", (credits - 1,))


@app.post("/beyond-the-lease/right")
async def beyond_the_lease_right() -> None:
    async with locked("user:1"), pool.connection() as db:
        credits = await value(db, "SELECT credits FROM users WHERE id = 1")
        await ask_the_bank(3)
        done = await db.execute("UPDATE users SET credits = %s WHERE id = 1 AND credits = %s", (credits - 1, credits))
        if done.rowcount == 0:
            raise changed


# --- released-by-a-stranger: a refused request deletes the lock of another one ---


@app.post("/released-by-a-stranger/wrong")
async def released_by_a_stranger_wrong() -> None:
    try:
        if not await redis.set("user:1", "locked", nx=True, ex=2):
            raise busy
        async with pool.connection() as db:
            await spend(db)
    finally:
        await redis.delete("user:1")


@app.post("/released-by-a-stranger/right")
async def released_by_a_stranger_right() -> None:
    mine = str(uuid.uuid4())
    if not await redis.set("user:1", mine, nx=True, ex=2):
        raise busy
    try:
        async with pool.connection() as db:
            await spend_if_unchanged(db)
    finally:
        await redis.eval(RELEASE, 1, "user:1", mine)


# --- refused-and-goes-on: nobody looks whether the lock was granted ---


@app.post("/refused-and-goes-on/wrong")
async def refused_and_goes_on_wrong() -> None:
    lock = redis.lock("user:1", timeout=2)
    await lock.acquire(blocking=False)
    async with pool.connection() as db:
        await spend(db)
    if await lock.owned():
        await lock.release()


@app.post("/refused-and-goes-on/right")
async def refused_and_goes_on_right() -> None:
    lock = redis.lock("user:1", timeout=2)
    if not await lock.acquire(blocking=False):
        raise busy
    async with pool.connection() as db:
        await spend_if_unchanged(db)
    if await lock.owned():
        await lock.release()


# --- done-twice: the lock protects the choice of a job, but the job stays there until it is done ---


@app.post("/done-twice/wrong")
async def done_twice_wrong() -> None:
    async with locked("jobs"), pool.connection() as db:
        job = await value(db, "SELECT id FROM jobs WHERE NOT done ORDER BY id LIMIT 1")
    if job is None:
        raise none_left
    async with pool.connection() as db:
        await db.execute("INSERT INTO mails VALUES (%s)", (job,))
        await db.execute("UPDATE jobs SET done = true WHERE id = %s", (job,))


@app.post("/done-twice/right")
async def done_twice_right() -> None:
    async with pool.connection() as db:
        job = await value(db, "SELECT id FROM jobs WHERE NOT done ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED")
        if job is None:
            raise none_left
        await db.execute("INSERT INTO mails VALUES (%s)", (job,))
        await db.execute("UPDATE jobs SET done = true WHERE id = %s", (job,))


# --- lock-of-one-process: the other instance has a lock of its own ---

mutex = asyncio.Lock()


@app.post("/lock-of-one-process/wrong")
async def lock_of_one_process_wrong() -> None:
    async with mutex, pool.connection() as db:
        await spend(db)


@app.post("/lock-of-one-process/right")
async def lock_of_one_process_right() -> None:
    async with locked("user:1"), pool.connection() as db:
        await spend_if_unchanged(db)


# --- two-orders: each has what the other one waits for ---


@asynccontextmanager
async def locked_and_renewed(name: str) -> AsyncIterator[None]:
    """Waits for the lock as long as it takes, and renews it as long as it is needed."""
    lock = redis.lock(name, timeout=1, sleep=0.5)
    await lock.acquire()
    renewal = asyncio.create_task(renew(lock))
    try:
        yield
    finally:
        renewal.cancel()
        with suppress(LockError):
            await lock.release()


async def renew(lock: Lock) -> None:
    with suppress(LockError):  # the lease has ended
        while True:
            await asyncio.sleep(0.4)
            await lock.reacquire()


async def move_credit(giver: int, taker: int) -> None:
    async with pool.connection() as db:
        await db.execute("SELECT FROM users WHERE id IN (%s, %s) ORDER BY id FOR UPDATE", (giver, taker))
        await db.execute("UPDATE users SET credits = credits - 1 WHERE id = %s", (giver,))
        await db.execute("UPDATE users SET credits = credits + 1 WHERE id = %s", (taker,))


@app.post("/two-orders/wrong/{giver}/{taker}")
async def two_orders_wrong(giver: int, taker: int) -> None:
    async with locked_and_renewed(f"user:{giver}"), locked_and_renewed(f"user:{taker}"):
        await move_credit(giver, taker)


@app.post("/two-orders/right/{giver}/{taker}")
async def two_orders_right(giver: int, taker: int) -> None:
    first, second = sorted((giver, taker))
    async with locked_and_renewed(f"user:{first}"), locked_and_renewed(f"user:{second}"):
        await move_credit(giver, taker)


# --- lock-lost-by-failover: the server of the locks forgets them, the database does not ---


@app.post("/lock-lost-by-failover/wrong")
async def lock_lost_by_failover_wrong() -> None:
    async with locked("user:1"), pool.connection() as db:
        credits = await value(db, "SELECT credits FROM users WHERE id = 1")
        await ask_the_bank(1)
        await db.execute("UPDATE users SET credits = %s WHERE id = 1", (credits - 1,))


@app.post("/lock-lost-by-failover/right")
async def lock_lost_by_failover_right() -> None:
    async with locked("user:1"), pool.connection() as db:
        credits = await value(db, "SELECT credits FROM users WHERE id = 1")
        await ask_the_bank(1)
        done = await db.execute("UPDATE users SET credits = %s WHERE id = 1 AND credits = %s", (credits - 1, credits))
        if done.rowcount == 0:
            raise changed


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
