"""Searches of lock libraries: right ones are not accused, a mistake is found, made smaller and played again."""

import json
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from lockstorm.base.errors import UsageError
from lockstorm.native.fault_names import fault_names
from lockstorm.search import replay
from lockstorm.search.library_plan import PROMISES
from lockstorm.search.replay import ReplayedLibrary, replay_library
from lockstorm.search.schedule_file import parse_library_schedule, read_library_schedule
from tests.helpers.planting_calls import RIGHT_CALLS
from tests.helpers.searching import library_plan, search_json, searched
from tests.helpers.support import lockstorm

# What is replaced in a right adapter, by what, and a promise that the search then has to find broken.
MISTAKES = {
    "a second holder": (
        "if (mode == 'exclusive' or mode == 'write') and others > 0 then return 0 end\n",
        "",
        "mutual_exclusion",
    ),
    "seconds for milliseconds": ("'pexpire', KEYS[1], ARGV[3]", "'pexpire', KEYS[1], ARGV[3] * 1000", "lease-too-long"),
    "half a lease": ("'pexpire', KEYS[1], ARGV[3]", "'pexpire', KEYS[1], ARGV[3] / 2", "lease-too-short"),
    "no lease at all": (
        "redis.call('pexpire', KEYS[1], ARGV[3]) end",
        "redis.call('persist', KEYS[1]) end",
        "lease-endless",
    ),
    "a release that keeps the lock": ("redis.call('hdel', KEYS[1], ARGV[1])", "redis.call('hlen', KEYS[1])", "residue"),
    "anybody's lock is its own": (
        'if not link.hexists(resource, owner + "|" + mode):',
        "if not link.exists(resource):",
        "ownership",
    ),
    "falling tokens": (
        'tokens[resource] = link.incr("tokens")',
        'tokens[resource] = 1000 + link.decr("tokens")',
        "token",
    ),
    "a try that waits": (
        "until = None if wait_ms is None else time.monotonic() + wait_ms / 1000",
        "until = None if wait_ms is None else time.monotonic() + 0.5 + wait_ms / 1000",
        "wait",
    ),
}
DAILY = ("seconds for milliseconds",)
SCHEDULES = 400  # in which a mistake is found


# Of the planted adapter only exclusive locks that do not nest.
OFFERED = {
    '"modes": ["exclusive", "read", "write", "permits"]': '"modes": ["exclusive"]',
    '"reenters": ["same", "write-read"]': '"reenters": []',
}


def planted(directory: Path, was: str = "", becomes: str = "") -> str:
    """A right adapter, with a text replaced. Returns its path."""
    text = RIGHT_CALLS
    for old, new in {**OFFERED, **({was: becomes} if was else {})}.items():
        assert old in text, old
        text = text.replace(old, new)
    path = directory / "planted"
    path.write_text(text.replace("{python}", sys.executable))
    path.chmod(0o755)
    return str(path)


def test_one_broken_promise_does_not_hide_the_others(tmp_path: Path) -> None:
    """Half a lease, and tokens that fall: what is excepted does not end the search (issue #55)."""
    adapter = planted(tmp_path, *MISTAKES["half a lease"][:2])
    text = Path(adapter).read_text()
    was, becomes, promise = MISTAKES["falling tokens"]
    assert was in text
    Path(adapter).write_text(text.replace(was, becomes))
    excepted = ",".join(name for name in PROMISES if name.startswith("lease") or name == "mutual_exclusion")
    result = searched(adapter, schedules=SCHEDULES, excepted=excepted)
    assert result["exit"] == 1 and result["found"]["violates"] == [promise], result["sentence"]
    assert "lease-too-short" not in result["required"]
    with pytest.raises(UsageError, match="leaves nothing"):
        library_plan(adapter, require=promise, excepted=promise)


