"""Searches of libraries that are configured for a Redis cluster, or for a master under sentinels."""

import contextlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from lockstorm.base import paths
from lockstorm.base.errors import NotInstalled
from lockstorm.locks.adapter import PREFIX, adapter_entry
from lockstorm.locks.lock_names import lock_named
from lockstorm.process.line_client import LineClient
from lockstorm.search.explorer import Explorer
from lockstorm.search.schedule_file import ServerKind, parse_library_schedule
from lockstorm.servers.still_topology import slots_of_masters
from lockstorm.servers.topology import slot_of
from tests.helpers.daily import daily
from tests.helpers.support import lockstorm

SHIPPED = {
    "redis-py-cluster": "cluster",
    "redis-py-sentinel": "sentinel",
    "redisson-cluster": "cluster",
    "redisson-sentinel": "sentinel",
}
RESOURCES = (b"account", b"account-2", b"account-3")  # library_resource_name in harness/library
SAME = ("history_sha256", "steps", "verdict")


def searched(adapter: str, *words: str) -> dict[str, Any]:
    done = lockstorm("explore", "--adapter", adapter, *words, "--workers", "1", "--json", timeout=300)
    result: dict[str, Any] = json.loads(done.stdout)
    assert "schedules" in result, result["sentence"]
    return result


@pytest.mark.lengthy("starts a cluster, and plays a search on it twice")
@pytest.mark.parametrize(
    "adapter", daily(sorted(SHIPPED), ["redis-py-cluster"], "one more topology or library, a search played twice", 25)
)
def test_a_library_keeps_its_promises_there_and_the_search_repeats_itself(adapter: str) -> None:
    try:
        entry = adapter_entry(PREFIX + adapter)
    except NotInstalled as reason:
        pytest.skip(str(reason))
    assert entry.library.topology == SHIPPED[adapter]
    one, two = (searched(adapter, "--seed", "3", "--schedules", "12", "--all") for _ in range(2))
    assert one["exit"] == 0, one["sentence"]
    assert one["schedules"] == two["schedules"] == 12 and one["unplayed"] == 0
    assert sum(one["injected"].values()) > 0
    assert [one[key] for key in SAME] == [two[key] for key in SAME]


# A lock that asks one node of the cluster, and then the one that this node names. {moved}: what it does with the name.
# One that waits subscribes at whichever node.
REDIRECTED = """#!{python}
import sys, uuid
sys.path.insert(0, {shared!r})
import redis
from lockstorm.adapter_program.lines import ThreadProgram
from redis.backoff import NoBackoff
from redis.retry import Retry
FORMS = [{form}]
DELETE = "return redis.call('get', KEYS[1]) == ARGV[1] and redis.call('del', KEYS[1]) or 0"
class Library:
    def open(self, question):
        self.nodes, self.links = [(node["host"], node["port"]) for node in question["nodes"]], {{}}
    def ask(self, at, *words):
        if at not in self.links:
            self.links[at] = redis.Redis(*at, socket_timeout=1, retry=Retry(NoBackoff(), 0))
        try:
            return self.links[at].execute_command(*words)
        except redis.exceptions.MovedError as moved:
            {moved}
    def make(self, resource, question):
        return {{"name": resource}}
    def acquire(self, lock, question):
        lock["token"] = uuid.uuid4().hex
        lease = ["PX", question["lease_ms"]] if question["lease_ms"] else []
        words = ["SET", lock["name"], lock["token"], "NX", *lease]
        return self.ask(self.nodes[-1], *words) if question["wait_ms"] == 0 else self.heard(question["lock"], words)
    def heard(self, number, words):
        news = redis.Redis(*self.nodes[number % len(self.nodes)]).pubsub()
        news.subscribe("freed")
        news.get_message(timeout=None)
        while not self.ask(self.nodes[-1], *words):
            news.get_message(timeout=None)
        news.unsubscribe()
        while news.get_message(timeout=None)["type"] != "unsubscribe":
            pass
        news.close()
        return True
    def release(self, lock, question):
        freed = self.ask(self.nodes[-1], "EVAL", DELETE, 1, lock["name"], lock.get("token", ""))
        self.ask(self.nodes[-1], "PUBLISH", "freed", "")
        return freed
ThreadProgram(Library(), (), {{"name": "redirected", "tcp": True, "topology": "cluster", "lease": True}},
    {{"owner": "object", "forms": FORMS, "lease_key": "{{resource}}"}}).serve()
"""
TRIES = '{"form": "set", "wait": ["none"], "lease": ["given"]}'
WAITS = '{"form": "heard", "wait": ["forever"], "lease": ["endless"]}'
FOLLOWS = "return self.ask((moved.host, moved.port), *words)"
TAKES_IT_FOR_A_GRANT = "return True"


