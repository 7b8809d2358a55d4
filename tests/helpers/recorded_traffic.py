"""A socket that passes everything on to a server, and records it for build/tests/recognise."""

import contextlib
import socket
import threading
import time
from pathlib import Path

PIECE = 1 << 16


class RecordedTraffic:
    """Listens on a unix socket; `lines` are what passed, in its order. Sessions count from 1."""

    def __init__(self, path: Path, server: Path) -> None:
        self.lines: list[str] = []
        self._server = server
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(path))
        self._listening.listen()
        self._start(self._accept)

    def _start(self, run: object, *arguments: object) -> None:
        thread = threading.Thread(target=run, args=arguments)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        number = 0
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            number += 1
            server = socket.socket(socket.AF_UNIX)
            server.connect(str(self._server))
            self._sockets += [client, server]
            self._start(self._pass, client, server, f">> {number}")
            self._start(self._pass, server, client, f"<< {number}")

    def _pass(self, source: socket.socket, sink: socket.socket, head: str) -> None:
        """A piece is recorded before it goes on, so no answer is recorded before its request."""
        with contextlib.suppress(OSError):
            while piece := source.recv(PIECE):
                with self._lock:
                    self.lines.append(f"{head} {time.monotonic_ns()} {piece.hex()}")
                sink.sendall(piece)
            sink.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """After the clients have closed their connections."""
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for each in self._sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for each in self._sockets:
            each.close()
