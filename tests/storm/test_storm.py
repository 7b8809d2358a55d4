"""Storms: a schedule repeats its storm, and a storm finds what its faults cause."""

import dataclasses
import json
import math
import re
import signal
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import structs

from lockstorm.base.durations import duration_text
from lockstorm.base.errors import UsageError
from lockstorm.locks.lock_names import lock_named
from lockstorm.native.judgement import judge_history, read_history
from lockstorm.native.library import faults as fault_table
from lockstorm.native.library import locks as lock_table
from lockstorm.results.event import Event
from lockstorm.results.statistics import Rate
from lockstorm.results.storm_result import FaultCount, FirstViolation, StormResult, ViolationRate
from lockstorm.results.verdict import TrialResult
from lockstorm.storm.storm import StormSummary, run_storm, run_storms
from lockstorm.storm.storm_faults import BY_NAME, STORM_FAULTS, Rng, StormContext, delays, forbids
from lockstorm.storm.storm_plan import StormRequest, choose_faults, plan_storm, storm_context, storm_replay_command
from lockstorm.storm.storm_schedule import Schedule, StormEvent, draw_schedule, read_schedule
from lockstorm.trial.settings import TrialSettings
from lockstorm.trial.trial import Trial
from tests.helpers.daily import daily
from tests.helpers.planted_plugins import one_mistake
from tests.helpers.results import made_result
from tests.helpers.support import ENVIRONMENT, lockstorm, processes_below, short_directory, start_lockstorm
from tests.trial.test_leftovers import assert_clean, wait_until

LEASE_MS, LONGEST_MS = 1000, 2000


@cache
def context_of(lock: str = "pubsub", time: str = "virtual", clients: int = 4) -> StormContext:
    known = lock_named(lock)
    return storm_context(known, time, LEASE_MS, LONGEST_MS, clients, choose_faults("all", known, time))


@cache
def fitting(lock: str) -> tuple[str, ...]:
    return choose_faults("all", lock_named(lock), "virtual")


def draw(seed: int, lock: str = "pubsub", duration_ms: int = 60_000) -> Schedule:
    return draw_schedule(seed, fitting(lock), context_of(lock), duration_ms)


def request(lock: str, faults: str = "pause-client", **fields: Any) -> StormRequest:
    own = {key: fields.pop(key) for key in ("longest_ms", "trials", "schedule", "work_ms", "wait_ms") if key in fields}
    return StormRequest(TrialSettings(lock, "storm", **fields), faults, **own)


def storm(lock: str, faults: str = "pause-client", **fields: Any) -> TrialResult:
    return run_storm(plan_storm(request(lock, faults, **fields)))


def status_of(result: TrialResult) -> dict[str, str]:
    return {name: result.properties[name].status for name in ("mutual_exclusion", "integrity")}


SEEDS = range(1, 31)
WORK_MS = 20
SHORT_WORK = ("--work", f"{WORK_MS}ms")


@cache
def breaking_seed() -> int:
    """The first storm of pauses that breaks set-nx-px after one that does not: some of them last longer than its lease.
    The work is short: of two pauses in a long turn each may be shorter than the lease."""
    before: set[str] = set()
    for seed in SEEDS:
        statuses = {*status_of(storm("set-nx-px", seed=seed, work_ms=WORK_MS)).values()}
        if (before, statuses) == ({"holds"}, {"violated"}):
            return seed
        before = statuses
    raise AssertionError("no storm breaks both properties after one that breaks none")


def course_of(storm: dict[str, Any]) -> list[dict[str, Any]]:
    """Without the reasons: a proof may name a process."""
    return [{**each, "reason": ""} for each in storm["course"]]


# --- the schedule ---


def test_a_schedule_is_a_function_of_its_inputs() -> None:
    assert draw(7) == draw(7)
    assert len({json.dumps(draw(seed).as_json()) for seed in range(20)}) == 20
    assert draw(7).events != draw(7, "set-nx-px").events


