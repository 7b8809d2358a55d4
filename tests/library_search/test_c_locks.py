"""C locks as adapters: they are put to the workloads of libraries."""

import json
import subprocess

import pytest

from lockstorm.base import paths
from lockstorm.locks.adapter import adapter_path
from tests.helpers.daily import daily
from tests.helpers.support import lockstorm

# Schedules that each keeps; the search looks no further than that.
ONE_NODE = ("set-nx-px", "set-nx-px-fenced", "set-nx-px-renew", "spin", "multi", "semaphore", "blpop-renew")
KEPT = {**dict.fromkeys(ONE_NODE, 150), **dict.fromkeys(("redlock", "redlock-renew"), 60)}
# Why each cannot be called safe, by what its text or its published bug says.
BROKEN = {
    "set-nx-blind-del": "lease-too-short",  # it deletes the key of another holder, too
    "singleflight": "lease-too-short",  # a call that joins late shares what is left of the lease
    "setnx-expire": "lease-endless",  # it may end, or lose its connection, between SETNX and EXPIRE
    "redis-lock-30": "lease-endless",  # the same
    "redis-py-415": "lease-too-short",  # as set-nx-blind-del
    "redis-py-416": "ownership",  # it asks whether the key is there, not whose it is
    "redlock-py-3": "validity",  # it adds the allowance for drift
    "node-redlock-299": "validity",  # the validity counts from the first try
}
KEPT_DAILY = ("set-nx-px",)
BROKEN_DAILY = ("set-nx-blind-del", "redlock-py-3")


def searched(lock: str, *words: str) -> dict[str, object]:
    done = lockstorm("explore", "--adapter", f"lock:{lock}", "--workers", "1", "--json", *words, timeout=300)
    assert done.returncode in (0, 1), done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


@pytest.mark.lengthy("plays up to 150 schedules")
@pytest.mark.parametrize("lock", daily(sorted(KEPT), KEPT_DAILY, "one more right lock in up to 150 schedules", 5))
def test_a_right_lock_keeps_every_promise(lock: str) -> None:
    result = searched(lock, "--schedules", str(KEPT[lock]))
    assert result["found"] is None and result["tried"] == KEPT[lock]
    assert result["unplayed"] == 0 and result["exit"] == 0


@pytest.mark.parametrize("lock", daily(sorted(BROKEN), BROKEN_DAILY, "one more wrong lock", 2))
def test_a_wrong_lock_breaks_the_promise_that_its_text_denies(lock: str) -> None:
    result = searched(lock, "--schedules", "150", "--require", BROKEN[lock])
    found = result["found"]
    assert isinstance(found, dict), result["sentence"]
    assert found["violates"] == [BROKEN[lock]] and found["with_new_programs"]


def test_no_lock_at_all_is_not_judged() -> None:
    """Nothing of `none` reaches a server, so nothing that was broken could have broken it."""
    done = lockstorm("explore", "--adapter", "lock:none", "--schedules", "5", "--json")
    assert done.returncode == 3
    assert "the lock does not use the servers of `open`" in json.loads(done.stdout)["sentence"]


def test_a_search_of_a_c_lock_repeats_itself() -> None:
    one, two = (searched("pubsub", "--schedules", "40", "--require", "mutual_exclusion") for _ in range(2))
    assert one["history_sha256"] == two["history_sha256"]


def test_an_adapter_of_a_c_lock_keeps_the_protocol() -> None:
    done = lockstorm("adapter", "check", "lock:set-nx-px-renew", timeout=300)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("word", "complaint"),
    [
        ("lock:etcd", "etcd lives on another service than Redis"),
        ("lock:replica-wait", "replica-wait needs replicas"),
        ("lock:set-nx-p", "there is no lock called 'set-nx-p': did you mean set-nx-px?"),
        ("lock:", "there is no lock called ''"),
    ],
)
def test_what_cannot_be_hosted_is_named(word: str, complaint: str) -> None:
    done = lockstorm("explore", "--adapter", word)
    assert done.returncode == 2
    assert complaint in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("{", ""),
        ("[]", ""),
        ('{"id": 1}', "the question has no op"),
        ('{"id": 1, "op": "acquire"}', "open comes first"),
        ('{"id": 1, "op": "open"}', "names no resource"),
        ('{"id": 1, "op": "open", "resource": "a", "nodes": [{"host": "h", "port": 1}]}', "no unix socket"),
    ],
)
def test_bad_lines_end_the_program_or_are_refused(line: str, answer: str) -> None:
    program = adapter_path("lock:set-nx-px")
    done = subprocess.run([program], input=line + "\n", capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert answer in done.stdout if answer else not done.stdout


def test_the_program_says_which_lock_it_does_not_know() -> None:
    done = subprocess.run([paths.program("lock-adapter"), "no-lock"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr == "lock-adapter: error: no-lock is no lock of the table\n"
