"""The bug zoo: entries, results, the command, the track record."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from rich.console import Console

from lockstorm.base.errors import UsageError
from lockstorm.native.library import zoo_locks
from lockstorm.scenario.play import play
from lockstorm.search.search_plan import SearchRequest
from lockstorm.zoo import zoo_pages
from lockstorm.zoo.zoo import (
    ExploredBug,
    Hunt,
    ScriptedBug,
    TriedBug,
    ZooResult,
    faults_in,
    run_zoo,
    trial_count,
    unavailable_reason,
    zoo_entry,
    zoo_exit_status,
    zoo_numbers,
)
from lockstorm.zoo.zoo_entries import Bug, bugs, read_zoo
from lockstorm.zoo.zoo_pages import RecordedBug, read_record, record_key, recorded_zoo, show_zoo, updated_record
from tests.helpers.daily import daily
from tests.helpers.support import ENVIRONMENT, lockstorm

NOWHERE = {**{key: value for key, value in ENVIRONMENT.items() if key != "CI"}, "LOCKSTORM_ETCD": "/nowhere"}
HUNTED = ("redis-py-818", "redisson-5761", "redbeat-163")  # a fault each, or none
ENTRY = """
[[bug]]
name = "mine"
reference = "issue 1"
what = "It was lost."
lock = "setnx-expire"
fixed = "set-nx-px"
property = "liveness"
scenario = "crash-before-expire"
tuned = "nobody knows"
[bug.request]
seed = 2
[bug.explore]
faults = "kill-client"
"""


def quiet(_what: str) -> None:
    """Ignores progress."""


def read(directory: Path, text: str) -> dict[str, Bug]:
    (directory / "some.toml").write_text(text)
    return read_zoo(directory)


# --- entries ---


def test_an_entry_is_read(tmp_path: Path) -> None:
    bug = read(tmp_path, ENTRY)["mine"]
    request = bug.request_for(bug.fixed)
    assert (request.scenario, request.lock, request.seed, request.time) == (
        "crash-before-expire",
        "set-nx-px",
        2,
        "virtual",
    )
    assert request.require == bug.search_for(bug.lock).require == "liveness"
    assert bug.search_for(bug.lock, seconds=3).seconds == 3


def test_the_explorer_may_judge_another_property(tmp_path: Path) -> None:
    text = ENTRY.replace('"liveness"', '"ownership"') + 'require = "mutual_exclusion"\n'
    bug = read(tmp_path, text)["mine"]
    assert (bug.request_for(bug.lock).require, bug.search_for(bug.lock).require) == ("ownership", "mutual_exclusion")


def test_without_options_the_search_is_the_one_that_comes(tmp_path: Path) -> None:
    bug = read(tmp_path, ENTRY.replace('faults = "kill-client"\n', "").replace('tuned = "nobody knows"\n', ""))["mine"]
    assert bug.search_for(bug.lock, seconds=3) == SearchRequest(bug.lock, seconds=3)


def test_most_bugs_are_hunted_without_options_and_the_others_say_why() -> None:
    hunted = [bug for bug in bugs().values() if bug.explore is not None]
    assert sum(not bug.explore for bug in hunted) > len(hunted) / 2
    assert all(bool(bug.tuned) == bool(bug.explore) for bug in hunted)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('name = "mine"\n', "", "entry 1: name: it is missing"),
        ('reference = "issue 1"\n', "", "mine: reference: it is missing"),
        ('"It was lost."', '" "', "mine: what: ' ' is not a text"),
        ('"It was lost."', "5", "mine: what: 5 is not a text"),
        ("what =", "wat =", "mine: wat: there is no key called 'wat': did you mean what?"),
        ('"setnx-expire"', '"setnx-expir"', "mine: lock: there is no lock called 'setnx-expir': did you mean"),
        ('fixed = "set-nx-px"', 'fixed = "sett"', "mine: fixed: there is no lock called 'sett'"),
        ('fixed = "set-nx-px"', 'fixed = "setnx-expire"', "mine: fixed: it is the lock with the bug"),
        ('"liveness"', '"livenes"', "mine: property: there is no property called 'livenes': did you mean liveness?"),
        ('"liveness"', '"cost"', "mine: property: there is no property called 'cost'"),
        ('"liveness"', '"fairness"', "mine: explore: --require fairness is for locks that promise an order"),
        ("crash-before-expire", "crash-before", "mine: scenario: there is no scenario called 'crash-before'"),
        ("crash-before-expire", "waiter-expired", "mine: scenario: waiter-expired does not apply to setnx-expire"),
        ("seed = 2", "sed = 2", "mine: request.sed: there is no key called 'sed': did you mean seed?"),
        ("seed = 2", 'seed = "2"', "mine: request.seed: '2' is not of type int"),
        ("seed = 2", "seed = true", "mine: request.seed: True is not of type int"),
        ("seed = 2", "seed = -1", "mine: scenario: --seed -1: from 0"),
        ("seed = 2", "fixed_lease = 1", "mine: request.fixed_lease: 1 is not of type bool"),
        ("seed = 2", 'store = "fence-writes"', "mine: scenario: setnx-expire gives no fencing token"),
        ("seed = 2", 'scenario = "gc-pause"', "mine: request.scenario: there is no key called 'scenario'"),
        ("[bug.request]\nseed = 2", "request = 3", "mine: request: 3 is not a table: write [bug.request]"),
        (
            'faults = "kill-client"',
            'faults = "crush"',
            "mine: explore: there is no fault called 'crush': did you mean kill-client?",
        ),
        ('tuned = "nobody knows"\n', "", "mine: tuned: say why the search needs options, and only if there are any"),
        ('faults = "kill-client"', "", "mine: tuned: say why the search needs options, and only if there are any"),
        ('faults = "kill-client"', "schedules = 5", "mine: explore.schedules: there is no key called 'schedules'"),
        ('[bug.explore]\nfaults = "kill-client"', "", "mine: explore: give either this table, or unexplored"),
        ('"liveness"', '"liveness"\nunexplored = "why"', "mine: explore: give either this table, or unexplored"),
        ('scenario = "crash-before-expire"\n', "", "mine: request: it belongs to a scenario, which is missing"),
        ("[[bug]]", "[[bag]]", "bag: every entry has to begin with [[bug]]"),
        ("[[bug]]", "[bug]", "bug: every entry has to begin with [[bug]]"),
        ("[[bug]]", "[[bug]", "Expected ']]' at the end of an array declaration"),
    ],
)
def test_a_wrong_entry_is_named_with_its_file_and_key(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert ENTRY.count(old), "the test changes nothing"
    with pytest.raises(UsageError, match=re.escape(f"{tmp_path / 'some.toml'}: {said}")):
        read(tmp_path, ENTRY.replace(old, new))


def test_what_only_explores_needs_something_to_explore(tmp_path: Path) -> None:
    text = ENTRY.split("scenario =")[0]
    assert read(tmp_path, text + "[bug.explore]\n")["mine"].scenario is None
    with pytest.raises(UsageError, match="scenario: there is neither a scenario nor anything for the explorer"):
        read(tmp_path, text + 'unexplored = "why"\n')


def test_two_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text(ENTRY)
    with pytest.raises(UsageError, match=r"some.toml: mine: name: another entry has this name"):
        read(tmp_path, ENTRY)


def test_no_entries_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there are no entries"):
        read_zoo(tmp_path)


def test_entries_of_zoo_locks_name_the_pattern_that_the_lock_names() -> None:
    fixed = {lock.name: lock.fixed for lock in zoo_locks()}
    for bug in bugs().values():
        assert bug.fixed == fixed.get(bug.lock, bug.fixed), bug.name


# --- every entry ---


@pytest.mark.parametrize("name", [name for name, bug in bugs().items() if bug.scenario])
def test_its_scenario_shows_the_bug_and_accuses_nobody_else(name: str) -> None:
    bug = bugs()[name]
    if reason := unavailable_reason(bug):
        pytest.skip(f"not installed: {reason}")
    for lock, status in ((bug.lock, "violated"), (bug.fixed, "holds")):
        played = play(bug.request_for(lock))
        assert played.properties[bug.property].status == status, (lock, played.sentence)


@pytest.mark.parametrize("name", daily(HUNTED, HUNTED[:2], "one more bug that the explorer finds", 9))
def test_the_explorer_finds_it_alone(name: str) -> None:
    hunted = run_zoo([replace(bugs()[name], scenario=None)], Hunt(), quiet).entries[0].explored
    recorded = read_record()[name].explored
    assert hunted and recorded
    assert (hunted.bug, hunted.fixed) == ("violated", "holds"), hunted.sentence
    assert hunted.schedules == recorded.schedules  # the same on every machine
    assert hunted.fixed_schedules == max(300, hunted.schedules)


# --- what it comes to ---


SAID: dict[str, Any] = dict.fromkeys(("sentence", "fixed_sentence", "replay", "fixed_replay"), "said")


def scripted_as(bug: str, fixed: str) -> ScriptedBug:
    return ScriptedBug(bug=bug, fixed=fixed, **SAID)


def explored_as(bug: str, fixed: str, schedules: int = 7, fixed_schedules: int = 300) -> ExploredBug:
    return ExploredBug(
        bug=bug,
        fixed=fixed,
        schedules=schedules,
        fixed_schedules=fixed_schedules,
        violates=["liveness"],
        faults=["kill-client"],
        **SAID,
    )


def result_of(*entries: TriedBug, ok: bool = True) -> ZooResult:
    return ZooResult(entries=[*entries], numbers=zoo_numbers(entries), seconds=None, interrupted=False, ok=ok)


@pytest.mark.parametrize(
    ("scripted", "explored", "word", "code"),
    [
        (("violated", "holds"), ("violated", "holds"), "caught", 0),
        (("violated", "holds"), ("holds", "holds"), "caught", 0),
        (("violated", "holds"), None, "caught", 0),
        (None, ("violated", "holds"), "caught", 0),
        (("holds", "holds"), ("violated", "holds"), "untriggered", 1),
        (("holds", "holds"), ("holds", "holds"), "missed", 1),
        (("holds", "holds"), None, "missed", 1),
        (None, ("holds", "holds"), "missed", 1),
        (("violated", "violated"), ("violated", "holds"), "accused", 1),
        (("violated", "holds"), ("violated", "violated"), "accused", 1),
        (("inconclusive", "violated"), None, "accused", 1),
        (("inconclusive", "holds"), ("violated", "holds"), "inconclusive", 3),
        (("violated", "inconclusive"), None, "inconclusive", 3),
        (("violated", "holds"), ("violated", "inconclusive"), "caught", 0),  # nothing put the fixed one to the test
        (None, ("violated", "inconclusive"), "inconclusive", 3),
        (None, ("inconclusive", "holds"), "inconclusive", 3),
        (None, None, "not played", 3),
    ],
)
def test_a_result_in_a_word(
    scripted: tuple[str, str] | None, explored: tuple[str, str] | None, word: str, code: int
) -> None:
    bug = replace(bugs()["redis-py-818"], scenario="crash-before-expire" if scripted else None)
    entry = zoo_entry(bug, scripted and scripted_as(*scripted), explored and explored_as(*explored))
    assert entry.result == word
    assert entry.accused == ("violated" in [each[1] for each in (scripted, explored) if each])
    assert zoo_exit_status(result_of(entry)) == code
    console = Console(width=160)
    with console.capture() as shown:
        show_zoo(console, result_of(entry, ok=not code))
    assert word in shown.get()


def test_one_that_was_missed_outweighs_what_is_not_known() -> None:
    entry = zoo_entry(bugs()["redis-py-818"], None, None)
    words = ("caught", "inconclusive", "missed", "not installed")
    caught, unclear, missed, absent = (structs.replace(entry, result=word) for word in words)
    assert zoo_exit_status(result_of(caught, unclear, missed, absent)) == 1
    assert zoo_exit_status(result_of(caught, unclear)) == 3
    assert zoo_exit_status(result_of(caught, absent)) == 0


def test_the_numbers() -> None:
    bug = bugs()["redis-py-818"]
    good = scripted_as("violated", "holds")
    shown = [
        (good, explored_as("violated", "holds", 5)),
        (good, explored_as("violated", "holds", 30)),
        (good, explored_as("holds", "violated", 1000, 1000)),
        (scripted_as("holds", "holds"), None),
        (None, None),
    ]
    tuned = replace(bug, explore={"faults": "kill-client"}, tuned="why")
    each_bug = [bug, tuned, bug, bug, bug]
    numbers = zoo_numbers([zoo_entry(one, *pair) for one, pair in zip(each_bug, shown, strict=True)])
    assert structs.asdict(numbers) == {
        "played": 4,
        "caught": 3,
        "hunted": 3,
        "found": 2,
        "found_as_it_comes": 1,
        "median_schedules": 17.5,
        "fixed_schedules": 1600,
        "false_alarms": 1,
    }


def test_faults_are_read_from_a_schedule() -> None:
    lines = [
        "before client-1 1: client-2",
        "before client-2 7: hold-request client-2 1500",
        "before clock 1: kill-client client-1",
    ]
    assert faults_in(lines) == ["hold-request", "kill-client"]
    assert faults_in(lines[:1]) == []


def test_a_lock_without_the_bug_is_a_missed_bug_and_one_with_it_is_accused() -> None:
    """An entry with its two locks swapped has to be reported."""
    known = bugs()["redis-py-818"]
    wrong = replace(known, lock=known.fixed, fixed=known.lock)
    told: list[str] = []
    hunt = Hunt(schedules=40)
    result = run_zoo([wrong], hunt, told.append)
    (entry,) = result.entries
    assert entry.scripted and entry.explored
    assert (entry.result, entry.caught, entry.accused) == ("accused", False, True)
    assert (entry.scripted.bug, entry.scripted.fixed) == ("holds", "violated")
    assert (entry.explored.bug, entry.explored.fixed) == ("holds", "violated")
    assert entry.explored.schedules == 40
    assert not result.ok and zoo_exit_status(result) == 1
    assert len(told) == trial_count([wrong], hunt) == 4


def test_interrupted_it_says_what_is_known() -> None:
    def interrupt(_what: str) -> None:
        raise KeyboardInterrupt

    result = run_zoo([bugs()["redis-py-818"]], None, interrupt)
    assert result.interrupted and not result.ok
    assert result.entries[0].result == "not played"


# --- the command ---


def test_the_command_prints_the_table_and_the_numbers() -> None:
    done = lockstorm("zoo", "--no-explore", "--bug", "redis-py-818,redisson-5761")
    assert done.returncode == 0, done.stderr
    assert re.search(r"redis-py-818 .* liveness +caught +crash-before-expire", done.stdout)
    assert "caught 2 of 2 bugs (100 %)" in done.stdout
    assert "0 false alarms" in done.stdout


def test_the_command_prints_one_object() -> None:
    done = lockstorm("zoo", "--bug", "redis-py-818", "--time-limit", "30s", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    entry = result["entries"][0]
    assert (entry["name"], entry["reference"]) == ("redis-py-818", bugs()["redis-py-818"].reference)
    assert (entry["caught"], entry["accused"], result["ok"]) == (True, False, True)
    assert (entry["as_it_comes"], entry["explored"]["violates"]) == (True, ["liveness"])
    assert 0 < len(entry["explored"]["faults"]) <= 3
    again = lockstorm(*entry["explored"]["replay"].split()[1:], "--json")
    assert json.loads(again.stdout)["found"]["choices"] == entry["explored"]["choices"]


def test_the_command_prints_a_github_table() -> None:
    done = lockstorm("zoo", "--no-explore", "--bug", "redis-py-818", "--markdown")
    assert done.returncode == 0, done.stderr
    heads, line = done.stdout.splitlines()[0], done.stdout.splitlines()[2]
    assert heads.count("|") == line.count("|") and line.startswith("| `setnx-expire`: redis-py issue 818")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--bug", "redis-py-81"], "there is no bug called 'redis-py-81': did you mean redis-py-818?"),
        (["--json", "--markdown"], "--json or --markdown, not both"),
        (["--record", "--no-explore"], "--record keeps what the explorer found"),
        (["--time-limit", "0s"], "--time-limit 0ms: from 1s to 1h"),
    ],
)
def test_bad_usage(words: list[str], said: str) -> None:
    done = lockstorm("zoo", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_what_is_not_installed_is_said() -> None:
    done = lockstorm("zoo", "--no-explore", "--bug", "etcd-11456", env=NOWHERE)
    assert done.returncode == 3  # nothing was played
    assert "waiter-expired: not installed" in " ".join(done.stdout.split())
    assert "1 not installed (etcd is not installed: /nowhere is not a program)" in done.stdout
    for more, code in (({}, 0), ({"CI": "true"}, 3)):
        words = ("--no-explore", "--bug", "etcd-11456,redis-py-818", "--json")
        done = lockstorm("zoo", *words, env={**NOWHERE, **more})
        result = json.loads(done.stdout)
        assert [entry["result"] for entry in result["entries"]] == ["not installed", "caught"]
        assert (done.returncode, result["ok"]) == (code, True)


# --- the track record ---


def test_the_pages_are_as_make_zoo_writes_them() -> None:
    for page, text in zoo_pages.zoo_pages().items():
        assert page.read_text() == text, f"{page.name} is stale: run make zoo"


def test_every_entry_is_recorded_as_it_is_now() -> None:
    known = read_record()
    assert set(known) == set(bugs()), "run lockstorm zoo --record"
    for name, bug in bugs().items():
        assert known[name].key == record_key(bug), (
            f"{name} is not what was recorded: lockstorm zoo --record --bug {name}"
        )
    assert {entry.result for entry in recorded_zoo().entries} == {"caught"}


def test_only_what_was_caught_is_recorded(tmp_path: Path) -> None:
    caught, missed = (bugs()[name] for name in ("redis-py-818", "redisson-5761"))
    both = [scripted_as("violated", "holds"), explored_as("violated", "holds")]
    neither = [scripted_as("holds", "holds"), explored_as("holds", "holds")]
    result = result_of(zoo_entry(caught, *both), zoo_entry(missed, *neither))  # type: ignore[arg-type]
    path = tmp_path / "record.json"
    nothing: dict[str, Any] = {"key": {}, "scripted": None, "explored": None}
    path.write_text(json.dumps({"entries": {"missed before": nothing, missed.name: nothing}}))
    record = updated_record(result, path)
    assert list(record) == [caught.name, missed.name]  # the one that is no entry any more is gone
    assert record[caught.name].key == record_key(caught)
    assert record[caught.name].explored == both[1]
    assert record[missed.name] == RecordedBug({}, None, None)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"entries": 5}'])
def test_a_record_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "record.json"
    path.write_text(text)
    with pytest.raises(UsageError, match="it is no record of a zoo"):
        read_record(path)


def test_more_schedules_for_the_lock_without_the_bug() -> None:
    words = ("zoo", "--bug", "redis-py-818")
    told = json.loads(lockstorm(*words, "--fixed-schedules", "700", "--json").stdout)
    assert told["entries"][0]["explored"]["fixed_schedules"] == told["numbers"]["fixed_schedules"] == 700
    refused = lockstorm(*words, "--fixed-schedules", "700", "--record")
    assert refused.returncode == 2
    assert "--record keeps the results of --fixed-schedules 300 only" in refused.stderr


def test_every_lock_with_a_bug_has_its_entry() -> None:
    fixed = {lock.name: lock.fixed for lock in zoo_locks()}
    assert {bug.lock: bug.fixed for bug in bugs().values() if bug.lock in fixed} == fixed