def test_a_schedule_is_the_same_on_every_machine() -> None:
    """Written down once: what a seed means must not change with a library."""
    drawn = draw_schedule(7, ["pause-client"], context_of("set-nx-px", clients=3), 3000)
    assert [(event.at_ms, event.target, event.length_ms, event.passage) for event in drawn.events] == [
        (12, "client-2", 2, 3),
        (14, "client-1", 27, 0),
        (16, "client-3", 3, 0),
        (134, "client-2", 20, 1),
        (816, "client-1", 2, 0),
        (1310, "client-2", 129, 0),
        (1374, "client-1", 5, 4),
        (1385, "client-2", 10, 6),
        (1391, "client-2", 774, 3),
    ]


@pytest.mark.parametrize("lock", ["pubsub", "set-nx-px", "redlock", "replica-wait"])
def test_what_is_drawn_is_within_its_bounds(lock: str) -> None:
    known = {fault.name: fault for fault in fault_table()}
    over = context_of(lock)
    for seed in range(40):
        before_ms = 0
        for event in draw(seed, lock).events:
            assert 1 <= event.at_ms - before_ms <= LONGEST_MS and event.at_ms < 60_000
            assert event.target in BY_NAME[event.fault].targets(over)
            assert set(event.options) <= {option.name for option in known[event.fault].options}
            assert 1 <= event.length_ms <= LONGEST_MS if BY_NAME[event.fault].lasts else event.length_ms == 0
            before_ms = event.at_ms


def test_lengths_are_log_uniform() -> None:
    rng = Rng(1)
    drawn = [rng.log_uniform(1, LONGEST_MS) for _ in range(10_000)]
    for part in (0.25, 0.5, 0.75):
        below = sum(length < math.exp(part * math.log(LONGEST_MS)) for length in drawn) / len(drawn)
        assert abs(below - part) < 0.04
    assert min(drawn) == 1 and max(drawn) > 0.99 * LONGEST_MS


def test_however_short_a_storm_is_a_fault_falls_into_it() -> None:
    assert all(draw(seed, duration_ms=10).events for seed in range(200))


def test_every_fault_can_be_in_a_storm() -> None:
    assert [entry.name for entry in STORM_FAULTS] == sorted(BY_NAME)
    assert {fault.name for fault in fault_table() if fault.trial} <= set(BY_NAME)


def test_a_schedule_of_before_is_read_with_the_names_of_today(tmp_path: Path) -> None:
    """client-pause is a server's, and a client's clock has a fault of its own (docs/decisions/0139)."""
    old = [("client-pause", "redis-1"), ("clock-jump", "client-1"), ("clock-jump", "redis-1")]
    events = [{"at_ms": 1, "fault": fault, "target": target, "options": {}, "length_ms": 1} for fault, target in old]
    head = {"schedule": "lockstorm", "version": 1, "seed": 1, "clients": 2}
    head |= {"duration_ms": 1000, "lease_ms": 1000, "longest_ms": 1000}
    file = tmp_path / "old.json"
    file.write_text(json.dumps({**head, "faults": ["client-pause", "clock-jump"], "events": events}))
    read = read_schedule(file)
    assert [event.fault for event in read.events] == ["pause-commands", "client-clock-jump", "clock-jump"]
    assert read.faults == ("pause-commands", "clock-jump")


def test_all_means_what_fits() -> None:
    for lock in lock_table():
        for time in ("virtual", "real"):
            chosen = choose_faults("all", lock, time)
            assert "pause-client" in chosen and not any(lock.service in BY_NAME[name].explicit_on for name in chosen)
            assert ("drop-message" in chosen) == (lock.waits == "push" and lock.service == "redis")


# --- from a file ---


def test_a_schedule_from_a_file_is_the_one_that_was_saved(tmp_path: Path) -> None:
    for seed in range(5):
        path = tmp_path / str(seed)
        draw(seed).save(path)
        assert read_schedule(path) == draw(seed)


def test_a_storm_from_its_saved_schedule_is_the_same_storm(tmp_path: Path) -> None:
    words = ("storm", "--lock", "set-nx-px", "--json")
    first = lockstorm(*words, "--seed", "3", "--save-schedule", str(tmp_path / "s"), "-o", str(tmp_path / "first"),
                      "--duration", "3s")  # fmt: skip
    again = lockstorm(*words, "--schedule", str(tmp_path / "s"), "-o", str(tmp_path / "again"))
    assert first.returncode == again.returncode in (0, 1), first.stderr + again.stderr
    assert (tmp_path / "first").read_bytes() == (tmp_path / "again").read_bytes()
    said, said_again = json.loads(first.stdout), json.loads(again.stdout)
    assert course_of(said["storm"]) == course_of(said_again["storm"])
    assert said["storm"]["schedule"] == said_again["storm"]["schedule"]
    assert said["storm"]["schedule"] == json.loads((tmp_path / "s").read_text())