def redirected(directory: Path, moved: str, form: str) -> str:
    program = directory / "redirected"
    shared = str(paths.PACKAGE.parent)
    program.write_text(REDIRECTED.format(python=sys.executable, shared=shared, moved=moved, form=form))
    program.chmod(0o755)
    return str(program)


def test_the_resources_of_a_search_are_on_three_masters() -> None:
    """And the first one is not on the last, which the lock above asks: it is redirected."""
    masters = slots_of_masters()
    found = [next(at for at, slots in enumerate(masters) if slot_of(name) in slots) for name in RESOURCES]
    assert sorted(found) == [0, 1, 2] and found[0] != 2


@pytest.mark.lengthy("starts a cluster for a search")
@pytest.mark.parametrize(
    ("moved", "status"),
    daily([(FOLLOWS, 0), (TAKES_IT_FOR_A_GRANT, 1)], [(FOLLOWS, 0)], "the mistake beside the right lock", 8),
)
def test_a_redirection_leads_to_the_node_that_has_the_key(tmp_path: Path, moved: str, status: int) -> None:
    words = ("--seed", "1", "--schedules", "40", "--faults", "crash-server,lose-reply")
    result = searched(redirected(tmp_path, moved, TRIES), *words)
    assert result["exit"] == status, result["sentence"]
    if status:
        assert result["found"]["with_new_programs"]
        assert set(result["found"]["violates"]) & {"mutual_exclusion", "lease-too-short", "ownership"}


@pytest.mark.slow("plays a search on a cluster", seconds=8)
def test_a_published_message_reaches_subscribers_of_every_node(tmp_path: Path) -> None:
    """A release is published at one node, and a waiter has subscribed at another: it is served all the same."""
    words = ("--seed", "1", "--schedules", "40", "--faults", "none")
    result = searched(redirected(tmp_path, FOLLOWS, WAITS), *words)
    assert result["exit"] == 0, result["sentence"]
    assert result["schedules"] == 40 and result["unplayed"] == 0


# --- a cluster of one node ---

# A lock that knows nothing of clusters: its script has two keys. {waiters}: the second one.
TWO_KEYS = """#!{python}
import sys, uuid
sys.path.insert(0, {shared!r})
import redis
from lockstorm.adapter_program.lines import ThreadProgram
TAKE = "redis.call('incr', KEYS[2]) redis.call('pexpire', KEYS[2], ARGV[2]) " \\
       "return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) and 1 or 0"
DELETE = "return redis.call('get', KEYS[1]) == ARGV[1] and redis.call('del', KEYS[1]) or 0"
class Library:
    def open(self, question):
        self.link, self.lease_ms = redis.Redis(unix_socket_path=question["nodes"][0]["unix"]), question["lease_ms"]
    def make(self, resource, question):
        return {{"name": resource}}
    def acquire(self, lock, question):
        name, lock["token"] = lock["name"], uuid.uuid4().hex
        return self.link.eval(TAKE, 2, name, f"{waiters}", lock["token"], self.lease_ms)
    def release(self, lock, question):
        return self.link.eval(DELETE, 1, lock["name"], lock.get("token", ""))
FORM = {{"form": "take", "wait": ["none"], "lease": ["default"]}}
ThreadProgram(Library(), (), {{"name": "two keys", "lease": True}},
    {{"owner": "object", "forms": [FORM], "keeps": ["waiters:*"], "lease_key": "{{resource}}"}}).serve()
"""


