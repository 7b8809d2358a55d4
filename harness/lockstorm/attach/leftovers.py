"""The keys of a run: counted, and removed."""

import contextlib
import time
from collections.abc import Iterator

from lockstorm.attach.server_connection import RespConnection, Seed, ServerConnector
from lockstorm.base.errors import UsageError
from lockstorm.process.line_client import LineClient, Refusal

SCAN_COUNT = 1000
AGAIN_S = 0.2  # a command that was sent before its connection was closed may still be carried out
RETRY_S = 1.0
RETRY_LIMIT_S = 20.0  # a failover may be going on


def keys_with(connection: "RespConnection | LineClient", part: str) -> Iterator[bytes]:
    """The keys that contain a text without special characters, some of them twice."""
    cursor = b"0"
    while True:
        cursor, found = connection.request("SCAN", cursor, "MATCH", f"*{part}*", "COUNT", SCAN_COUNT)
        yield from found
        if cursor == b"0":
            return


def remove_keys(connector: ServerConnector, part: str) -> int:
    """Removes them from every master, until a second look finds none. The number of keys."""
    removed = 0
    while True:
        found = sum(_remove_from(connector, seed, part) for seed in connector.every_master())
        removed += found
        if not found:
            return removed
        time.sleep(AGAIN_S)


def _remove_from(connector: ServerConnector, seed: Seed, part: str) -> int:
    connected = connector.open_database(seed)
    with contextlib.closing(connected.socket):
        found = set(keys_with(connected, part))
        return sum(int(connected.request("DEL", key)) for key in found)


def remove_keys_patiently(connector: ServerConnector, part: str) -> int:
    """The same; tries again while a server does not answer. Raises UsageError if it never does."""
    until_s = time.monotonic() + RETRY_LIMIT_S
    while True:
        try:
            return remove_keys(connector, part)
        except (UsageError, OSError, Refusal) as reason:
            if time.monotonic() > until_s:
                raise UsageError(f"keys whose names contain {part} may be left: {reason}") from None
            time.sleep(RETRY_S)
