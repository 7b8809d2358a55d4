"""Redis servers on ports, which a test starts by itself: lockstorm did not start them."""

import contextlib
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lockstorm.base import paths
from lockstorm.servers.redis_server import free_port

START_LIMIT_S = 30.0


@dataclass
class OutsideServer:
    """`cli`: the words with which redis-cli reaches it."""

    port: int
    process: subprocess.Popen[bytes]
    cli: tuple[str, ...]

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.port}"

    def ask(self, *words: str) -> str:
        return subprocess.run([*self.cli, *words], capture_output=True, text=True, timeout=30).stdout.strip()

    def await_answer(self, expected: str, *words: str) -> None:
        """Waits until an answer contains a text."""
        until_s = time.monotonic() + START_LIMIT_S
        while expected not in (said := self.ask(*words)):
            assert time.monotonic() < until_s, (words, said)
            time.sleep(0.05)


@contextlib.contextmanager
def outside_server(
    directory: Path, *options: str, port: int = 0, cli: tuple[str, ...] = (), tls: bool = False
) -> Iterator[OutsideServer]:
    """`options`: of redis-server; `cli`: of redis-cli. With `tls` its port is in the options."""
    port = port or free_port()
    own = directory / str(port)
    own.mkdir()
    ports = ["--port", "0", "--tls-port", str(port)] if tls else ["--port", str(port)]
    command = [paths.redis_server(None), *options, *ports, "--bind", "127.0.0.1", "--dir", str(own)]
    command += [] if "--sentinel" in options else ["--save", ""]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    server = OutsideServer(port, process, ("redis-cli", "-p", str(port), *cli))
    try:
        server.await_answer("PONG", "PING")
        yield server
    finally:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait()
