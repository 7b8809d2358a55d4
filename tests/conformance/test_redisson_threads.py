"""Redisson's adapters in protocol 2: threads and lock objects of one program, on a server of their own."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lockstorm.base.errors import NotInstalled
from lockstorm.locks.adapter import PREFIX, AdapterProgram, adapter_entry, adapter_path
from lockstorm.process.process import Sandbox
from lockstorm.scenario.library_expected import adapters_in_trials
from lockstorm.servers.redis_server import RedisServer
from tests.helpers.proxying import wait_until
from tests.helpers.stalls import beside_no_stall

pytestmark = pytest.mark.waits  # a library runs in real time only
ONE_MORE = pytest.mark.slow("starts a Java virtual machine for one more lock of this library", seconds=4)
LOCKS = [name for name in adapters_in_trials() if name.startswith("redisson") and "semaphore" not in name]
NODES = {"redisson-redlock": 3}
LIMIT_S = 30.0
LIBRARY_LIMIT_MS = 1000  # how long the adapters let the library wait for an answer
LEASE_MS = 30_000  # of the watchdog, where a test is not about it
SHORT_LEASE_MS = 4500


class ThreadedProgram:
    """An adapter whose answers come in any order: `ask` waits for one, `send` returns the number of its question."""

    def __init__(self, name: str, servers: list[RedisServer], **of_open: Any) -> None:
        self.program = AdapterProgram(str(adapter_path(name)))
        self.answers: dict[int, dict[str, Any]] = {}
        self.hello = self.ask("hello", protocol=2)
        nodes = [{"host": "127.0.0.1", "port": server.port} for server in servers[: self.hello.get("nodes", 1)]]
        options = {"resource": "r", "lease_ms": LEASE_MS, "permits": 1, "fixed_lease": False, "nodes": nodes}
        assert self.ask("open", **{**options, **of_open})["outcome"] == "ok"

    def send(self, verb: str, **more: Any) -> int:
        self.program.send(verb, **more)
        return self.program.number

    def answer(self, number: int, limit_s: float = LIMIT_S) -> dict[str, Any]:
        while number not in self.answers:
            line = self.program._line(limit_s)
            assert line is not None, f"no answer to {number} in {limit_s} s"
            answer = json.loads(line)
            self.answers[answer["id"]] = answer
        return self.answers.pop(number)

    def ask(self, verb: str, **more: Any) -> dict[str, Any]:
        return self.answer(self.send(verb, **more))

    def outcome(self, verb: str, **more: Any) -> str:
        return str(self.ask(verb, **more)["outcome"])

    def is_waiting(self, number: int, for_s: float = 0.4) -> bool:
        line = self.program._line(for_s)
        if line is not None:
            self.answers[json.loads(line)["id"]] = json.loads(line)
        return number not in self.answers


@pytest.fixture(scope="module")
def servers() -> Iterator[list[RedisServer]]:
    sandbox = Sandbox()
    try:
        started = [RedisServer(sandbox, f"redis-{number}", clock=None) for number in (1, 2, 3)]
        for server in started:
            server.ready()
            server.listen()
        yield started
        for server in started:
            server.close()
    finally:
        sandbox.close()


@pytest.fixture
def start(servers: list[RedisServer]) -> Iterator[Callable[..., ThreadedProgram]]:
    programs = []

    def started(name: str, **of_open: Any) -> ThreadedProgram:
        try:
            adapter_entry(PREFIX + name)
        except NotInstalled as reason:
            pytest.skip(str(reason))
        for server in servers:
            server.link.flushall()
        programs.append(ThreadedProgram(name, servers, **of_open))
        return programs[-1]

    yield started
    for program in programs:
        program.program.close()


@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name == "redisson" else ONE_MORE) for name in LOCKS])
@beside_no_stall(LIBRARY_LIMIT_MS)
def test_two_threads_of_a_program_exclude_each_other(name: str, start: Callable[..., ThreadedProgram]) -> None:
    program = start(name)
    assert program.hello["protocol"] == 2 and program.hello["owner"] == "thread"
    assert program.outcome("acquire", thread=1, lock=1, wait_ms=0, lease_ms=None) == "ok"
    assert program.outcome("acquire", thread=2, lock=1, wait_ms=0, lease_ms=None) == "refused"
    waits = program.send("acquire", thread=2, lock=2, wait_ms=None, lease_ms=None)
    assert program.is_waiting(waits)
    if "is_held" in program.hello["operations"]:
        assert program.outcome("is_held", thread=1, lock=2) == "ok"  # the thread owns it, through any object
        assert program.outcome("is_held", thread=3, lock=1) == "refused"
    assert program.outcome("release", thread=3, lock=1) == "refused"
    assert program.outcome("release", thread=1, lock=1) == "ok"
    assert program.answer(waits)["outcome"] == "ok"
    assert program.outcome("release", thread=2, lock=2) == "ok"


@beside_no_stall(LIBRARY_LIMIT_MS)
def test_a_writer_reads_inside_and_readers_share(start: Callable[..., ThreadedProgram]) -> None:
    program = start("redisson-read-write")
    assert program.hello["modes"] == ["read", "write"] and program.hello["reenters"] == ["same", "write-read"]
    assert program.outcome("acquire", thread=1, mode="write", wait_ms=0, lease_ms=None) == "ok"
    assert program.outcome("acquire", thread=1, mode="read", wait_ms=0, lease_ms=None) == "ok"
    assert program.outcome("acquire", thread=2, mode="read", wait_ms=0, lease_ms=None) == "refused"
    assert program.outcome("release", thread=1, mode="write") == "ok"
    assert program.outcome("acquire", thread=2, mode="read", wait_ms=0, lease_ms=None) == "ok"
    assert program.outcome("acquire", thread=3, mode="write", wait_ms=0, lease_ms=None) == "refused"
    assert program.outcome("release", thread=1, mode="read") == "ok"
    assert program.outcome("release", thread=2, mode="read") == "ok"


INTERRUPTIBLE = ["lockInterruptibly()", "lockAsync(threadId)", "tryLock(wait, SECONDS)"]


@pytest.mark.parametrize("form", INTERRUPTIBLE)
@beside_no_stall(LIBRARY_LIMIT_MS)
def test_a_cancel_ends_a_waiting_call_and_leaves_nothing(
    form: str, start: Callable[..., ThreadedProgram], servers: list[RedisServer]
) -> None:
    program = start("redisson")
    assert program.outcome("acquire", thread=1, lease_ms=None) == "ok"
    waits = program.send("acquire", thread=2, form=form, wait_ms=60_000 if "wait" in form else None, lease_ms=None)
    wait_until(lambda: servers[0].link.pubsub_channels())
    assert program.outcome("cancel", call=waits) == "ok"
    answer = program.answer(waits)
    assert (answer["outcome"], answer["cancelled"]) == ("unknown", True)
    assert program.outcome("cancel", call=waits) == "refused"
    assert program.outcome("is_held", thread=2) == "refused"
    assert program.outcome("release", thread=1) == "ok"
    # Redisson may keep its subscription: that is for a search to judge.
    wait_until(lambda: not servers[0].link.keys("*"), within_s=5.0)
    assert program.outcome("acquire", thread=2, wait_ms=0, lease_ms=None) == "ok"  # its thread goes on, uninterrupted


@beside_no_stall(LIBRARY_LIMIT_MS)
def test_a_form_that_no_interrupt_ends_is_not_cancelled(start: Callable[..., ThreadedProgram]) -> None:
    program = start("redisson")
    assert program.outcome("acquire", thread=1, lease_ms=None) == "ok"
    waits = program.send("acquire", thread=2, form="lock()", lease_ms=None)
    assert program.is_waiting(waits)
    assert "does not promise" in program.ask("cancel", call=waits)["error"]
    forgotten = program.ask("forget")
    assert forgotten["outcome"] == "unknown" and "thread-2" in forgotten["error"]


@beside_no_stall(LIBRARY_LIMIT_MS)
def test_forget_leaves_no_key_renewed(start: Callable[..., ThreadedProgram], servers: list[RedisServer]) -> None:
    program = start("redisson-read-write", lease_ms=SHORT_LEASE_MS)
    for asked in (("r", 1, 1, "write"), ("r", 1, 1, "write"), ("r", 1, 1, "read"), ("other", 2, 2, "read")):
        more = dict(zip(("resource", "thread", "lock", "mode"), asked, strict=True))
        assert program.outcome("acquire", **more, lease_ms=None) == "ok"
    await_renewal(servers[0], "r")
    await_renewal(servers[0], "other")
    assert program.outcome("forget") == "ok"
    wait_until(lambda: not servers[0].link.exists("r", "other"), within_s=3 * SHORT_LEASE_MS / 1000)
    assert program.outcome("is_held", thread=1, mode="write") == "refused"
    assert program.outcome("acquire", thread=1, lock=3, resource="r2", wait_ms=0, mode="write", lease_ms=None) == "ok"
    assert program.outcome("release", thread=1, lock=3, mode="write") == "ok"


def await_renewal(server: RedisServer, key: str) -> None:
    """Waits until the remaining time of the key has risen."""
    seen = [server.link.pttl(key)]

    def is_renewed() -> bool:
        seen.append(server.link.pttl(key))
        return bool(0 < seen[-2] < seen[-1])

    wait_until(is_renewed)


@pytest.mark.slow("one more program in Java", seconds=6)
@beside_no_stall(LIBRARY_LIMIT_MS)
def test_forget_leaves_no_timer_that_renews_what_comes_next(
    start: Callable[..., ThreadedProgram], servers: list[RedisServer]
) -> None:
    program = start("redisson", lease_ms=SHORT_LEASE_MS)
    for workload in range(4):
        asked = {"thread": 1, "lock": 1, "resource": f"r{workload}"}
        assert program.outcome("acquire", **asked, lease_ms=None) == "ok"
        if workload < 3:
            assert program.outcome("release", **asked) == program.outcome("forget") == "ok"
    before, since_us = scripts_run(servers[0]), servers[0].time_us()
    wait_until(lambda: scripts_run(servers[0]) >= before + 3)
    assert servers[0].time_us() - since_us > 2 * SHORT_LEASE_MS / 3 * 1000  # one timer: three renewals after two pauses


def scripts_run(server: RedisServer) -> int:
    return sum(calls for command, calls in server.calls().items() if command.startswith("eval"))


def lease_of(server: RedisServer, key: str) -> int:
    return int(server.link.pttl(key))


@beside_no_stall(LIBRARY_LIMIT_MS)
def test_each_form_gives_the_lease_that_it_was_asked_for(
    start: Callable[..., ThreadedProgram], servers: list[RedisServer]
) -> None:
    program = start("redisson")
    for form in program.hello["forms"]:
        for lease in form["lease"]:
            wait_ms = {"none": 0, "forever": None}[form["wait"][0]]
            lease_ms = 7000 if lease == "given" else None
            asked = {"thread": 1, "form": form["form"], "wait_ms": wait_ms, "lease_ms": lease_ms}
            assert program.outcome("acquire", **asked) == "ok", form
            expected_ms = lease_ms or LEASE_MS
            assert expected_ms - 3000 < lease_of(servers[0], "r") <= expected_ms, (form, lease)
            assert program.outcome("release", thread=1) == "ok"
    assert "whole SECONDS" in program.ask("acquire", form="lock(lease, SECONDS)", lease_ms=1500)["error"]
    assert "has no wait time" in program.ask("acquire", form="lock()", wait_ms=5, lease_ms=None)["error"]
    assert "has no lease" in program.ask("acquire", form="lock()", lease_ms=1000)["error"]
    assert "no form nope" in program.ask("acquire", form="nope")["error"]


@beside_no_stall(LIBRARY_LIMIT_MS)
def test_a_fenced_lock_has_a_token_in_every_form(start: Callable[..., ThreadedProgram]) -> None:
    program = start("redisson-fenced")
    last = 0
    for form in program.hello["forms"]:
        wait_ms = {"none": 0, "forever": None}[form["wait"][0]]
        lease_ms = 7000 if form["lease"][0] == "given" else None
        answer = program.ask("acquire", thread=1, form=form["form"], wait_ms=wait_ms, lease_ms=lease_ms)
        assert answer["outcome"] == "ok" and answer["token"] > last, form
        assert program.ask("token", thread=1)["token"] == answer["token"]
        last = answer["token"]
        assert program.outcome("release", thread=1) == "ok"


@pytest.mark.parametrize("name", ["redisson-semaphore", "redisson-permit-semaphore"])
@beside_no_stall(LIBRARY_LIMIT_MS)
def test_a_permit_belongs_to_its_thread_and_object(name: str, start: Callable[..., ThreadedProgram]) -> None:
    program = start(name, permits=2)
    for form in program.hello["forms"]:
        wait_ms = {"none": 0, "forever": None}[form["wait"][0]]
        asked = {"form": form["form"], "wait_ms": wait_ms, "lease_ms": 7000 if form["lease"] == ["given"] else None}
        assert program.outcome("acquire", thread=1, **asked) == "ok", form
        assert program.outcome("acquire", thread=2, **asked) == "ok", form
        assert program.outcome("acquire", thread=3, wait_ms=0) == "refused", form
        assert program.outcome("release", thread=3) == "refused"
        assert program.outcome("release", thread=1) == program.outcome("release", thread=2) == "ok"


@pytest.mark.parametrize("name", ["redisson", "redisson-semaphore"])
@beside_no_stall(LIBRARY_LIMIT_MS)
def test_version_1_answers_with_none_of_it(name: str, start: Callable[..., ThreadedProgram]) -> None:
    program = start(name)
    first = program.ask("hello", protocol=1)
    assert first["protocol"] == 1
    assert not first.keys() & {"threads", "owner", "modes", "forms", "reenters", "cancel", "lease_key", "validity"}
    assert {
        key: first[key] for key in first if key not in ("id", "protocol", "operations")
    }.items() <= program.hello.items()
