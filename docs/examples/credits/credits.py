"""A service that subtracts a credit for each reply. Its lock is right, and ends one line too early."""

import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg2
import redis

keys = redis.Redis.from_url(os.environ["REDIS_URL"])


class Replies(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.answer(200)

    def do_POST(self) -> None:
        database = psycopg2.connect(os.environ["DATABASE_URL"])
        lock = keys.lock("user:1:lock", timeout=10)
        if not lock.acquire(blocking_timeout=3):
            return self.answer(409)
        with database.cursor() as cursor:
            cursor.execute("SELECT remaining FROM users WHERE id = 1")
            (remaining,) = cursor.fetchone()
            cursor.execute("UPDATE users SET remaining = %s WHERE id = 1", (remaining - 1,))
        lock.release()
        database.commit()
        return self.answer(200)

    def answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()


ThreadingHTTPServer(("localhost", int(sys.argv[1])), Replies).serve_forever()
