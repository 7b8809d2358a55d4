"""The C programs of tests/c: the history under many writers and one that is stopped, what a client's page shows of its
validity, a clock that is set while it is read, processes that are idle or not, the live environment's waiting calls and
its session with ZooKeeper, every lock among the threads of one process, messages cut anywhere in front of a guard page,
the options of an exhaustive search."""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from lockstorm.locks.lock_names import AS_ASKED
from lockstorm.native.library import locks, locks_on
from lockstorm.process.process import Sandbox
from lockstorm.servers.etcd_server import EtcdServer
from lockstorm.servers.postgres_server import PostgresServer, conninfo
from lockstorm.servers.redis_server import RedisServer, mapped_clock
from lockstorm.servers.services import missing
from lockstorm.servers.zookeeper_server import ZooKeeperServer
from lockstorm.trial.nodes import Server
from tests.helpers.building import make
from tests.helpers.daily import daily
from tests.helpers.support import trial

START_OF_TIME = "2026-01-01 00:00:00.0000005\n"

THREADS, TURNS = 4, 5
EXCLUSIVE = [
    lock.name
    for lock in locks()
    if not missing(lock.service) and lock.capacity in (1, AS_ASKED) and lock.name != "none" and not lock.once
]
MECHANISMS = {(lock.service, lock.waits): lock.name for lock in locks() if lock.name in EXCLUSIVE}.values()
AS_LONG_AS_IT_TAKES = -1
# Locks that can miss a wake-up, by design: pubsub-naive between its check and its subscription, blpop-default when it
# looks for the signal after that has expired (1 s). Their waits are limited.
WAITS_MS = {"pubsub-naive": 300, "blpop-default": 3000}


def run_program(*command: object, environment: Mapping[str, str] | None = None, status: int = 0) -> dict[str, Any]:
    """What a test program printed. Its exit status must be the given one: 0 for success, 1 for a failed check."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == status, f"status {done.returncode}: {done.stdout}{done.stderr}"
    said: dict[str, Any] = json.loads(done.stdout)
    return said


@contextmanager
def redis_with_virtual_clock() -> Iterator[tuple[RedisServer, Path]]:
    """A server, and a directory for other files; the server's clock is the file `clock` in it."""
    sandbox = Sandbox()
    try:
        clock = sandbox.directory / "clock"
        clock.write_text(START_OF_TIME)
        with closing(RedisServer(sandbox, "redis-1", clock=clock)) as server:
            server.ready()
            yield server, sandbox.directory
    finally:
        sandbox.close()


def place_of(node: Server) -> str | Path:
    """The node's own address, without the proxy, in the form that a lock expects."""
    if isinstance(node, PostgresServer):
        return conninfo(node.sockets)
    if isinstance(node, ZooKeeperServer):
        return node.address
    assert isinstance(node, (RedisServer, EtcdServer))
    return node.socket


def contend(program: Path, lock: str, directory: Path, prefix: Sequence[str] = (), status: int = 0) -> dict[str, Any]:
    """What lock_threads reports of a lock, with as many servers as the lock needs, of its service."""
    with trial(lock, time="real") as running:
        nodes = [place_of(node) for node in running.nodes.known]
        wait_ms = WAITS_MS.get(lock, AS_LONG_AS_IT_TAKES)
        words = [*prefix, program, lock, THREADS, TURNS, wait_ms, directory / "page", *nodes]
        return run_program(*words, status=status)


def assert_each_had_its_turns(said: dict[str, Any]) -> None:
    """The program's exit status has shown that every holder was alone."""
    assert said["grants"] + said["refusals"] == THREADS * TURNS
    assert said["grants"] > 0
    assert said["refusals"] == 0 or said["lock"] in WAITS_MS


@pytest.fixture(scope="session")
def programs() -> Path:
    return make("test-programs") / "tests"


def test_an_exhaustive_search_has_an_option_for_everything_that_can_happen(programs: Path) -> None:
    said = run_program(programs / "exhaustive_options")
    assert said["options"] == said["possible"] > 256


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


def test_a_command_is_encoded_as_by_hiredis(programs: Path) -> None:
    said = run_program(programs / "redis_commands")
    assert said["same"] > 15 and said["different"] == 0


def test_stamps_are_those_of_the_clocks(programs: Path) -> None:
    said = run_program(programs / "stamps")
    unused = {"used": False, "distrusted": False, "off": 0}
    for case in ("the first reading", "too soon", "another rate", "ten minutes later"):
        assert said[case] == unused, case
    assert said["far ahead of the clock"] == {"used": False, "distrusted": True, "off": 0}
    for case, most_ns in (("two windows later", 1), ("a slewed clock", 500)):
        assert said[case]["used"] and abs(said[case]["off"]) <= most_ns, case
    assert said["back"] == said["back_by_renewal"] == 0
    assert said["off"] < 10_000


