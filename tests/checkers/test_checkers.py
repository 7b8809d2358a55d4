"""The checkers against histories written by hand, and against the definitions in Python.

A history of tests/histories is a file: its first line says what it shows and what the verdict must be, the rest is JSON
Lines. One of tests/timelines is a line of a file named after its property (tests/helpers/timeline.py). Random small
histories (tests/helpers/random_histories.py) must get the same verdict from the checkers and from the definitions
(tests/helpers/checker_oracle.py), under every policy.

    LOCKSTORM_ORACLE_HISTORIES=20000   how many random histories (`make oracle`: 200,000)
    LOCKSTORM_ORACLE_FIRST=1234        the first one's seed (a failure names the seed)
"""

import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, replace
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import pytest

from lockstorm.base import paths
from lockstorm.results.properties import SORTS
from tests.helpers import checker_oracle as oracle
from tests.helpers.building import make
from tests.helpers.changed_histories import NamedHistory, smallest
from tests.helpers.checker_oracle import PROPERTIES, READINGS, History, Json, OracleRecord, Reading
from tests.helpers.comparing import differences
from tests.helpers.judging import KINDS, judge
from tests.helpers.random_histories import ManyWriters, RandomHistory
from tests.helpers.recorded_text import ExpectedText
from tests.helpers.timeline import Timeline, TimelineCase, cases

HISTORIES = sorted((paths.ROOT / "tests" / "histories").glob("*.jsonl"))
TIMELINES = cases(paths.ROOT / "tests" / "timelines")
ORACLE_HISTORIES = int(os.environ.get("LOCKSTORM_ORACLE_HISTORIES", "1600"))
ORACLE_FIRST = int(os.environ.get("LOCKSTORM_ORACLE_FIRST", "0"))
BATCHES = 8
BY_FILE = ("mutual_exclusion", "integrity", "fencing")  # that the files of tests/histories say something about


def check(path: Path, *words: str) -> tuple[int, Json]:
    done = subprocess.run([paths.program("check"), *words, str(path)], capture_output=True, text=True, timeout=600)
    assert done.stdout, (path, done.returncode, done.stderr)
    said: Json = json.loads(done.stdout)
    assert said["exit"] == done.returncode
    assert done.stderr == ""
    return done.returncode, said


# --- written by hand ---


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
def test_a_history_written_by_hand(path: Path, tmp_path: Path) -> None:
    first, *rest = path.read_text().splitlines(keepends=True)
    about = json.loads(first)
    assert set(about) == {"about", "expect"}, f"the first line of {path.name}"
    expected = about["expect"]
    assert {*BY_FILE, "exit"} <= set(expected), f"the first line of {path.name}"
    history = tmp_path / path.name
    history.write_text("".join(rest))
    status, said = check(history, "--all-policies")

    for name in BY_FILE:
        assert said["verdict"][name]["status"] == expected.pop(name), (name, about["about"], said)
    assert status == expected.pop("exit"), (about["about"], said)
    for key, value in expected.items():
        assert found(said, key) == value, (key, about["about"], said)

    records = whole([record_of(line) for line in through_binary(history, tmp_path)])
    assert list(differences(said, records)) == []


def record_of(line: Json) -> OracleRecord:
    known = {each.name for each in fields(OracleRecord)}
    return OracleRecord(**{key: value for key, value in line.items() if key in known})


def whole(records: History) -> History:
    """With the slots of a text, which have no line of their own."""
    by_index = {each.index: each for each in records}
    last = records[-1].index if records else -1
    return [by_index.get(index, OracleRecord(index, "text-more")) for index in range(last + 1)]


def found(said: Json, key: str) -> Any:
    """A count by the name that a first line gives it: "overlaps", "stale_writes", "fenced", "torn", …"""
    verdict = said["verdict"]
    named = {
        "overlaps": verdict["mutual_exclusion"]["count"],
        "stale_writes": verdict["integrity"]["sorts"]["stale_write"],
        "lost_updates": verdict["integrity"]["sorts"]["lost_update"],
        "fenced": verdict["integrity"].get("fenced", 0),
        "token_faults": verdict["fencing"]["count"],
    }
    return named[key] if key in named else said[key]


