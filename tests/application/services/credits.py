"""A service that subtracts credits, right or wrong by $MODE: none (no lock), early (the lock ends before the commit),
late, row (the row is locked), broken (500)."""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg2
import redis

MODE = os.environ["MODE"]
keys = redis.Redis.from_url(os.environ["REDIS_URL"])


def consume(cursor: "psycopg2.extensions.cursor") -> int:
    cursor.execute("SELECT remaining FROM users WHERE id = 1" + (" FOR UPDATE" if MODE == "row" else ""))
    remaining = int(cursor.fetchone()[0])
    cursor.execute("UPDATE users SET remaining = %s WHERE id = 1", (remaining - 1,))
    return remaining - 1


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass

    def answer(self, status: int, body: object) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self) -> None:
        self.answer(200, {})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        if MODE == "broken":
            print("the database is on holiday", file=sys.stderr, flush=True)
            return self.answer(500, {})
        database = psycopg2.connect(os.environ["DATABASE_URL"])
        lock = keys.lock("user:1:lock", timeout=10, blocking_timeout=5) if MODE in ("early", "late") else None
        if lock and not lock.acquire():
            database.close()
            return self.answer(409, {"error": "busy"})
        with database.cursor() as cursor:
            remaining = consume(cursor)
        if lock and MODE == "early":
            lock.release()
        database.commit()
        if lock and MODE == "late":
            lock.release()
        database.close()
        return self.answer(200, {"remaining": remaining})


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
