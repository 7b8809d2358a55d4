"""Servers that lack a command (--without, decision 0147): what a lock does with the error that it did not expect."""

import json
import shlex
import sys
from pathlib import Path

import pytest

from lockstorm.base import paths
from lockstorm.base.errors import UsageError
from lockstorm.search.replay import replay_library
from lockstorm.search.schedule_file import parse_library_schedule, parse_schedule
from lockstorm.search.standalone_run import run_standalone
from tests.helpers.searching import library_plan, searched
from tests.helpers.support import lockstorm

# A queue of waiters, as in hiero-json-rpc-relay (issue 5512): now and then a waiter looks whether it is still in it.
QUEUED = r"""#!{python}
import sys, time, uuid
sys.path.insert(0, "{lines}")
from lockstorm.adapter_program.lines import ThreadProgram
from redis import Redis
RELEASE = "return redis.call('get', KEYS[1]) == ARGV[1] and redis.call('del', KEYS[1]) or 0"
class Library:
    def open(self, asked):
        self.link, self.lease_ms = Redis(unix_socket_path=asked["nodes"][0]["unix"]), asked["lease_ms"]
    def make(self, resource, asked):
        return {{"name": resource, "queue": resource + ":queue"}}
    def acquire(self, lock, asked):
        mine = lock["token"] = uuid.uuid4().hex
        self.link.rpush(lock["queue"], mine)
        looks, ends = 0, time.monotonic() + (asked["wait_ms"] or 0) / 1000
        while True:
            if self.link.lindex(lock["queue"], 0) == mine.encode():
                if self.link.set(lock["name"], mine, nx=True, px=self.lease_ms):
                    self.link.lpop(lock["queue"])
                    return True
            if asked["wait_ms"] is not None and time.monotonic() >= ends:
                self.link.lrem(lock["queue"], 1, mine)
                return False
            looks += 1
            if looks % 4 == 0 and {missing}:
                self.link.rpush(lock["queue"], mine)
            time.sleep(0.1)
    def release(self, lock, asked):
        return self.link.eval(RELEASE, 1, lock["name"], lock["token"])
HELLO = {{"name": "queued", "version": "1", "lease": True}}
HELLO_2 = {{"threads": 1, "owner": "object", "lease_key": "{{resource}}",
    "forms": [{{"form": "acquire", "wait": ["none", "time", "forever"], "lease": ["default"]}}]}}
ThreadProgram(Library(), (), HELLO, HELLO_2).serve()
"""
BY_LPOS = 'self.link.lpos(lock["queue"], mine) is None'  # an error leaves the place in the queue
BY_LRANGE = 'mine.encode() not in self.link.lrange(lock["queue"], 0, -1)'


def queued(directory: Path, missing: str) -> str:
    program = directory / "queued"
    lines = str(paths.PACKAGE.parent)
    program.write_text(QUEUED.format(python=sys.executable, lines=lines, missing=missing))
    program.chmod(0o755)
    return str(program)


@pytest.mark.lengthy("plays up to a hundred schedules")
@pytest.mark.parametrize(
    ("missing", "without", "violates"),
    [(BY_LPOS, "LPOS", ["residue"]), (BY_LPOS, None, None), (BY_LRANGE, "LPOS", None)],
    ids=["lacking", "there", "not needed"],
)
def test_a_command_that_the_server_lacks(
    tmp_path: Path, missing: str, without: str | None, violates: list[str] | None
) -> None:
    """The waiter whose look ends with an error leaves its place in the queue, which nobody takes."""
    adapter = queued(tmp_path, missing)
    result = searched(adapter, schedules=60, faults="none", without=without)
    assert (result["found"] or {}).get("violates") == violates, result["sentence"]
    assert result["unplayed"] == 0, result["unplayed_reason"]
    if violates:
        assert "--without LPOS" in result["replay"]
        schedule = parse_library_schedule(result["found"]["file"], "found")
        assert schedule.servers.without == ("LPOS",) and replay_library(schedule, "found").violates == violates
        with_it = parse_library_schedule(result["found"]["file"].replace("without LPOS\n", ""), "found")
        assert replay_library(with_it, "found").violates == []


