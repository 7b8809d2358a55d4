"""Redis servers on ports, which a test starts by itself: lockstorm did not start them."""

import contextlib
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lockstorm.base import paths
from lockstorm.base.hang_limit import CONNECTION_LIMIT_S, START_LIMIT_S, HangLimit
from lockstorm.process.held_port import HeldPort


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
        return subprocess.run(
            [*self.cli, *words], capture_output=True, text=True, timeout=CONNECTION_LIMIT_S
        ).stdout.strip()

    def await_answer(self, expected: str, *words: str) -> None:
        """Waits until an answer contains a text."""
        limit = HangLimit(START_LIMIT_S)
        while expected not in (said := self.ask(*words)):
            assert not limit.is_over(), (words, said)
            time.sleep(0.05)

    def connections(self) -> list[str]:
        """Those of others, as CLIENT LIST names them, once the server has noticed which of them have ended."""
        limit = HangLimit(START_LIMIT_S)
        while left := [line for line in self.ask("CLIENT", "LIST").splitlines() if "cmd=client" not in line]:
            if limit.is_over():
                break
            time.sleep(0.05)
        return left


@contextlib.contextmanager
def outside_server(
    directory: Path, *options: str, cli: tuple[str, ...] = (), tls: bool = False
) -> Iterator[OutsideServer]:
    """`options`: of redis-server; `cli`: of redis-cli. With `tls` its port is in the options."""
    with HeldPort() as held:
        port = str(held.number)
        own = directory / port
        own.mkdir()
        ports = ["--port", "0", "--tls-port", port] if tls else ["--port", port]
        command = [paths.redis_server(None), *options, *ports, "--bind", "127.0.0.1", "--dir", str(own)]
        command += [] if "--sentinel" in options else ["--save", ""]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        server = OutsideServer(held.number, process, ("redis-cli", "-p", port, *cli))
        try:
            server.await_answer("PONG", "PING")
            yield server
        finally:
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()


def plays(answer: dict[str, Any]) -> int:
    """How often the trials of `lockstorm attach` were played: each play that a stall of the machine ended early may
    have left what the last one leaves."""
    return sum(1 + trial.get("played_again", 0) for trial in answer["trials"])