@pytest.mark.lengthy("plays a hundred schedules")
def test_a_right_library_is_not_accused() -> None:
    result = searched("redis-py", schedules=100)
    assert result["found"] is None and result["exit"] == 0, result["sentence"]
    assert result["tried"] == 100 and result["unplayed"] == 0, result["unplayed_reason"]
    assert sum(result["injected"].values()) > 10
    assert "kept every promise in 100 schedules" in result["sentence"]


@pytest.mark.slow("many schedules of right libraries", seconds=240)
@pytest.mark.parametrize("adapter", ["redis-py", "redisson-semaphore", "redsync"])
def test_a_right_library_is_not_accused_in_many_schedules(adapter: str) -> None:
    result = searched(adapter, schedules=1000)
    assert result["exit"] != 1, result["sentence"]


@pytest.mark.slow("plays 1,361 schedules; the last one went wrong", seconds=40)
def test_what_a_client_without_a_part_holds_back_does_not_come_in_the_midst_of_a_schedule() -> None:
    """A request of the third client was late in an earlier schedule, and the next one has two clients."""
    result = search_json(library_plan("redis-py", seed=5, schedules=1361))
    assert result["exit"] == 0 and result["tried"] == 1361, result["sentence"]


@pytest.mark.slow("plays two hundred schedules", seconds=15)
def test_a_right_adapter_is_not_accused(tmp_path: Path) -> None:
    result = searched(planted(tmp_path), schedules=200, faults="none")
    assert result["found"] is None, result["sentence"]


READS_FOR_EVER = """
    import socket
    ours, other = socket.socketpair()
    other.close()
    while True:
        ours.recv(1)
"""


@pytest.mark.slow("a program makes 200,000 calls", seconds=12)
def test_a_library_that_never_waits_again_is_given_up(tmp_path: Path) -> None:
    """redis-py 2.10.1 reads a connection that its server has closed again and again."""
    until = "until = None if wait_ms is None else time.monotonic() + wait_ms / 1000"
    result = searched(planted(tmp_path, until, READS_FOR_EVER.strip()), schedules=2)
    assert result["exit"] == 3 and "goes on and on without waiting for anything" in result["sentence"]


TAKES_TOKEN = 'tokens[resource] = link.incr("tokens")'
LISTENS = f"""
    ears = link.pubsub()
    ears.subscribe("released")
    ears.get_message(timeout=1)
    {{}}
    {TAKES_TOKEN}
"""


@pytest.mark.slow("two searches more", seconds=8)
@pytest.mark.parametrize(("then", "breaks"), [("ears.close()", []), ('tokens["ears"] = ears', ["residue"])])
def test_who_closes_a_connection_has_ended_its_subscription(tmp_path: Path, then: str, breaks: list[str]) -> None:
    """redis-py's PubSub.close() sends no UNSUBSCRIBE."""
    adapter = planted(tmp_path, TAKES_TOKEN, LISTENS.format(then).strip())
    result = searched(adapter, schedules=20, faults="none", require="residue")
    assert (result["found"] or {"violates": []})["violates"] == breaks, result["sentence"]


# The first grant of a program asks 45 times for one thing, and once for another; if that takes long, the lease goes.
ASKS_A_RARE_THING = f"""
    if tokens.get("generation") != generation:
        tokens["generation"] = generation
        for _ in range(45): link.strlen("common")
        began = time.monotonic()
        try: link.getrange("rare", 0, 0)
        except redis.TimeoutError: pass
        if time.monotonic() - began > 0.1: link.persist(resource)
    {TAKES_TOKEN}
"""


@pytest.mark.slow("plays 400 schedules", seconds=60)
def test_a_message_is_struck_although_there_are_few_of_its_sort(tmp_path: Path) -> None:
    """It comes after the steps at which other faults strike."""
    adapter = planted(tmp_path, TAKES_TOKEN, ASKS_A_RARE_THING.strip())
    result = searched(adapter, schedules=400, lease_ms=1000, faults="hold-reply", require="lease-endless")
    assert result["exit"] == 1 and result["found"]["number"] > 200, result["sentence"]
    assert "hold-reply" in result["found"]["file"], result["found"]["file"]


