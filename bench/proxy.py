"""What the proxy adds to the latency and throughput of a connection, compared with HAProxy and with a direct one.

One redis-server on a unix socket is reached directly, through HAProxy in TCP mode with one thread, and through two
links of the proxy: one without rules, and one with a rule for both directions that matches another command. All are
measured in one run, in turns.
"""

import csv
import shutil
import socket
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

from lockstorm.base import paths
from lockstorm.base.errors import Inconclusive
from lockstorm.native.library import Message, Settings, library
from lockstorm.process.process import Sandbox
from lockstorm.servers.redis_server import RedisServer

DIRECT, HAPROXY, BARE, RULE = "direct", "HAProxy", "proxy", "proxy with a rule"
MISSING = "HAProxy is not installed: on Debian and Ubuntu it is in the package haproxy"
REAL_TIME = 2
LIMIT_S = 10.0
PIPELINE = 16
CLIENTS = (1, 50)
GET, VALUE = b"*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n", b"$5\r\nvalue\r\n"

# Place -> one result for each round: a median round trip in us, or requests per second.
Rounds = dict[str, list[float]]


def measure(rounds: int, requests: int) -> tuple[Rounds, dict[int, Rounds]]:
    """Measures round trips, and pipelined throughput by the number of clients. Leaves HAProxy out if it is missing."""
    trips: Rounds = {}
    rates: dict[int, Rounds] = {clients: {} for clients in CLIENTS}
    with _places() as places:
        for _ in range(rounds):
            for name, address in places.items():
                trips.setdefault(name, []).append(_round_trip_us(address, requests // 10))
                for clients in CLIENTS:
                    rates[clients].setdefault(name, []).append(_rate(address, clients, requests))
    return trips, rates


def added_us(trips: Rounds, name: str) -> float:
    """What a place adds to the direct round trip: the median over rounds, each against its own."""
    return statistics.median(here - direct for here, direct in zip(trips[name], trips[DIRECT], strict=True))


def share(rates: Rounds, name: str) -> float:
    """The throughput of a place as a share of the direct one: the median over rounds."""
    return statistics.median(here / direct for here, direct in zip(rates[name], rates[DIRECT], strict=True))


@contextmanager
def _places() -> Iterator[dict[str, Path]]:
    sandbox = Sandbox()
    try:
        server = RedisServer(sandbox, "redis-1", clock=None)
        server.ready()
        server.link.set("key", "value")
        places = {DIRECT: server.socket, **_haproxy(sandbox, server.socket), **_proxy(sandbox, server.socket)}
        for path in places.values():
            _wait_for(path.exists)
        yield places
        server.close()
    finally:
        sandbox.close()


def _haproxy(sandbox: Sandbox, target: Path) -> dict[str, Path]:
    program = shutil.which("haproxy", path=paths.search_path())
    if not program:
        return {}
    listen, settings = sandbox.directory / "haproxy.sock", sandbox.directory / "haproxy.cfg"
    settings.write_text(
        "global\n  nbthread 1\n"
        "defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 1h\n  timeout server 1h\n"
        f"listen redis\n  bind {listen}\n  server redis-1 unix@{target}\n"
    )
    sandbox.start("haproxy", [program, "-db", "-f", str(settings)])
    return {HAPROXY: listen}


def _proxy(sandbox: Sandbox, target: Path) -> dict[str, Path]:
    message, control = Message(), sandbox.directory / "control.sock"
    history, page = sandbox.directory / "history", sandbox.directory / "page"
    settings = Settings(time=REAL_TIME, seed=1, capacity=1024)
    if not library().history_create(bytes(history), settings, message) or not library().shared_page_create(
        bytes(page), REAL_TIME, 1, 0, message
    ):
        raise Inconclusive(str(message))
    command = [paths.program("proxy"), "--history", str(history), "--page", str(page), "--actor", "0"]
    sandbox.start("proxy", [*command, "--control", str(control)])
    _wait_for(control.exists)
    listen = {name: sandbox.directory / f"{number}.sock" for number, name in enumerate((BARE, RULE))}
    link = redis.Redis(unix_socket_path=str(control), protocol=2, driver_info=None)
    for number, path in enumerate(listen.values()):
        link.execute_command("LINK", "ADD", f"link-{number}", str(path), str(target))  # type: ignore[no-untyped-call]
    rule = "RULE ADD never link-1 both drop COMMAND DEL KEY other"
    link.execute_command(*rule.split())  # type: ignore[no-untyped-call]
    link.close()
    return listen


def _wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > deadline:
            raise Inconclusive(f"a program to be measured did not start within {LIMIT_S:g} s")
        time.sleep(0.002)


def _round_trip_us(address: Path, requests: int) -> float:
    took = []
    with socket.socket(socket.AF_UNIX) as wire:
        wire.connect(str(address))
        for _ in range(requests):
            began = time.perf_counter_ns()
            wire.sendall(GET)
            reply = wire.recv(64)
            took.append(time.perf_counter_ns() - began)
            if reply != VALUE:
                raise Inconclusive(f"{address.name} answered {reply!r}")
    return statistics.median(took) / 1000


def _rate(address: Path, clients: int, requests: int) -> float:
    program = shutil.which("redis-benchmark", path=paths.search_path())
    if not program:
        raise Inconclusive("redis-benchmark is not installed: on Debian and Ubuntu it is in the package redis-tools")
    command = [program, "-s", str(address), "-P", str(PIPELINE), "-c", str(clients), "-n", str(requests), "--csv"]
    done = subprocess.run([*command, "GET", "key"], capture_output=True, text=True)
    try:
        return float(list(csv.reader(done.stdout.splitlines()))[-1][1])
    except (IndexError, ValueError):
        raise Inconclusive(f"redis-benchmark failed: {done.stderr.strip() or done.stdout.strip()}") from None
