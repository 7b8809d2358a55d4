"""The scheduler by itself: whose turn, what time, and whom it asks whether anything is in flight. The test plays tasks,
servers and proxy."""

import ctypes as c
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstorm.native.library import RunResult, TaskState, library
from lockstorm.servers.redis_server import mapped_clock
from tests.helpers.driving import MS, REAL, Driven, driven, targets
from tests.helpers.proxying import wait_until
from tests.helpers.support import short_directory

SLEEPING, WAITING, READY, RUNNING = TaskState.SLEEPING, TaskState.WAITING, TaskState.READY, TaskState.RUNNING
PROBING, HELD, IDLE = TaskState.PROBING, TaskState.HELD, TaskState.IDLE
EPOCH_S = 1_767_225_600  # 2026-01-01
SERVERS_MOST, TASKS_MOST = 32, 256


@pytest.fixture
def there() -> Iterator[Driven]:
    with short_directory() as directory, driven(directory) as running:
        yield running


# --- turns and time ---


def test_a_task_sleeps_until_its_deadline(there: Driven) -> None:
    task = there.puppet((SLEEPING, 50), (SLEEPING, 80))
    assert there.run(task) == RunResult.DONE
    assert task.turns == [(RUNNING, 0), (RUNNING, 50), (RUNNING, 80)]
    assert there.now_ms == 80


def test_who_sleeps_less_goes_on_first(there: Driven) -> None:
    late, soon = there.puppet((SLEEPING, 50)), there.puppet((SLEEPING, 20), (SLEEPING, 50))
    assert there.run(late, soon) == RunResult.DONE
    assert late.turns == [(RUNNING, 0), (RUNNING, 50)]
    assert soon.turns == [(RUNNING, 0), (RUNNING, 20), (RUNNING, 50)]


def test_a_run_ends_at_its_bound(there: Driven) -> None:
    task = there.puppet((SLEEPING, 50))
    assert there.run(until_ms=10) == RunResult.TIME
    assert there.now_ms == 10
    assert there.run(until_ms=10) == RunResult.TIME
    assert there.run(until_ms=50) == RunResult.TIME and there.now_ms == 50
    assert len(task.turns) == 2  # what is due at the bound happens before it
    assert there.run(until_ms=60) == RunResult.TIME and there.now_ms == 60


def test_without_a_deadline_nothing_can_go_on(there: Driven) -> None:
    waits = there.puppet(*[(WAITING, None)] * 9)
    assert there.run(waits) == RunResult.QUIET
    assert waits.turns == [(RUNNING, 0), (PROBING, 0)]
    sleeps = there.puppet((SLEEPING, 10))
    assert there.run(waits, sleeps) == RunResult.QUIET and there.now_ms == 10
    assert [what for what, _ in sleeps.turns] == [RUNNING, RUNNING]


def test_patience_bounds_a_run_without_a_bound(there: Driven) -> None:
    there.call("set_patience", 100 * MS)
    waits = there.puppet((HELD, 0))
    there.run(waits)
    renews = there.puppet(*[(SLEEPING, 30 * turn) for turn in range(1, 20)])
    missing = there.puppet((SLEEPING, 10_000))
    assert there.run(missing) == RunResult.LATE
    assert there.now_ms == 90 and len(renews.turns) == 4
    assert there.run(missing, until_ms=150) == RunResult.TIME and there.now_ms == 150


def test_a_run_ends_when_all_have_parked_or_the_first(there: Driven) -> None:
    one, two = there.puppet((SLEEPING, 10), (HELD, 0)), there.puppet((SLEEPING, 20))
    assert there.run(one, two, first=True) == RunResult.DONE and there.now_ms == 10
    assert TaskState(one.slot.state) == HELD
    assert there.run(one, two) == RunResult.DONE and there.now_ms == 20
    there.call("continue", one.number)
    assert there.run(one) == RunResult.DONE and TaskState(one.slot.state) == IDLE


def test_the_seed_decides_whose_turn_it_is() -> None:
    def order(seed: int) -> list[int]:
        with short_directory() as directory, driven(directory, seed=seed) as there:
            tasks = [there.puppet(*[(READY, 0)] * 5) for _ in range(4)]
            assert there.run(*tasks) == RunResult.DONE
            return there.order

    orders = [order(seed) for seed in range(40)]
    assert orders[:3] == [order(seed) for seed in range(3)]
    assert {each[0] for each in orders} == {0, 1, 2, 3}
    assert {each[-1] for each in orders} == {0, 1, 2, 3}
    assert all(sorted(each) == sorted([*range(4)] * 6) for each in orders)


