"""The explorer: the same seed gives the same histories, a violation stays one when its schedule is shrunk, and a
schedule survives being written to a file."""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from msgspec import structs

from lockstorm.base import paths
from lockstorm.base.atomic_file import write_json
from lockstorm.base.errors import UsageError
from lockstorm.cli.search_table import progress_line
from lockstorm.native.fault_names import fault_names
from lockstorm.native.judgement import read_history
from lockstorm.native.library import locks, locks_on
from lockstorm.results.event import Event
from lockstorm.results.verdict import Verdict
from lockstorm.search.campaign import Campaign, read_campaign
from lockstorm.search.explore import merged, resumed, search_schedules, search_words
from lockstorm.search.explorer import DIGEST_BYTES, Explorer, SearchProgress, count_states, explorer_for
from lockstorm.search.replay import replay_schedule
from lockstorm.search.replay_real import replay_real
from lockstorm.search.schedule_file import ScheduleFile, parse_schedule_file, read_schedule_file
from lockstorm.search.search_lines import PropertyCount, SearchTally
from lockstorm.search.search_plan import OF_REPLICAS, SearchPlan, SearchRequest, fault_budget, plan_search
from lockstorm.search.search_result import FOUND
from tests.helpers.daily import daily
from tests.helpers.searching import search_json
from tests.helpers.support import lockstorm, processes_below, short_directory

FAULTS = fault_names("simulation")
OF_MAJORITIES = ("server-down", "server-silent")  # a minority: the locks below have one server
EVERY_FAULT = ",".join(fault for fault in FAULTS if fault not in OF_MAJORITIES)
ONE_SERVER_FAULTS = ",".join(fault for fault in FAULTS if fault not in OF_REPLICAS)  # a node without a replica


def search(lock: str, faults: str = "pause-client", **requests: Any) -> dict[str, Any]:
    result = search_json(plan_search(SearchRequest(lock, faults=faults, **{"workers": 1, **requests})))
    assert result["verdict"], result["sentence"]
    return result


@cache
def paused() -> dict[str, Any]:
    """A search in which pauses break the usual lock."""
    return search("set-nx-px", schedules=2000)


def found_in(result: dict[str, Any]) -> ScheduleFile:
    assert result["found"], result["sentence"]
    return parse_schedule_file(result["found"]["file"], "found")


# --- determinism ---

# Polling, a watchdog, BLPOP, messages, several servers.
DETERMINED = ["set-nx-px", "set-nx-px-renew", "blpop-renew", "pubsub", "fair", "replica-wait", "redlock-renew"]


@pytest.mark.parametrize(
    "lock",
    daily(
        DETERMINED,
        ["set-nx-px", "blpop-renew", "pubsub"],
        "searches three times over one more lock",
        3,
    ),
)
@pytest.mark.lengthy("searches three times with all faults")
def test_the_same_seed_gives_the_same_histories(lock: str) -> None:
    """All faults at once, in one process and in two: no schedule may depend on earlier ones of its process."""
    faults = EVERY_FAULT if lock in ("set-nx-px", "replica-wait") else ONE_SERVER_FAULTS
    requests: dict[str, Any] = {"faults": faults, "schedules": 60, "seed": 11, "keep_going": True}
    one, two = search(lock, workers=1, **requests), search(lock, workers=2, **requests)
    assert one["schedules"] == two["schedules"] == 60
    assert one["history_sha256"] == two["history_sha256"]
    assert one["steps"] == two["steps"]
    for key in ("injected", "checkpoints", "states", "groups"):
        assert one[key] == two[key]
    assert search(lock, **requests | {"seed": 12})["history_sha256"] != one["history_sha256"]


def digests_of(explorer: Explorer, plan: SearchPlan, first: int, stride: int) -> dict[int, bytes]:
    words, most = search_words(plan), plan.schedules
    digests = explorer.search(words, most, lambda _: None, first=first, stride=stride).digests
    pieces = [digests[at : at + DIGEST_BYTES] for at in range(0, len(digests), DIGEST_BYTES)]
    return dict(zip(range(first, most, stride), pieces, strict=True))


def test_a_history_does_not_depend_on_the_schedules_before_it() -> None:
    """A pause leaves a client in the middle of its five nodes, and a restart that is aimed at a client strikes the node
    that it talks to."""
    faults = "crash-server,pause-client"
    plan = plan_search(SearchRequest("redlock-renew", faults=faults, schedules=160, workers=1, seed=2, keep_going=True))
    with explorer_for(plan.context, 1) as explorer:
        whole = digests_of(explorer, plan, 0, 1)
        assert len({*whole.values()}) > 100
        for first in range(5):
            assert digests_of(explorer, plan, first, 5).items() <= whole.items()


def test_a_history_does_not_depend_on_the_program_before_it() -> None:
    """After its failover a client loads its scripts into the replica, where the next program on these servers finds
    none."""
    request = SearchRequest("permit-semaphore", faults=EVERY_FAULT, seed=3, schedules=5, workers=1, keep_going=True)
    plan = plan_search(request)
    with explorer_for(plan.context, 1) as explorer:
        assert len({digests_of(explorer, plan, 4, 1)[4] for _ in range(2)}) == 1