GOOD: dict[str, Any] = Schedule(
    1, 1000, LEASE_MS, LONGEST_MS, 2, ("pause-client",), (StormEvent(5, "pause-client", "client-1", {}, 7),)
).as_json()


def changed(event: dict[str, Any] | None = None, **head: Any) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(json.dumps({**GOOD, **head}))
    said["events"][0:1] = [{**said["events"][0], **event}] if event else said["events"][0:1]
    return said


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ([], "the schedule is not an object"),
        (changed(speed=3), 'the schedule has an unknown key "speed"'),
        (changed({"until_ms": 3}), 'event 1 has an unknown key "until_ms"; there are: at_ms, fault'),
        ({key: value for key, value in GOOD.items() if key != "lease_ms"}, 'the schedule has no "lease_ms"'),
        (changed(schedule="other"), 'no schedule of a storm'),
        (changed(version=2), "this lockstorm reads version 1"),
        (changed(clients=0), "clients is 0: a whole number from 1 to 128"),
        (changed(seed=True), "seed is True"),
        (changed(events=[]), '"events" is not a list of 1 to'),
        (changed(faults="all"), '"faults" is not a list'),
        (changed({"at_ms": 1000}), "event 1: at_ms is 1000: a whole number from 0 to 999"),
        (changed({"length_ms": 1.5}), "event 1: length_ms is 1.5"),
        (changed({"fault": "pause-clint"}), "did you mean pause-client?"),
        (changed({"target": "client-3"}), "event 1: pause-client cannot strike client-3; there are client-1, client-2"),
        (changed({"options": {"how": 1}}), 'event 1: pause-client has no option "how"; there are: none'),
        (changed({"options": {"how": []}}), '"options" is not an object of numbers and words'),
        (changed({"fault": "flush", "target": "redis-1", "passage": 1}), "flush cannot land at a checkpoint"),
        (changed({"fault": "drop-message"}), "the clients of set-nx-px wait for no message"),
        (changed({"fault": "failover-cluster", "target": "redis-1"}), "has no effect in virtual time"),
        (changed(events=[GOOD["events"][0], {**GOOD["events"][0], "at_ms": 4}]), "not in the order"),
    ],
)  # fmt: skip
def test_a_bad_schedule_is_named_with_its_fault(said: Any, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "schedule"
    path.write_text(json.dumps(said))
    with pytest.raises(UsageError, match=re.escape(complaint)) as error:
        plan_storm(request("set-nx-px", schedule=path))
    assert str(error.value).startswith(str(path))


def test_a_schedule_that_is_no_json(tmp_path: Path) -> None:
    (tmp_path / "s").write_text('{"schedule": ')
    for path, complaint in ((tmp_path / "s", "not JSON"), (tmp_path / "none", "No such file")):
        done = lockstorm("storm", "--lock", "none", "--schedule", str(path))
        assert done.returncode == 2 and complaint in done.stderr and "Traceback" not in done.stderr


# --- which faults cannot overlap ---


@pytest.mark.parametrize(
    ("active", "fault", "forbidden", "delayed"),
    [
        (("pause-client", "client-1"), ("pause-client", "client-1"), True, False),
        (("pause-client", "client-1"), ("pause-client", "client-2"), False, False),
        (("pause-client", "client-1"), ("suspend-host", "clients"), False, False),
        (("pause-client", "client-1"), ("kill-client", "client-1"), True, False),
        (("suspend-host", "clients"), ("kill-client", "client-1"), True, False),
        (("kill-client", "client-1"), ("suspend-host", "clients"), True, True),
        (("pause-server", "redis-1"), ("flush", "redis-1"), True, True),
        (("pause-server", "redis-1"), ("flush", "redis-2"), False, False),
        (("pause-server", "redis-1"), ("clock-jump", "redis-1"), True, True),
        (("clock-jump", "redis-1"), ("pause-server", "redis-1"), False, False),
        (("pause-server", "redis-1"), ("kill-client", "client-1"), False, True),
        (("partition", "client-1"), ("kill-client", "client-1"), False, True),
        (("partition", "client-1"), ("kill-client", "client-2"), False, False),
        (("partition", "client-1"), ("pause-server", "redis-1"), False, False),
        (("partition", "redis-1-replica-1>redis-1"), ("crash-server", "redis-1"), True, True),
        (("lose-reply", "client-1"), ("duplicate-request", "client-1"), False, False),
    ],
)
def test_faults_that_cannot_overlap_are_kept_apart(
    active: tuple[str, str], fault: tuple[str, str], forbidden: bool, delayed: bool
) -> None:
    pair = (BY_NAME[active[0]], active[1], BY_NAME[fault[0]], fault[1])
    assert (forbids(*pair), delays(*pair)) == (forbidden, delayed)


# --- the storm ---


@pytest.mark.parametrize(
    ("lock", "faults"),
    daily(
        [
            ("set-nx-px", "pause-client"),
            ("set-nx-px-renew", "all"),
            ("blpop", "all"),
            ("fair", "all"),
            ("redlock", "all"),
            ("replica-wait", "all"),
        ],
        [("set-nx-px", "pause-client"), ("blpop", "all"), ("redlock", "all"), ("replica-wait", "all")],
        "two storms with every fault over one more lock",
        5,
    ),
)
def test_the_same_seed_gives_the_same_history(lock: str, faults: str, tmp_path: Path) -> None:
    planned = plan_storm(request(lock, faults, seed=11, duration_ms=1500, clients=3))
    results = [run_storm(planned, save=tmp_path / name) for name in ("a", "b")]
    assert results[0].exit != 2 and results[0].records > 100, results[0].sentence
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert course_of(msgspec.to_builtins(results[0].storm)) == course_of(msgspec.to_builtins(results[1].storm))


@pytest.mark.slow("two whole storms", seconds=6)
def test_pauses_past_the_lease_break_a_lock_and_shorter_ones_do_not() -> None:
    past = storm("set-nx-px", seed=breaking_seed(), work_ms=WORK_MS)
    assert past.properties["mutual_exclusion"].status == "violated" == past.properties["integrity"].status
    for seed in (breaking_seed(), 1, 2):
        below = storm("set-nx-px", seed=seed, longest_ms=20, work_ms=WORK_MS)
        assert status_of(below) == {"mutual_exclusion": "holds", "integrity": "holds"}, below.sentence
        assert below.of_storm.faults[0].proved > 100


def test_a_fence_saves_what_the_lock_does_not() -> None:
    fenced = {"store": "fence-reads-and-writes"}
    results = (storm("set-nx-px-fenced", seed=seed, **fenced) for seed in SEEDS)
    result = next(each for each in results if each.exit == 1 and each.properties["integrity"].fenced)
    assert status_of(result) == {"mutual_exclusion": "violated", "integrity": "holds"}
    assert storm("set-nx-px-fenced", seed=result.seed, require="integrity", **fenced).exit == 0


def test_after_the_storm_each_client_is_served_once_more(tmp_path: Path) -> None:
    run_storm(plan_storm(request("set-nx-px", seed=4, duration_ms=2000)), save=tmp_path / "history")
    events = read_history(tmp_path / "history")
    phases = {event.name: event.index for event in events if event.kind == "phase"}
    assert [event.name for event in events if event.kind == "phase"] == ["quiet", "storm", "quiet"]
    later = [event for event in events if event.index > phases["quiet"]]
    assert not [event for event in later if event.kind.startswith("fault-")]
    for client in range(1, 5):
        mine = [event.kind for event in later if event.actor == f"client-{client}"]
        assert "acquire-return" in mine and mine[-1] == "release-return"


@pytest.mark.parametrize(
    ("lock", "faults", "seed"),
    [("setnx", "kill-client", 9), ("permit-semaphore", "flush", 1), ("pubsub-naive", "kill-client", 2)],
)
def test_clients_that_wait_for_a_lock_in_vain_are_named(lock: str, faults: str, seed: int) -> None:
    """The holder of a lock without a lease died; the permits are gone; the word that the lock is free was lost."""
    liveness = storm(lock, faults, seed=seed, duration_ms=4000).properties["liveness"]
    assert liveness.status == "violated" and liveness.sorts["stuck_waiter"] == 4
    assert re.search(r"client-\d.* asked for the lock at .* and was not answered in the", liveness.evidence[0].text)


def test_what_is_left_at_the_servers_is_named() -> None:
    def leave(trial: Trial) -> None:
        trial.server.link.set("account:waiters", 1)

    planned = plan_storm(request("set-nx-px-fenced", seed=4, duration_ms=1000))
    assert run_storm(planned).properties["liveness"].status == "holds"  # the key of its tokens always stays
    liveness = run_storm(planned, watch=leave).properties["liveness"]
    assert liveness.sorts["residue"] == 1
    assert "key account:waiters left behind" in liveness.evidence[0].text


def test_a_fault_can_land_at_a_checkpoint(tmp_path: Path) -> None:
    held = Schedule(1, 500, LEASE_MS, LONGEST_MS, 1, (), (StormEvent(5, "pause-client", "client-1", {}, 7, passage=3),))
    held.save(tmp_path / "s")
    planned = plan_storm(request("set-nx-get-del", schedule=tmp_path / "s"))
    result = run_storm(planned, save=tmp_path / "history")
    at = next(event for event in read_history(tmp_path / "history") if event.kind == "checkpoint")
    assert at.name == "before-release"  # 1: before-write, 2: after-write
    assert result.of_storm.course[0].state == "proved"


def test_a_fault_whose_checkpoint_never_comes_is_skipped(tmp_path: Path) -> None:
    never = StormEvent(5, "pause-client", "client-1", {}, 7, passage=1000)
    Schedule(1, 500, LEASE_MS, LONGEST_MS, 1, (), (never,)).save(tmp_path / "s")
    result = storm("set-nx-px", schedule=tmp_path / "s")
    assert result.of_storm.faults == [FaultCount("pause-client", meant=1, skipped=1)]
    assert "checkpoint" in result.of_storm.course[0].reason
    assert (result.exit, status_of(result)["mutual_exclusion"]) == (3, "inconclusive")


def test_one_fault_that_came_to_nothing_does_not_decide() -> None:
    """Messages are lost that no client waits for, so nothing is proved. With a pause, the storm can be judged."""
    nothing = storm("pubsub", "drop-message", clients=1, duration_ms=1500)
    assert nothing.exit == 3
    assert nothing.properties["mutual_exclusion"].reason == "none of the faults was seen to take effect"
    assert not any(course.state == "proved" for course in nothing.of_storm.course)
    both = storm("pubsub", "drop-message,pause-client", clients=2, duration_ms=1500)
    counts = {fault.name: fault for fault in both.of_storm.faults}
    assert both.exit == 0, both.sentence
    assert counts["drop-message"].injected > 0 and counts["drop-message"].proved == 0
    assert counts["pause-client"].proved == counts["pause-client"].injected > 0
    assert {fault.proved for fault in both.faults} == {True, False}  # the history says so, too


def test_a_violation_stays_one_though_no_fault_took_effect() -> None:
    assert storm("none", "delay-write", clients=3, duration_ms=100, seed=2, longest_ms=1).exit == 1


@pytest.mark.slow("one more storm", seconds=5)
def test_a_fault_that_cannot_begin_is_skipped_with_a_reason() -> None:
    """Far too many faults at once: one that cannot begin while another is active is skipped, and names the other."""
    result = storm("set-nx-px", "all", clients=2, duration_ms=2000, longest_ms=40)
    skipped = [course for course in result.of_storm.course if course.state == "skipped"]
    assert result.exit in (0, 1), result.sentence
    assert skipped and all(course.reason for course in skipped)
    assert {course.state for course in result.of_storm.course} <= {"proved", "not proved", "skipped"}


@pytest.mark.waits
def test_a_storm_in_real_time() -> None:
    result = storm("set-nx-px", "pause-client,lose-reply,partition", time="real", lease_ms=900, duration_ms=2000)
    assert result.exit in (0, 1), result.sentence
    assert sum(fault.proved for fault in result.of_storm.faults) > 0


def test_ctrl_c_half_way_leaves_nothing() -> None:
    words = ("storm", "--lock", "set-nx-px", "--duration", "1h", "--faults", "pause-client,partition", "--json")
    with short_directory() as directory:
        driver = start_lockstorm(*words, env={**ENVIRONMENT, "TMPDIR": str(directory)})
        wait_until(lambda: any(directory.glob("lockstorm-*/client-4.log")), 20, "four clients")
        wait_until(lambda: len(processes_below(directory)) >= 8, 20, "redis, store, proxy, reaper, four clients")
        pids = processes_below(directory)
        driver.send_signal(signal.SIGINT)
        out, err = driver.communicate(timeout=600)
        assert (driver.returncode, err.strip(), out) == (130, "lockstorm: interrupted", "")
        assert_clean(directory, pids)


# --- many ---


def test_many_storms_are_summed_up_and_the_first_violation_is_kept(tmp_path: Path) -> None:
    reported: list[str] = []
    path, schedule, first = tmp_path / "history", tmp_path / "schedule", breaking_seed()
    asked = request("set-nx-px", seed=first - 1, trials=3, work_ms=WORK_MS)
    result = run_storms(asked, reported.append, save=path, save_schedule=schedule)
    said = result.of_storm
    violation = said.first_violation
    assert isinstance(violation, FirstViolation)
    assert reported == [f"set-nx-px, seed {seed}" for seed in (first - 1, first, first + 1)]
    assert said.verdicts["violated"] + said.verdicts["holds"] == said.trials == 3
    assert first == violation.seed == said.shown_seed == read_schedule(schedule).seed
    assert f"--seed {first}" in violation.replay
    assert (result.exit, judge_history(path).exit) == (1, 1)
    rate = Rate(said.verdicts["violated"], 3)
    assert result.sentence == f"{rate.hits} of 3 storms violated: {rate.in_words}"
    assert said.rate == ViolationRate(rate.low, rate.high)
    assert said.properties["mutual_exclusion"]["violated"] >= 1 and "fencing" not in said.properties


def test_what_a_clean_sum_is_worth() -> None:
    storm = StormResult(duration_ms=1, trials=1, clients=1, faults=[], schedule={})
    clean = made_result({}, exit=0, required=[], storm=storm)
    unclear = structs.replace(clean, exit=3)
    summary = StormSummary(request("fair", trials=31))
    for result in [clean] * 30 + [unclear]:
        summary.add(result)
    assert summary.sentence == "0 violations in 30 storms: under 9.5 % at 95 %, 1 inconclusive"


def test_the_command_that_repeats_a_storm() -> None:
    asked = request("set-nx-px", "all", lease_ms=500, duration_ms=1500, longest_ms=20, clients=3, time="real")
    assert storm_replay_command(asked, 9) == (
        "lockstorm storm --lock set-nx-px --faults all --seed 9 --time real --lease 500ms --clients 3 "
        "--duration 1500ms --longest 20ms"
    )


# --- the command ---


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--faults", "pause-clint"), "there is no fault called 'pause-clint': did you mean pause-client?"),
        (("--faults", "drop-message"), "drop-message has no effect: the clients of set-nx-px wait for no message"),
        (("--faults", "failover-sentinel"), "failover-sentinel has no effect in virtual time"),
        (("--time", "real", "--faults", "failover-sentinel,failover-cluster"), "cannot be in one storm"),
        (("--duration", "9ms"), "--duration 9ms: from 10ms to 1h"),
        (("--duration", "1h", "--clients", "96"), "make it shorter"),
        (("--longest", "0ms"), "--longest 0ms: from 1ms"),
        (("--trials", "0"), "--trials 0: from 1"),
        (("--clients", "129"), "--clients 129: from 1 to 128"),
        (("--seed", "1", "--schedule", "s"), "--seed is for a storm that is drawn: s sets it already"),
        (("-o", "/nowhere/h"), "-o /nowhere/h: its directory does not exist"),
        (("--save-schedule", "Makefile"), "--save-schedule Makefile: exists already"),
    ],
)
def test_what_does_not_fit_together_is_an_error(words: tuple[str, ...], complaint: str) -> None:
    done = lockstorm("storm", "--lock", "set-nx-px", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert complaint in done.stderr and "Traceback" not in done.stderr


def test_a_storm_is_shown_in_short() -> None:
    words = ("storm", "--lock", "set-nx-px", "--faults", "pause-client", "--seed", str(breaking_seed()), *SHORT_WORK)
    done = lockstorm(*words)
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) < 120
    assert any("pause-client" in line and "proved" in line for line in lines)
    assert any("still believe" in line for line in lines), "the neighbourhood of the violation"
    assert lines[-1] == f"again: ./lockstorm {' '.join(words)}"
    assert len(lockstorm(*words, "-q").stdout.splitlines()) < 25