def test_who_waits_for_an_answer_is_asked_before_the_clock_moves(there: Driven) -> None:
    server = there.server("redis-1")
    asks = there.puppet((WAITING, 100), (WAITING, 100), (READY, 0))
    sleeps = there.puppet((SLEEPING, 40))
    assert there.run(asks, sleeps) == RunResult.DONE
    assert asks.turns == [(RUNNING, 0), (PROBING, 0), (PROBING, 40), (RUNNING, 40)]
    assert server.pings >= 3 + 3  # before each of the two questions


def test_all_that_wait_are_asked_before_the_clock_moves(there: Driven) -> None:
    unanswered = there.puppet(*[(WAITING, 100)] * 4)
    answered = there.puppet((WAITING, 100), (READY, 0))
    assert there.run(unanswered, answered) == RunResult.DONE
    assert answered.turns == [(RUNNING, 0), (PROBING, 0), (RUNNING, 0)]
    assert unanswered.turns[-1] == (RUNNING, 100)


def test_who_waits_too_long_goes_on_at_its_deadline(there: Driven) -> None:
    asks = there.puppet((WAITING, 100), (WAITING, 100), (WAITING, 100))
    assert there.run(asks) == RunResult.DONE
    assert asks.turns == [(RUNNING, 0), (PROBING, 0), (PROBING, 100), (RUNNING, 100)]


def test_the_clock_stands_at_the_proxys_deadline(there: Driven) -> None:
    there.page.proxy_deadline_ns = 30 * MS
    task = there.puppet((SLEEPING, 100))
    times: list[float] = []
    proxy = there.proxy()
    answer = proxy._answer

    def deliver(words: list[str]) -> bytes | None:
        times.append(there.page.mono_ns / MS)
        if there.page.mono_ns >= 30 * MS:
            there.page.proxy_deadline_ns = 2**63 - 1
        return answer(words)

    proxy._answer = deliver  # type: ignore[method-assign]
    there.call("set_unreliable")
    assert there.run(task) == RunResult.DONE
    assert 30 in times and there.now_ms == 100


def test_what_is_stopped_gets_no_turn(there: Driven) -> None:
    """Neither a process that was stopped for two reasons, before the second of them is gone, nor a stalled task."""
    for index, stop in enumerate(("process", "task")):
        task, other = there.puppet((SLEEPING, 10)), there.puppet((SLEEPING, 20))
        task.slot.pid = 1000 + index
        set_stopped, whom = {"process": ("set_process_stopped", 1000), "task": ("set_task_stopped", task.number)}[stop]
        assert [there.call(set_stopped, whom, True) for _ in range(2)] == [1, 2]
        began = there.now_ms
        assert there.run(other) == RunResult.DONE
        assert task.turns == [] and len(other.turns) == 2
        assert there.call(set_stopped, whom, False) == 1
        assert there.run(until_ms=began + 100) == RunResult.TIME and task.turns == []
        assert there.call(set_stopped, whom, False) == 0
        assert there.call(set_stopped, whom, False) == 0
        assert there.run(task) == RunResult.DONE
        assert [turn for turn, _ in task.turns] == [RUNNING, RUNNING]


def test_a_stopped_sleeper_is_not_woken_and_holds_up_no_clock(there: Driven) -> None:
    task, other = there.puppet((SLEEPING, 10)), there.puppet((SLEEPING, 5), (SLEEPING, 40))
    assert there.run(until_ms=5) == RunResult.TIME
    there.call("set_task_stopped", task.number, True)
    assert there.run(other) == RunResult.DONE
    assert len(task.turns) == 1 and there.now_ms == 40
    there.call("set_task_stopped", task.number, False)
    assert there.run(task) == RunResult.DONE and there.now_ms == 40


