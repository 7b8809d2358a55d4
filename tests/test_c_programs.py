"""The C programs of tests/c: the history under many writers and one that is stopped, the live environment's waiting
calls, every lock among the threads of one process, messages cut anywhere in front of a guard page."""

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.driver.library import locks
from harness.driver.play import AS_ASKED
from harness.driver.postgres_server import conninfo
from harness.driver.process import Nursery
from harness.driver.redis_server import RedisServer
from harness.driver.services import missing
from tests.building import make
from tests.support import trial

START_OF_TIME = "2026-01-01 00:00:00.0000005\n"

THREADS, TURNS = 4, 5
EXCLUSIVE = [
    lock["name"]
    for lock in locks()
    if not missing(lock["service"])
    and lock["capacity"] in (1, AS_ASKED)
    and lock["name"] != "none"
    and not lock["once"]
]
AS_LONG_AS_IT_TAKES = -1
# Locks that can sleep through a wake-up, by design: pubsub-naive between its check and its subscription, blpop-default
# when it comes to the signal after the second for which that lives. A wait of theirs has an end.
WAITS_MS = {"pubsub-naive": 300, "blpop-default": 3000}


def run_program(*command: object, environment: Mapping[str, str] | None = None, status: int = 0) -> dict[str, Any]:
    """What a test program printed, after it said by its exit status that all was as meant (0) or was not (1)."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=50, env=environment)
    assert done.returncode == status, f"status {done.returncode}: {done.stdout}{done.stderr}"
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


def contend(program: Path, lock: str, directory: Path, prefix: Sequence[str] = (), status: int = 0) -> dict[str, Any]:
    """What lock_threads said of a lock, with as many servers as the lock wants, of the kind that it lives on."""
    with trial(lock, time="real") as running:
        nodes: list[object] = [server.socket for server in running.servers]
        nodes += [conninfo(database.sockets) for database in running.databases]
        nodes += [server.socket for server in running.etcd]
        nodes += [server.address for server in running.ensemble]
        wait_ms = WAITS_MS.get(lock, AS_LONG_AS_IT_TAKES)
        words = [*prefix, program, lock, THREADS, TURNS, wait_ms, directory / "stage", *nodes]
        return run_program(*words, status=status)


def assert_each_had_its_turns(said: dict[str, Any]) -> None:
    """Alone every time: that the program says by its exit status."""
    assert said["grants"] + said["refusals"] == THREADS * TURNS
    assert said["grants"] > 0
    assert said["refusals"] == 0 or said["lock"] in WAITS_MS


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


def test_a_writer_is_stopped_between_two_records(programs: Path, tmp_path: Path) -> None:
    said = run_program(programs / "stop_writer", tmp_path)
    assert said["torn_plainly"] > 0 == said["torn_between_records"]
    assert said["stops_between_records"] > 0


def test_waiting_calls_stand_exactly_in_time(programs: Path) -> None:
    with redis_with_virtual_clock() as (server, directory):
        said = run_program(programs / "blocking_call", server.socket, server.clock, directory / "stage")
    # 7 s, 5 s and three times 35 s of the trial's time
    assert sum(said[name]["real_ms"] for name in ("nobody_pushes", "pushed_after_5_s", "renewed_three_times")) < 5000


@pytest.mark.parametrize("lock", EXCLUSIVE)
def test_threads_of_one_process_enter_one_at_a_time(programs: Path, lock: str, tmp_path: Path) -> None:
    assert_each_had_its_turns(contend(programs / "lock_threads", lock, tmp_path))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_messages_are_found_however_they_are_cut(programs: Path, seed: int) -> None:
    said = run_program(programs / "resp_guard", seed, 2000)
    assert said["messages"] == 2000
    assert said["cuts"] > 50_000


def test_threads_without_a_lock_are_seen_to_meet(programs: Path, tmp_path: Path) -> None:
    said = contend(programs / "lock_threads", "none", tmp_path, status=1)
    assert said["grants"] == THREADS * TURNS
    assert said["violations"] > 0
    assert said["sum"] < said["grants"]