def through_binary(history: Path, tmp_path: Path) -> list[Json]:
    """The lines of a history with every index written out."""
    if not history.stat().st_size:
        return []
    tool, binary = paths.program("history"), tmp_path / "binary"
    subprocess.run([tool, "from-json", str(history), str(binary)], check=True, timeout=600)
    done = subprocess.run([tool, "to-json", str(binary)], check=True, capture_output=True, text=True, timeout=600)
    return [json.loads(line) for line in done.stdout.splitlines()[1:]]


@pytest.mark.parametrize("name", sorted({case.property for case in TIMELINES}))
def test_a_timeline_written_by_hand(name: str) -> None:
    for case in TIMELINES:
        if case.property == name:
            wrong = list(timeline_faults(case))
            assert not wrong, f"{case.place}: {case.about}: {case.timeline}: {wrong}"


def timeline_faults(case: TimelineCase) -> Iterator[str]:
    timeline = Timeline(case.timeline)
    said = judge(timeline.names, timeline.records)
    yield from differences(said, timeline.records)
    yield from ExpectedText.of(timeline.names, timeline.records).differences(said)
    for under in said["policies"]:
        policy = under["policy"]["release"], under["policy"]["acquire_timeout"]
        status, count = case.verdicts.get(policy, (None, None))
        verdict = under["verdict"][case.property]
        if status not in (None, verdict["status"]) or count not in (None, verdict["count"]):
            yield f"{policy}: {verdict} instead of {status} {count}"


@pytest.mark.parametrize("name", sorted({case.property for case in TIMELINES}))
def test_a_timeline_without_numbers(name: str) -> None:
    """Histories need not number their operations: invocations and answers must be matched all the same."""
    for case in TIMELINES:
        if case.property == name:
            timeline = Timeline(case.timeline)
            records = [replace(each, op=0) for each in timeline.records]
            said, expected = judge(timeline.names, records), ExpectedText.of(timeline.names, records)
            wrong = [*differences(said, records), *expected.differences(said)]
            assert not wrong, f"{case.place}: {case.about}: {case.timeline}: {wrong}"


def test_each_property_is_shown_good_and_bad() -> None:
    expected = [json.loads(path.read_text().splitlines()[0])["expect"] for path in HISTORIES]
    assert len(HISTORIES) + len(TIMELINES) >= 400
    for name in BY_FILE:
        for status in ("holds", "violated", "inconclusive"):
            assert sum(each[name] == status for each in expected) >= 8, (name, status)
    statuses = Counter((case.property, case.verdicts["released", "not-happened"][0]) for case in TIMELINES)
    for name in set(PROPERTIES) - {"cost"}:
        good, bad = statuses[name, "holds"], statuses[name, "violated"]
        assert min(good, bad) >= 14 and abs(good - bad) <= 7, (name, good, bad)
        assert statuses[name, "inconclusive"] >= 3, name


# --- what decides, and how it is read ---


@pytest.fixture
def fenced(tmp_path: Path) -> Path:
    """Mutual exclusion is violated, and the fence prevents the damage."""
    source = paths.ROOT / "tests" / "histories" / "fenced-stale-write.jsonl"
    history = tmp_path / "history.jsonl"
    history.write_text(source.read_text().split("\n", 1)[1])
    return history


def test_requiring_one_property_leaves_the_others_out(fenced: Path) -> None:
    """The exit status follows what was asked for."""
    assert check(fenced)[0] == 1
    assert check(fenced, "--require", "integrity,fencing")[0] == 0
    assert check(fenced, "--require", "mutual-exclusion")[0] == 1
    assert check(fenced, "--require=mutual_exclusion,integrity")[0] == 1
    assert check(fenced, "--require", "integrity")[1]["required"] == ["integrity"]
    assert check(fenced, "--require", "integrity,liveness")[0] == 3


