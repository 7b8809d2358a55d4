"""Schedules of libraries as stand-alone programs in the library's language, run against a plain redis-server."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from lockstorm.base import paths
from lockstorm.base.errors import UsageError
from lockstorm.locks.adapter import SHIPPED, adapter_facts, adapter_path
from lockstorm.results.call_event import BrokenPromise, CallEvent
from lockstorm.search.replay import ReplayedLibrary, replay_library
from lockstorm.search.schedule_file import LibrarySchedule, parse_library_schedule, read_library_schedule
from lockstorm.search.search_lines import HostedOffer
from lockstorm.search.standalone import FILE, PROGRAMS, phrases_of, standalone_program
from lockstorm.search.standalone_plan import GAP_MS, READING, MainStep, Proof, standalone_plan
from lockstorm.search.standalone_run import run_standalone, standalone_command
from tests.helpers.outside_servers import outside_server
from tests.helpers.stalls import beside_no_stall
from tests.helpers.support import lockstorm

FOUND = Path(__file__).parent / "found"
WRITTEN = sorted(path.parent.name for path in SHIPPED.glob(f"*/{FILE}"))
UNWRITTEN = {"node-redlock-4": {"disposer"}}  # forms without a phrase


STALL_MS = 900  # leases, works and waits below last for longer

# A rival is refused while the lock is held, and another is granted after the release.
COURSE = """\
lockstorm-library-schedule 1
adapter {adapter}
library the library
lease_ms 2000
permits 1
seed 1
number 0
breaks mutual_exclusion
workload
client-1 thread-1: acquire lock-1 resource-1 {mode} wait=none lease={lease} form={form}
client-1 thread-1: work 1000
client-1 thread-1: release lock-1 resource-1 {mode}
client-2 thread-1: acquire lock-1 resource-1 {mode} wait=none lease={lease} form={form}
client-2 thread-1: release lock-1 resource-1 {mode}
client-2 thread-2: work 1400
client-2 thread-2: acquire lock-2 resource-1 {mode} wait=none lease={lease} form={form}
client-2 thread-2: release lock-2 resource-1 {mode}
schedule
"""


def run(schedule: LibrarySchedule, language: str, directory: Path) -> tuple[int, str]:
    """Writes the program and runs it. Returns its status and what it printed; libraries log to standard error."""
    result = replay_library(schedule, "it")
    program = directory / PROGRAMS[language]
    (directory / "built").mkdir()
    program.write_text(standalone_program(schedule, result, language))
    command = standalone_command(program, schedule.adapter, directory / "built")
    with outside_server(directory) as server:
        done = subprocess.run([*command, str(server.port)], capture_output=True, text=True, timeout=120)
    assert done.stdout, done.stderr
    return done.returncode, done.stdout


@pytest.mark.parametrize("adapter", WRITTEN)
@pytest.mark.lengthy("starts a program of the library")
def test_every_form_of_a_library_is_written(adapter: str) -> None:
    facts, phrases = adapter_facts(str(adapter_path(adapter))), phrases_of(adapter)
    assert facts
    forms = {form.form for form in facts.forms}
    assert forms - set(phrases.acquire) == UNWRITTEN.get(adapter, set())
    asked = {"release", *facts.operations} & {"release", "is_held"}
    assert all(getattr(phrases, verb) for verb in asked)
    assert "renew" not in facts.operations or phrases.renew or phrases.renew_default


KEPT = [
    ("redis-py", "python", "acquire(blocking=False)", "exclusive", "given:2000"),
    ("python-redis-lock", "python", "acquire(blocking=False)", "exclusive", "given:2000"),
    ("redis-semaphore", "js", "tryAcquire(abortSignal)", "exclusive", "given:2000"),
    ("redis-semaphore-multi", "js", "tryAcquire(abortSignal)", "permits", "given:2000"),
    ("node-redlock-5", "js", "acquire(resources, duration, settings)", "exclusive", "given:2000"),
    ("redsync", "go", "TryLockContext", "exclusive", "given:2000"),
    ("redisson", "java", "tryLock(wait, lease, SECONDS)", "exclusive", "given:2000"),
    ("redisson-fair", "java", "tryLock()", "exclusive", "renewed"),
    ("redisson-fenced", "java", "tryLockAndGetToken(wait, lease, MILLISECONDS)", "exclusive", "given:2000"),
    ("redisson-semaphore", "java", "tryAcquire()", "permits", "endless"),
    ("redisson-multi", "java", "tryLock()", "exclusive", "renewed"),
]


def kept() -> Iterator[Any]:
    for case in KEPT:
        daily = pytest.mark.lengthy("runs for 3 s on a real server")
        slow = pytest.mark.slow("builds a program, which runs on a real server", seconds=15)
        yield pytest.param(*case, marks=daily if case[0] == "redis-py" else slow, id=case[0])


@pytest.mark.parametrize(("adapter", "language", "form", "mode", "lease"), list(kept()))
@beside_no_stall(STALL_MS)
def test_a_program_goes_the_course_of_its_schedule(
    tmp_path: Path, adapter: str, language: str, form: str, mode: str, lease: str
) -> None:
    text = COURSE.format(adapter=adapter, form=form, mode=mode, lease=lease)
    status, printed = run(parse_library_schedule(text, "it"), language, tmp_path)
    assert (status, printed.splitlines()[-1]) == (0, "kept"), printed
    assert "client-2 thread-1: acquire lock-1: refused" in printed
    assert "client-2 thread-2: acquire lock-2: ok" in printed


SHOWN = {"redisson-read-write": "java", "redisson-fenced": "java", "node-redlock-5": "js"}  # found/NAME.schedule


@pytest.mark.slow("runs for 10 s on a real server", seconds=20)
@pytest.mark.parametrize(("found", "language"), list(SHOWN.items()))
@beside_no_stall(STALL_MS)
def test_a_program_shows_what_a_search_found(tmp_path: Path, found: str, language: str) -> None:
    status, printed = run(read_library_schedule(FOUND / f"{found}.schedule"), language, tmp_path)
    assert (status, printed.splitlines()[-1]) == (1, "BROKEN"), printed


def written(tmp_path: Path, deviation: str = "", **fields: str) -> Path:
    values = {"adapter": "redis-py", "form": "acquire(blocking=False)", "mode": "exclusive", "lease": "given:2000"}
    path = tmp_path / "it.schedule"
    path.write_text(COURSE.format(**values | fields) + deviation)
    return path


@pytest.mark.parametrize(
    ("language", "deviation", "reason"),
    [
        ("java", "", "is a library for python"),
        ("python", "before call client-1 thread-1 2: pause-client client-1 3000", "cannot bring about this deviation"),
    ],
)
def test_what_no_program_shows_is_refused(tmp_path: Path, language: str, deviation: str, reason: str) -> None:
    done = lockstorm("replay", "--as", language, str(written(tmp_path, deviation)))
    assert done.returncode == 2 and reason in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    (
        ("print('BROKEN')", "it was run once and shows it: BROKEN"),
        ("print('kept')", "it was run once and does NOT show it: kept"),
        ("print('not shown: calls end in another way')", "does NOT show it: not shown: calls end in another way"),
        (
            "import no_such_library",
            "it was run once and did not work: ModuleNotFoundError: No module named 'no_such_library'",
        ),
        ("import sys, redis; redis.Redis(port=int(sys.argv[1])).set('a', 1); print('BROKEN')", "shows it: BROKEN"),
    ),
)
def test_what_one_run_of_a_program_has_shown_is_said(tmp_path: Path, text: str, said: str) -> None:
    program = tmp_path / "found.py"
    program.write_text(text)
    assert said in run_standalone(program, "redis-py", "python")


def test_a_program_that_cannot_be_run_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run_standalone(tmp_path / "Found.java", "redisson", "java") == "it was not run: there is no java"


@pytest.mark.lengthy("runs for 3 s on a real server")
def test_the_command_runs_what_it_writes(tmp_path: Path) -> None:
    done = lockstorm("replay", "--as", "python", str(written(tmp_path)), "-o", str(tmp_path / "found.py"))
    assert done.returncode == 0, done.stderr
    assert "found.py is to show: " in done.stdout and "it was run once: kept" in done.stdout


def test_a_program_is_written_for_no_other_schedule(tmp_path: Path) -> None:
    done = lockstorm("replay", "--as", "python", str(next(paths.ROOT.glob("scenarios/found/*.schedule"))))
    assert done.returncode == 2 and "is no schedule of a library" in done.stderr, done.stderr


# --- what shows that a promise is broken ---


def ask(at_ms: int, call: str, client: int = 1) -> CallEvent:
    place = {"client": client, "thread": 1, "lock": 1, "resource": 1}
    return CallEvent(kind="ask", at_ns=at_ms * 1_000_000, call=call, mode="exclusive", **place)  # type: ignore[arg-type]


def answer(asked: CallEvent, place: int, at_ms: int, outcome: str = "ok") -> CallEvent:
    return structs.replace(asked, kind="answer", at_ns=at_ms * 1_000_000, asked=place, outcome=outcome)


def broken(promise: str, event: int, other: int = 0, expected_ms: int = 0, found_ms: int = 0) -> BrokenPromise:
    return BrokenPromise(promise, "", event, other, expected_ms, found_ms)


FIRST, RIVAL = ask(0, "acquire"), ask(500, "acquire", 2)
GRANTED, BESIDE = answer(FIRST, 0, 0), answer(RIVAL, 2, 500)
RELEASE = ask(1000, "release")
LEASE = CallEvent(kind="lease", at_ns=0, resource=1, remaining_ms=0)
IDLE = CallEvent(kind="idle", at_ns=9_000_000_000)


@pytest.mark.parametrize(
    ("events", "what", "proof"),
    [
        ([FIRST, GRANTED, RIVAL, BESIDE, RELEASE], broken("mutual_exclusion", 3, 1), Proof("granted", 2, before=3)),
        ([FIRST, GRANTED, RIVAL, BESIDE], broken("mutual_exclusion", 3, 1), Proof("granted", 2)),
        ([FIRST, GRANTED], broken("wait", 1, 0, 100, 700), Proof("slow", 1, limit_ms=400)),
        (
            [FIRST, GRANTED, RELEASE, answer(RELEASE, 2, 1000, "refused")],
            broken("ownership", 3, 1),
            Proof("outcome", 2, outcome="refused"),
        ),
        ([FIRST, GRANTED, LEASE], broken("lease-too-short", 2, 1, 2000, 1000), Proof("below", limit_ms=1500)),
        ([FIRST, GRANTED, LEASE], broken("renewal", 2, 1, 700, -2), Proof("below", limit_ms=349)),
        ([FIRST, GRANTED, LEASE], broken("lease-too-long", 2, 1, 2000, 4000), Proof("above", limit_ms=3000)),
        ([FIRST, GRANTED, RELEASE, LEASE], broken("cancel", 3, 1, 0, 800), Proof("above", limit_ms=-2)),
        ([FIRST, IDLE], broken("answer", 1, 0, 4000, 9000), Proof("unanswered", 1)),
        ([FIRST, GRANTED, RIVAL, IDLE], broken("refusal", 3, 0, 4000, 9000), Proof("unanswered", 2)),
    ],
)
def test_what_shows_that_a_promise_is_broken(events: list[CallEvent], what: BrokenPromise, proof: Proof) -> None:
    assert standalone_plan(events, what).proof == proof


def test_a_lease_without_an_end_is_read_as_such() -> None:
    """A key for ever remains for -1 ms: less than 0, and not -2, which is no key."""
    proof = standalone_plan([FIRST, GRANTED, LEASE], broken("lease-endless", 2, 1, 2000, -1)).proof
    assert proof == Proof("endless")


def test_a_key_is_read_after_the_answers_on_which_it_depends() -> None:
    """And what is called later in the schedule is called after that."""
    events = [
        FIRST,
        answer(FIRST, 0, 150),
        structs.replace(LEASE, at_ns=200_000_000),
        RELEASE,
        answer(RELEASE, 3, 1000),
    ]
    plan = standalone_plan(events, broken("lease-too-long", 2, 0, 500, 1500))
    assert plan.steps == (MainStep(200, reads=1, after=(1,), gap_ms=50),)
    assert [(call.at_ms, call.after) for call in plan.calls] == [(0, 0), (1000, READING)]


@beside_no_stall(STALL_MS)
def test_a_slow_call_is_not_read_before_its_answer(tmp_path: Path) -> None:
    """The acquire takes 400 ms, in the schedule 150. Its key lives for 2 s: more than the 1 s that are allowed here."""
    events = [FIRST, answer(FIRST, 0, 150), structs.replace(LEASE, at_ns=150_000_000)]
    asked = structs.replace(FIRST, form="acquire(blocking=False)", wait="none", lease="given", lease_ms=2000)
    for found_ms, expected in ((1500, "BROKEN"), (5000, "kept")):
        shown = broken("lease-too-long", 2, 0, 500, found_ms)
        offer, told = HostedOffer("it", "1"), [asked, *events[1:]]
        result = ReplayedLibrary("it", offer, 1, ["lease-too-long"], [shown], [], [], told, "", "", 1)
        text = standalone_program(read_library_schedule(written(tmp_path)), result, "python")
        assert text.count("if function() is False") == 1
        program = tmp_path / "found.py"
        program.write_text(text.replace("if function() is False", "if (time.sleep(0.4), function())[1] is False"))
        with outside_server(tmp_path) as server:
            done = subprocess.run(
                [sys.executable, program, str(server.port)], capture_output=True, text=True, timeout=60
            )
        assert done.stdout.splitlines()[-1] == expected, done.stdout + done.stderr


def test_calls_keep_their_order() -> None:
    plan = standalone_plan([FIRST, GRANTED, ask(0, "acquire", 2), RELEASE, answer(RELEASE, 3, 1000)], None)
    assert [(call.at_ms, call.after) for call in plan.calls] == [(0, 0), (GAP_MS, 1), (1000, 0)]
    assert plan.outcomes == {1: "ok", 3: "ok"} and plan.proof is None


def test_a_cancellation_is_a_step_of_the_main_thread_which_python_has_not(tmp_path: Path) -> None:
    waiting = ask(0, "acquire", 2)
    plan = standalone_plan([FIRST, GRANTED, waiting, ask(500, "cancel", 2)], None)
    assert [(step.at_ms, step.cancels) for step in plan.steps] == [(500, 2)]
    events = [FIRST, GRANTED, waiting, ask(500, "cancel", 2)]
    result = ReplayedLibrary("it", HostedOffer("it", "1"), 1, [], [], [], [], events, "", "", 0)
    with pytest.raises(UsageError, match="Python ends no thread's call"):
        standalone_program(read_library_schedule(written(tmp_path)), result, "python")


@pytest.mark.parametrize("promise", ["token", "validity"])
def test_a_promise_that_no_program_shows_is_named(promise: str) -> None:
    with pytest.raises(UsageError, match=promise):
        standalone_plan([FIRST, GRANTED], broken(promise, 1))
