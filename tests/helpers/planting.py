"""Writes adapters for tests: a small lock on a real Redis, with the fault that a test plants."""

import sys
from pathlib import Path

from tests.helpers import planted_link

# `answer` returns the answer to a question; the usual one, `lock`, is a key of a real Redis.
PLANTED = """#!{python}
import json, os, subprocess, sys, time
sys.path.append({helpers!r})
from planted_link import Link, set_if_absent
HELLO = {{"protocol": 1, "name": "planted", "lease": True}}
OK = {{"outcome": "ok"}}
def lock(asked):
    global link, name, lease_ms
    if asked["op"] == "hello":
        return {{**OK, **HELLO}}
    if asked["op"] == "open":
        link = Link(asked["nodes"][0])
        name, lease_ms = asked["resource"], asked["lease_ms"]
        return OK
    if asked["op"] == "acquire":
        until = None if asked["wait_ms"] is None else time.monotonic() + asked["wait_ms"] / 1000
        while not set_if_absent(link, name, os.getpid(), lease_ms):
            if until is not None and time.monotonic() >= until:
                return {{"outcome": "refused"}}
            time.sleep(0.01)
        return OK
    if asked["op"] == "release":
        return OK if link.ask("DEL", name) else {{"outcome": "refused"}}
{body}
for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps({{"id": asked["id"], **answer(asked)}}), flush=True)
"""
USUAL = "def answer(asked): return lock(asked)"


def plant_in(directory: Path, body: str = USUAL) -> str:
    """Writes an adapter and returns the path of the program."""
    path = directory / f"planted-{len(list(directory.iterdir()))}"
    path.write_text(PLANTED.format(python=sys.executable, helpers=str(Path(planted_link.__file__).parent), body=body))
    path.chmod(0o755)
    return str(path)
