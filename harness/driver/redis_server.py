"""A real redis-server of a trial: on a private unix socket, without persistence, by a virtual or the real clock."""

import contextlib
import subprocess
import time
from pathlib import Path

import redis

from harness.driver import paths
from harness.driver.errors import Inconclusive
from harness.driver.process import Nursery

START_LIMIT_S = 20.0
OPTIONS = ["--port", "0", "--save", "", "--appendonly", "no", "--daemonize", "no", "--unixsocketperm", "700"]


class RedisServer:
    """Started by the constructor; `ready` waits until it answers."""

    def __init__(self, nursery: Nursery, name: str, *, clock: Path | None, options: tuple[str, ...] = ()) -> None:
        self.name = name
        self.socket = nursery.directory / f"{name}.sock"
        self.clock = clock
        self.number = -1  # among the conductor's servers
        self._nursery = nursery
        place = nursery.directory / name
        place.mkdir(mode=0o700)
        command = [paths.redis_server(), *OPTIONS, "--unixsocket", str(self.socket), "--dir", str(place)]
        command += ["--enable-debug-command", "local", *options]
        environment = _virtual_clock(clock) if clock else []
        self.process: subprocess.Popen[bytes] = nursery.start(name, command, environment=environment)
        self.link = redis.Redis(unix_socket_path=str(self.socket), socket_timeout=10, driver_info=None)

    def ready(self) -> None:
        """Returns when the server answers; the server's own log is the reason when it does not."""
        deadline = time.monotonic() + START_LIMIT_S
        while True:
            with contextlib.suppress(redis.exceptions.RedisError):
                self.link.ping()
                break
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise Inconclusive(f"redis-server did not start: {self._reason()}")
            time.sleep(0.002)
        if self.clock:
            # Its shared memory stays mapped; without a name nothing is left when it is killed.
            for leftover in (f"faketime_shm_{self.process.pid}", f"sem.faketime_sem_{self.process.pid}"):
                (Path("/dev/shm") / leftover).unlink(missing_ok=True)
            # Expiry happens on access only: no background cycle that depends on the machine's speed.
            self.link.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", "0")  # type: ignore[no-untyped-call]

    def _reason(self) -> str:
        """The last warning in the server's own log, without process number and date; else its last lines."""
        warnings = [
            line.partition(" # ")[2] for line in self._nursery.log_tail(self.name, 20).split("; ") if " # " in line
        ]
        return warnings[-1] if warnings else self._nursery.log_tail(self.name) or "it gave no reason"

    def time_us(self) -> int:
        """What the server says the time is."""
        seconds, micros = self.link.time()
        return int(seconds) * 1_000_000 + int(micros)

    def version(self) -> str:
        return str(self.link.info("server")["redis_version"])

    def close(self) -> None:
        self.link.close()


def _virtual_clock(clock: Path) -> list[str]:
    """libfaketime first and the C library right after it: then malloc is libc's, and jemalloc does not ask for the
    time while libfaketime starts."""
    return [
        f"LD_PRELOAD={paths.libfaketime()} {paths.libc()}",
        f"FAKETIME_TIMESTAMP_FILE={clock}",
        "FAKETIME_NO_CACHE=1",
        "FAKETIME_DONT_FAKE_MONOTONIC=1",
        "TZ=UTC",
    ]
