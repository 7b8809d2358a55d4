"""What `replay --commands` tells: each command, its answer and what became of it."""

import json
from pathlib import Path

import pytest

from lockstorm.explore.explore import replay_schedule
from lockstorm.explore.schedule_file import ScheduleFile
from lockstorm.explore.search_plan import SearchRequest, plan_search
from lockstorm.results.verdict import HeardCommand
from tests.helpers.support import lockstorm


def schedule_of(lock: str, *lines: str) -> ScheduleFile:
    """The usual course of two clients, with these deviations."""
    plan = plan_search(SearchRequest(lock, faults="none", clients=2, schedules=1))
    return ScheduleFile(**vars(plan.context), number=0, violates=(), lines=lines)


def heard(lock: str, *lines: str) -> list[HeardCommand]:
    commands = replay_schedule(schedule_of(lock, *lines), "found", with_commands=True).commands
    assert commands
    return commands


def brief(command: HeardCommand) -> tuple[int, str, str, str | None]:
    return command.client, command.words[0], command.fate, command.answer


def test_the_usual_course() -> None:
    """Acquire, read, write, release, of one client after the other; the servers' own answers."""
    turn = [("SET", "OK"), ("GET", "[0, 0]"), ("SET", "[1, 1]"), ("EVALSHA", "1")]
    commands = heard("set-nx-px")
    assert [brief(each) for each in commands[:4]] == [(1, word, "answered", answer) for word, answer in turn]
    assert [each.node for each in commands[:4]] == [1, 0, 0, 1]
    assert commands[0].words[1:2] + commands[0].words[3:] == ["account", "NX", "PX", "1000"]
    assert [each.client for each in commands] == [1] * 4 + [2] * 4


@pytest.mark.parametrize(
    ("fault", "fate", "answer"),
    [
        ("lose-reply client-1", "answer-lost", "OK"),
        ("drop-request client-1", "lost", None),
        ("hold-request client-1 5000", "late", None),
        ("restart redis-1", "lost", None),
        ("error-reply client-1", "refused", "error: BUSY"),
    ],
)
def test_what_becomes_of_the_first_command(fault: str, fate: str, answer: str | None) -> None:
    commands = heard("set-nx-px", f"before client-1 2: {fault}")
    (first,) = [each for each in commands if each.client == 1 and each.words[0] == "SET"]
    assert (first.fate, (first.answer or "")[: len(answer or "")] or None) == (fate, answer)
    assert (first.mono_ns == 5_000_000_000) == (fate == "late")


def test_a_copy_arrives_when_nobody_waits_for_its_answer() -> None:
    commands = heard("set-nx-px", "before client-1 2: duplicate-request client-1")
    one, copy = [each for each in commands if each.words == commands[0].words]
    assert (one.fate, copy.fate) == ("answered", "late")


def test_a_blocking_command_is_answered_later() -> None:
    """Client 2 waits in BLPOP until client 1 releases: two lines for one command."""
    commands = heard("blpop", "before client-1 3: client-2")
    waiting = [each for each in commands if each.words[0] == "BLPOP"]
    assert [each.fate for each in waiting][:2] == ["waits", "answered-late"]
    assert waiting[0].words == waiting[1].words and "signal:account" in str(waiting[1].answer)


def test_a_watchdog_is_told_from_its_client() -> None:
    plan = plan_search(SearchRequest("set-nx-px-renew", faults="none", clients=2, schedules=1, work_ms=2500))
    file = ScheduleFile(**vars(plan.context), number=0, violates=(), lines=())
    commands = replay_schedule(file, "found", with_commands=True).commands or []
    renewals = [each for each in commands if each.watchdog]
    assert renewals and all(each.words[0].startswith("EVAL") and each.answer == "1" for each in renewals)


def test_the_command_prints_them_and_gives_them_as_json(tmp_path: Path) -> None:
    path = tmp_path / "found.schedule"
    path.write_text(schedule_of("set-nx-px", "before client-1 2: lose-reply client-1").text)
    told = lockstorm("replay", "--commands", str(path)).stdout
    assert "the answer is lost on its way back" in told and "SET account" in told
    found = json.loads(lockstorm("replay", "--commands", "--json", str(path)).stdout)
    assert found["commands"][0]["fate"] == "answer-lost"
    assert "commands" not in json.loads(lockstorm("replay", "--json", str(path)).stdout)
    refused = lockstorm("replay", "--commands", "--real", str(path))
    assert refused.returncode == 2 and "--commands: only the explorer sees each command" in refused.stderr