@pytest.mark.lengthy("plays a search")
@pytest.mark.parametrize(
    ("waiters", "one_node", "status"),
    [("waiters:{name}", True, 1), ("waiters:{{{name}}}", True, 0), ("waiters:{name}", False, 0)],
    ids=["two slots", "one slot", "no cluster"],
)
def test_a_lock_behind_one_address(tmp_path: Path, waiters: str, one_node: bool, status: int) -> None:
    program = tmp_path / "mine"
    shared = str(paths.PACKAGE.parent)
    program.write_text(TWO_KEYS.format(python=sys.executable, shared=shared, waiters=waiters))
    program.chmod(0o755)
    words = ("--seed", "1", "--schedules", "20", "--faults", "none", *["--one-node-cluster"] * one_node)
    result = searched(str(program), *words)
    assert result["exit"] == status, result["sentence"]
    assert result["replay"].endswith("--one-node-cluster") == one_node
    if status:
        assert "nobody can get the lock" in result["sentence"]
        assert "\none_node_cluster 1\n" in result["found"]["file"]
        assert parse_library_schedule(result["found"]["file"], "found").servers.one_node_cluster


def test_several_servers_are_clusters_of_one_node_each() -> None:
    """Without a port of its own for the bus of each, the second one ends."""
    with Explorer(lock_named("redlock"), 2, servers=ServerKind(one_node_cluster=True)) as explorer:
        for job in explorer.jobs:
            for name in job.servers:
                with contextlib.closing(LineClient(job.socket(name))) as client:
                    (own,) = client.request("CLUSTER", "NODES").decode().splitlines()
                assert own.split()[2:3] == ["myself,master"] and own.endswith("0-16383")


def test_a_client_of_a_cluster_gets_one_master() -> None:
    with Explorer(lock_named(f"{PREFIX}redis-py-cluster"), 1, servers=ServerKind(one_node_cluster=True)) as explorer:
        assert list(explorer.jobs[0].servers) == ["redis-1"]


# --- what is refused ---


@pytest.mark.parametrize("command", ["redis-py-sentinel", "kazoo"])
def test_what_no_cluster_of_one_node_is_for(command: str) -> None:
    done = lockstorm("explore", "--adapter", command, "--one-node-cluster")
    assert done.returncode == 2 and "--one-node-cluster" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("run", "gc-pause", "--adapter", "redis-py-cluster"),
        ("storm", "--adapter", "redis-py-sentinel"),
        ("matrix", "--lock", "adapter:redis-py-cluster"),
    ],
    ids=lambda words: words[0],
)
def test_what_plays_trials_names_the_search_instead(words: tuple[str, ...]) -> None:
    done = lockstorm(*words)
    assert done.returncode == 2
    assert f"lockstorm explore --adapter {words[-1].removeprefix(PREFIX)}" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ('"topology": "ring", "tcp": true', "topology must be one of single, sentinel, cluster"),
        ('"topology": ["sentinel", "cluster"], "tcp": true', "topology must be one of single, sentinel, cluster"),
        ('"topology": "cluster"', "tcp must be true"),
        ('"topology": "sentinel", "tcp": true, "nodes": 3', "nodes must be 1"),
        ('"topology": "cluster", "tcp": true, "service": "etcd"', 'service must be "redis"'),
    ],
)
def test_a_hello_that_contradicts_itself_is_explained(tmp_path: Path, said: str, complaint: str) -> None:
    program = tmp_path / "mine"
    hello = f'{{"id": 1, "outcome": "ok", "protocol": 1, "name": "mine", {said}}}'
    program.write_text(f"#!/bin/sh\nread question\necho '{hello}'\nread more\n")
    program.chmod(0o755)
    for command in (("explore", "--adapter"), ("adapter", "check")):
        done = lockstorm(*command, str(program))
        assert done.returncode == 2 and complaint in " ".join(done.stderr.split()), done.stdout + done.stderr
