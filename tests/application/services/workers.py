"""Two kinds of worker, by $MODE: look (reads the first job, works, and removes it: two workers do it twice) and pop
(takes it off the list at once). What is done is counted in Redis."""

import os
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import redis

keys = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)


def work() -> None:
    while True:
        job = keys.lpop("jobs") if os.environ["MODE"] == "pop" else keys.lindex("jobs", 0)
        if isinstance(job, str):
            keys.hincrby("done", job, 1)
            if os.environ["MODE"] == "look":
                keys.lrem("jobs", 1, job)
        time.sleep(0.2)


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self.send_response(204)
        self.end_headers()


threading.Thread(target=work, daemon=True).start()
HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
