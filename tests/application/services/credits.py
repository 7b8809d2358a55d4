"""A service that subtracts credits, right or wrong by $MODE: none (no lock), early (the lock ends before the commit),
late, row (the row is locked), after (subtracts in one statement, and looks then what is left), returning, cached (its
value is answered from memory), broken."""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg2
import redis

MODE = os.environ["MODE"]
keys = redis.Redis.from_url(os.environ["REDIS_URL"])
cached: dict[str, int] = {}


def consume(cursor: "psycopg2.extensions.cursor") -> int:
    if MODE in ("after", "returning"):
        returning = " RETURNING remaining" if MODE == "returning" else ""
        cursor.execute("UPDATE users SET remaining = remaining - 1 WHERE id = 1" + returning)
    if MODE == "after":
        cursor.connection.commit()
        cursor.execute("SELECT remaining FROM users WHERE id = 1")
    if MODE in ("after", "returning"):
        return int(cursor.fetchone()[0])
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
        if self.path == "/health":
            return self.answer(200, {})
        if MODE != "cached" or "remaining" not in cached:
            database = psycopg2.connect(os.environ["DATABASE_URL"])
            with database, database.cursor() as cursor:
                cursor.execute("SELECT remaining FROM users WHERE id = 1")
                cached["remaining"] = int(cursor.fetchone()[0])
            database.close()
        return self.answer(200, {"data": cached})

    def do_PUT(self) -> None:
        remaining = int(self.rfile.read(int(self.headers["Content-Length"])))
        database = psycopg2.connect(os.environ["DATABASE_URL"])
        with database, database.cursor() as cursor:
            cursor.execute("UPDATE users SET remaining = %s WHERE id = 1", (remaining,))
        database.close()
        cached["remaining"] = remaining
        return self.answer(204, {})

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
