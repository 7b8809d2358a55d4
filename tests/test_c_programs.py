"""The C programs of tests/c: the history under many writers, the live environment's waiting calls."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.driver.process import Nursery
from harness.driver.redis_server import RedisServer
from tests.building import make

START_OF_TIME = "2026-01-01 00:00:00.0000005\n"


def run_program(*command: object, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What a test program printed, after it said by its exit status that all was as meant."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=50, env=environment)
    assert done.returncode == 0, f"status {done.returncode}: {done.stdout}{done.stderr}"
    said: dict[str, Any] = json.loads(done.stdout)
    return said


@contextmanager
def redis_with_virtual_clock() -> Iterator[tuple[RedisServer, Path]]:
    """A server, and a directory for what else is needed; the server's clock is the file `clock` in it."""
    nursery = Nursery()
    try:
        clock = nursery.directory / "clock"
        clock.write_text(START_OF_TIME)
        server = RedisServer(nursery, "redis-1", clock=clock)
        server.ready()
        yield server, nursery.directory
        server.close()
    finally:
        nursery.close()


@pytest.fixture(scope="session")
def programs() -> Path:
    return make("test-programs") / "tests"


@pytest.mark.parametrize(("processes", "records"), [(1, 20000), (2, 50000), (16, 5000)])
def test_writers_at_once_lose_nothing_and_stand_in_one_order(
    programs: Path, tmp_path: Path, processes: int, records: int
) -> None:
    said = run_program(programs / "history_writers", tmp_path / "history", processes, records)
    assert said["written"] == processes * records
    assert said["token_records"] == 2 * min(records, 20000)


def test_what_a_killed_writer_acknowledged_is_there(programs: Path, tmp_path: Path) -> None:
    said = run_program(programs / "history_writers", "--kill", tmp_path / "history", 6, 3000)
    assert said["acknowledged"] >= 6 * 3000
    assert said["written"] >= said["acknowledged"]


def test_waiting_calls_stand_exactly_in_time(programs: Path) -> None:
    with redis_with_virtual_clock() as (server, directory):
        said = run_program(programs / "blocking_call", server.socket, server.clock, directory / "stage")
    # 7 s, 5 s and three times 35 s of the trial's time
    assert sum(said[name]["real_ms"] for name in ("nobody_pushes", "pushed_after_5_s", "renewed_three_times")) < 5000
