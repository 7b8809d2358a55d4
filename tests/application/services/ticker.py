"""A service that acts by itself. By $MODE: each (every instance counts each tick of its own), or one (only the first
instance to take a tick counts it); later (as one, but after nine ticks of a process it counts twice)."""

import os
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import redis

TICK_S = 3
keys = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)


def tick() -> None:
    ticks = 0
    while True:
        time.sleep(TICK_S)
        ticks += 1
        moment = int(time.time()) // TICK_S
        alone = os.environ["MODE"] == "each" or keys.set(f"tick:{moment}", "taken", nx=True)
        if alone and keys.exists("asked"):
            keys.hincrby("ticks", str(moment), 2 if os.environ["MODE"] == "later" and ticks > 9 else 1)


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self.send_response(204)
        self.end_headers()


threading.Thread(target=tick, daemon=True).start()
HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
