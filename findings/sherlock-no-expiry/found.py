# sherlock 0.4.1, on an empty redis-server and without any fault:
# client-1 (thread-2, lock-2) was granted (exclusive) while client-1 (thread-1, lock-1) certainly holds (exclusive)
#
# The calls, with their times, are those of a schedule that lockstorm found. Exit status: 1 if this run shows
# that mutual exclusion is broken, otherwise 0.
#
# install: pip install sherlock==0.4.1 redis
# run:     python found.py [PORT ...]    (of redis-servers here; 6379)
import os
import sys
import threading
import time

import redis
import sherlock

ports = [int(port) for port in sys.argv[1:]] or [6379]
client_1 = redis.Redis(port=ports[0])
asked, answered, outcome = {}, {}, {}  # by the number of a call: times in ms, and "ok", "refused" or an error
begin = time.monotonic() + 0.2


def now():
    return (time.monotonic() - begin) * 1000


def at(ms):
    time.sleep(max(0, begin + ms / 1000 - time.monotonic()))


def after(number):
    while number not in answered:
        time.sleep(0.001)


def call(number, words, function):
    asked[number] = now()
    try:
        outcome[number] = "refused" if function() is False else "ok"
    except Exception as error:
        is_refusal = isinstance(error, (sherlock.LockException, sherlock.LockTimeoutException))
        outcome[number] = "refused" if is_refusal else repr(error)
    answered[number] = now()
    sys.stdout.write(f"{asked[number]:6.0f} ms to {answered[number]:6.0f} ms  {words}: {outcome[number]}\n")


def client_1_thread_1():
    at(0)
    global client_1_lock_1
    client_1_lock_1 = sherlock.RedisLock("resource-1", client=client_1, expire=None, timeout=1, retry_interval=0.05)
    call(1, "client-1 thread-1: acquire lock-1", lambda: client_1_lock_1.acquire())
    at(4000)
    call(4, "client-1 thread-1: release lock-1", lambda: client_1_lock_1.release())


def client_1_thread_2():
    at(25)
    after(1)
    global client_1_lock_2
    client_1_lock_2 = sherlock.RedisLock("resource-1", client=client_1, expire=2, timeout=0, retry_interval=0.05)
    call(2, "client-1 thread-2: acquire lock-2", lambda: client_1_lock_2.acquire(blocking=False))
    call(3, "client-1 thread-2: release lock-2", lambda: client_1_lock_2.release())


threading.Thread(target=client_1_thread_1, daemon=True).start()
threading.Thread(target=client_1_thread_2, daemon=True).start()
at(4300)
expected = {1: 'ok'}
is_same = all(outcome.get(number) == expected[number] for number in expected)
is_broken = is_same and outcome.get(2) == "ok" and answered[2] < asked.get(4, now())
print("BROKEN" if is_broken else "kept" if is_same else "not shown: calls end in another way", flush=True)
os._exit(1 if is_broken else 0)