def test_several_storms_are_shown_in_short() -> None:
    words = (
        "storm",
        "--lock",
        "set-nx-px",
        "--faults",
        "pause-client",
        "--seed",
        str(breaking_seed() - 1),
        *SHORT_WORK,
    )
    done = lockstorm(*words, "--trials", "2")
    assert done.returncode == 1, done.stderr
    assert "1 of 2 storms violated" in done.stdout and "again: ./lockstorm storm" in done.stdout


# --- how long a free lock may stay unclaimed ---


@pytest.mark.parametrize(
    ("lock", "faults", "bound_ms", "promised_ms"),
    [
        ("set-nx-px", "pause-client", 3_600, 1_600),
        ("pubsub", "drop-message", 2_100, 100),
        ("blpop", "kill-client", 3_100, 100),
        ("pubsub", "clock-jump", 4_100, 100),  # a lease may have begun by a clock that was two leases ahead
        ("fair", "clock-drift,kill-client", 4_100, 100),
    ],
)
def test_the_bound_is_what_the_lock_promises_and_what_the_faults_may_add(
    lock: str, faults: str, bound_ms: int, promised_ms: int
) -> None:
    plan = plan_storm(request(lock, faults))
    assert (plan.bound_ms, plan.promised_ms) == (bound_ms, promised_ms)