def test_a_campaign_is_of_servers_that_lack_the_same_commands() -> None:
    plan = library_plan("lock:set-nx-px", without="lpos,HELLO,LPOS")
    assert (plan.context.servers.without, plan.key["without"]) == (("LPOS", "HELLO"), "LPOS,HELLO")
    assert "without" not in library_plan("lock:set-nx-px").key


@pytest.mark.parametrize(
    "words",
    ["run contention --duration 200ms", "storm --duration 1s --faults close-links", "explore --schedules 9"],
    ids=lambda words: words.split()[0],
)
def test_the_command_that_repeats_it_names_them(words: str) -> None:
    done = lockstorm(*words.split(), "--lock", "blpop", "--without", "blpop", "--without", "LPOS", "-q")
    assert done.stdout.splitlines()[-1].endswith(" --without blpop,LPOS"), done.stdout + done.stderr


def test_a_schedule_of_a_lock_names_what_its_servers_lack() -> None:
    text = """lockstorm-schedule 2
lock set-nx-px
store open
clients 2
replicas 0
turns 1
permits 1
fixed_lease 0
lease_ms 1000
wait_ms 20000
work_ms 20
bound_ms 0
seed 1
number 1
without LPOS
violates mutual_exclusion
schedule
"""
    schedule = parse_schedule(text, "mine")
    assert schedule.servers.without == ("LPOS",) and schedule.text.splitlines()[-3:] == text.splitlines()[-3:]
    with pytest.raises(UsageError, match="mine: line 15: without GET: lockstorm itself asks"):
        parse_schedule(text.replace("LPOS", "GET"), "mine")


def test_a_trial_says_what_its_servers_lack() -> None:
    done = lockstorm("run", "gc-pause", "--lock", "set-nx-px", "--without", "LPOS,HELLO", "--json")
    assert json.loads(done.stdout)["versions"]["redis-server"].endswith(" without LPOS, HELLO")


POLICY = """[[lock]]
name = "set-nx-px"
[scenarios]
play = "gc-pause"
[deployment]
without = "{without}"
"""


def test_a_policy_names_them(tmp_path: Path) -> None:
    file = tmp_path / "lockstorm.toml"
    file.write_text(POLICY.format(without="LPOS, NOPE"))
    done = lockstorm("gate", "-f", str(file))
    assert done.returncode == 2 and f"{file}:6: without NOPE: the server refuses" in done.stderr
    file.write_text(POLICY.format(without="LPOS"))
    done = lockstorm("run", "gc-pause", "--lock", "set-nx-px", "--config", str(file), "--json")
    assert json.loads(done.stdout)["versions"]["redis-server"].endswith(" without LPOS")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("explore --lock fair --without NOPE", "--without NOPE: the server refuses"),
        ("run gc-pause --lock fair --without NOPE", "--without NOPE: the server refuses"),
        ("storm --lock fair --without 'A B'", "--without A B: a command is a word, such as LPOS"),
        ("explore --adapter redis-py --without get", "--without GET: lockstorm itself asks its servers for GET"),
        ("run gc-pause --lock fair --without multi", "--without MULTI: servers tell their replicas by MULTI"),
        ("explore --adapter kazoo --without LPOS", "--without is about redis-servers, and kazoo lives on zookeeper"),
        ("run gc-pause --lock etcd --without LPOS", "--without is for locks on Redis, and etcd lives on etcd"),
        ("attach redis://127.0.0.1:1 --lock fair --without LPOS", "No such option"),
    ],
)
def test_what_cannot_be_left_out(words: str, message: str) -> None:
    done = lockstorm(*shlex.split(words))
    assert done.returncode == 2 and message in " ".join(done.stderr.split()), done.stderr


def test_a_written_program_gets_a_server_without_the_command(tmp_path: Path) -> None:
    program = tmp_path / "found.py"
    program.write_text(
        "import redis, sys\nserver = redis.Redis(port=int(sys.argv[1]), protocol=2)\n"
        "try:\n    server.lpos('a', 'b')\n    print('kept')\n"
        "except redis.ResponseError:\n    print('BROKEN')\n"
    )
    assert run_standalone(program, "redis-py", "python").endswith("does NOT show it: kept")
    assert run_standalone(program, "redis-py", "python", lacking=("LPOS",)).endswith("shows it: BROKEN")
