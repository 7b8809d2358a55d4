"""Requests of the live environment to a node that speaks HTTP; here a server whose answers the test chooses."""

import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from lockstorm.native.library import locks_on
from tests.helpers.building import make

pytestmark = pytest.mark.skipif(not all(lock.built for lock in locks_on("etcd")), reason="built without libcurl")

Answer = Callable[[socket.socket], bool]  # False: the server ends the connection

LIMIT_MS = 300
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def says(body: bytes, status: bytes = b"200 OK") -> Answer:
    def answer(connection: socket.socket) -> bool:
        connection.sendall(b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body))
        return True

    return answer


def says_in_pieces(*pieces: bytes, ends: bool = True) -> Answer:
    """An answer in chunks, each sent by itself."""

    def answer(connection: socket.socket) -> bool:
        connection.sendall(CHUNKED)
        for piece in pieces:
            connection.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
        if ends:
            connection.sendall(b"0\r\n\r\n")
        return True

    return answer


def says_nothing(connection: socket.socket) -> bool:
    return True


def hangs_up(connection: socket.socket) -> bool:
    return False


def says_and_hangs_up(connection: socket.socket) -> bool:
    says(b"bye")(connection)
    return False


class Server:
    """Gives the next answer of the list to each request, on any connection."""

    def __init__(self, path: Path, answers: list[Answer]) -> None:
        self.path = path
        self.requests: list[bytes] = []
        self.connections = 0
        self._answers = list(answers)
        self._open: list[socket.socket] = []
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(path))
        self._listening.listen()
        self._serving: list[threading.Thread] = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def _accept(self) -> None:
        with self._listening:
            while True:
                try:
                    connection, _ = self._listening.accept()
                except OSError:
                    return
                self.connections += 1
                self._open.append(connection)
                self._serving.append(threading.Thread(target=self._serve, args=(connection,), daemon=True))
                self._serving[-1].start()

    def _serve(self, connection: socket.socket) -> None:
        """Closes its connection itself: if another thread closed it, the descriptor could belong to a new one already.
        The other side may end the connection at any time, with an answer unread or half sent."""
        with connection, suppress(ConnectionError):
            while (request := self._request(connection)) is not None:
                self.requests.append(request)
                if not self._answers or not self._answers.pop(0)(connection):
                    return

    @staticmethod
    def _request(connection: socket.socket) -> bytes | None:
        """The next request; None if the client or this server has ended."""
        read = b""
        while not read.endswith(b"{}"):
            more = connection.recv(4096)
            if not more:
                return None
            read += more
        return read

    def close(self) -> None:
        self._shut(self._listening)
        self._accepting.join()
        for connection in self._open:
            self._shut(connection)
        for thread in self._serving:
            thread.join()

    @staticmethod
    def _shut(waited_for: socket.socket) -> None:
        """Ends every wait for the socket, also one that begins later."""
        with suppress(OSError):  # its thread or the other side has ended
            waited_for.shutdown(socket.SHUT_RDWR)


@contextmanager
def server(directory: Path, *answers: Answer) -> Iterator[Server]:
    running = Server(directory / "socket", list(answers))
    try:
        yield running
    finally:
        running.close()


@pytest.fixture(scope="session")
def program() -> Path:
    return make("test-programs") / "tests" / "http_requests"


def output_of(program: Path, path: Path, *words: str) -> list[str]:
    command = [str(program), str(path.parent / "page"), str(path), str(LIMIT_MS), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return [line.strip() for line in done.stdout.splitlines()]


def test_an_answer_is_whole_and_the_connection_serves_again(program: Path, tmp_path: Path) -> None:
    with server(tmp_path, says(b'{"a":1}'), says_in_pieces(b'{"b"', b":2}"), says(b"")) as running:
        assert output_of(program, running.path, "post", "post", "post") == [
            'string {"a":1}',
            'string {"b":2}',
            "string",
        ]
    assert running.connections == 1
    assert running.requests[0].startswith(b"POST /ask HTTP/1.1\r\n")
    assert b"application/json" in running.requests[0] and b"Expect" not in running.requests[0]


def test_a_refusal_is_told_with_its_status(program: Path, tmp_path: Path) -> None:
    with server(tmp_path, says(b"no such lease", b"404 Not Found"), says(b"yes")) as running:
        assert output_of(program, running.path, "post", "post") == ["error 404 no such lease", "string yes"]


def test_without_an_answer_it_is_unknown_and_the_next_request_is_not_answered_by_it(
    program: Path, tmp_path: Path
) -> None:
    with server(tmp_path, says_nothing, says(b"second")) as running:
        assert output_of(program, running.path, "post", "post") == ["unknown", "string second"]
    assert running.connections == 2


def test_without_a_server_the_outcome_is_unknown(program: Path, tmp_path: Path) -> None:
    assert output_of(program, tmp_path / "none", "post", "stream", "line") == ["unknown", "begun", "unknown"]


def test_a_request_whose_connection_ends_is_sent_once(program: Path, tmp_path: Path) -> None:
    """On a reused connection libcurl by default sends the request again, on a new one."""
    with server(tmp_path, says(b"first"), hangs_up, says(b"third")) as running:
        assert output_of(program, running.path, "post", "post", "post") == ["string first", "unknown", "string third"]
    assert len(running.requests) == 3


def test_a_connection_that_ended_while_nothing_was_asked_is_made_anew(program: Path, tmp_path: Path) -> None:
    with server(tmp_path, says_and_hangs_up, says(b"again")) as running:
        assert output_of(program, running.path, "post", "sleep", "post") == ["string bye", "string again"]


def test_a_stream_is_read_line_by_line_however_it_comes(program: Path, tmp_path: Path) -> None:
    pieces = (b'{"n":1}\n{"n"', b":2}\n", b'{"n":3}\n', b"half a line")
    with server(tmp_path, says_in_pieces(*pieces, ends=False)) as running:
        lines = output_of(program, running.path, "stream", "line", "line", "line", "line")
    assert lines == ["begun", 'string {"n":1}', 'string {"n":2}', 'string {"n":3}', "unknown"]


def test_a_stream_that_ends_or_is_refused_says_so(program: Path, tmp_path: Path) -> None:
    with server(tmp_path, says_in_pieces(b"one\n"), says(b"no\n", b"503 Unavailable")) as running:
        words = ("stream", "line", "line", "end", "stream", "line")
        assert output_of(program, running.path, *words) == ["begun", "string one", "unknown", "begun", "unknown"]


def test_requests_go_on_beside_a_stream(program: Path, tmp_path: Path) -> None:
    with server(tmp_path, says_in_pieces(b"one\n", b"two\n", ends=False), says(b"yes")) as running:
        words = ("stream", "line", "post", "line")
        assert output_of(program, running.path, *words) == ["begun", "string one", "string yes", "string two"]
    assert running.connections == 2