def test_a_clock_that_is_set_never_shows_a_mixture_of_two_errors(programs: Path, tmp_path: Path) -> None:
    (tmp_path / "clock").touch()
    environment = {**os.environ, **dict(word.split("=", 1) for word in mapped_clock(tmp_path / "clock"))}
    said = run_program(programs / "clock_readers", 6_000_000, environment=environment)
    assert min(said["first"], said["second"]) > 0 == said["neither"]


def test_a_stall_is_as_long_as_the_clocks_say(programs: Path) -> None:
    said = subprocess.run([programs / "stalls", "clocks"], check=True, capture_output=True, text=True)
    first, *others = said.stdout.splitlines()
    assert not first.startswith(("machine", "wall clock"))  # it slept for as long as it meant to
    # half an hour too long; then the wall clock half an hour ahead, and further back than that; then 5 ms too long
    moments = ["machine 1700000 ms", "wall clock 1800000 ms", "wall clock 1900000 ms", "wall clock 1900000 ms"]
    assert [line.strip() for line in others] == moments


def test_a_stall_is_a_thread_that_waits_for_a_processor(programs: Path) -> None:
    said = subprocess.run([programs / "stalls", "threads", "starving"], check=True, capture_output=True, text=True)
    kind, length_ms, _, name = said.stdout.split()
    assert (kind, name) == ("thread", "starving")
    assert int(length_ms) > 10  # longer than the turn of the one that is always ready


def test_an_announcement_on_its_way_shows_nothing_after_the_release(programs: Path, tmp_path: Path) -> None:
    said = run_program(programs / "announcements", tmp_path)
    assert said["announced"] >= 2 * said["rounds"] > 0
    assert said["wrong_moments"] == said["shown_after_end"] == 0


# A process is idle when it has nothing to do, however often it wakes up. A polling sleep, after which it tries again,
# does not count as idle.
IDLE = [
    "reads a pipe",
    "polls a pipe",
    "polls a pipe often",
    "selects a pipe",
    "has a sleeping child",
    "has an ended child",
    "two that sleep",
    "none at all",
    "asked once without a limit",
    "asked for as long as allowed",
    "threads that read",
    "threads that still read",
    "a thread that wakes up often",
    "a thread in a futex",
    "a thread has ended",
    "the new thread reads",
    "the timer sleeps again and again",
    "beside its timer",
    "beside its spinning timer",
]
BUSY = [
    "spins",
    "naps",
    "polls nothing",
    "ppolls nothing",
    "selects nothing",
    "has a spinning child",
    "the first spins",
    "the second spins",
    "two that wake each other",
    "stopped",
    "gone",
    "a thread spins",
    "another thread spins",
    "a thread naps",
    "two threads wake each other",
    "a new thread spins",
    "the timer waits for a byte",
    "the timer spins",
    "the timer goes on with one sleep",
    "the timer waits for a lock",
    "there is no such timer",
    "its process is gone",
    "it was gone before",
]


def test_the_quiet_phase_begins_when_no_fault_lasts(programs: Path) -> None:
    said = run_program(programs / "quiet_phase")
    assert [name for name, may_begin in said.items() if may_begin] == [
        "commands are on their way",
        "a request was held and has arrived",
        "a paused client was killed",
        "a late command has arrived",
        "a replica was stalled until now",
    ]
    assert len(said) == 11


def test_processes_are_idle_when_they_have_nothing_to_do(programs: Path) -> None:
    said = run_program(programs / "idle_processes")
    assert said == dict.fromkeys(IDLE, True) | dict.fromkeys(BUSY, False)


def test_waiting_calls_stand_exactly_in_time(programs: Path) -> None:
    with redis_with_virtual_clock() as (server, directory):
        said = run_program(programs / "blocking_call", server.socket, server.clock, directory / "page")
    # 7 s, 5 s and three times 35 s of the trial's time
    assert sum(said[name]["real_ms"] for name in ("nobody_pushes", "pushed_after_5_s", "renewed_three_times")) < 5000


def test_a_limit_that_is_longer_than_any_stamp_is_none(programs: Path) -> None:
    assert run_program(programs / "env_limits") == {"cases": 8, "wrong": 0}


@pytest.mark.skipif(not locks_on("zookeeper")[0].built, reason="this build cannot speak to ZooKeeper")
def test_a_session_without_a_watchdog_is_none_and_the_next_one_may_begin(programs: Path, tmp_path: Path) -> None:
    said = run_program(programs / "session_begin", tmp_path / "page")
    assert said["beside_another"] == {"outcome": "unknown", "state": "lost", "connected": False}
    assert said["after_it"] == {"outcome": "unknown", "state": "suspended", "connected": True}


@pytest.mark.parametrize("lock", daily(EXCLUSIVE, MECHANISMS, "one more lock of a way of waiting", 1))
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
