"""The adapters of Node's and Go's libraries: as before in version 1 of the protocol; in version 2 they host threads and
lock objects, end a waiting call when it is cancelled, and forget."""

import json
import os
import subprocess
import time
from collections.abc import Iterator
from typing import Any, Self

import pytest

from lockstorm.base import paths
from lockstorm.base.errors import NotInstalled
from lockstorm.base.hang_limit import HangLimit, await_readable
from lockstorm.locks.adapter import PREFIX, adapter_entry, adapter_path, library_environment
from lockstorm.process.process import Sandbox
from lockstorm.servers.redis_server import RedisServer

pytestmark = pytest.mark.waits  # a library runs in real time here

LEASE_MS = 60_000
SILENCE_S = 0.3
CANCELS = ("redis-semaphore", "redis-semaphore-multi", "redsync")
ADAPTERS = ("node-redlock-4", "node-redlock-5", *CANCELS)
POLLS = {"outcome": "ok", "protocol": 1, "lease": True, "waits": "polling"}
REFRESHES = {**POLLS, "renews": True, "operations": ["status"]}
GRANTS = {**POLLS, "nodes": 5, "operations": ["renew", "status"]}
# The whole answer to hello in version 1, but for `version`.
HELLOS = {
    "node-redlock-4": {**GRANTS, "name": "node-redlock 4", "source": "node-redlock, redlock.js"},
    "node-redlock-5": {**GRANTS, "name": "node-redlock 5", "source": "node-redlock, src/index.ts"},
    "redis-semaphore": {
        **REFRESHES,
        "name": "redis-semaphore Mutex",
        "source": "redis-semaphore, src/RedisMutex.ts",
    },
    "redsync": {**POLLS, "nodes": 5, "name": "redsync", "source": "redsync, mutex.go", "operations": ["renew"]},
}


class HostedCalls:
    """A running adapter, which is asked line by line; several questions may be under way."""

    def __init__(self, adapter: str, servers: list[RedisServer], protocol: int, lease_ms: int = LEASE_MS) -> None:
        self.number, self.unread, self.answers = 0, b"", dict[int, dict[str, Any]]()
        self.process = subprocess.Popen(
            [paths.program("spawn"), adapter_path(adapter)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **library_environment(), "LOCKSTORM_PARENT": str(os.getpid())},
        )
        self.hello = self.ask("hello", protocol=protocol)
        nodes = [{"unix": str(server.socket)} for server in servers[: self.hello.get("nodes", 1)]]
        opened = {"resource": "first", "lease_ms": lease_ms, "permits": 1, "fixed_lease": False, "nodes": nodes}
        assert self.ask("open", **opened)["outcome"] == "ok"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()  # ends its input
        assert self.process.returncode == 0

    def send(self, verb: str, **more: object) -> int:
        assert self.process.stdin
        self.number += 1
        self.process.stdin.write(json.dumps({"id": self.number, "op": verb, **more}).encode() + b"\n")
        self.process.stdin.flush()
        return self.number

    def answer(self, number: int, limit_s: float = 60) -> dict[str, Any] | None:
        """The answer to a question; None if the limit is over."""
        assert self.process.stdout
        limit = HangLimit(limit_s)
        while number not in self.answers:
            if not await_readable([self.process.stdout.fileno()], limit):
                return None
            self.unread += os.read(self.process.stdout.fileno(), 1 << 16)
            *lines, self.unread = self.unread.split(b"\n")
            self.answers |= {answer["id"]: answer for answer in map(json.loads, lines)}
        return self.answers.pop(number)

    def ask(self, verb: str, **more: object) -> dict[str, Any]:
        answer = self.answer(self.send(verb, **more))
        assert answer, f"{verb} is not answered"
        return answer

    def outcome(self, verb: str, thread: int, lock: int, **more: object) -> str:
        outcome: str = self.ask(verb, thread=thread, lock=lock, **more)["outcome"]
        return outcome


@pytest.fixture(scope="module")
def nodes() -> Iterator[list[RedisServer]]:
    sandbox = Sandbox()
    try:
        servers = [RedisServer(sandbox, f"redis-{number}", clock=None) for number in range(1, 6)]
        for server in servers:
            server.ready()
            server.listen()
        yield servers
        for server in servers:
            server.close()
    finally:
        sandbox.close()


@pytest.fixture(autouse=True)
def fresh(request: pytest.FixtureRequest, nodes: list[RedisServer]) -> None:
    try:
        adapter_entry(PREFIX + request.node.callspec.params["adapter"])
    except NotInstalled as reason:
        pytest.skip(str(reason))
    for server in nodes:
        server.link.flushall()