def history_of(words: str, path: Path) -> Path:
    timeline = Timeline(words)
    lines: list[Json] = [{"history": "lockstorm", "version": 1}, {"kind": "note"}]
    lines += [{"kind": "text", "text": name} for name in timeline.names]
    lines += [record.line() for record in timeline.records]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_a_policy_is_named_and_decides(tmp_path: Path) -> None:
    history = history_of("A+ A-~ B+ B-", tmp_path / "history.jsonl")
    for policy, status in (("released", 0), ("not-happened", 1), ("unknown", 3)):
        exit_status, said = check(history, "--release-policy", policy, "--require", "mutual_exclusion")
        assert exit_status == status
        assert said["policy"] == {"release": policy, "acquire_timeout": "not-happened"}
        assert "policies" not in said
    assert said["failed_releases"] == 1
    assert "depends on whether" in said["verdict"]["mutual_exclusion"]["reason"]
    history = history_of("{lease=30} quiet @8 B? C+~ @45 B! B-", tmp_path / "other.jsonl")
    for policy, status in (("not-happened", 1), ("unknown", 3)):
        exit_status, said = check(history, f"--acquire-timeout={policy}", "--require", "liveness")
        assert exit_status == status
        assert (said["policy"]["acquire_timeout"], said["unknown_acquires"]) == (policy, 1)


def test_all_policies_are_reported_beside_the_one_that_decides(tmp_path: Path) -> None:
    history = history_of("A+ A-~ B+ B-", tmp_path / "history.jsonl")
    said = check(history, "--all-policies", "--require", "mutual_exclusion")[1]
    assert said["exit"] == 0
    found = {
        (each["policy"]["release"], each["policy"]["acquire_timeout"]): (
            each["verdict"]["mutual_exclusion"]["status"],
            each["exit"],
        )
        for each in said["policies"]
    }
    answers = {"released": ("holds", 0), "not-happened": ("violated", 1), "unknown": ("inconclusive", 3)}
    assert found == {(release, acquire): answers[release] for release, acquire in found} and len(found) == 6


# --- what the judge tells the checkers ---

ABOUT_LOCKS = ("lock-open", "acquire", "renew", "release", "validity")


@pytest.mark.parametrize("reading", [(), ("not-happened",)])
def test_what_a_checker_is_told_of_a_record_is_of_that_record(reading: tuple[str, ...], tmp_path: Path) -> None:
    """Nothing is left of the record before: neither its lock nor its client, nor that it failed."""
    timeline = "{lease=30} quiet A+ Ar Aw~ A-~ A/9x hurt=A hurt+A B.cash+ Bw A* keys=2 bound=3 Bwt3 B.cash= B- C? quiet"
    path, binary = history_of(timeline, tmp_path / "history.jsonl"), tmp_path / "binary"
    subprocess.run([paths.program("history"), "from-json", str(path), str(binary)], check=True, timeout=600)
    program = make("build/tests/judged_events") / "tests" / "judged_events"
    done = subprocess.run([program, str(binary), *reading], check=True, capture_output=True, text=True, timeout=600)
    told = {int(line.split()[0]): [int(each) for each in line.split()[1:]] for line in done.stdout.splitlines()}
    records = Timeline(timeline).records
    number = {"": 0} | {name: 1 + 2 * place for place, name in enumerate(Timeline.names)}
    for record in records:
        if record.kind in ("fault-inject", "fault-prove", "parameter"):
            assert record.index not in told  # these are the judge's own
            continue
        kind, lock, actor, of_lock, of_actor, asked, failed = told[record.index]
        assert kind == KINDS[record.kind]
        stored = oracle.is_access(record)
        about, returned = record.kind.startswith(ABOUT_LOCKS), record.kind.endswith("-return")
        name = record.name if about else oracle.lock_of(records, record) if stored else None
        assert lock == number[name or ""], record
        assert actor == number[record.name if stored or record.kind == "actor-exit" else record.actor], record
        assert (of_lock, of_actor) == ((lock, actor) if name is not None else (0, 0)), record
        before = oracle.invocation(records, record) if returned else None
        assert asked == (before.index if before else 0), record
        unknown = record.kind.startswith("release") and record.actor == "A"
        assert bool(failed) == (unknown and bool(reading)), record


