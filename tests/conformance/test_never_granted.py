"""A library that never grants its lock on a fresh server, where nothing is broken: nobody can get it."""

import json
from pathlib import Path

import pytest

from tests.helpers.planting import plant_in
from tests.helpers.support import lockstorm

# As Symfony Lock 7.2.3: it asks for a script that the server does not know, and never loads it.
NO_SCRIPT = """
FORMS = [{"form": "acquire()", "wait": ["none", "time", "forever"], "lease": ["given"]}]
def answer(asked):
    if asked["op"] == "hello" and asked["protocol"] >= 2:
        return {**OK, **HELLO, "protocol": 2, "owner": "object", "forms": FORMS}
    if asked["op"] in ("acquire", "release"):
        if SHOULD_LOAD:
            link.ask("SCRIPT", "LOAD", "return 1")
        try:
            link.ask("EVALSHA", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", 1, name)
            return lock(asked)
        except OSError as error:
            return {"outcome": "unknown", "error": str(error)}
    return OK if asked["op"] == "forget" else lock(asked)
"""


def planted(directory: Path, should_load: bool) -> str:
    return plant_in(directory, NO_SCRIPT.replace("SHOULD_LOAD", str(should_load)))


@pytest.mark.parametrize("scenario", ["contention", "gc-pause"])
def test_it_is_violated_in_a_trial(tmp_path: Path, scenario: str) -> None:
    done = lockstorm("run", scenario, "--adapter", planted(tmp_path, False), "--json")
    result = json.loads(done.stdout)
    assert done.returncode == 1, done.stdout + done.stderr
    assert result["verdict"]["liveness"]["status"] == "violated"
    begins = "Nobody can get the lock (5 acquires by a client that was alone were unknown; its adapter says: NOSCRIPT"
    assert result["sentence"].startswith(begins)
    twin = lockstorm("run", "contention", "--adapter", planted(tmp_path, True))
    assert twin.returncode == 0, twin.stdout


def test_it_is_violated_in_a_search(tmp_path: Path) -> None:
    done = lockstorm("explore", "--adapter", planted(tmp_path, False), "--schedules", "3", "--json")
    result = json.loads(done.stdout)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "nobody can get the lock" in result["sentence"]
    twin = lockstorm("explore", "--adapter", planted(tmp_path, True), "--schedules", "3", "--json")
    assert "nobody can get the lock" not in twin.stdout


def test_it_fails_a_gate(tmp_path: Path) -> None:
    policy = tmp_path / "lockstorm.toml"
    adapter = planted(tmp_path, False)
    policy.write_text(f'[[lock]]\nadapter = "{adapter}"\n[scenarios]\nplay = ["gc-pause"]\n')
    done = lockstorm("gate", "-f", str(policy), "--json")
    verdict = json.loads(done.stdout)
    assert done.returncode == 1, done.stdout + done.stderr
    assert verdict["cells"][0]["violated"] == ["liveness"]