def test_a_bound_that_is_given_counts_from_the_beginning() -> None:
    plan = plan_storm(StormRequest(TrialSettings("pubsub", "storm"), "pause-client", bound_ms=9_000))
    assert (plan.bound_ms, plan.promised_ms) == (9_000, 9_000)


def test_in_real_time_the_machine_may_be_busy() -> None:
    plan = plan_storm(request("pubsub", "pause-client", time="real"))
    assert plan.bound_ms == plan.promised_ms > 5_000


@pytest.mark.parametrize(("mistakes", "status"), [((), "holds"), (("SILENT",), "violated"), (("KEEPS",), "violated")])
def test_a_release_that_nobody_notices_is_seen_before_the_first_fault(
    tmp_path: Path, mistakes: tuple[str, ...], status: str
) -> None:
    """The waiters of such a lock sleep for a lease: less than a storm's faults may add."""
    lock = "plugin:" + one_mistake(tmp_path, "push", *mistakes)
    result = storm(lock, "pause-client", duration_ms=500)
    assert result.properties["liveness"].status == status, result.sentence


@pytest.mark.parametrize(
    ("lock", "mistakes", "status"),
    [
        ("queue", (), "holds"),
        ("queue", ("STAYS",), "violated"),
        ("push", (), "holds"),
        ("push", ("LISTENS",), "violated"),
    ],
)
def test_what_a_refused_acquire_leaves_is_seen(
    tmp_path: Path, lock: str, mistakes: tuple[str, ...], status: str
) -> None:
    """No client of a storm gives up before its end."""
    result = storm("plugin:" + one_mistake(tmp_path, lock, *mistakes), "pause-client", duration_ms=500)
    assert result.properties["liveness"].status == status, result.sentence