@pytest.mark.parametrize("adapter", HELLOS)
def test_version_1_is_answered_as_before(adapter: str, nodes: list[RedisServer]) -> None:
    with HostedCalls(adapter, nodes, 1) as one, HostedCalls(adapter, nodes, 1) as two:
        assert {key: value for key, value in one.hello.items() if key not in ("id", "version")} == HELLOS[adapter]
        assert one.ask("acquire", wait_ms=None)["outcome"] == "ok"
        assert two.ask("acquire", wait_ms=0)["outcome"] == "refused"
        assert two.ask("release")["outcome"] == "refused"
        assert one.ask("release")["outcome"] == "ok"
        assert two.ask("acquire", wait_ms=300)["outcome"] == "ok"


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_threads_of_one_program_exclude_each_other(adapter: str, nodes: list[RedisServer]) -> None:
    with HostedCalls(adapter, nodes, 2) as program:
        assert program.hello["protocol"] == 2 and program.hello["threads"] > 1
        assert program.outcome("acquire", 1, 1, wait_ms=0) == "ok"
        assert program.outcome("acquire", 2, 2, wait_ms=0) == "refused"
        assert program.outcome("release", 2, 2) == "refused"
        waiting = program.send("acquire", thread=2, lock=3, wait_ms=None)
        assert program.answer(waiting, SILENCE_S) is None
        assert program.outcome("acquire", 3, 4, wait_ms=0, resource="second") == "ok"
        assert program.outcome("release", 1, 1) == "ok"
        granted = program.answer(waiting)
        assert granted and granted["outcome"] == "ok"


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_form_and_its_lease_are_the_librarys(adapter: str, nodes: list[RedisServer]) -> None:
    with HostedCalls(adapter, nodes, 2) as program:
        for lock, form in enumerate(program.hello["forms"], 1):
            where = {"resource": f"form-{lock}", "lease_ms": 20_000 if "given" in form["lease"] else None}
            wait_ms = 0 if "none" in form["wait"] else 1000
            assert program.outcome("acquire", 1, lock, form=form["form"], wait_ms=wait_ms, **where) == "ok", form
            key = program.hello["lease_key"].replace("{resource}", f"form-{lock}")
            left_ms = max(node.link.pttl(key) for node in nodes)  # node-redlock answers when it has a majority
            most_ms = int(where["lease_ms"] or LEASE_MS)
            assert most_ms - 15_000 < left_ms <= most_ms, form
            assert program.outcome("release", 1, lock, resource=where["resource"]) == "ok", form


@pytest.mark.parametrize("adapter", CANCELS)
def test_cancel_ends_a_waiting_acquire(adapter: str, nodes: list[RedisServer]) -> None:
    with HostedCalls(adapter, nodes, 2) as program:
        assert program.hello["cancel"] is True
        assert program.outcome("acquire", 1, 1, wait_ms=0) == "ok"
        waiting = program.send("acquire", thread=2, lock=2, wait_ms=None)
        assert program.answer(waiting, SILENCE_S) is None
        assert program.ask("cancel", call=waiting)["outcome"] == "ok"
        cancelled = program.answer(waiting)
        assert cancelled and (cancelled["outcome"], cancelled["cancelled"]) == ("refused", True)
        assert program.ask("cancel", call=waiting)["outcome"] == "refused"
        assert program.outcome("release", 1, 1) == "ok"
        assert program.outcome("acquire", 2, 3, wait_ms=0) == "ok"


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_forget_drops_the_lock_objects(adapter: str, nodes: list[RedisServer]) -> None:
    with HostedCalls(adapter, nodes, 2) as program:
        assert program.outcome("acquire", 1, 1, wait_ms=0) == "ok"
        waiting = program.send("acquire", thread=2, lock=2, wait_ms=None)
        assert program.ask("forget")["outcome"] == "refused"  # a call is under way
        assert program.outcome("release", 1, 1) == "ok"
        assert program.answer(waiting)
        assert program.ask("forget")["outcome"] == "ok"
        assert program.outcome("release", 2, 2) == "refused"  # it is a new object, which holds nothing
        assert program.outcome("acquire", 1, 1, resource="second", wait_ms=0) == "ok"
        assert program.outcome("acquire", 1, 3, resource="first", wait_ms=0) == "refused"


@pytest.mark.parametrize("adapter", [name for name in CANCELS if name != "redsync"])
def test_forget_ends_the_refreshing(adapter: str, nodes: list[RedisServer]) -> None:
    with HostedCalls(adapter, nodes, 2, lease_ms=4000) as program:
        key = program.hello["lease_key"].replace("{resource}", "first")
        assert program.outcome("acquire", 1, 1, wait_ms=0, lease_ms=None) == "ok"
        assert nodes[0].link.exists(key)
        assert program.ask("forget")["outcome"] == "ok"
        limit = HangLimit(20)
        while nodes[0].link.exists(key):
            assert not limit.is_over(), "it is still refreshed"
            time.sleep(0.05)