def mistakes() -> Iterator[Any]:
    """All of them; some are for every day."""
    for name in MISTAKES:
        slow = pytest.mark.slow("plays some hundred schedules", seconds=25)
        lengthy = pytest.mark.lengthy("plays some hundred schedules")
        yield pytest.param(name, marks=lengthy if name in DAILY else slow)


@pytest.mark.parametrize("mistake", list(mistakes()))
def test_a_mistake_is_found(tmp_path: Path, mistake: str) -> None:
    was, becomes, promise = MISTAKES[mistake]
    result = searched(planted(tmp_path, was, becomes), schedules=SCHEDULES, faults="none", require=promise)
    assert result["exit"] == 1, result["sentence"]
    found = result["found"]
    assert promise in found["violates"] and found["with_new_programs"]
    assert len(found["workload"]) <= found["calls_before_shrinking"]
    schedule = parse_library_schedule(found["file"], "found")
    again = replay_library(schedule, "found")
    assert (again.violates, again.sentence) == (found["violates"], found["sentence"])


def kept_this_time(replay_on: Callable[..., ReplayedLibrary], *what: object) -> ReplayedLibrary:
    return structs.replace(replay_on(*what), violates=[])


def unplayable(*_: object) -> ReplayedLibrary:
    raise UsageError("the schedule: line 6: this never comes up")


@pytest.mark.slow("plays a search to its end, twice", seconds=15)
@pytest.mark.parametrize("replay_on", [kept_this_time, unplayable], ids=["is kept", "cannot be played"])
def test_what_another_process_does_not_see_again_is_inconclusive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replay_on: Callable[..., ReplayedLibrary]
) -> None:
    was, becomes, promise = MISTAKES["half a lease"]
    original = replay.replay_library_on
    monkeypatch.setattr(replay, "replay_library_on", partial(replay_on, original))
    result = searched(planted(tmp_path, was, becomes), schedules=SCHEDULES, faults="none", require=promise)
    assert result["exit"] == 3 and result["sentence"].startswith("Inconclusive: schedule"), result["sentence"]
    assert not result["found"]["with_new_programs"]
    assert result["found"]["sentence"] in result["sentence"] and result["found"]["story"]


# `generation` counts the schedules that a program has played.
LATER_SHORT = f"""
    if generation == 3{{}}:
        link.pexpire(resource, 100)
    {TAKES_TOKEN}
"""


@pytest.mark.slow("plays a search to its end, twice", seconds=20)
def test_a_search_goes_on_after_what_new_programs_do_not_show(tmp_path: Path) -> None:
    adapter = planted(tmp_path, TAKES_TOKEN, LATER_SHORT.format("").strip())
    one, two = (
        searched(adapter, schedules=24, faults="none", require="lease-too-short", workers=workers) for workers in (1, 2)
    )
    assert one["exit"] == 3 and one["found"] is None and one["tried"] == 24, one["sentence"]
    assert one["unrepeated"] > 2 and "did not break it again" in one["sentence"] and "; schedule " in one["sentence"]
    assert one["verdict"]["lease-too-short"]["count"] == 0
    assert one["history_sha256"] == two["history_sha256"] and one["unrepeated"] == two["unrepeated"]


@pytest.mark.slow("plays a search to its end", seconds=10)
def test_what_new_programs_show_is_found_after_what_they_do_not(tmp_path: Path) -> None:
    adapter = planted(tmp_path, TAKES_TOKEN, LATER_SHORT.format(" or lease_ms == 20000").strip())
    result = searched(adapter, schedules=200, faults="none", require="lease-too-short")
    assert result["exit"] == 1 and result["unrepeated"] > 0, result["sentence"]
    assert result["found"]["with_new_programs"] and "20000" in result["found"]["file"]