def test_the_same_seed_beside_a_busy_processor() -> None:
    requests: dict[str, Any] = {"faults": ONE_SERVER_FAULTS, "schedules": 60, "seed": 5, "keep_going": True}
    quiet = search("blpop", **requests)
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        assert search("blpop", **requests)["history_sha256"] == quiet["history_sha256"]
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def test_a_schedule_gives_the_same_history_byte_for_byte(tmp_path: Path) -> None:
    found = found_in(paused())
    for name in ("one", "two"):
        replay_schedule(found, "found", save=tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert len(read_history(tmp_path / "one")) > 20


# --- with real processes ---


def changed(line: str, **said: Any) -> ScheduleFile:
    """The schedule by which a pause breaks the usual lock, with another deviation."""
    return replace(found_in(paused()), lines=(line,), line_numbers=(17,), **said)


@pytest.mark.waits
def test_a_pause_in_real_time() -> None:
    """The same course of events in real time."""
    events: list[Event] = []
    result = replay_real(changed("before client-1 4: pause-client client-1 3000"), "found", events)
    assert result.struck_at == "before-read"
    assert result.properties["mutual_exclusion"].status == "violated"
    assert (result.exit, result.time) == (1, "real")
    (paused_at,) = [event.mono_ns for event in events if event.kind == "fault-inject"]
    (healed_at,) = [event.mono_ns for event in events if event.kind == "fault-heal"]
    assert healed_at - paused_at > 1_000_000_000  # a lease
    saved = replay_real(changed("before client-1 4: pause-client client-1 200", lease_ms=10_000), "found")
    assert saved.properties["mutual_exclusion"].status == "holds"  # well within the lease, however busy the machine


def test_a_crash_in_real_time() -> None:
    """A waiter acquires the lock after the lease of the killed client."""
    result = replay_real(changed("before client-1 4: kill-client client-1"), "found")
    assert result.properties["mutual_exclusion"].status == "holds"
    assert result.exit == 0


@pytest.mark.parametrize(
    "found,said",
    [
        ({"line": "before client-1 4: lose-reply client-1"}, "found: line 17: --real: with real processes client 1"),
        ({"line": "before client-2 4: pause-client client-2 3000"}, "can be paused or killed in its only turn"),
        ({"line": "before client-1 4: pause-client client-1 3000", "turns": 2}, "in its only turn"),
        ({"line": "before client-1 1: kill-client client-1"}, "before it has passed any checkpoint"),
        ({"line": "before client-1 400: kill-client client-1"}, "found: line 17: this never comes up"),
    ],
)
def test_what_real_processes_cannot_be_made_to_do(found: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        replay_real(changed(**found), "found")


def test_the_command_says_why_not() -> None:
    done = lockstorm("replay", "--real", str(FOUND / "redlock-clock-jump.schedule"))
    assert done.returncode == 2
    assert "it has 2 deviations, and real processes can make only one" in done.stderr


# --- what it finds ---


def test_a_pause_breaks_a_lease() -> None:
    """The classic failure of a lease: one pause, and no other deviation."""
    result = paused()
    assert result["exit"] == 1
    assert result["verdict"]["mutual_exclusion"]["status"] == "violated"
    found = found_in(result)
    assert found.clients == 2
    assert len(found.lines) == 1
    assert "pause-client client-" in found.lines[0]
    events: list[Event] = []
    again = replay_schedule(found, "found", events)
    assert again.properties["mutual_exclusion"].status == "violated"
    assert again.sentence == result["found"]["sentence"]
    assert [event.kind for event in events].count("fault-inject") == 1
    assert {event.actor for event in events if event.kind == "store-write"} == {"store"}
    texts = [event.text for event in events if event.kind == "text"]
    assert len(texts) == len({*texts})  # or nobody could be named by them


def test_without_faults_the_usual_lock_holds() -> None:
    result = search("set-nx-px", "none", schedules=400)
    assert result["exit"] == 0
    assert result["verdict"]["mutual_exclusion"]["schedules"] == {
        "holds": 400,
        "violated": 0,
        "inconclusive": 0,
        "broken": 0,
    }
    assert sum(result["injected"].values()) == 0
    assert result["sentence"].startswith(f"0 violations in 400 schedules, {result['distinct']} of them distinct: ")
    assert "under 0.75 % at 95 %; one in " in result["sentence"]
    assert "; not tried: client-clock-jump, clock-jump, crash-server" in result["sentence"]
    assert 300 < result["distinct"] < 400  # that few were tried twice is the point of saying it
    uniform = search("set-nx-px", "none", schedules=20, strategy="uniform")
    assert "PCT" not in uniform["sentence"]


def test_no_lock_is_no_lock() -> None:
    result = search("none", "none", schedules=50)
    assert result["exit"] == 1
    assert len(found_in(result).lines) <= 1  # one step out of turn is enough


def test_a_token_saves_the_resource_but_not_the_lock() -> None:
    requests: dict[str, Any] = {"store": "fence-reads-and-writes", "schedules": 1500}
    resource = search("set-nx-px-fenced", require="integrity,fencing", **requests)
    assert resource["exit"] == 0
    assert resource["verdict"]["mutual_exclusion"]["status"] == "violated"
    assert search("set-nx-px-fenced", **requests)["exit"] == 1
    open_store = search("set-nx-px-fenced", require="integrity", schedules=1500)
    assert open_store["exit"] == 1  # it is the store that does it


@pytest.mark.parametrize(
    "lock,fault,broken",
    [
        ("set-nx-px", "clock-jump", "mutual_exclusion"),
        ("set-nx-px", "hold-request", "integrity"),  # a write that comes late
        ("setnx", "hold-request", "integrity"),
        ("set-nx-px", "hold-reply", "mutual_exclusion"),  # it believes in a lease that was over when it heard of it
        ("set-nx-blind-del", "pause-client", "mutual_exclusion"),
        ("blpop", "pause-client", "mutual_exclusion"),
        ("pubsub", "pause-client", "mutual_exclusion"),
        ("redlock-naive", "pause-client", "mutual_exclusion"),
        ("pubsub-naive", "none", "liveness"),  # a release between its check and its subscription
        ("set-nx-px", "failover", "mutual_exclusion"),  # its key had not arrived
        ("setnx", "crash-server-empty", "mutual_exclusion"),  # it is gone
        ("semaphore", "duplicate-request", "integrity"),  # a write that comes twice
    ],
)
def test_it_finds_what_is_known(lock: str, fault: str, broken: str) -> None:
    result = search(lock, fault, schedules=4000, require=broken)
    assert result["exit"] == 1, result["sentence"]
    found = found_in(result)
    assert broken in found.violates
    assert 1 <= len(found.lines) <= 15
    assert fault == "none" or fault in "".join(found.lines)


def test_work_that_is_longer_than_the_lease() -> None:
    """A lock that renews its lease is kept until a renewal fails; one that does not is lost."""
    requests: dict[str, Any] = {"clients": 2, "work_ms": 2500, "require": "mutual_exclusion"}
    assert found_in(search("set-nx-px", "none", schedules=200, **requests)).work_ms == 2500
    assert search("set-nx-px-renew", "none", schedules=200, **requests)["exit"] == 0
    broken = search("blpop-renew", "drop-request", schedules=2000, **requests)
    assert broken["exit"] == 1
    assert " --work 2500ms " in broken["replay"]


def test_who_is_refused_an_extension_does_not_write() -> None:
    """A pause after the extension still makes a write late; one before it does not."""
    requests: dict[str, Any] = {"clients": 2, "extends": True, "require": "integrity"}
    found = found_in(search("redlock", "pause-client", schedules=2000, **requests))
    assert "\nextends 1\n" in found.text
    assert parse_schedule_file(found.text, "found") == replace(
        found, line_numbers=tuple(range(18, 18 + len(found.lines)))
    )
    with pytest.raises(UsageError, match="setnx is not one"):
        search("setnx", "pause-client", schedules=1, extends=True)
    with pytest.raises(UsageError, match="line 9: setnx cannot be extended by its holder"):
        parse_schedule_file(
            found.text.replace("lock redlock", "lock setnx").replace("replicas 0", "replicas 0"), "found"
        )


def test_a_wait_that_the_lock_itself_ends() -> None:
    result = search("pubsub", "kill-client", clients=2, schedules=200, wait_ms=-1, require="mutual_exclusion")
    assert result["exit"] == 0
    assert " --wait forever " in result["replay"]
    with pytest.raises(UsageError, match="would not end"):
        search("pubsub", "none", schedules=1, wait_ms=-1, require="liveness")


@pytest.mark.slow("one search more", seconds=5)
def test_a_pause_before_a_write_is_sent_makes_it_late() -> None:
    """If the pause lets the write arrive, a validity or a version protects the resource; real pauses may not."""
    requests: dict[str, Any] = {"require": "integrity", "schedules": 2000}
    assert search("setnx", "pause-client-before-send", **requests)["exit"] == 0  # nobody enters meanwhile
    found = found_in(search("set-nx-px", "pause-client-before-send", store="compare-and-set", **requests))
    assert any("pause-client-before-send client-" in line for line in found.lines)
    assert replay_schedule(found, "found").properties["integrity"].status == "violated"
    assert search("set-nx-px", "pause-client", store="compare-and-set", **requests)["exit"] == 0


def test_what_was_not_sent_does_not_arrive_after_a_crash() -> None:
    """A command that has left does arrive."""

    def arrives(fault: str) -> Verdict:
        lines = (f"before client-1 2: {fault} client-1 10", "before client-2 2: kill-client client-1")
        late = (*lines, "before late-1 1: clock-jump redis-1 500")
        return replay_schedule(replace(found_in(paused()), lines=late, line_numbers=(17, 18, 19)), "found")

    assert len(arrives("hold-request").faults) == 3
    with pytest.raises(UsageError, match="line 19: this never comes up"):
        arrives("pause-client-before-send")


def test_a_reply_that_is_held_comes_late() -> None:
    """A client that reckons from before it has sent knows of it; and so does one that renews."""
    for lock in ("redlock", "set-nx-px-renew"):
        result = search(lock, "hold-reply", schedules=300, require="mutual_exclusion")
        assert (result["exit"], result["injected"]["hold-reply"] > 100) == (0, True)


@pytest.mark.slow("one search more", seconds=4)
def test_a_check_by_the_wall_clock_is_only_as_good_as_that_clock() -> None:
    """A wall clock that is set back during a pause hides the pause; the monotonic clock is never set."""
    faults = "pause-client,client-clock-jump"
    found = found_in(search("redlock-wall", faults, schedules=4000, require="mutual_exclusion"))
    assert "mutual_exclusion" in found.violates
    assert any(re.search(r"client-clock-jump client-\d+ -\d+$", line) for line in found.lines)
    replayed = replay_schedule(found, "found")
    assert replayed.properties["mutual_exclusion"].status == "violated"
    result = search("redlock", faults, schedules=400, require="mutual_exclusion")
    assert result["exit"] == 0
    assert result["injected"]["client-clock-jump"] > 100


@pytest.mark.slow("one more search", seconds=3)
def test_one_acknowledgement_of_two_replicas_is_not_enough() -> None:
    """redisson#5256: the one that did not acknowledge is promoted."""
    found = found_in(search("replica-wait", "failover", replicas=2, schedules=4000, seed=2))
    assert "mutual_exclusion" in found.violates
    (promoted,) = [line.partition("failover ")[2] for line in found.lines if "failover" in line]
    arrived_first = "\n".join(line for line in found.lines if ": stream-1" in line)
    assert promoted == "redis-1-replica-2" or "stream-1-replica-2" in arrived_first  # not the usual one to acknowledge
    assert replay_schedule(found, "found").properties["mutual_exclusion"].status == "violated"


@pytest.mark.parametrize(
    "lock,fault",
    daily(
        [
            ("setnx", "pause-client"),
            ("setnx", "clock-jump"),
            ("redlock", "pause-client"),
            ("replica-wait", "failover"),
            ("setnx", "crash-server"),
        ],
        [("setnx", "pause-client"), ("redlock", "pause-client")],
        "one more fault that does no harm",
        4,
    ),
)
def test_it_finds_nothing_that_is_not_there(lock: str, fault: str) -> None:
    """A lock without a lease; a client that checks its validity; a key that has reached the replica."""
    assert search(lock, fault, schedules=400, require="mutual_exclusion")["exit"] == 0


@pytest.mark.parametrize("lock,faults", [("pubsub", "none"), ("pubsub", "drop-message"), ("blpop", "pause-client")])
def test_who_waits_is_served_in_the_end(lock: str, faults: str) -> None:
    """A lost message delays a waiter by a lease at most."""
    result = search(lock, faults, schedules=400, require="liveness")
    assert result["exit"] == 0
    assert result["verdict"]["liveness"]["schedules"]["holds"] > 180  # PCT alone: 188
    assert faults == "none" or result["injected"][faults] > 100


@pytest.mark.parametrize("lock", [lock.name for lock in locks_on("redis")])
def test_every_lock_runs_in_it(lock: str) -> None:
    """Every lock on Redis can be explored unchanged: clients are granted the lock, and crashes leave nothing behind."""
    result = search(lock, ONE_SERVER_FAULTS, schedules=40, keep_going=True)
    counts = result["verdict"]["mutual_exclusion"]["schedules"]
    assert counts["holds"] + counts["violated"] + counts["inconclusive"] == 40
    assert counts["holds"] + counts["violated"] > 20
    assert result["injected"]["kill-client"] > 0


def test_nothing_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    with short_directory() as directory:
        monkeypatch.setenv("TMPDIR", str(directory))
        monkeypatch.setattr("tempfile.tempdir", None)
        search("set-nx-px", schedules=20)
        assert not processes_below(directory)
        assert not list(directory.iterdir())


def test_going_on_after_a_violation() -> None:
    result = search("set-nx-px", schedules=600, keep_going=True)
    assert (result["exit"], result["tried"], result["schedules"]) == (1, 600, 600)
    violated = result["verdict"]["mutual_exclusion"]["count"]
    assert violated > 1
    groups = [group for group in result["groups"] if "mutual_exclusion" in group["violates"]]
    assert sum(group["schedules"] for group in groups) == violated
    assert result["found"]["number"] == min(group["first"] for group in result["groups"])
    assert result["found"]["number"] == paused()["found"]["number"]


def test_a_schedule_that_is_too_long_is_cut_short_and_counted() -> None:
    long, short = (search("set-nx-px", "none", schedules=1, clients=clients, turns=1000) for clients in (3, 1))
    assert (long["cut_short"], long["steps"]) == (1, 20_000)
    assert short["cut_short"] == 0 < short["steps"] < 20_000
    assert short["steps"] * 0.95 <= short["states"] <= short["steps"] * 1.05  # each step leads to a state of its own


def test_what_it_has_seen() -> None:
    """The checkpoints at which pauses struck, and the number of states, which grows with the schedules."""
    few, many = search("set-nx-px", schedules=50, keep_going=True), search("set-nx-px", schedules=600, keep_going=True)
    struck = many["checkpoints"]
    assert {"start", "before-acquire", "after-acquire", "before-write", "before-release"} <= {*struck}
    assert sum(count for faults in struck.values() for count in faults.values()) == many["injected"]["pause-client"]
    assert struck["before-write"]["pause-client"] > 5
    assert 100 < few["states"] < many["states"] < many["steps"]
    assert {tuple(group["faults"]) for group in many["groups"]} == {("pause-client",)}
    both = search("set-nx-px", "pause-client,clock-jump", schedules=600, keep_going=True)
    causes = {tuple(group["faults"]) for group in both["groups"]}
    assert {("pause-client",), ("clock-jump",), ("pause-client", "clock-jump")} <= causes


@pytest.mark.parametrize("count", [0, 10, 1000, 100_000])
def test_states_are_counted_about(count: int) -> None:
    random = Random(7)
    registers = bytearray(4096)
    for _ in range(count):
        state = random.getrandbits(64)
        rest = state & (1 << 52) - 1
        registers[state >> 52] = max(registers[state >> 52], 53 - rest.bit_length())
    assert count * 0.95 <= count_states(bytes(registers)) <= count * 1.05


def test_a_search_that_runs_says_how_far_it_is() -> None:
    planned = plan_search(SearchRequest("set-nx-px", faults="pause-client,kill-client", schedules=1000, seconds=60))
    tally = SearchTally(
        schedules=250,
        verdicts={"mutual_exclusion": PropertyCount(violated=3), "integrity": PropertyCount()},
        checkpoints={
            "start": {"pause-client": 1, "kill-client": 2},
            "before-write": {"pause-client": 1},
            "after-write": {},
        },
    )
    assert progress_line(SearchProgress(tally), planned, 10) == (
        "250 schedules of set-nx-px, 25 a second, about 0 states, 3 of 6 pairs of checkpoint and fault; "
        "never behind after-write, 3 violate mutual exclusion, 30 s left at most"
    )
    fewer = SearchProgress(structs.replace(tally, schedules=50))
    assert progress_line(fewer, planned, 10, before=40).endswith(" 50 s left at most")
    begun = plan_search(SearchRequest("setnx", faults="none", schedules=5))
    assert progress_line(SearchProgress(SearchTally()), begun, 0) == "0 schedules of setnx, 0 a second, about 0 states"


def test_all_schedules_within_a_bound() -> None:
    """One schedule for each moment at which one of two clients can be paused, and the usual course."""
    requests: dict[str, Any] = {"strategy": "exhaustive", "clients": 2}
    one = search("set-nx-px", deviations=1, keep_going=True, **requests)
    assert one["exhausted"]
    assert (
        1 + one["injected"]["pause-client"] <= one["tried"] <= 1 + one["injected"]["pause-client"] + one["pct"]["steps"]
    )
    assert "mutual_exclusion" in one["found"]["violates"]
    assert f"of all {one['tried']} schedules" in one["sentence"]
    assert len(one["found"]["choices"]) == 1
    fenced = search("set-nx-px-fenced", store="fence-reads-and-writes", require="integrity", **requests)
    assert fenced["exit"] == 0
    assert fenced["sentence"].startswith("0 violations in all ")
    assert search("set-nx-px", "none", **requests)["exit"] == 0


def test_the_example_of_the_page() -> None:
    told = (
        (paths.ROOT / "docs" / "explore.md")
        .read_text()
        .partition("explore --lock redlock --faults clock-jump --seed 6\n")[2]
    )
    result = search("redlock", "clock-jump", seed=6, schedules=2000)
    found = found_in(result)
    assert "\n".join(result["found"]["choices"]) in told
    assert result["sentence"] in told
    control = result["found"]["control"]["schedule"]
    (missing,) = (line for line in found.lines if line not in control)
    assert f"control: without {missing} it holds" in told


# --- the file ---


def test_a_schedule_of_before_is_replayed(tmp_path: Path) -> None:
    """Faults had other names in searches (docs/decisions/0139)."""
    found = found_in(paused())
    assert ": pause-client client-" in found.text
    old, new = tmp_path / "old.schedule", tmp_path / "new.schedule"
    old.write_text(found.text.replace(": pause-client client-", ": pause client-"))
    new.write_text(found.text)
    first, second = (lockstorm("replay", str(path), "--json") for path in (old, new))
    assert first.returncode == second.returncode == 1, first.stderr
    assert json.loads(first.stdout)["verdict"] == json.loads(second.stdout)["verdict"]


def test_a_file_says_everything(tmp_path: Path) -> None:
    found = found_in(paused())
    path = tmp_path / "found.schedule"
    path.write_text("# by hand\n\n" + found.text + "# the end\n")
    again = read_schedule_file(path)
    assert again.text == found.text
    assert again.line_numbers[0] == found.text.splitlines().index(found.lines[0]) + 3


@pytest.mark.parametrize(
    "old,new,said",
    [
        ("lockstorm-schedule 2", "lockstorm-schedule 3", "line 1: a schedule of this version begins with"),
        ("lock set-nx-px", "lock etcd", "line 2: etcd lives on etcd, and only locks on redis-servers can be explored"),
        ("lock set-nx-px", "lock replica-wait", "line 5: replica-wait needs 1 replica"),
        ("store open", "store fence-writes", "line 3: set-nx-px gives no fencing token"),
        ("permits 1", "permits 2", "line 7: --permits is for locks that have several"),
        ("fixed_lease 0", "fixed_lease 1", "line 8: --fixed-lease is for locks that renew"),
        ("clients 2", "clients 2_0", "line 4: clients '2_0' is not a whole number"),
        ("pause-client client-", f"pause {'x' * 150}client-", "line 17: it is longer than 159 letters"),
        (" 3000", " 9999999999999999999", "line 17: milliseconds are missing or out of range"),
        ("lock set-nx-px", "lock set-nx-py", "line 2: there is no lock called 'set-nx-py': did you mean set-nx-px?"),
        ("clients 2", "clients two", "line 4: clients 'two' is not a whole number"),
        ("clients 2", "clients 99", "line 4: clients 99: from 1 to 16"),
        ("clients 2", "clients 2\nclients 2", "line 5: clients occurs twice"),
        ("clients 2", "clowns 2", "line 4: there is no 'clowns' in a schedule"),
        ("turns 1\n", "", "turns is missing before 'schedule'"),
        ("\nschedule\n", "\n", "the line 'schedule' is missing"),
        ("violates ", "violates honesty ", "there is no property called 'honesty'"),
        ("before client", "after client", "line 17: a line is: before STEP NUMBER"),
        ("pause-client client", "stab client", "line 17: a simulation has no such fault"),
        ("pause-client client-", "pause-client redis-", "line 17: this fault has another target"),
        (" 3000", "", "line 17: milliseconds are missing"),
        ("before client-", "before late-", "line 17: this never comes up"),
        ("client-1 4:", "client-1 400:", "line 17: this never comes up"),
        ("client-1 4:", "client-1 0:", "line 17: the number of the step is missing"),
        ("client-1 4:", "client-0 4:", "line 17: only client-N"),
        ("client-1 4:", "client- 4:", "line 17: only client-N"),
        (" 3000", " 0", "line 17: milliseconds are missing or out of range"),
        (" 3000", " -3000", "line 17: milliseconds are missing or out of range"),
        (" 3000", " 1000000001", "line 17: milliseconds are missing or out of range"),
        (" 3000", " 3000 4000", "line 17: milliseconds are missing or out of range"),
        ("pause-client client-1 3000", "kill-client client-1 3000", "line 17: this fault has no duration"),
    ],
)
def test_a_file_that_is_wrong(old: str, new: str, said: str, tmp_path: Path) -> None:
    found = found_in(paused())
    text = found.text.replace(found.lines[0], "before client-1 4: pause-client client-1 3000")
    assert old in text
    path = tmp_path / "wrong.schedule"
    path.write_text(text.replace(old, new, 1))
    done = lockstorm("replay", str(path))
    assert done.returncode == 2, done.stdout
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_that_is_changed_anyhow() -> None:
    """A file that is changed at random is read as it is written, or refused with the line."""
    random = Random(11)
    text = found_in(paused()).text
    understood = 0
    pieces = [
        *text.split(),
        "\n",
        "#",
        "-1",
        "99999999999999999999",
        "\0",
        "\x85",
        "\N{ARABIC-INDIC DIGIT TWO}",
        "before",
    ]
    for _ in range(4000):
        changed = text
        for _ in range(random.randint(1, 3)):
            at, length = random.randrange(len(changed)), random.choice([0, 0, 1, 5, 40])
            changed = changed[:at] + random.choice(["", *pieces]) + changed[at + length :]
        try:
            found = parse_schedule_file(changed, "it")
        except UsageError as error:
            assert re.match(r"it: line \d+: .", str(error)), str(error)
        else:
            understood += 1
            assert parse_schedule_file(found.text, "again").text == found.text
    assert 100 < understood < 3900  # else it was no test of both


# --- campaigns ---

SAME = (
    "schedules",
    "tried",
    "steps",
    "distinct",
    "history_sha256",
    "injected",
    "verdict",
    "groups",
    "sentence",
    "exit",
)


def merged_json(parts: Sequence[tuple[str, Campaign]]) -> dict[str, Any]:
    result: dict[str, Any] = msgspec.to_builtins(merged(parts))
    return result


def kept(path: Path, **requests: Any) -> Campaign:
    """The campaign of a search, written to a file and read again."""
    planned = plan_search(
        SearchRequest(**{"lock": "set-nx-px", "faults": "pause-client", "keep_going": True, **requests})
    )
    result = search_schedules(planned, lambda _: None, keep=partial(write_json, path, indent=1))
    assert result.properties, result.sentence
    return read_campaign(path)


def test_shards_together_are_the_whole(tmp_path: Path) -> None:
    whole = kept(tmp_path / "whole", schedules=200)
    parts = [(f"{each}", kept(tmp_path / f"{each}", schedules=200, shard=f"{each}/3")) for each in (3, 1, 2)]
    assert [campaign.done(int(name)) for name, campaign in parts] == [66, 67, 67]
    result, expected = merged_json(parts), merged_json([("whole", whole)])
    assert {key: result[key] for key in SAME} == {key: expected[key] for key in SAME}
    assert result["found"]["number"] == expected["found"]["number"]
    histories = [set(memoryview(part.digests[int(name)]).cast("Q")) for name, part in parts]
    assert sum(map(len, histories)) > 190  # else there was nothing to tell apart
    write_json(tmp_path / "merged", result, indent=1)  # what was merged can be merged
    assert merged_json([("again", read_campaign(tmp_path / "merged"))])["history_sha256"] == expected["history_sha256"]


def test_the_first_violation_of_all_shards_is_the_campaigns(tmp_path: Path) -> None:
    whole = merged_json([("whole", kept(tmp_path / "whole", keep_going=False, schedules=300, seed=2))])
    parts = [
        (f"{each}", kept(tmp_path / f"{each}", keep_going=False, schedules=300, seed=2, shard=f"{each}/2"))
        for each in (1, 2)
    ]
    result = merged_json(parts)
    for key in ("schedules", "history_sha256", "distinct", "sentence", "exit", "found"):
        assert result[key] == whole[key]
    assert result["found"]["number"] == min(part.found.number for _, part in parts if part.found)


def test_what_was_begun_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search in two parts, and in slices of a second, has the result of one search."""
    monkeypatch.setattr("lockstorm.search.explore.SLICE_S", 1)
    path = tmp_path / "kept"
    requests: dict[str, Any] = {"lock": "set-nx-px-fenced", "store": "fence-reads-and-writes", "require": "integrity"}
    begun = kept(path, schedules=100, **requests)
    planned = resumed("kept", begun, schedules=2500)
    assert search_schedules(
        planned, lambda _: None, campaign=begun, keep=partial(write_json, path, indent=1)
    ).properties
    result = merged_json([("kept", read_campaign(path))])
    expected = merged_json([("whole", kept(tmp_path / "whole", schedules=2500, **requests))])
    assert {key: result[key] for key in SAME} == {key: expected[key] for key in SAME}
    with pytest.raises(UsageError, match="kept: nothing is left to try: 0 violations in 2,500 schedules"):
        resumed("kept", read_campaign(path), schedules=2500)


@pytest.mark.lengthy("runs the command several times")
def test_the_commands_of_a_campaign(tmp_path: Path) -> None:
    words = ["--lock", "setnx", "--schedules", "60", "-q"]
    files = [tmp_path / "one.json", tmp_path / "two.json"]
    for number, path in enumerate(files, 1):
        done = lockstorm("explore", *words, "--shard", f"{number}/2", "--result", str(path))
        assert done.returncode == 0, done.stderr
        assert f"--shard {number}/2" in done.stdout
    assert json.loads(files[0].read_text())["schedules"] == 30
    done = lockstorm("merge", *map(str, files), "-o", str(tmp_path / "all.json"))
    assert done.returncode == 0, done.stderr
    assert "0 violations in 60 schedules" in done.stdout
    assert "1 of 2 shards are missing" in lockstorm("merge", str(files[0])).stderr
    done = lockstorm("explore", "--resume", str(files[1]), "--schedules", "100", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["schedules"] == 50
    assert json.loads(files[1].read_text())["schedules"] == 50
    for wrong, said in (
        (["--resume", str(files[1]), "--seed", "2"], "--seed with --resume: the file sets it"),
        (["--resume", str(tmp_path / "all.json")], "it has 2 shards in it"),
        (["--resume", str(tmp_path / "none.json")], "No such file"),
        (["--lock", "setnx", "--result", str(files[0])], "exists already"),
        (["--lock", "setnx", "--shard", "3/2"], "--shard 3/2: K/N, K from 1 to N"),
        (["--lock", "setnx", "--shard", "4/4", "--schedules", "3"], "leaves nothing to --shard 4/4"),
        (["--lock", "setnx", "--shard", "1/2", "--strategy", "exhaustive"], "it has no shards"),
        ([], "--lock is missing"),
    ):
        done = lockstorm("explore", *wrong)
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr


def test_what_does_not_belong_together_is_not_merged(tmp_path: Path) -> None:
    one = kept(tmp_path / "one", schedules=20, shard="1/2")
    text = (tmp_path / "one").read_text()
    with pytest.raises(UsageError, match="shard 1/2 is in one and in two"):
        merged([("one", one), ("two", one)])
    for requests, said in (
        ({"seed": 2}, "two is of another campaign than one: seed is 2, not 1"),
        ({"faults": "kill-client"}, "faults is 'kill-client=1', not 'pause-client=1'"),
        ({"keep_going": False}, "--all is False, not True"),
        ({"shard": "2/3"}, "shards is 3, not 2"),
    ):
        other = kept(tmp_path / "two", **{"schedules": 20, "shard": "2/2", **requests})
        with pytest.raises(UsageError, match=said):
            merged([("one", one), ("two", other)])
    for old, new, said in (
        ('"version": "', '"version": "9', "was written by lockstorm 9.*the same seed may mean other schedules"),
        ('"format": 2', '"format": 1', "format 1"),
        ('"digests": {\n   "1"', '"digests": {\n   "7"', "there is no shard 7/2"),
        ('"digests": {\n   "1": "', '"digests": {\n   "1": "AAAA', "ends in the middle of a history"),
        ('"campaign"', '"campaigns"', "is not what lockstorm explore --result writes: .*campaign"),
        ("{", "[", "is not what lockstorm explore --result writes"),
    ):
        assert old in text
        (tmp_path / "wrong").write_text(text.replace(old, new, 1))
        with pytest.raises(UsageError, match=said):
            read_campaign(tmp_path / "wrong")
    for old, new in (('"lock": "set-nx-px",', ""), ('"verdicts": {', '"verdicts": [')):
        (tmp_path / "wrong").write_text(text.replace(old, new))
        with pytest.raises(UsageError, match="wrong"):
            read_campaign(tmp_path / "wrong")


# --- the command ---


def test_the_command_and_its_file(tmp_path: Path) -> None:
    saved, history = tmp_path / "found.schedule", tmp_path / "found.history"
    words = ["--lock", "set-nx-px", "--faults", "pause-client", "--schedules", "2000", "-o", str(saved)]
    done = lockstorm("explore", *words, "--json")
    assert done.returncode == 1, done.stderr
    result = json.loads(done.stdout)
    for key in ("schedules", "schedules_per_s", "steps", "history_sha256", "verdict", "replay", "exit"):
        assert key in result
    assert saved.read_text() == result["found"]["file"]
    assert lockstorm("explore", *words).returncode == 2  # it exists
    plain = lockstorm("replay", str(saved), "-o", str(history))
    assert plain.returncode == 1
    assert "resumes, unaware that time has passed" in plain.stdout
    checked = json.loads(lockstorm("check", str(history), "--json").stdout)
    assert checked["verdict"]["mutual_exclusion"]["status"] == "violated"
    assert checked["scenario"] == "explore"


@pytest.mark.parametrize(
    "words,said",
    [
        (["--faults", "paws"], "there is no fault called 'paws': did you mean pause-client?"),
        (["--faults", "pause-client=0"], "--faults pause-client 0: from 1 to 16"),
        (["--faults", "pause-client=x"], "'x' is not a number"),
        (["--faults", "pause-client=9,kill-client=9"], "18 in one schedule are too many"),
        (["--replicas", "3"], "--replicas 3: from 0 to 2"),
        (["--replicas", "0", "--faults", "failover"], "--faults failover needs a replica"),
        (["--clients", "17"], "--clients 17: from 1 to 16"),
        (["--schedules", "0"], "--schedules 0: from 1 to"),
        (["--strategy", "psychic"], "there is no strategy called 'psychic'"),
        (["--deviations", "2"], "--deviations is for --strategy exhaustive"),
        (["--forms", "lock()"], "--forms: what a library can be asked for has forms"),
        (["--bound", "2s", "--faults", "none"], "--bound is for a search that requires liveness"),
        (["--strategy", "exhaustive", "--workers", "2"], "--workers 1"),
        (["--require", "cost"], "cost is reported by lockstorm run, never judged"),
        (["--store", "fence-writes"], "gives no fencing token"),
        (["-o", "/nowhere/at/all"], "its directory does not exist"),
    ],
)
def test_bad_usage(words: list[str], said: str) -> None:
    done = lockstorm("explore", "--lock", "set-nx-px", *words)
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.parametrize("lock", [lock.name for lock in locks() if lock.service != "redis"])
def test_other_servers_cannot_be_explored(lock: str) -> None:
    with pytest.raises(UsageError, match="only locks on redis-servers can be explored: ") as error:
        plan_search(SearchRequest(lock))
    explorable = {name.strip() for name in str(error.value).rpartition(":")[2].split(",")}
    assert explorable == {each.name for each in locks_on("redis")}


def test_a_lock_on_etcd_says_so() -> None:
    done = lockstorm("explore", "--lock", "etcd")
    assert done.returncode == 2
    assert "etcd lives on etcd, and only locks on redis-servers can be explored" in done.stderr


def test_a_table_cannot_be_explored() -> None:
    with pytest.raises(UsageError, match="--store table-open is a table of PostgreSQL"):
        plan_search(SearchRequest("set-nx-px", store="table-open"))


def test_budgets() -> None:
    assert fault_budget("none") == {}
    assert fault_budget("pause=2, crash") == {"pause-client": 2, "kill-client": 1}


def test_a_server_needs_its_clock_page(tmp_path: Path) -> None:
    """It must not fall back to the machine's clock, by which every lease would be wrong."""
    environment = {"LD_PRELOAD": paths.own_library("preload"), "LOCKSTORM_CLOCK_PAGE": str(tmp_path / "missing")}
    done = subprocess.run([paths.redis_server(), "--version"], env=environment, capture_output=True, text=True)
    assert done.returncode == 127
    assert "missing" in done.stderr
