"""The soak of one minute, and that it would notice."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from lockstorm.base import paths
from lockstorm.native.library import locks_on
from tests.helpers.results import made_property, made_result
from tests.helpers.support import ENVIRONMENT, short_directory
from tests.soak import storm_soak as soak


@pytest.mark.slow("storms for a minute", seconds=65)
def test_a_minute_of_storms_leaves_nothing(tmp_path: Path) -> None:
    output = tmp_path / "soak.json"
    words = ["-m", "tests.soak.storm_soak", "--duration", "1min", "--seed", "1", "-o", str(output)]
    with short_directory() as directory:
        environment = {**ENVIRONMENT, "TMPDIR": str(directory)}
        options: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 300, "env": environment}
        done = subprocess.run([sys.executable, *words], cwd=paths.ROOT, **options)
        assert done.returncode == 0, done.stdout + done.stderr
        assert not list(directory.iterdir())
    said = json.loads(output.read_text())
    assert said["ok"] and not said["failures"]
    assert said["storms"] >= 4 and sum(fault["proved"] for fault in said["faults"]) > 20
    assert done.stdout.splitlines()[-1].startswith("clean: ")


def test_what_is_left_behind_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "LEFTOVERS_LIMIT_S", 0.1)
    with short_directory() as directory:
        assert soak.left_behind(directory, set(), soak.names_in(soak.SHM)) == []
        sleeper = subprocess.Popen(["sleep", "60"])
        name = soak.SHM / f"faketime_shm_{sleeper.pid}"
        before = soak.names_in(soak.SHM)
        try:
            name.touch()
            (directory / "lockstorm-x").mkdir()
            assert soak.left_behind(directory, {sleeper.pid}, before) == [
                f"process {sleeper.pid} is left",
                "the directory lockstorm-x is left",
                f"/dev/shm/{name.name} is left",
            ]
        finally:
            sleeper.kill()
            sleeper.wait()
            name.unlink()


def test_a_descriptor_that_stays_open_is_seen() -> None:
    running = soak.Soak(60_000, 1, print)
    running._descriptors()
    running.storms = 3
    assert running._descriptors() == ""
    kept = os.open(os.devnull, os.O_RDONLY)
    try:
        assert running._descriptors() == "1 descriptors more than before"
    finally:
        os.close(kept)


def test_a_proxy_that_grows_is_seen() -> None:
    flat = soak.Watch(proxy_kb=[1000, *[2000] * 40])
    assert (flat.growth_kb, soak.grown(flat)) == (0, "")
    leaking = soak.Watch(proxy_kb=[2000 + 100 * each for each in range(40)])
    assert soak.grown(leaking) == "the proxy grew by 2000 kB"


@pytest.mark.parametrize(
    ("reason", "complaint"),
    [
        ("none of the faults was seen to take effect", ""),
        ("nobody was granted the lock", ""),
        ("redis-server waited 0.17 s for a processor, more than 33% of the lease of 300 ms", ""),
        ("client-2 ended (status -11)", "inconclusive: client-2 ended (status -11)"),
        ("12 records found no room", "inconclusive: 12 records found no room"),
    ],
)
def test_what_could_not_be_played_is_no_clean_soak(reason: str, complaint: str) -> None:
    verdict = {"mutual_exclusion": made_property("inconclusive", reason=reason), "integrity": made_property("holds")}
    said = made_result(verdict, exit=3, required=["mutual_exclusion", "integrity"])
    assert soak.unexplained(said) == complaint
    assert soak.unexplained(structs.replace(said, exit=1)) == ""


def test_every_lock_gets_its_storms_in_both_kinds_of_time() -> None:
    running = soak.Soak(1_800_000, 1, print)
    storms = running._storms(time.monotonic())
    seen = {(storm.request.lock, storm.request.time) for storm, _ in zip(storms, range(200), strict=False)}
    assert seen == {(lock.name, time_) for lock in locks_on("redis") for time_ in ("virtual", "real")}
