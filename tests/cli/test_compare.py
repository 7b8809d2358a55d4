"""lockstorm compare: its measures of a history, and the command on real servers."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from lockstorm.base import paths
from lockstorm.base.errors import Inconclusive
from lockstorm.compare import measure
from lockstorm.compare.compare import Counters, Load, with_descendants
from lockstorm.compare.compare import measure_cell as measure_cell
from lockstorm.compare.comparison import CostCell
from lockstorm.compare.measure import LockEvent
from lockstorm.native.library import Kind, locks
from lockstorm.results.lock_entry import LockEntry
from tests.helpers.planting_served import BLIND_DELETE
from tests.helpers.support import ENVIRONMENT, lockstorm
from tests.helpers.support import trial as a_trial

US = 1000
SIGNS = {"?": Kind.ACQUIRE_INVOKE, "!": Kind.ACQUIRE_RETURN, "-": Kind.ACQUIRE_RETURN, ".": Kind.RELEASE_INVOKE}


def events_of(notation: str) -> list[LockEvent]:
    """A history from a short notation: "A?" A asks, "A!" is granted, "A-" is refused, "A." releases. Each event is 1 us
    after the previous one, or at the given time in us ("A!250")."""
    events: list[LockEvent] = []
    at_us = 0
    for item in notation.split():
        at_us = int(item[2:]) if item[2:] else at_us + 1
        events.append(LockEvent(SIGNS[item[1]], ord(item[0]), at_us * US, item[1] == "!"))
    return events


def us(values: list[int]) -> list[int]:
    return [value // US for value in values]


# --- pure functions ---


@pytest.mark.parametrize(
    ("notation", "took", "unserved"),
    [
        ("", [], 0),
        ("A?0 A!1 A.2 A?3 A!4 A.5", [], 0),  # no client waits
        ("A?0 A!1 B?2 A.10 B!17", [7], 0),
        ("A?0 A!1 A.2 B?3 B!9", [], 0),  # asked after the release: it did not wait for it
        ("A?0 A!1 B?2 A.10 C?11 C!12 C.13 B!30", [17, 20], 0),  # C barges in; B has waited for both releases
        ("A?0 A!1 B?2 A.10 A?11 A!12", [], 1),  # B was never let in
        ("A?0 A!1 B?2 B-5 A.10 C?11 C!12", [], 0),  # B had given up before
        ("A?0 A!1 B?2 A.10 B-12 C?13 C!14", [], 1),
        ("A?0 A!1 B?2 C?3 A.10 B!12 B.13 C!20", [2, 7], 0),
        ("A?0 A!1 B?2 A.10 B!9", [0], 0),  # stamps of two processes, in the opposite order
        ("B!4 A?5 A!6", [], 0),  # an answer without its acquire
    ],
)
def test_hand_overs(notation: str, took: list[int], unserved: int) -> None:
    found = measure.hand_overs(events_of(notation))
    assert (us(found.took_ns), found.unserved) == (took, unserved)


@pytest.mark.parametrize(
    ("notation", "took"),
    [
        ("A?0 A!1 A.2 A?3 A!4", []),
        ("A?0 A!1 B?2 A.10 B!17", [7]),
        ("A?0 A!1 B?2 A.10 C?11 C!12 C.13 B!30", [2, 17]),
        ("A?0 A!1 B?2 A.10 B-11 C?12 C!15", [5]),
    ],
)
def test_gaps_end_with_the_next_grant(notation: str, took: list[int]) -> None:
    assert us(measure.gaps_ns(events_of(notation))) == took


@pytest.mark.parametrize(
    ("notation", "passed"),
    [
        ("", []),
        ("A? A! A. B? B! B.", [0, 0]),
        ("A? B? C? A! A. B! B. C!", [0, 0, 0]),  # in order
        ("A? B? C? C! C. B! B. A!", [0, 1, 2]),  # in the opposite order, as answered
        ("A? A! B? A. A? A! A. A? A! A. B!", [0, 0, 0, 2]),  # the releaser comes back twice before B
        ("A? B? B! B. B? B! B.", [0, 0, 2]),  # A still waits at the end
        ("A? B? B- A!", [0, 0]),  # a refusal overtakes no client
        ("A? B? B! B. A-", [0, 1]),  # the client that gave up had been overtaken
    ],
)
def test_overtakings(notation: str, passed: list[int]) -> None:
    assert measure.overtakings(events_of(notation)) == passed


def test_overtakings_agree_with_their_definition() -> None:
    """Compared with counting pairs, on a long history in which a random waiter is granted the lock."""
    import random

    rng = random.Random(7)
    items, waiting = [], set[str]()
    for _ in range(400):
        if free := sorted(set("ABCDEFGH") - waiting):
            waiting.add(name := rng.choice(free))
            items.append(f"{name}?")
        if rng.random() < 0.6:
            waiting.remove(name := rng.choice(sorted(waiting)))
            items += [f"{name}!", f"{name}."]
    pending: dict[str, int] = {}
    granted = []
    for place, item in enumerate(items):
        if item[1] == "?":
            pending[item[0]] = place
        elif item[1] == "!":
            granted.append((pending.pop(item[0]), place))
    pairs = [sum(a < b and y < x for b, y in granted) for a, x in granted]
    pairs += [sum(a < b for b, _ in granted) for a in pending.values()]
    assert measure.overtakings(events_of(" ".join(items))) == pairs


@pytest.mark.parametrize(
    ("notation", "begun_us", "expected"),
    [
        ("A?0 A!1 A.2", 0, "A?0 A!1 A.2"),
        ("A?0 B?1 A!2 A.10 B!17", 10, "B?1 A.10 B!17"),  # B has waited since before
        ("A?0 B?1 B-5 A!6 A.10", 10, "A.10"),  # B had given up
        ("A?0 A!1 A.2", 9, ""),
        ("A?0 B?12 A?11", 12, "A?0 B?12 A?11"),  # stamps of two processes, in the opposite order
    ],
)
def test_a_window_begins_with_those_who_wait(notation: str, begun_us: int, expected: str) -> None:
    assert measure.events_from(events_of(notation), begun_us * US) == events_of(expected)


def test_waits_holders_and_the_end() -> None:
    events = events_of("A?0 B?1 A!5 B!6 C?7 A.8 B.9 A?10 A-20")
    assert us(measure.waits_ns(events)) == [5, 5]
    assert measure.most_holders(events) == 2
    assert measure.grant_times(events) == 2
    assert measure.last_grant_ns(events) == 6 * US
    assert measure.waiting_at_the_end(events) == 1
    assert (measure.most_holders([]), measure.last_grant_ns([]), measure.waiting_at_the_end([])) == (0, None, 0)


@pytest.mark.parametrize(
    ("values", "percent", "answer"),
    [([], 50, None), ([7], 50, 7), ([7], 99, 7), ([3, 1, 2], 50, 2), ([4, 3, 2, 1], 50, 2), ([*range(1, 101)], 99, 99)],
)
def test_percentile(values: list[int], percent: float, answer: int | None) -> None:
    assert measure.percentile(values, percent) == answer


def test_counters_are_taken_off_by_name() -> None:
    later, earlier = Counters(9, 100, {"set": 5, "info": 2}), Counters(4, 30, {"info": 1, "get": 0})
    assert later.minus(earlier) == Counters(5, 70, {"set": 5, "info": 1})


def test_a_history_of_real_clients_is_read(tmp_path: Path) -> None:
    with a_trial("set-nx-px") as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        two.acquire(wait_ms=0)
        one.release()
        events, full = measure.read_events(running.recorder.path)
        names = [SIGNS["?"], SIGNS["!"], SIGNS["?"], SIGNS["-"], SIGNS["."]]
        assert [event.kind for event in events] == names
        assert [event.granted for event in events] == [False, True, False, False, False]
        assert [event.client for event in events] == [one.identity] * 2 + [two.identity] * 2 + [one.identity]
        assert not full


# --- the step of the client ---


def test_hold_acquires_and_releases_the_given_number_of_times() -> None:
    with a_trial("set-nx-px") as running:
        one, two = running.clients(2)
        one.start_hold(turns=3, pace_us=50_000, work_ms=1)
        assert one.finish().turns == 3
        assert running.mono_ns == (100 + 1) * 1_000_000, "virtual time: the third try at 2 * 50 ms, held for 1 ms"
        assert two.acquire().ok
        events, _ = measure.read_events(running.recorder.path)
        assert measure.grant_times(events) == 4


# --- cells ---


def lock(name: str) -> LockEntry:
    return next(lock for lock in locks() if lock.name == name)


def check_measured(cell: CostCell) -> None:
    """Costs are not measured on a machine that stands still, which is played again, and then said."""
    if not cell.measured and cell.played_again:
        raise Inconclusive(cell.reason)
    assert cell.measured, cell.reason


def test_a_lock_alone_needs_exactly_its_commands() -> None:
    cell, _ = measure_cell(lock("set-nx-px"), Load(1), 200)
    check_measured(cell)
    assert cell.grants
    # A release at the beginning of the window and an acquire at its end belong to grants that are outside it:
    # two requests, four commands. The result has three decimals.
    assert cell.requests_per_grant == pytest.approx(2, abs=2 / cell.grants + 0.0005), "SET and EVALSHA"
    assert cell.commands_per_grant == pytest.approx(4, abs=4 / cell.grants + 0.0005), "GET and DEL in the script"
    assert set(cell.commands) == {"set", "evalsha", "get", "del"}
    assert cell.grants and cell.grants_per_s and cell.client_cpu_us_per_grant and cell.server_cpu_us_per_grant
    assert cell.hand_over_us is None
    assert cell.overtakings_per_grant is None


def test_a_library_is_measured_beside_a_lock(tmp_path: Path) -> None:
    """Its program's processor time counts as its client's, which alone needs some 35 us."""
    mine = tmp_path / "mine"
    mine.write_text(BLIND_DELETE)
    mine.chmod(0o755)
    words = ("--adapter", str(mine), "--waiters", "1", "--rate", "none", "--duration", "300ms", "--json")
    done = lockstorm("compare", "--lock", "set-nx-px", *words)
    assert done.returncode == 0, done.stderr
    ours, library = (msgspec.convert(cell, CostCell) for cell in json.loads(done.stdout)["cells"])
    assert (ours.lock, library.lock) == ("set-nx-px", f"adapter:{mine}")
    check_measured(library)
    assert library.grants and set(library.commands) == {"set", "del"}
    assert library.requests_per_grant == pytest.approx(2, abs=2 / library.grants + 0.0005)
    assert ours.client_cpu_us_per_grant and library.client_cpu_us_per_grant
    assert library.client_cpu_us_per_grant > 4 * ours.client_cpu_us_per_grant


def test_the_programs_of_a_process_are_found() -> None:
    with subprocess.Popen(["sh", "-c", "sleep 60 & echo $!; wait"], stdout=subprocess.PIPE, text=True) as shell:
        assert shell.stdout
        sleeper = int(shell.stdout.readline())
        assert with_descendants({shell.pid}) == {shell.pid, sleeper}
        os.kill(sleeper, signal.SIGKILL)


def test_polling_costs_requests_while_another_client_works() -> None:
    cell, _ = measure_cell(lock("set-nx-px"), Load(4, work_ms=20), 500)
    check_measured(cell)
    assert cell.grants and cell.window_s and cell.grants <= cell.window_s / 0.020 + 1, "each holds it for 20 ms"
    assert cell.requests_per_grant and cell.requests_per_grant > 2.1
    assert cell.holders_most == 1


def test_without_a_lock_there_is_no_exclusion() -> None:
    cell, _ = measure_cell(lock("none"), Load(4, work_ms=1), 100)
    assert cell.holders_most and cell.holders_most > 1
    assert cell.hand_over_us is None
    assert "held it at once" in cell.reason


def test_clients_that_share_processes_cost_the_same_requests() -> None:
    """A control of the host of many clients: alone, a client sends the same two commands from there."""
    cell, _ = measure_cell(lock("set-nx-px"), Load(1), 200, share_processes=True)
    check_measured(cell)
    assert cell.grants and cell.processes == 1
    # As above, and a request that the server had not read when the window began.
    assert cell.requests_per_grant == pytest.approx(2, abs=3 / cell.grants + 0.0005)
    assert set(cell.commands) == {"set", "evalsha", "get", "del"}


def test_many_waiters_share_processes() -> None:
    done = lockstorm(
        "compare", "--lock", "blpop", "--waiters", "200", "--rate", "none", "--duration", "300ms", "--json"
    )
    (cell,) = json.loads(done.stdout)["cells"]
    assert (cell["clients"], cell["processes"]) == (200, 2)
    if not cell["measured"] and cell["played_again"]:
        raise Inconclusive(cell["reason"])
    assert cell["holders_most"] == 1
    assert cell["server_cpu_us_per_grant"] > 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--lock", "pubsub,redlock", "--waiters", "8,20000"), "descriptors"),
    ],
)
def test_too_many_waiters_are_refused_before_anything_is_measured(words: tuple[str, ...], message: str) -> None:
    done = lockstorm("compare", *words, "--rate", "none")
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_a_rate_that_cannot_be_sustained_is_no_error() -> None:
    cell, _ = measure_cell(lock("set-nx-px"), Load(4, 1_000_000), 100)
    check_measured(cell)
    assert cell.sustained is False


@pytest.mark.slow("measures until a history is full", seconds=3)
def test_a_full_history_ends_the_measurement() -> None:
    cell, _ = measure_cell(lock("none"), Load(1), 1000)
    check_measured(cell)
    assert "history was full" in cell.reason
    assert cell.window_s and cell.window_s < 1


def test_a_server_that_is_missing_leaves_the_cell_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTORM_REDIS_SERVER", "no-such-redis-server")
    cell, pair = measure_cell(lock("set-nx-px"), Load(1), 100)
    assert (cell.measured, pair) == (False, None)
    assert "redis-server" in cell.reason


# --- the command ---

SMALL = ("compare", "--lock", "set-nx-px,setnx", "--waiters", "1,2", "--rate", "100", "--duration", "200ms")


def test_compare_as_json(tmp_path: Path) -> None:
    output = tmp_path / "costs.json"
    done = lockstorm(*SMALL, "--json", "-o", str(output))
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    answer = json.loads(done.stdout)
    assert json.loads(output.read_text()) == answer
    cells = answer["cells"]
    expected = [(lock, *load) for lock in ("set-nx-px", "setnx") for load in ((1, None), (2, None), (4, 100))]
    assert [(cell["lock"], cell["clients"], cell["rate"]) for cell in cells] == expected
    assert all(cell["measured"] for cell in cells)
    contended = cells[1]
    assert contended["cost_ratio"] > 0
    assert contended["hand_over_us"]["count"] + contended["hand_over_us"]["unserved"] >= 0
    assert 0 <= contended["overtakings_per_grant"] <= 2
    assert cells[2]["grants"] >= 10
    assert answer["reference"]["us"] > 0
    assert answer["machine"]["cores"] >= 1


@pytest.mark.slow("one more measurement; that in JSON is made every day", seconds=4)
def test_compare_as_a_table_with_its_bar_on_a_terminal() -> None:
    arguments = ("compare", "--lock", "setnx,none", "--waiters", "1,2", "--rate", "100", "--duration", "50ms")
    plain = lockstorm(*arguments)
    assert plain.returncode == 0, plain.stderr
    assert plain.stderr == "", "no bar where there is no terminal"
    assert "\x1b" not in plain.stdout
    for text in ("hand-over", "overtaken", "setnx", "100/s", "yes", "x bench"):
        assert text in plain.stdout
    assert bar_of(*arguments[:3], "--waiters", "1", "--rate", "none", "--duration", "50ms")


def bar_of(*arguments: str) -> bool:
    """Whether a terminal on standard error sees a bar, and standard output none of it."""
    master, slave = os.openpty()
    try:
        command = [sys.executable, "-m", "lockstorm", *arguments]
        environment = {**ENVIRONMENT, "TERM": "xterm"}
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=slave, cwd=paths.ROOT, env=environment)
        assert done.returncode == 0
        return b"setnx, clients: 1" in os.read(master, 1 << 20) and b"\x1b" not in done.stdout
    finally:
        os.close(master)
        os.close(slave)


def test_nothing_measured_is_inconclusive() -> None:
    environment = {**ENVIRONMENT, "LOCKSTORM_REDIS_SERVER": "no-such-redis-server"}
    done = lockstorm("compare", "--lock", "none", "--waiters", "1", "--rate", "none", "--json", env=environment)
    assert done.returncode == 3, done.stderr
    (cell,) = json.loads(done.stdout)["cells"]
    assert "redis-server" in cell["reason"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--lock", "setnyx"), "setnx"),
        (("--adapter", "./none"), "./none: there is no such program"),
        (("--waiters", "0"), "1 to 20,000"),
        (("--waiters", "20001"), "1 to 20,000"),
        (("--waiters", "1,,2"), "1,,2"),
        (("--waiters", "x"), "x"),
        (("--rate", "-5"), "-5"),
        (("--waiters", "none", "--rate", "none"), "nothing to measure"),
        (("--duration", "5"), "say the unit"),
        (("--duration", "1ms"), "10ms"),
        (("--duration", "2min"), "--duration 2min: from 10ms to 1min"),
        (("--work", "2s"), "--work"),
        (("-o", "/nowhere/at/all.json"), "does not exist"),
    ],
)
def test_wrong_input(arguments: tuple[str, ...], message: str) -> None:
    done = lockstorm("compare", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr
