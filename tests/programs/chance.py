"""All that Python programs take for chance: random numbers, hashes, addresses, the order in which threads run."""

import os
import random
import secrets
import tempfile
import threading
import time
import uuid

order: list[int] = []
lock = threading.Lock()


def take_turns(number: int) -> None:
    for turn in range(20):
        with lock:
            order.append(number)
            if turn % 5 == 0:
                time.sleep(0.001)
        if turn % 3 == 0:
            time.sleep(random.random())


print("random", random.random(), secrets.token_hex(8), os.urandom(8).hex())
print("uuid4", uuid.uuid4())
print("hash", hash("lock"), set("redlock"))
print("address", id(object()))
print("name", os.path.basename(tempfile.mktemp()))
threads = [threading.Thread(target=take_turns, args=(number,)) for number in range(5)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("threads", "".join(map(str, order)), time.monotonic_ns())
