# walrus 0.9.8, on an empty redis-server and without any fault:
# client-2 (thread-1, lock-1) waits beside a free lock for 6000 ms
#
# The calls, with their times, are those of a schedule that lockstorm found. Exit status: 1 if this run shows
# that liveness is broken, otherwise 0.
#
# install: pip install walrus==0.9.8
# run:     python found.py [PORT ...]    (of redis-servers here; 6379)
import os
import sys
import threading
import time

import walrus

ports = [int(port) for port in sys.argv[1:]] or [6379]
client_1 = walrus.Database(port=ports[0], socket_timeout=None)
client_2 = walrus.Database(port=ports[0], socket_timeout=None)
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
        is_refusal = False
        outcome[number] = "refused" if is_refusal else repr(error)
    answered[number] = now()
    sys.stdout.write(f"{asked[number]:6.0f} ms to {answered[number]:6.0f} ms  {words}: {outcome[number]}\n")


def client_1_thread_1():
    at(0)
    global client_1_lock_1
    client_1_lock_1 = client_1.lock("resource-1", ttl=500)
    call(1, "client-1 thread-1: acquire lock-1", lambda: client_1_lock_1.acquire(block=False))


def client_2_thread_1():
    at(100)
    global client_2_lock_1
    client_2_lock_1 = client_2.lock("resource-1", ttl=500)
    call(2, "client-2 thread-1: acquire lock-1", lambda: client_2_lock_1.acquire())


threading.Thread(target=client_1_thread_1, daemon=True).start()
threading.Thread(target=client_2_thread_1, daemon=True).start()
at(7300)
expected = {1: 'ok'}
is_same = all(outcome.get(number) == expected[number] for number in expected)
is_broken = is_same and 2 in asked and 2 not in answered
print("BROKEN" if is_broken else "kept" if is_same else "not shown: calls end in another way", flush=True)
os._exit(1 if is_broken else 0)
