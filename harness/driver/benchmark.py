"""The reference that costs are held against: redis-benchmark sending the two commands of the plainest correct lock -
SET key value NX PX lease, and the script that compares and deletes - over one connection, one at a time."""

import csv
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from harness.driver import paths
from harness.driver.errors import Inconclusive
from harness.driver.redis_server import RedisServer

KEY, VALUE, LEASE_MS = "reference", "0123456789abcdef0123456789abcdef", "30000"
RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"
SET = ("SET", KEY, VALUE, "NX", "PX", LEASE_MS)


@dataclass(frozen=True)
class Pair:
    """What one of each takes, in us."""

    set_us: float
    evalsha_us: float

    @property
    def us(self) -> float:
        return self.set_us + self.evalsha_us


def measure_pair(server: RedisServer, requests: int) -> Pair:
    """So many of each, on the server's own socket. Raises Inconclusive when redis-benchmark is missing or fails."""
    script = str(server.link.script_load(RELEASE))
    release = ("EVALSHA", script, "1", KEY, VALUE)
    pair = Pair(request_us(server.socket, requests, SET), request_us(server.socket, requests, release))
    server.link.delete(KEY)
    return pair


def request_us(socket: Path, requests: int, command: tuple[str, ...]) -> float:
    """What one of a command takes, in us, over one connection and one at a time."""
    program = shutil.which("redis-benchmark", path=paths.search_path())
    if not program:
        raise Inconclusive("redis-benchmark is not installed: on Debian and Ubuntu it is in the package redis-tools")
    words = [program, "-s", str(socket), "-c", "1", "-P", "1", "-n", str(requests), "--csv", *command]
    done = subprocess.run(words, capture_output=True, text=True)
    rows = list(csv.reader(done.stdout.splitlines()))
    try:
        return 1e6 / float(rows[-1][1])
    except (IndexError, ValueError, ZeroDivisionError):
        raise Inconclusive(f"redis-benchmark failed: {done.stderr.strip() or done.stdout.strip()}") from None
