"""What `replay --commands` tells: each command, its answer and what became of it."""

import json
import re
from pathlib import Path

import pytest

from lockstorm.report.deviation_words import lock_deviation_words
from lockstorm.report.story import story_rows
from lockstorm.results.call_event import PlayedDeviation
from lockstorm.results.event import Event
from lockstorm.results.verdict import HeardCommand
from lockstorm.search.replay import replay_schedule
from lockstorm.search.schedule_file import ScheduleFile, parse_schedule_file, read_schedule_file
from lockstorm.search.search_plan import SearchRequest, plan_search
from tests.helpers.searching import search_json
from tests.helpers.support import lockstorm


def schedule_of(lock: str, *lines: str) -> ScheduleFile:
    """The usual course of two clients, with these deviations."""
    plan = plan_search(SearchRequest(lock, faults="none", clients=2, schedules=1))
    return ScheduleFile(**vars(plan.context), number=1, violates=(), lines=lines)


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
        ("crash-server redis-1", "lost", None),
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
    file = ScheduleFile(**vars(plan.context), number=1, violates=(), lines=())
    commands = replay_schedule(file, "found", with_commands=True).commands or []
    renewals = [each for each in commands if each.watchdog]
    assert renewals and all(each.words[0].startswith("EVAL") and each.answer == "1" for each in renewals)


@pytest.mark.parametrize("step", [4, 5, 6], ids=["sleeps", "wakes", "command on its way"])
def test_one_restart_costs_a_watchdog_one_command(step: int) -> None:
    """Whatever the watchdog does when its connection is lost: the next renewal, a period later, arrives (issue #55)."""
    plan = plan_search(SearchRequest("set-nx-px-renew", faults="none", clients=2, schedules=1, work_ms=2500))
    restart = (f"before client-2-watchdog {step}: crash-server redis-1",)
    file = ScheduleFile(**vars(plan.context), number=1, violates=(), lines=restart)
    commands = replay_schedule(file, "found", with_commands=True).commands or []
    renewals = [(each.mono_ns // 10**6, each.fate) for each in commands if each.watchdog and each.client == 2]
    # The server has lost the script, too, so the renewal after the lost one is sent twice: by its digest and whole.
    assert renewals[:4] == [(333, "answered"), (666, "lost"), (999, "answered"), (999, "answered")]


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


# --- what an order of steps means, in words ---


@pytest.mark.parametrize(
    ("line", "usual", "instead", "told"),
    [
        (
            "before client-1 4: client-2",
            "request EVALSHA",
            "request SET",
            "client-2's SET reaches the server while client-1's EVALSHA is on its way",
        ),
        (
            "before client-1-watchdog 2: client-1",
            "answer EVALSHA",
            "wake",
            "client-1 wakes up while the answer to client-1's watchdog's EVALSHA is on its way",
        ),
        (
            "before client-2 1: client-1",
            "on",
            "answer GET",
            "client-1 gets the answer to its GET before client-2 goes on",
        ),
        ("before clock 3: client-2", "", "message", "client-2 hears a message, and no time has passed"),
        ("before stream-1 3: client-2", "", "on", ""),
        ("before client-1 3: stream-1", "on", "", ""),
        ("before client-1 2: lose-reply client-1", "answer SET", "", ""),
    ],
)
def test_an_order_of_steps_is_said_in_words(line: str, usual: str, instead: str, told: str) -> None:
    assert lock_deviation_words(PlayedDeviation(line, usual, instead, 0)) == told


def test_a_replay_says_what_an_order_means_and_what_it_needs(tmp_path: Path) -> None:
    """The example of docs/explore.md. Client 2 takes three of five servers while client 1 has two, then the clock of
    one of the three jumps."""
    path = tmp_path / "found.schedule"
    found = search_json(plan_search(SearchRequest("redlock", faults="clock-jump", seed=6, schedules=64)))["found"]
    path.write_text(found["file"])
    told = lockstorm("replay", str(path))
    assert told.returncode == 1 and all(line in told.stdout for line in found["choices"]), told.stdout
    order, jump = found["choices"]
    assert order.endswith("  # client-2 goes on while client-1's SET is on its way"), order
    assert f"control: without {jump} it holds" in told.stdout
    replayed = json.loads(lockstorm("replay", "--json", str(path)).stdout)
    assert replayed["choices"] == found["choices"] and replayed["control"]["schedule"] == [order.partition("  #")[0]]


# --- which command a fault strikes ---


def struck_in_story(lock: str, *lines: str) -> list[tuple[str, str]]:
    events: list[Event] = []
    replay_schedule(schedule_of(lock, *lines), "found", events)
    return [(row.who, row.story) for row in story_rows(events) if "strikes" in row.story]


@pytest.mark.parametrize("fault", ["lose-reply", "drop-request", "hold-request", "error-reply", "duplicate-request"])
def test_a_story_says_which_command_a_fault_strikes(fault: str) -> None:
    amount = " 500" if fault == "hold-request" else ""
    ((actor, text),) = struck_in_story("set-nx-px", f"before client-1 2: {fault} client-1{amount}")
    assert actor == "client-1"
    assert re.fullmatch(rf"{fault} strikes SET account [0-9a-f]{{8}}… NX PX 1000 to redis-1", text), text
    if fault == "error-reply":
        return  # of a server that is busy with a script: the resource runs none
    ((_, text),) = struck_in_story("set-nx-px", f"before client-1 4: {fault} client-1{amount}")
    assert text.startswith(f"{fault} strikes GET counter TOKEN 0 ") and text.endswith(" to store")


def test_a_story_says_which_message_is_lost() -> None:
    """Client 2 subscribes while client 1 holds the lock, and does not hear of its release."""
    lines = ("before client-1 3: client-2", "before client-1 10: drop-message client-2")
    told = "drop-message strikes message redisson_lock__channel:{account} 0 from redis-1"
    assert struck_in_story("pubsub", *lines) == [("client-2", told)]


def test_two_strikes_are_told_in_the_order_of_time() -> None:
    """Lines of a file that was written by hand may stand in any order."""
    lines = ("before client-2 2: drop-request client-2", "before client-1 2: lose-reply client-1")
    told = [(actor, text.split()[0]) for actor, text in struck_in_story("set-nx-px", *lines)]
    assert told == [("client-1", "lose-reply"), ("client-2", "drop-request")]


def test_a_found_schedule_names_the_struck_command_in_a_comment(tmp_path: Path) -> None:
    """The comment is not read: a file without it is the same schedule, as those of earlier versions."""
    request = SearchRequest(
        "redisson-1966", faults="lose-reply", clients=2, turns=2, schedules=2000, require="liveness"
    )
    plan = plan_search(request)
    found = search_json(plan)["found"]
    (line,) = [line for line in found["choices"] if "lose-reply" in line]
    assert re.fullmatch(r"before \S+ \d+: lose-reply client-\d\S*  # EVALSHA .* to redis-1", line), line
    plain = re.sub("  #.*", "", found["file"])
    assert line in found["file"].splitlines() and "#" not in plain
    with_comment, without = parse_schedule_file(found["file"], "found"), parse_schedule_file(plain, "found")
    assert with_comment == without
    digests = set()
    for text in (found["file"], plain):
        path = tmp_path / f"{len(text)}.schedule"
        path.write_text(text)
        events: list[Event] = []
        assert replay_schedule(read_schedule_file(path), str(path), events).exit == 1
        digests.add(str(events))
    assert len(digests) == 1
