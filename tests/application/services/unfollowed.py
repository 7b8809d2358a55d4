"""A service that does, by $MODE, what lockstorm does not follow. `itself`: it asks itself, and Redis."""

import ctypes
import os
import socket
import struct
import sys
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import redis

MODE, PORT = os.environ["MODE"], int(sys.argv[1])
SOCKET = "/run/postgresql/.s.PGSQL.5432"


def ask_itself() -> None:
    link = HTTPConnection("127.0.0.1", PORT)
    link.request("GET", "/")
    assert link.getresponse().status == 200
    link.close()
    redis.Redis.from_url(os.environ["REDIS_URL"]).ping()


def connect_padded(port: int) -> None:
    """Names the length of a sockaddr_storage, as programs in C often do."""
    address = struct.pack("=HH4s", socket.AF_INET, socket.htons(port), bytes([127, 0, 0, 1])).ljust(128, b"\0")
    with socket.socket() as link:
        if ctypes.CDLL(None).connect(link.fileno(), address, len(address)):
            raise ConnectionRefusedError


def ask_servers() -> None:
    if MODE == "tls":
        redis.Redis.from_url(os.environ["REDIS_URL"].replace("redis:", "rediss:"), ssl_cert_reqs="none").ping()
    elif MODE == "stranger":
        socket.create_connection(("127.0.0.1", 27017)).sendall(b"hello")
    elif MODE == "padded":
        connect_padded(27017)
    elif MODE == "local":
        socket.socket(socket.AF_UNIX).connect(SOCKET)
    elif MODE == "itself":
        ask_itself()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def say(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self.say(200)

    def do_POST(self) -> None:
        ask_servers()
        if MODE == "other":
            self.wfile.write(b"\x00\x00\x12\x04\x00\x00\x00\x00\x00")  # a frame of HTTP/2
        elif MODE == "closes":
            print("goodbye", "-" * 40, sep="\n", file=sys.stderr, flush=True)
        else:
            self.say({"upgrade": 101, "redirects": 302}.get(MODE, 200))
        self.close_connection = True


if MODE == "daemon" and os.fork():
    os._exit(0)
ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