def test_processes_are_stopped_apart_from_each_other(there: Driven) -> None:
    one, two = there.puppet(), there.puppet()
    one.slot.pid, two.slot.pid = 1001, 1002
    assert [there.call("set_process_stopped", pid, True) for pid in (1001, 1002, 1003, 1001)] == [1, 1, 1, 2]
    assert (one.slot.stopped, two.slot.stopped) == (1, 1)
    there.call("forget_process", 1001)
    assert TaskState(one.slot.state) == TaskState.GONE and TaskState(two.slot.state) == READY
    assert [there.call("set_process_stopped", pid, False) for pid in (1001, 1002)] == [0, 0]
    assert there.call("set_process_stopped", 1003, True) == 2
    assert two.slot.stopped == 0


def test_both_reasons_for_no_turn_are_kept_apart(there: Driven) -> None:
    task = there.puppet()
    task.slot.pid = 1001
    there.call("set_process_stopped", 1001, True)
    there.call("set_task_stopped", task.number, True)
    assert task.slot.stopped == 3
    there.call("set_process_stopped", 1001, False)
    assert task.slot.stopped == 2
    assert there.run(until_ms=1) == RunResult.TIME and task.turns == []
    there.call("reuse_task", task.number)
    assert task.slot.stopped == 0
    assert there.call("set_task_stopped", task.number, True) == 1


def test_who_keeps_the_turn_is_stuck(there: Driven) -> None:
    task = there.puppet()
    task.keeps_turn = True
    tasks = (c.c_int * 1)(task.number)
    assert RunResult(there.call("run", tasks, 1, False, 2**63 - 1, 50)) == RunResult.STUCK
    assert len(task.turns) == 1


def test_who_keeps_the_turn_when_it_is_asked_is_stuck(there: Driven) -> None:
    task = there.puppet()
    task.keeps_turn = True
    task.slot.deadline_ns, task.slot.state = 100 * MS, WAITING
    tasks = (c.c_int * 1)(task.number)
    assert RunResult(there.call("run", tasks, 1, False, 2**63 - 1, 50)) == RunResult.STUCK
    assert task.turns == [(PROBING, 0)]


def test_a_signal_ends_a_run(there: Driven) -> None:
    signalled = os.eventfd(0)
    try:
        there.call("set_signal_fd", signalled)
        task = there.puppet()
        task.keeps_turn = True
        os.eventfd_write(signalled, 1)
        assert there.run(task) == RunResult.INTERRUPTED
    finally:
        os.close(signalled)


def test_the_end_of_a_process_is_seen(there: Driven) -> None:
    task, other = there.puppet(), there.puppet((SLEEPING, 10))
    task.keeps_turn = True
    process = subprocess.Popen(["true"])
    assert there.call("watch", task.number, process.pid)
    assert there.run(task) == RunResult.DIED
    process.wait()
    assert there.call("dead") == process.pid
    assert TaskState(there.call("state", task.number)) == TaskState.GONE
    assert there.run(task, other) == RunResult.DONE and there.now_ms == 10
    assert not there.call("watch", task.number, process.pid)


def test_the_end_of_a_process_is_noted_in_no_slot_that_was_not_given_out(there: Driven) -> None:
    task = there.puppet()
    task.keeps_turn = True
    process = subprocess.Popen(["true"])
    behind = there.slot(task.number + 1)
    behind.pid, behind.state = process.pid, SLEEPING
    assert there.call("watch", task.number, process.pid)
    assert there.run(task) == RunResult.DIED
    process.wait()
    assert TaskState(behind.state) == SLEEPING


def test_only_a_child_can_be_stopped_between_records(there: Driven) -> None:
    """Of another process the scheduler would not see that it has stopped."""
    number = there.call("add_task")
    shell = subprocess.Popen(["sh", "-c", "sleep 60 & echo $!; wait"], stdout=subprocess.PIPE, text=True)
    assert shell.stdout
    grandchild = int(shell.stdout.readline())
    try:
        for pid, stops in ((grandchild, False), (shell.pid, True), (0, False)):
            there.slot(number).pid = pid
            assert there.call("stop_between_records", number) == stops
    finally:
        os.kill(grandchild, signal.SIGKILL)
        shell.kill()
        shell.communicate()


def test_closing_none_is_harmless() -> None:
    library().scheduler_close(None)


def test_a_slot_is_used_again(there: Driven) -> None:
    task = there.puppet((HELD, 0))
    there.run(task)
    there.call("set_host_clock", task.number, 5, 0)
    there.call("arm", task.number, b"before-write", 2)
    assert (task.slot.armed_at, task.slot.armed_countdown) == (b"before-write", 2)
    task.slot.valid_until_ns = task.slot.appends = task.slot.standing = 9
    there.call("wind_down", task.number)
    assert task.slot.last_turn == 1
    there.call("reuse_task", task.number)
    slot = task.slot
    assert TaskState(slot.state) == TaskState.ABSENT and slot.wall_offset_ns == 5
    assert (slot.armed_countdown, slot.valid_until_ns, slot.appends, slot.standing, slot.pid) == (0, 0, 0, 0, 0)


@pytest.mark.parametrize("state", [SLEEPING, WAITING, READY, RUNNING])
def test_a_slot_that_was_not_given_out_takes_no_part(there: Driven, state: TaskState) -> None:
    task = there.puppet((SLEEPING, 10), (HELD, 0))
    other = there.slot(task.number + 1)
    other.state, other.deadline_ns = state, 5 * MS
    assert there.run(task) == RunResult.DONE
    assert (TaskState(other.state), there.now_ms) == (state, 10)
    assert [now_ms for _, now_ms in task.turns] == [0, 10]


def test_there_is_room_for_so_many_tasks_and_servers(there: Driven) -> None:
    _, hard = limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    without_descriptors = there.call("add_task")
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert without_descriptors == -1
    assert [there.call("add_task") for _ in range(TASKS_MOST + 1)] == [*range(TASKS_MOST), -1]
    clock = bytes(there.directory / "clock")
    numbers = [there.call("add_server", clock, None, there.message) for _ in range(SERVERS_MOST + 1)]
    assert numbers == [*range(SERVERS_MOST), -1]
    assert str(there.message) == f"more than {SERVERS_MOST} servers in one trial"


# --- clocks ---


def clock_text(path: Path) -> str:
    return path.read_bytes().split(b"\n")[0].decode()


def clock_error(there: Driven, whose: str, number: int) -> tuple[bool, int, int]:
    offset_ns, drift_ppm = c.c_int64(-1), c.c_int64(-1)
    known = there.call(f"{whose}_clock_error", number, c.byref(offset_ns), c.byref(drift_ppm))
    return known, offset_ns.value, drift_ppm.value


def test_the_clock_of_a_host(there: Driven) -> None:
    host = there.call("add_task")
    there.page.mono_ns = 1000 * MS
    there.call("set_host_clock", host, 5000 * MS, 2000)
    there.page.mono_ns = 11_000 * MS
    gained_ns = 20 * MS  # 2000 ppm of 10 s
    assert there.call("host_wall_ns", host) == (EPOCH_S * 1000 + 16_000) * MS + gained_ns
    assert clock_error(there, "host", host) == (True, 5000 * MS + gained_ns, 2000)
    there.call("set_host_clock", host, -1000 * MS, 0)
    assert there.call("host_wall_ns", host) == (EPOCH_S * 1000 + 10_000) * MS
    assert clock_error(there, "host", host) == (True, -1000 * MS, 0)


def test_a_suspended_host_stands_still(there: Driven) -> None:
    host = there.call("add_task")
    there.page.mono_ns = 100 * MS
    assert [there.call("set_host_suspended", host, each) for each in (True, True)] == [1, 2]
    there.page.mono_ns = 250 * MS
    assert there.call("host_mono_ns", host) == 100 * MS
    assert there.call("set_host_suspended", host, False) == 1
    there.page.mono_ns = 300 * MS
    assert there.call("host_mono_ns", host) == 100 * MS
    assert [there.call("set_host_suspended", host, False) for _ in range(2)] == [0, 0]
    assert there.call("host_mono_ns", host) == 100 * MS
    there.page.mono_ns = 340 * MS
    assert there.call("host_mono_ns", host) == 140 * MS
    there.call("set_host_suspended", host, True)
    there.page.mono_ns = 350 * MS
    there.call("set_host_suspended", host, False)
    assert there.call("host_mono_ns", host) == 140 * MS


def test_the_clock_of_a_server_in_virtual_time(there: Driven) -> None:
    path = there.directory / "clock"
    server = there.server("redis-1", clock=path).number
    assert clock_text(path) == "2026-01-01 00:00:00.0000005"
    assert there.call("set_server_clock", server, 2500 * MS, 1000)
    assert clock_text(path) == "2026-01-01 00:00:02.5000005"
    task = there.puppet((SLEEPING, 10_000))
    assert there.run(task) == RunResult.DONE
    assert clock_text(path) == "2026-01-01 00:00:12.5100005"  # 1000 ppm of 10 s
    assert there.call("server_wall_us", server) == EPOCH_S * 10**6 + 12_510_000
    assert clock_error(there, "server", server) == (True, 2510 * MS, 1000)
    assert there.call("set_server_clock", server, 0, 0)
    assert clock_text(path) == "2026-01-01 00:00:10.0000005"


class RealClock:
    """The clock of a server in real time, set by the scheduler and read by a process with the preloaded library."""

    READER = "import sys, time\nfor _ in sys.stdin: print(time.time_ns(), time.monotonic_ns(), flush=True)"

    def __init__(self, there: Driven) -> None:
        path = there.directory / "clock"
        self.there, self.server = there, there.server("redis-1", clock=path).number
        environment = {**os.environ, **dict(word.split("=", 1) for word in mapped_clock(path))}
        command = [sys.executable, "-c", self.READER]
        pipe = subprocess.PIPE
        self.reader = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment, text=True)

    def set(self, step_ns: int, drift_ppm: int) -> tuple[int, int]:
        """Moves the clock by step_ns and changes its rate. Returns stamps from before and after that."""
        before_ns = time.monotonic_ns()
        offset_ns, _ = self.error()
        assert self.there.call("set_server_clock", self.server, offset_ns + step_ns, drift_ppm)
        return before_ns, time.monotonic_ns()

    def error(self) -> tuple[int, int]:
        """By how many ns the scheduler says that it is ahead, and its drift in ppm."""
        known, offset_ns, drift_ppm = clock_error(self.there, "server", self.server)
        assert known
        return offset_ns, drift_ppm

    def ahead_ns(self) -> tuple[int, int]:
        """By how much the clock is ahead: at least, and at most. The monotonic clock is the machine's."""
        assert self.reader.stdin and self.reader.stdout
        before_ns, before_mono_ns = time.time_ns(), time.monotonic_ns()
        self.reader.stdin.write("\n")
        self.reader.stdin.flush()
        wall_ns, mono_ns = map(int, self.reader.stdout.readline().split())
        after_mono_ns, after_ns = time.monotonic_ns(), time.time_ns()
        assert before_mono_ns <= mono_ns <= after_mono_ns
        return wall_ns - after_ns, wall_ns - before_ns

    def close(self) -> None:
        self.reader.kill()
        self.reader.communicate()


@pytest.fixture
def real_clock() -> Iterator[RealClock]:
    with short_directory() as directory, driven(directory, REAL) as there:
        made = RealClock(there)
        yield made
        made.close()


HOUR_NS = 3600 * 10**9
TOGETHER_NS = 100_000  # what a reading may be wrong by: two clocks are read one after the other, at ten times the speed


def test_a_servers_clock_in_real_time_is_the_machines_and_jumps(real_clock: RealClock) -> None:
    for step_ns, ahead_ns in ((0, 0), (-HOUR_NS, -HOUR_NS), (HOUR_NS + 250 * MS, 250 * MS), (-250 * MS, 0)):
        real_clock.set(step_ns, 0)
        least_ns, most_ns = real_clock.ahead_ns()
        assert least_ns <= ahead_ns <= most_ns
        assert real_clock.error() == (ahead_ns, 0)


@pytest.mark.waits
@pytest.mark.parametrize("ppm", [9_000_000, 500_000, 100, -500_000, -899_999])
def test_a_servers_clock_in_real_time_drifts_and_jumps_meanwhile(real_clock: RealClock, ppm: int) -> None:
    begin_ns, begun_ns = real_clock.set(0, ppm)
    lost_ns = 0
    for step_ns in (0, HOUR_NS, -2 * HOUR_NS):
        stepping_ns, stepped_ns = real_clock.set(step_ns, ppm)
        lost_ns += stepped_ns - stepping_ns  # the clock stands at most for that long
        time.sleep(0.02)
        before_ns = time.monotonic_ns()
        least_ns, most_ns = real_clock.ahead_ns()
        lasted_ns = (before_ns - begun_ns - lost_ns, time.monotonic_ns() - begin_ns)
        low_ns, high_ns = sorted(each * ppm / 1e6 for each in lasted_ns)
        jumped_ns = {0: 0, HOUR_NS: HOUR_NS}.get(step_ns, -HOUR_NS)
        assert least_ns <= jumped_ns + high_ns + TOGETHER_NS
        assert most_ns >= jumped_ns + low_ns - TOGETHER_NS
        assert high_ns - low_ns < abs(low_ns + high_ns), "the machine was fast enough to see it"
    real_clock.set(0, 0)
    healed_ns, _ = real_clock.error()
    for _ in range(2):
        least_ns, most_ns = real_clock.ahead_ns()
        assert least_ns <= healed_ns <= most_ns
        time.sleep(0.01)
    real_clock.set(-healed_ns, 0)
    least_ns, most_ns = real_clock.ahead_ns()
    assert least_ns <= 0 <= most_ns


def test_the_machines_clock_is_not_changed(there: Driven) -> None:
    server = there.server("redis-1").number
    assert not there.call("set_server_clock", server, 1, 0)
    assert not clock_error(there, "server", server)[0]


def test_a_clock_that_cannot_be_written(there: Driven) -> None:
    assert there.call("add_server", b"/no/such/directory/clock", None, there.message) == -1
    assert str(there.message) == "/no/such/directory/clock: No such file or directory"


# --- whether anything is in flight ---


def test_every_server_answers_three_pings_between_two_looks_at_the_proxy(there: Driven) -> None:
    servers = [there.server(name) for name in ("redis-1", "redis-2")]
    proxy = there.proxy()
    assert there.settle()
    assert [server.pings for server in servers] == [3, 3]
    assert proxy.said == ["SETTLE TARGETS"] * 2
    assert servers[0].said[0] == "CLIENT SETNAME lockstorm"


@pytest.mark.parametrize("joined,pings", [(0, 2), (1, 3)])
def test_a_server_that_was_written_to_meanwhile_is_asked_again(there: Driven, joined: int, pings: int) -> None:
    """A connection that was only just accepted is read after the first PING."""
    one, two = (there.server(name) for name in ("redis-1", "redis-2"))
    proxy = there.proxy(targets(), targets((two, joined)))
    assert there.settle()
    assert (one.pings, two.pings) == (3, 3 + pings)
    assert proxy.said == ["SETTLE TARGETS"] * 3


def test_an_address_that_nobody_knows_may_be_any_server(there: Driven) -> None:
    one, two = (there.server(name) for name in ("redis-1", "redis-2"))
    there.proxy(targets(), targets(("elsewhere", 0)))
    assert there.settle()
    assert (one.pings, two.pings) == (6, 6)


def test_where_there_are_replicas_they_acknowledge_once(there: Driven) -> None:
    """What the fence makes their master send would never end. WAIT is about what the asker itself has had sent."""
    one, two = (there.server(name) for name in ("redis-1", "redis-2"))
    proxy = there.proxy(targets(), targets((one, 0)))
    there.call("set_server_replicas", one.number, 1)
    assert there.settle()
    assert one.said.count("WAIT 1 0") == 1 and one.said[-3:] == ["PUBLISH lockstorm-fence -", "WAIT 1 0", "PING"]
    assert two.said.count("WAIT 1 0") == 0
    assert proxy.said == ["SETTLE TARGETS"] * 2
    there.call("set_server_replicas", one.number, 2)
    assert not there.settle()
    assert there.unanswered == f"the replicas of {one.path} do not acknowledge"
    there.call("set_server_busy", one.number, True)
    assert there.settle()


def test_a_server_that_is_silent_on_purpose_is_not_asked(there: Driven) -> None:
    one, two = (there.server(name) for name in ("redis-1", "redis-2"))
    assert there.call("server_works", one.number)
    for _ in range(2):
        there.call("set_server_silent", one.number, True)
    assert there.settle() and not there.call("server_works", one.number)
    there.call("set_server_silent", one.number, False)
    assert there.settle() and not there.call("server_works", one.number)
    assert (one.pings, two.pings) == (0, 6)
    there.call("set_server_silent", one.number, False)
    assert there.settle() and there.call("server_works", one.number)
    assert (one.pings, two.pings) == (3, 9)
    there.call("set_server_silent", one.number, True)  # and keeps no connection to it
    there.call("set_server_silent", one.number, False)
    assert there.settle() and len(one.connections) == 2


