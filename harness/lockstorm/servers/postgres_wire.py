"""The protocol of PostgreSQL, as far as anybody here needs it: encryption, login, simple queries."""

import base64
import hashlib
import hmac
import re
import secrets
import socket
import struct
import unicodedata
from collections.abc import Mapping

from lockstorm.process.line_client import take

PROTOCOL = 196608  # 3.0
SSL_REQUEST, GSS_REQUEST = 80877103, 80877104
STARTUP_MOST = 10_000  # bytes
LOGIN_OK, LOGIN_CLEARTEXT, LOGIN_MD5, LOGIN_SASL, LOGIN_SASL_CONTINUE, LOGIN_SASL_FINAL = 0, 3, 5, 10, 11, 12
SCRAM = "SCRAM-SHA-256"
NO_PASSWORD = "no password"  # instead of an SQLSTATE: the server asks for one
KINDS = b"RESKZTDCNAnI"  # of the messages that a server sends here


class PostgresRefusal(Exception):
    """An error of the server. `state`: its SQLSTATE."""

    def __init__(self, state: str, text: str) -> None:
        super().__init__(text)
        self.state = state


class NotPostgres(OSError):
    """The answer is not in PostgreSQL's protocol."""


class UnknownLogin(Exception):
    """The server wants another kind of login."""


class PostgresConnection:
    """`log_in`, then queries. A lost connection is an OSError."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self.greeting = b""  # what the server has said from the end of the login until it was ready
        self._unread = b""

    def log_in(self, user: str, database: str, password: str, settings: Mapping[str, str]) -> None:
        words = {"user": user, "database": database, **settings}
        text = b"".join(f"{name}\0{value}\0".encode() for name, value in words.items()) + b"\0"
        self.socket.sendall(struct.pack("!II", len(text) + 8, PROTOCOL) + text)
        while True:
            kind, body = self._read()
            if kind == b"R":
                code = struct.unpack("!I", body[:4])[0]
                if code == LOGIN_OK:
                    self.greeting = _message(kind, body)
                else:
                    self._prove(code, body[4:], user, password)
            elif self.greeting and kind in b"SKN":
                self.greeting += _message(kind, body)
            elif self.greeting and kind == b"Z":
                self.greeting += _message(kind, body)
                return

    def rows(self, statement: str) -> list[list[str]]:
        """Runs a statement. Returns its rows as text, a NULL as an empty text."""
        self._send(b"Q", statement.encode() + b"\0")
        found: list[list[str]] = []
        refusal: PostgresRefusal | None = None
        while True:
            try:
                kind, body = self._read()
            except PostgresRefusal as reason:
                refusal = reason
                continue
            if kind == b"D":
                found.append(_columns(body))
            elif kind == b"Z":
                if refusal:
                    raise refusal
                return found

    def _prove(self, code: int, challenge: bytes, user: str, password: str) -> None:
        """Sends the password, or proves that it is known. Raises UnknownLogin."""
        if code in (LOGIN_CLEARTEXT, LOGIN_MD5, LOGIN_SASL) and not password:
            raise PostgresRefusal(NO_PASSWORD, "there is no password")
        if code == LOGIN_CLEARTEXT:
            self._send(b"p", password.encode() + b"\0")
        elif code == LOGIN_MD5:
            inner = hashlib.md5((password + user).encode()).hexdigest().encode()
            self._send(b"p", b"md5" + hashlib.md5(inner + challenge[:4]).hexdigest().encode() + b"\0")
        elif code == LOGIN_SASL and SCRAM.encode() in challenge.split(b"\0"):
            self._prove_by_scram(password)
        elif code != LOGIN_SASL_FINAL:
            raise UnknownLogin

    def _prove_by_scram(self, password: str) -> None:
        """RFC 5802 and 7677, without channel binding."""
        nonce = base64.b64encode(secrets.token_bytes(18)).decode()
        first = f"n=,r={nonce}"
        said = f"n,,{first}".encode()
        self._send(b"p", SCRAM.encode() + b"\0" + struct.pack("!I", len(said)) + said)
        kind, body = self._read()
        if kind != b"R" or struct.unpack("!I", body[:4])[0] != LOGIN_SASL_CONTINUE:
            raise NotPostgres
        answer = body[4:].decode()
        found = re.fullmatch(r"r=([^,]+),s=([^,]+),i=(\d+).*", answer)
        if not found or not found[1].startswith(nonce):
            raise NotPostgres
        salted = hashlib.pbkdf2_hmac(
            "sha256", unicodedata.normalize("NFKC", password).encode(), base64.b64decode(found[2]), int(found[3])
        )
        key = hmac.digest(salted, b"Client Key", "sha256")
        last = f"c=biws,r={found[1]}"
        signature = hmac.digest(hashlib.sha256(key).digest(), f"{first},{answer},{last}".encode(), "sha256")
        proof = bytes(one ^ other for one, other in zip(key, signature, strict=True))
        self._send(b"p", f"{last},p={base64.b64encode(proof).decode()}".encode())

    def _send(self, kind: bytes, body: bytes) -> None:
        self.socket.sendall(_message(kind, body))

    def _read(self) -> tuple[bytes, bytes]:
        """The next message; one that is an error is raised."""
        head = self._take(5)
        kind, length = head[:1], struct.unpack("!I", head[1:])[0]
        if kind not in KINDS or length < 4:
            raise NotPostgres
        body = self._take(length - 4)
        if kind == b"E":
            fields = {part[:1]: part[1:].decode(errors="replace") for part in body.split(b"\0") if part}
            raise PostgresRefusal(fields.get(b"C", ""), fields.get(b"M", ""))
        return kind, body

    def _take(self, length: int) -> bytes:
        while len(self._unread) < length:
            some = self.socket.recv(1 << 16)
            if not some:
                raise ConnectionResetError("the connection was closed")
            self._unread += some
            if self._unread[:1] not in KINDS:
                raise NotPostgres
        taken, self._unread = self._unread[:length], self._unread[length:]
        return taken


def read_startup(client: socket.socket) -> None:
    """Reads what a client sends first, and refuses to encrypt. ConnectionResetError if it begins no session."""
    while True:
        length, code = struct.unpack("!II", take(client, 8))
        if not 8 <= length <= STARTUP_MOST or code not in (SSL_REQUEST, GSS_REQUEST, PROTOCOL):
            raise ConnectionResetError("the client did not begin a session")
        if code == PROTOCOL:
            take(client, length - 8)
            return
        client.sendall(b"N")


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


def _columns(body: bytes) -> list[str]:
    count, at, found = struct.unpack("!H", body[:2])[0], 2, []
    for _ in range(count):
        length = struct.unpack("!i", body[at : at + 4])[0]
        at += 4
        found.append(body[at : at + max(0, length)].decode(errors="replace"))
        at += max(0, length)
    return found
