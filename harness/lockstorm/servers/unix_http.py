"""HTTP on a unix socket."""

import contextlib
import http.client
import socket
from pathlib import Path

OK = int(http.client.OK)


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: Path, limit_s: float) -> None:
        super().__init__("localhost", timeout=limit_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def post(socket_path: Path, path: str, body: str, limit_s: float) -> tuple[int, bytes]:
    """The status and body of the answer to a POST. Raises OSError, or ValueError for an answer that is no HTTP."""
    with contextlib.closing(_Connection(socket_path, limit_s)) as connection:
        try:
            connection.request("POST", path, body)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except http.client.HTTPException as reason:
            raise ValueError(str(reason) or type(reason).__name__) from None
