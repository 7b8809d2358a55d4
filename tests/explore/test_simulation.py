"""The simulated world: what a fault does to connections, names and time, and what counts as tried."""

import subprocess
from pathlib import Path

import pytest

from lockstorm.base import paths
from lockstorm.base.errors import Inconclusive, UsageError
from lockstorm.results.event import Event
from lockstorm.search.replay import replay_schedule
from lockstorm.search.schedule_file import ScheduleFile
from lockstorm.search.search_plan import SearchRequest, plan_search
from tests.helpers.planted_plugins import one_mistake, plant
from tests.helpers.searching import search_json


def schedule_of(lock: str, *lines: str, **changes: object) -> ScheduleFile:
    context = {
        "store": "open",
        "clients": 2,
        "replicas": 0,
        "turns": 1,
        "permits": 1,
        "fixed_lease": 0,
        "lease_ms": 1000,
        "wait_ms": 20000,
        "work_ms": 20,
        "bound_ms": 0,
        "seed": 1,
        "number": 1,
        "violates": (),
        **changes,
    }
    numbers = tuple(range(17, 17 + len(lines)))
    return ScheduleFile(lock=lock, lines=lines, line_numbers=numbers, **context)  # type: ignore[arg-type]


def history_of(schedule: ScheduleFile) -> list[Event]:
    events: list[Event] = []
    replay_schedule(schedule, "it", events)
    return events


@pytest.mark.parametrize("fault", ["crash-server", "crash-server-empty"])
def test_what_a_server_pushes_to_a_lost_connection_reaches_no_client(tmp_path: Path, fault: str) -> None:
    """A client that was blocked when its connection was lost has no answer, even if the lock is released later."""
    file = one_mistake(tmp_path, "baton")
    lines = ("before client-1 4: client-2", f"before client-1 6: {fault} redis-1")
    events = history_of(schedule_of(f"plugin:{file}", *lines))
    of_lock = [
        (event.actor, event.kind, event.outcome)
        for event in events
        if event.kind in ("acquire-invoke", "acquire-return", "release-return", "fault-inject")
    ]
    assert of_lock == [
        ("client-1", "acquire-invoke", "unknown"),
        ("client-1", "acquire-return", "ok"),
        ("client-2", "acquire-invoke", "unknown"),
        ("driver", "fault-inject", "unknown"),
        ("client-1", "release-return", "ok"),  # the server had nobody to push to
        ("client-2", "acquire-return", "unknown"),
    ]


def test_a_clock_jump_is_recorded_of_the_server_that_leads() -> None:
    lines = ("before client-1 3: failover redis-1", "before client-1 4: clock-jump redis-1 500")
    events = history_of(schedule_of("set-nx-px", *lines, replicas=1))
    names = {event.index: event.text for event in events if event.kind == "text"}
    struck = [names[event.value] for event in events if event.kind == "fault-inject"]
    proved = [names[event.value] for event in events if event.kind == "fault-prove" and event.outcome == "ok"]
    assert struck == proved == ["redis-1", "redis-1-replica-1"]


OPENS = "    return script_load(lock->env, 0, &self->release);"
SOMETIMES = "    if (env_random_below(lock->env, 10) == 0) return OUTCOME_UNKNOWN;\n"


def test_a_lock_that_does_not_open_is_no_schedule_tried(tmp_path: Path) -> None:
    file = plant(tmp_path, {OPENS: SOMETIMES + OPENS})
    for workers in (1, 2):
        request = SearchRequest(f"plugin:{file}", faults="none", schedules=200, workers=workers)
        result = search_json(plan_search(request))
        assert result["exit"] == 3, result["sentence"]
        assert "the lock could not be opened in schedule " in result["sentence"]


def test_a_replay_in_which_the_lock_does_not_open_is_inconclusive(tmp_path: Path) -> None:
    file = plant(tmp_path, {OPENS: SOMETIMES + OPENS})
    closed = 0
    for number in range(1, 21):
        try:
            replay_schedule(schedule_of(f"plugin:{file}", number=number), "it")
        except Inconclusive as error:
            closed += 1
            assert "the lock could not be opened" in str(error)
    assert 1 <= closed <= 19


# --- files and numbers that are not as they should be ---


def explore(*words: str) -> subprocess.CompletedProcess[str]:
    usual = ["--lock", "set-nx-px", "--clients", "1", "--node", "/nowhere/s", "--clock", "/nowhere/c"]
    return subprocess.run(
        [paths.program("explore"), *usual, *words], capture_output=True, text=True, timeout=600, check=False
    )


@pytest.mark.parametrize("option", ["--shared", "--digests"])
def test_a_file_that_cannot_be_shared_is_not_left_out(option: str, tmp_path: Path) -> None:
    (tmp_path / "short").write_bytes(b"")
    for name, reason in (("missing", "No such file or directory"), ("short", "too short")):
        done = explore("--directory", str(tmp_path), "--most", "4", option, str(tmp_path / name))
        assert (done.returncode, f"{tmp_path / name}: " in done.stderr) == (2, True), done.stderr
        assert reason in done.stderr


@pytest.mark.parametrize("option", ["--lease-ms", "--wait-ms", "--work-ms", "--bound-ms"])
def test_a_time_that_does_not_fit_is_refused(option: str, tmp_path: Path) -> None:
    done = explore("--directory", str(tmp_path), option, "9223372036854775807")
    assert done.returncode == 2
    assert "bad value or option: 9223372036854775807" in done.stderr


@pytest.mark.parametrize("amount,count", [("1000000000", 1001), ("-1000000000", 1001)])
def test_a_clock_goes_no_further_than_it_can(amount: str, count: int) -> None:
    """A thousand jumps of the most that one can have are 31 years."""
    lines = [f"before client-1 3: clock-jump redis-1 {amount}"] * count
    with pytest.raises(UsageError, match=f"line {16 + count}: this never comes up, or cannot happen then"):
        replay_schedule(schedule_of("set-nx-px", *lines), "it")
    replay_schedule(schedule_of("set-nx-px", *lines[:-1]), "it")