def test_the_usual_work_ends_before_a_lease_of_a_millisecond(tmp_path: Path) -> None:
    """A lease that ends during the work says nothing about the lock."""
    plan = plan_storm(dataclasses.replace(request("set-nx-px", "script-flush", duration_ms=500, lease_ms=1)))
    assert plan.work_ms == 0
    assert run_storm(plan).properties["mutual_exclusion"].status == "holds"


@pytest.mark.parametrize("work_ms", [0, 1, 900])
def test_work_lasts_as_long_as_it_is_told_to(work_ms: int, tmp_path: Path) -> None:
    """Between a client's read and its write lies the work: with none they are at the same time."""
    wanted = dataclasses.replace(request("set-nx-px-renew", "pause-client", duration_ms=3000), work_ms=work_ms)
    plan = plan_storm(wanted)
    assert f"--work {duration_text(work_ms)}" in plan.replay
    assert run_storm(plan, save=tmp_path / "history").records
    read_ns: dict[str, int] = {}
    took_ms = []
    for event in read_history(tmp_path / "history"):
        if event.kind == "read-return":
            read_ns[event.who] = event.mono_ns
        elif event.kind == "write-invoke" and event.who in read_ns:
            took_ms.append((event.mono_ns - read_ns.pop(event.who)) // 1_000_000)
    assert took_ms and min(took_ms) == work_ms


# --- what clients do is drawn from the seed ---


def events_of(lock: str, path: Path, **fields: Any) -> list[Event]:
    """The history of a storm whose only fault is a pause of a millisecond."""
    planned = plan_storm(request(lock, longest_ms=1, duration_ms=10_000, seed=3, **fields))
    dataclasses.replace(planned.schedule, events=planned.schedule.events[:1]).save(path.with_suffix(".json"))
    run_storm(plan_storm(request(lock, schedule=path.with_suffix(".json"))), save=path)
    events = read_history(path)
    _, began, ended = (event.index for event in events if event.kind == "phase")  # quiet, storm, quiet
    return [event for event in events if began < event.index < ended]


def works_ms(events: list[Event]) -> list[float]:
    """Of each turn, from its read to its write."""
    read_ns: dict[str, int] = {}
    took = []
    for event in events:
        if event.kind == "read-return":
            read_ns[event.who] = event.mono_ns
        elif event.kind == "write-invoke" and event.who in read_ns:
            took.append((event.mono_ns - read_ns.pop(event.who)) / 1e6)
    return took


def patience_of(events: list[Event]) -> dict[str, set[int]]:
    asked: dict[str, set[int]] = {}
    for event in events:
        if event.kind == "acquire-invoke":
            asked.setdefault(event.who, set()).add(event.value)
    return asked


def kinds(events: list[Event]) -> Counter[str]:
    return Counter(event.kind for event in events)


def test_clients_work_as_long_as_the_seed_draws(tmp_path: Path) -> None:
    """Up to 0.9 of a lease; where the lock renews it, up to 2.5. A pause of a millisecond may make it longer."""
    works = works_ms(events_of("set-nx-px", tmp_path / "plain"))
    assert min(works) < 2 and sum(2 <= each < 50 for each in works) > 3 and 500 < max(works) < 950
    renewed = works_ms(events_of("set-nx-px-renew", tmp_path / "renewed", clients=2))
    assert 1000 < max(renewed) < 2600


def test_clients_are_as_patient_as_the_seed_draws(tmp_path: Path) -> None:
    asked = patience_of(events_of("set-nx-px", tmp_path / "plain", clients=16))
    assert {len(each) for each in asked.values()} == {1}, "each client keeps its patience"
    values = [value for each in asked.values() for value in each]
    assert -1 in values and len({*values}) > 3 and max(values) <= 3000


def test_clients_renew_and_enter_again_where_the_lock_offers_it(tmp_path: Path) -> None:
    plain, pubsub = events_of("set-nx-px", tmp_path / "a"), events_of("pubsub", tmp_path / "b", clients=2)
    assert kinds(plain)["renew-return"] > 0 and lock_named("set-nx-px").renewable
    assert kinds(pubsub)["acquire-return"] > kinds(pubsub)["read-invoke"] > 0 and lock_named("pubsub").reentrant
    granted = [event for event in plain if event.kind == "acquire-return" and event.outcome == "ok"]
    assert abs(len(granted) - kinds(plain)["read-invoke"]) <= 4, "set-nx-px is not entered again"


@pytest.mark.slow("three whole storms", seconds=4)
def test_what_the_user_sets_is_not_drawn(tmp_path: Path) -> None:
    fixed = request("set-nx-px", longest_ms=1, duration_ms=3000, clients=6, work_ms=30, wait_ms=400)
    plan = plan_storm(fixed)
    assert plan.replay.endswith("--work 30ms --wait 400ms")
    run_storm(plan, save=tmp_path / "history")
    events = read_history(tmp_path / "history")
    storm_began = next(event.index for event in events if event.kind == "phase" and event.name == "storm")
    events = [event for event in events if event.index > storm_began]
    assert {round(each) for each in works_ms(events)} <= {30, 31, 32, 33}
    asked = {value for each in patience_of(events).values() for value in each}
    assert 400 in asked and asked <= {400, 0, 50, -1}  # the last ones are those of the end, when one is refused