@pytest.mark.lengthy("plays a search to its end")
def test_only_the_forms_that_were_named_are_drawn(tmp_path: Path) -> None:
    was, becomes, _ = MISTAKES["half a lease"]
    adapter = planted(tmp_path, was, becomes)
    found = searched(adapter, schedules=SCHEDULES, forms="lock; lock")["found"]
    acquires = [call for call in found["workload"] if " acquire " in call]
    assert acquires and all(call.endswith("form=lock") for call in acquires)
    plan = library_plan(adapter, forms=" lock ;try")
    assert plan.forms == ("lock", "try") and plan.key["forms"] == "lock; try"
    assert library_plan(adapter, forms=plan.key["forms"]).key == plan.key


@pytest.mark.slow("plays one search three times; another one is repeated every day", seconds=13)
def test_the_same_seed_is_the_same_search_with_any_number_of_processes() -> None:
    one, two = (searched("redis-py", schedules=60, faults="none", seed=5, workers=workers) for workers in (1, 2))
    assert one["schedules"] == two["schedules"] == 60
    assert one["history_sha256"] == two["history_sha256"]
    assert searched("redis-py", schedules=60, faults="none", seed=6)["history_sha256"] != one["history_sha256"]


@pytest.mark.slow("one more mistake of a library", seconds=7)
def test_a_wait_that_begins_again_is_found_in_a_library() -> None:
    """python-redis-lock's acquire(timeout) waits anew after each signal that comes too late."""
    result = searched("python-redis-lock", schedules=100, faults="none", require="wait")
    assert result["exit"] == 1 and "it was to wait for" in result["sentence"]
    assert result["found"]["control"], "without one of the calls the promise is kept"


@pytest.mark.slow("starts Java for each session", seconds=40)
def test_the_watchdog_that_an_inner_read_lock_ends_is_found() -> None:
    """Redisson's read-write lock: the release of a read lock within a write lock ends the renewal of the write lock."""
    result = searched("redisson-read-write", schedules=400, faults="none", require="mutual_exclusion")
    assert result["exit"] == 1, result["sentence"]
    calls = [line.split()[2] for line in result["found"]["workload"] if line.startswith("client-1")]
    assert calls.count("acquire") == 2 and calls.count("release") == 2 and calls.count("work") == 1


# --- files, and the command ---


def written(tmp_path: Path, *lines: str, **head: str) -> Path:
    keys = {
        "adapter": "redis-py",
        "library": "redis-py",
        "lease_ms": "2000",
        "permits": "2",
        "seed": "1",
        "number": "0",
    }
    keys |= {"breaks": "mutual_exclusion", **head}
    path = tmp_path / "written.schedule"
    path.write_text("\n".join(["lockstorm-library-schedule 1", *(f"{k} {v}" for k, v in keys.items()), *lines, ""]))
    return path


CALLS = (
    "workload",
    "client-1 thread-1: acquire lock-1 resource-1 exclusive wait=none lease=given:2000 form=acquire(blocking=False)",
    "client-1 thread-1: work 1000  # half of the lease",
    "client-1 thread-1: release lock-1 resource-1 exclusive",
    "client-2 thread-1: acquire lock-1 resource-1 exclusive wait=none lease=given:2000 form=acquire(blocking=False)",
    "client-2 thread-1: release lock-1 resource-1 exclusive",
)


def test_a_schedule_by_hand_is_played_and_told(tmp_path: Path) -> None:
    path = written(tmp_path, *CALLS, "schedule", "before call client-1 thread-1 2: pause-client client-1 3000")
    assert parse_library_schedule(path.read_text(), "it").text == read_library_schedule(path).text
    done = lockstorm("replay", str(path))
    assert done.returncode == 0, done.stderr
    assert "stands still for 3,000 ms" in done.stdout and "every promise was kept" in done.stdout
    told = json.loads(lockstorm("replay", "--json", str(path)).stdout)
    assert [line["what"] for line in told["story"] if line["who"] == "client-2"][1] == "acquire: refused"


