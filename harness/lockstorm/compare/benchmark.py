"""The reference for costs: redis-benchmark sends the two commands of the simplest correct lock - SET key value NX PX
lease, and the script that compares and deletes - over one connection, one at a time."""

import csv
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from lockstorm.base import paths
from lockstorm.base.errors import Inconclusive
from lockstorm.servers.redis_server import RedisServer

KEY, VALUE, LEASE_MS = "reference", "0123456789abcdef0123456789abcdef", "30000"
RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"
SET = ("SET", KEY, VALUE, "NX", "PX", LEASE_MS)


@dataclass(frozen=True)
class Pair:
    """The time of each command, in us."""

    set_us: float
    evalsha_us: float

    @property
    def us(self) -> float:
        return self.set_us + self.evalsha_us


def measure_pair(server: RedisServer, requests: int) -> Pair:
    """Sends `requests` of each command, on the server's own socket. Raises Inconclusive when redis-benchmark is missing
    or fails."""
    script = str(server.link.script_load(RELEASE))
    release = ("EVALSHA", script, "1", KEY, VALUE)
    pair = Pair(request_us(server.socket, requests, SET), request_us(server.socket, requests, release))
    server.link.delete(KEY)
    return pair


def request_us(socket: Path, requests: int, command: tuple[str, ...]) -> float:
    """The time of one command in us, over one connection, one at a time."""
    program = shutil.which("redis-benchmark", path=paths.search_path())
    if not program:
        raise Inconclusive("redis-benchmark is not installed: on Debian and Ubuntu it is in the package redis-tools")
    arguments = [program, "-s", str(socket), "-c", "1", "-P", "1", "-n", str(requests), "--csv", *command]
    done = subprocess.run(arguments, capture_output=True, text=True)
    rows = list(csv.reader(done.stdout.splitlines()))
    try:
        return 1e6 / float(rows[-1][1])
    except (IndexError, ValueError, ZeroDivisionError):
        raise Inconclusive(f"redis-benchmark failed: {done.stderr.strip() or done.stdout.strip()}") from None
