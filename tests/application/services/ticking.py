"""Looks around every seven seconds, for the first time after four. Requests that come three
seconds after a look are noted in the list `three`, the others in `other`."""

import os
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import redis

keys = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)
looked = time.monotonic()


def look() -> None:
    global looked
    while True:
        time.sleep(7 - (time.monotonic() - started) % 7)
        looked = time.monotonic()


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        age = time.monotonic() - looked
        keys.rpush("three" if 2.5 < age < 3.5 else "other", f"{age:.1f}")
        self.send_response(204)
        self.end_headers()


started = looked - 3
threading.Thread(target=look, daemon=True).start()
HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