def test_story_and_schedule_have_one_numbering(tmp_path: Path) -> None:
    order = "before answer client-1 link-1 1: call client-2 thread-1"
    path = written(tmp_path, *CALLS, "schedule", order, "before call client-1 thread-1 2: pause-client client-1 3000")
    told = json.loads(lockstorm("replay", "--json", str(path)).stdout)
    by_number = {line["number"]: (line["who"], line["what"]) for line in told["story"] if "number" in line}
    assert by_number[1][1].startswith("acquire by ") and by_number[4] == ("client-2", by_number[1][1])
    assert by_number[6] == ("client-2", "calls acquire while the answer to client-1's EVALSHA is on its way") or (
        by_number[6] == ("client-2", "calls acquire while the answer to client-1's SET is on its way")
    )
    assert by_number[7] == ("client-1", "stands still for 3,000 ms")
    shown = lockstorm("replay", str(path)).stdout.splitlines()
    lines = [line.partition("  #")[0] for line in (*CALLS[1:], order)]
    assert [line for line in shown if line.strip().startswith(("1 client", "6 before"))] == [
        f"  1 {lines[0]}",
        f"  6 {order}",
    ]


@pytest.mark.parametrize(
    ("deviation", "late"),
    [
        ("before request client-1 link-1 1: hold-request client-1 link-1 3000", "a command is late"),
        ("before answer client-1 link-1 1: hold-reply client-1 link-1 3000", "an answer is late"),
        ("before request client-1 link-1 1: hold-request client-1 link-1 1001", "a command is late"),
        ("before request client-1 link-1 1: hold-request client-1 link-1 1000", None),  # its patience ends 50 us late
        ("before request client-1 link-1 1: hold-request client-1 link-1 500", None),  # less than its patience
    ],
)
def test_a_message_is_lost_whose_connection_its_program_closes(
    tmp_path: Path, deviation: str, late: str | None
) -> None:
    """The adapter of redis-py waits a second for an answer and then closes the connection."""
    told = json.loads(lockstorm("replay", "--json", str(written(tmp_path, *CALLS, "schedule", deviation))).stdout)
    closed = [line["what"] for line in told["story"] if "closes the connection" in line["what"]]
    assert closed == ([f"closes the connection on which {late}"] if late else [])


@pytest.mark.parametrize("lease_ms", [500, 2000])
def test_a_last_release_that_is_never_answered_breaks_its_promise(tmp_path: Path, lease_ms: int) -> None:
    was = '    if asked["op"] == "release":'
    adapter = planted(
        tmp_path, was, f"    if asked['op'] == 'release' and generation: queue.SimpleQueue().get()\n{was}"
    )
    path = written(
        tmp_path,
        "workload",
        f"client-1 thread-1: acquire lock-1 resource-1 exclusive wait=none lease=given:{lease_ms} form=try",
        "client-1 thread-1: release lock-1 resource-1 exclusive",
        "schedule",
        adapter=adapter,
        library="planted calls",
        lease_ms=str(lease_ms),
        breaks="answer",
    )
    told = json.loads(lockstorm("replay", "--json", str(path)).stdout)
    assert told["violates"] == ["answer"], told["sentence"]


