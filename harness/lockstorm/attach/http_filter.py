"""Requests of a client in HTTP/1.1, one after the other on a connection, as the gateway passes them on."""

import re
from collections.abc import Callable

END_OF_HEAD = b"\r\n\r\n"
HEAD_MOST = 16_000
LENGTH = re.compile(rb"(?im)^content-length:[ \t]*(\d+)[ \t]*\r?$")
OWN_HEADERS = re.compile(rb"(?im)^(host|authorization):[^\n]*\n")


class HttpFilter:
    """Replaces a request's Host and Authorization, and shows its path and body. A request whose head is too long, or
    whose body has no length, is a ConnectionError."""

    def __init__(self, host: str, token: str, watch: Callable[[str, bytes], object]) -> None:
        self._headers = f"Host: {host}\r\n" + (f"Authorization: {token}\r\n" if token else "")
        self._watch = watch  # of each request: its path and body, before it is passed on
        self._unread = b""

    def __call__(self, data: bytes) -> bytes:
        """What is to be sent now, after these bytes of the client have arrived."""
        self._unread += data
        ready = b""
        while request := self._next():
            ready += request
        return ready

    def _next(self) -> bytes:
        """The next complete request; empty until it is complete."""
        head, end, rest = self._unread.partition(END_OF_HEAD)
        if not end:
            if len(head) > HEAD_MOST:
                raise ConnectionError("the head of a request is too long")
            return b""
        line, _, headers = (head + b"\r\n").partition(b"\r\n")
        if b"chunked" in headers.lower():
            raise ConnectionError("a request without the length of its body")
        found = LENGTH.search(headers)
        length = int(found[1]) if found else 0
        if len(rest) < length:
            return b""
        body, self._unread = rest[:length], rest[length:]
        words = line.split(b" ")
        self._watch(words[1].decode(errors="replace") if len(words) > 1 else "", body)
        return line + b"\r\n" + self._headers.encode() + OWN_HEADERS.sub(b"", headers) + b"\r\n" + body