def test_a_busy_server_is_asked(there: Driven) -> None:
    server = there.server("redis-1")
    there.call("set_server_busy", server.number, True)
    assert there.settle() and server.pings == 3
    assert not there.call("server_works", server.number)
    there.call("set_server_busy", server.number, False)
    assert there.call("server_works", server.number)


def test_a_lost_connection_is_made_anew_once(there: Driven) -> None:
    server = there.server("redis-1")
    assert there.settle()
    server.hang_up()
    assert there.settle() and len(server.connections) == 2
    server.hang_up()
    server.answers["PING"] = None
    assert not there.settle()
    assert there.unanswered == f"no answer to a PING at {server.path}"
    server.answers["PING"] = b"+PONG\r\n"
    assert there.call("server_answers", server.number) and there.settle()


def test_a_server_that_answers_after_its_connection_was_lost(there: Driven) -> None:
    server = there.server("redis-1")
    assert there.call("server_answers", server.number)
    server.hang_up()
    assert there.call("server_answers", server.number)
    server.answers["PING"] = None
    assert not there.call("server_answers", server.number)


@pytest.mark.parametrize("answer", [b":-1\r\n", b"-ERR\r\n", b"*2\r\n:-1\r\n$1\r\nx\r\n", b"*0\r\n"])
def test_a_proxy_that_answers_something_else(there: Driven, answer: bytes) -> None:
    there.proxy(answer)
    assert not there.settle()
    assert there.unanswered == "the proxy does not answer"


def test_a_proxy_that_is_not_there(there: Driven) -> None:
    path = there.directory / "nowhere"
    assert not there.call("set_proxy", bytes(path), there.message)
    assert str(there.message) == f"the proxy at {path}: No such file or directory"


def test_nothing_is_asked_again_while_nothing_was_sent(there: Driven) -> None:
    """But after something was, or once the clock has moved."""
    server = there.server("redis-1")
    there.call("set_unreliable")
    task = there.puppet((READY, 0), (READY, 0), (READY, 0), (HELD, 0))
    assert there.run(task) == RunResult.DONE
    assert server.pings == 3
    there.page.traffic += 1
    there.call("continue", task.number)
    task.script = [(SLEEPING, 10), (HELD, 0)]
    assert there.run(task) == RunResult.DONE
    assert server.pings == 6


def test_where_replies_always_come_nothing_is_asked_before_a_turn(there: Driven) -> None:
    server = there.server("redis-1")
    task = there.puppet((READY, 0), (SLEEPING, 10))
    assert there.run(task) == RunResult.DONE
    assert server.pings == 0


def test_what_nobody_waits_for_arrives_before_the_next_turn(there: Driven) -> None:
    server = there.server("redis-1")
    there.page.unawaited = 1
    task = there.puppet((READY, 0), (READY, 0))
    assert there.run(task) == RunResult.DONE
    assert server.pings == 3


def test_what_is_closed_keeps_no_connection(there: Driven) -> None:
    peers = [there.server("redis-1"), there.server("redis-2"), there.proxy()]
    assert there.settle()
    there.call("close")
    there.scheduler = None
    wait_until(lambda: all(each.connections[0].fileno() < 0 for each in peers))


def test_a_server_that_looks_at_the_clock_by_itself_has_looked(there: Driven) -> None:
    """It is observed and not asked, and has to look again only when the clock has moved. Here it has ended by then."""
    server = there.server("zookeeper-1")
    looking = "import time\nwhile True: time.sleep(0.01)"
    with subprocess.Popen([sys.executable, "-c", looking]) as process:
        try:
            there.call("set_server_process", server.number, process.pid)
            there.call("set_server_timer", server.number, process.pid, b"127.0.0.1:2181")
            assert there.settle(), there.unanswered
            assert server.pings == 0
        finally:
            process.kill()
    for moved_ns, reason in ((0, "does not become idle"), (MS, "does not look at its clock")):
        there.page.mono_ns += moved_ns
        there.page.traffic += 1
        assert not there.settle()
        assert there.unanswered == f"process {process.pid} {reason}"


def test_a_process_that_has_ended_is_not_waited_for() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    await_quiescence = library().processes_await_quiescence
    await_quiescence.restype, await_quiescence.argtypes = c.c_bool, [c.c_int, c.c_int64]
    began = time.monotonic()
    assert not await_quiescence(ended.pid, 3_600_000)
    assert time.monotonic() - began < 600, "an hour is the limit for a process that lives"