def test_what_is_left_of_a_resource_is_not_taken_for_another_ones(tmp_path: Path) -> None:
    """A lock without an end that was taken late, by a command that the library had given up: nobody releases it."""
    lease = "exclusive wait=forever lease="
    calls = (
        f"client-1 thread-1: acquire lock-3 resource-2 {lease}given:2000 form=acquire()",
        "client-1 thread-1: work 2000",
        "client-1 thread-1: release lock-3 resource-2 exclusive",
        f"client-1 thread-1: acquire lock-1 resource-1 {lease}given:2000 form=acquire()",
        "client-1 thread-1: release lock-1 resource-1 exclusive",
        f"client-2 thread-1: acquire lock-3 resource-2 {lease}endless form=acquire()",
        "client-2 thread-1: release lock-3 resource-2 exclusive",
    )
    late = "before request client-2 link-1 2: hold-request client-2 link-1 3000"
    done = lockstorm("replay", str(written(tmp_path, "workload", *calls, "schedule", late, breaks="residue")))
    assert "still has the key account-2" in done.stdout and done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ((*CALLS, "schedule", "before clock 900: pause-client client-1 3000"), "line 16: this never comes up"),
        ((*CALLS, "schedule", "before clock 1: pause-client client-9 3000"), "line 16: this fault has another target"),
        ((*CALLS[:2], "client-1 thread-1: jump", "schedule"), "line 11: a call is:"),
        (("workload", "schedule"), "line 9: the workload has no calls"),
        (CALLS, "the line 'schedule' is missing"),
    ],
)
def test_a_bad_schedule_is_refused_with_its_line(tmp_path: Path, lines: tuple[str, ...], reason: str) -> None:
    done = lockstorm("replay", str(written(tmp_path, *lines)))
    assert done.returncode == 2 and reason in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("chosen", "reason"),
    [
        ({"turns": 3}, "--turns"),
        ({"faults": "failover"}, "there is no failover in --adapter: hosted programs have servers without replicas"),
        ({"faults": "pause-client=9"}, "from 1 to 4 in all"),
        ({"require": "integrity"}, "there is no promise called 'integrity'"),
        ({"lease_ms": 1500}, "a multiple of 1s"),
        ({"lease_ms": 0}, "--lease 0ms: from 1ms to"),
        ({"forms": "acquire(); tryLock()"}, "no form of python-redis-lock called 'tryLock\\(\\)'"),
        ({"schedules": 0}, "--schedules 0"),
    ],
)
def test_what_a_search_of_a_library_refuses(chosen: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        library_plan("python-redis-lock", **chosen)


def test_an_adapter_of_version_1_is_refused_with_the_way_out(tmp_path: Path) -> None:
    path = planted(tmp_path, 'protocol = min(2, asked["protocol"])', "protocol = 1")
    done = lockstorm("explore", "--adapter", path, "--schedules", "5")
    assert done.returncode == 3 and "protocol 2" in done.stdout + done.stderr


@pytest.mark.lengthy("plays a search to its end")
def test_the_command_says_what_was_found_and_how_to_see_it_again(tmp_path: Path) -> None:
    was, becomes, _ = MISTAKES["half a lease"]
    adapter, found = planted(tmp_path, was, becomes), tmp_path / "found.schedule"
    done = lockstorm("explore", "--adapter", adapter, "--schedules", "200", "--faults", "none", "-o", str(found))
    assert done.returncode == 1 and "breaks a promise" in done.stdout
    assert done.stdout.rstrip().splitlines()[-1].startswith("again: ")
    assert lockstorm("replay", "-q", str(found)).returncode == 1
    again = lockstorm("replay", str(found))
    (control,) = [line for line in again.stdout.splitlines() if line.startswith("control: ")]
    assert control in done.stdout and re.fullmatch(r"control: without \d+, client-\d .*, it holds", control)


@pytest.mark.lengthy("plays a search twice")
def test_a_search_within_a_time_is_repeated_without_a_clock(tmp_path: Path) -> None:
    was, becomes, _ = MISTAKES["half a lease"]
    words = ("explore", "--adapter", planted(tmp_path, was, becomes), "--faults", "none", "--workers", "1", "--json")
    first = json.loads(lockstorm(*words, "--time-limit", "60s").stdout)
    again = first["replay"].split()
    assert again[again.index("--schedules") + 1] == str(first["found"]["number"]) and "--time-limit" not in again
    second = json.loads(lockstorm(*again[1:], "--json").stdout)
    assert second["found"]["file"] == first["found"]["file"]
    assert second["replay"] == first["replay"]


def test_the_documents_list_every_promise_and_fault() -> None:
    from lockstorm.base import paths

    promises = (paths.ROOT / "docs" / "promises.md").read_text()
    assert all(f"| `{name}` |" in promises for name in PROMISES)
    page = (paths.ROOT / "docs" / "explore-libraries.md").read_text()
    assert all(f"`{name}`" in page for name in fault_names("library"))