# --- random histories ---


@pytest.mark.parametrize("batch", range(BATCHES))
def test_checkers_say_what_the_definitions_say(batch: int) -> None:
    for seed in range(ORACLE_FIRST + batch, ORACLE_FIRST + ORACLE_HISTORIES, BATCHES):
        generated = RandomHistory(seed)
        history = NamedHistory(generated.names, generated.records)
        if different(history):
            small = smallest(history, lambda each: bool(different(each)))
            text = "\n".join(str(each.line()) for each in small.records)
            pytest.fail(f"LOCKSTORM_ORACLE_FIRST={seed} LOCKSTORM_ORACLE_HISTORIES=1: {different(small)}\n{text}")


def different(history: NamedHistory) -> list[str]:
    """Where the checkers and the definitions differ."""
    said, expected = history.judged(), ExpectedText.of(history.names, history.records)
    return [*differences(said, history.records), *expected.differences(said)]


def test_checkers_say_what_the_definitions_say_of_many_writers() -> None:
    lost = Counter[int]()
    for seed in range(60):
        generated = ManyWriters(seed)
        said = judge(generated.names, generated.records)
        wrong = "; ".join(differences(said, generated.records))
        assert not wrong, f"seed {seed}: {wrong}"
        lost[min(3, said["verdict"]["integrity"]["sorts"]["lost_update"])] += 1
    assert min(lost[each] for each in range(4)) >= 2, lost


def test_two_readings_of_failed_releases_are_enough() -> None:
    """What holds, or is violated, under the policy `unknown` is so whichever of the failed releases happened."""
    tried = 0
    for seed in (*range(900), 3818, 4938):
        history = RandomHistory(seed).records
        releases = [each for each in history if each.kind == "release-invoke"]
        failed = [each.index for each in releases if oracle.has_failed(history, Reading(True), each)]
        if not 2 <= len(failed) <= 4 or oracle.broken(history):
            continue
        tried += 1
        some = [each for size in range(1, len(failed)) for each in combinations(failed, size)]
        results = {reading: oracle.verdicts(history, reading) for reading in READINGS}
        both = oracle.under(results, "unknown", "not-happened", oracle.is_partly_read(history))
        for only in some:
            for name, (status, _) in oracle.verdicts(history, Reading(True, only=frozenset(only))).items():
                assert both[name][0] in (status, "inconclusive"), (seed, name, only)
    assert tried >= 60


def test_random_histories_reach_every_verdict() -> None:
    """A generator that never makes a history violated, or never one that holds, would prove nothing."""
    reached: Counter[tuple[str, str]] = Counter()
    unfit = 0
    for seed in range(600):
        history = RandomHistory(seed).records
        unfit += oracle.broken(history)
        for name, (status, violations) in oracle.verdicts(history, READINGS[0]).items():
            reached[name, status] += 1
            reached.update({(name, sort) for sort, _ in violations if sort})
    assert unfit >= 10
    wanted = {(name, status) for name in PROPERTIES for status in oracle_statuses(name)}
    assert {each for each in wanted if reached[each] < 4} == set()
    # Only stores that misjudge tokens refuse wrongfully: test_judgements.py has one.
    sorts = set(chain(*SORTS.values())) - {"wrongful_refusal"}
    assert {each for each in sorts if not any(sort == each for _, sort in reached)} == set()


def oracle_statuses(name: str) -> tuple[str, ...]:
    return ("inconclusive",) if name == "cost" else ("holds", "violated", "inconclusive")


def test_a_story_reads_the_same_as_a_file(tmp_path: Path) -> None:
    """The tests judge in memory what a user judges as a file."""
    for seed in range(5):
        generated = RandomHistory(seed)
        path = tmp_path / "generated.jsonl"
        path.write_text(generated.text())
        assert check(path, "--all-policies")[1] == judge(generated.names, generated.records)
