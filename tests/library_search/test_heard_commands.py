"""What `replay --commands` tells of a library's schedule: each command, its answer and what became of it."""

import json
from pathlib import Path

import pytest

from lockstorm.results.verdict import HeardCommand
from lockstorm.search.replay import replay_library
from lockstorm.search.schedule_file import parse_library_schedule
from tests.helpers.support import lockstorm

SCHEDULE = """lockstorm-library-schedule 1
adapter {adapter}
library it
lease_ms 2000
permits 1
seed 1
number 0
breaks mutual_exclusion
workload
{calls}schedule
{deviations}"""
ACQUIRE = "client-{} thread-1: acquire lock-1 resource-1 exclusive wait={} lease={} form={}\n"
RELEASE = "client-{} thread-1: release lock-1 resource-1 exclusive\n"


# The first two commands of a connection load scripts; the third one asks for the lock.
def schedule(*deviations: str, adapter: str = "lock:set-nx-px", calls: str = "", clients: int = 2) -> str:
    usual = "".join(
        ACQUIRE.format(each, "none", "given:2000", "acquire") + RELEASE.format(each) for each in range(1, clients + 1)
    )
    lines = "".join(f"{line}\n" for line in deviations)
    return SCHEDULE.format(adapter=adapter, calls=calls or usual, deviations=lines)


def heard(text: str) -> list[HeardCommand]:
    return replay_library(parse_library_schedule(text, "it"), "it", with_commands=True).commands or []


def named(commands: list[HeardCommand], word: str) -> list[HeardCommand]:
    return [each for each in commands if each.words[0].upper().startswith(word)]


def test_each_command_has_its_answer() -> None:
    commands = heard(schedule(clients=1))
    (taken,) = named(commands, "SET")
    assert taken.words[1] == "account" and taken.words[3:] == ["NX", "PX", "2000"]
    assert (taken.client, taken.node, taken.fate, taken.answer) == (1, 1, "answered", "OK")
    *_, given_back = named(commands, "EVAL")
    assert (given_back.fate, given_back.answer) == ("answered", "1") and taken.words[2] in given_back.words


def test_a_refusal_is_nil_and_comes_from_the_second_client() -> None:
    commands = heard(schedule("before call client-1 thread-1 2: call client-2 thread-1"))
    assert [(each.client, each.answer) for each in named(commands, "SET")] == [(1, "OK"), (2, "nil")]


@pytest.mark.parametrize(
    ("deviation", "fate", "answer"),
    [
        ("drop-request client-1 link-1", "lost", None),
        ("lose-reply client-1 link-1", "answer-lost", "OK"),
        ("error-reply client-1 link-1", "refused", "error: LOADING the dataset is being loaded into memory"),
    ],
)
def test_what_a_fault_does_to_a_command(deviation: str, fate: str, answer: str | None) -> None:
    first, *_ = named(heard(schedule(f"before request client-1 link-1 3: {deviation}", clients=1)), "SET")
    assert (first.fate, first.answer) == (fate, answer)


def test_an_answer_that_is_late_has_its_own_time() -> None:
    first, *_ = named(heard(schedule("before answer client-1 link-1 3: hold-reply client-1 link-1 300")), "SET")
    assert (first.fate, first.answer) == ("answered", "OK")
    assert first.answered_ns is not None and first.answered_ns - first.mono_ns == 300_000_000


def test_commands_of_another_language() -> None:
    """redis-py speaks RESP3, in which a refusal is another kind of nothing."""
    calls = "".join(ACQUIRE.format(each, "none", "given:2000", "acquire(blocking=False)") for each in (1, 2))
    commands = heard(schedule(adapter="redis-py", calls=calls))
    assert [(each.client, each.fate, each.answer) for each in named(commands, "SET")] == [
        (1, "answered", "OK"),
        (2, "answered", "nil"),
    ]


def test_the_command_prints_them_after_the_story_and_gives_them_as_json(tmp_path: Path) -> None:
    path = tmp_path / "found.schedule"
    path.write_text(schedule("before request client-1 link-1 3: lose-reply client-1 link-1"))
    told = lockstorm("replay", "--commands", str(path)).stdout
    assert "the answer is lost on its way back" in told and "SET account" in told and "every promise was kept" in told
    commands = json.loads(lockstorm("replay", "--commands", "--json", str(path)).stdout)["commands"]
    assert next(each["fate"] for each in commands if each["words"][0] == "SET") == "answer-lost"
    assert json.loads(lockstorm("replay", "--json", str(path)).stdout)["commands"] is None


def test_what_cannot_be_shown_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "found.schedule"
    path.write_text(schedule(adapter="etcd3"))
    refused = lockstorm("replay", "--commands", str(path))
    assert refused.returncode == 2 and "is a schedule on etcd" in refused.stderr
    path.write_text(schedule())
    both = lockstorm("replay", "--commands", "--as", "python", str(path))
    assert both.returncode == 2 and "leave one of them out" in both.stderr


def test_the_page_has_them(tmp_path: Path) -> None:
    path, page = tmp_path / "found.schedule", tmp_path / "found.html"
    path.write_text(schedule())
    assert lockstorm("report", str(path), "-o", str(page)).returncode == 0
    text = page.read_text()
    assert "What the servers heard and answered" in text and "SET account" in text
