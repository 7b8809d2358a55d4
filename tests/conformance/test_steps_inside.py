"""Scenarios that hold a client inside its library come to the moment that they are about, or are inconclusive."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lockstorm.base.errors import Inconclusive
from lockstorm.locks.adapter import PREFIX
from tests.helpers.planting import plant_in
from tests.helpers.support import lockstorm, trial


@pytest.fixture
def plant(tmp_path: Path) -> Callable[[str], str]:
    return partial(plant_in, tmp_path)


def played(scenario: str, program: str) -> dict[str, Any]:
    done = lockstorm("run", scenario, "--adapter", program, "--json")
    assert done.returncode in (0, 1, 3), done.stdout + done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


# By redis-py, which connects with HELLO 3 and CLIENT SETINFO within the first acquire. A refused client subscribes, and
# asks again only when a message comes: one that is published before that is lost.
WAITER = """
import redis
HELLO["waits"] = "push"
lease_ms = 1
def answer(asked):
    global link, lease_ms
    if asked["op"] == "open":
        link, lease_ms = redis.Redis(unix_socket_path=asked["nodes"][0]["unix"], protocol=3), asked["lease_ms"]
    if asked["op"] == "acquire":
        while not link.set("lock", "me", nx=True, px=lease_ms):
            with link.pubsub() as news:
                news.subscribe("free")
                assert news.get_message(timeout=1)["type"] == "subscribe"
                {ask_again}news.get_message(timeout=3600)
    if asked["op"] == "release":
        link.delete("lock")
        link.publish("free", "")
    return lock(asked) if asked["op"] == "hello" else OK
"""
ASK_AGAIN = 'if link.exists("lock"): '


def test_a_waiter_is_refused_before_the_lock_is_released(plant: Callable[[str], str]) -> None:
    naive = played("try-then-wait", plant(WAITER.replace("{ask_again}", "")))
    assert naive["verdict"]["liveness"]["status"] == "violated", naive["sentence"]
    right = played("try-then-wait", plant(WAITER.replace("{ask_again}", ASK_AGAIN)))
    assert right["exit"] == 0, right["sentence"]


# A list of one element is the lock, and its waiters wait in the server: they are never refused.
POPS = """
HELLO["waits"] = "blocking-pop"
def answer(asked):
    if asked["op"] == "open":
        opened = lock(asked)
        link.ask("SET", "made", "1", "NX") and link.ask("RPUSH", "free", "1")
        return opened
    if asked["op"] == "acquire":
        link.ask("BLPOP", "free", 0)
    if asked["op"] == "release":
        link.ask("RPUSH", "free", "1")
    return OK if asked["op"] in ("acquire", "release") else lock(asked)
"""


def test_a_waiter_that_is_never_refused_makes_it_inconclusive(plant: Callable[[str], str]) -> None:
    result = played("try-then-wait", plant(POPS))
    assert result["exit"] == 3, result["sentence"]
    assert "client-2 never came to the checkpoint after-refusal" in result["sentence"]


# As litellm 1.83.7 releases: GET, a comparison in the program, DEL.
COMPARES = """
def mine():
    return link.ask("GET", name) == str(os.getpid()).encode()
def answer(asked):
    if asked["op"] == "release":
        {release}
    return lock(asked)
"""
TWO_COMMANDS = 'return OK if mine() and link.ask("DEL", name) else {"outcome": "refused"}'
SCRIPT = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"
ONE_COMMAND = f'return OK if link.ask("EVAL", "{SCRIPT}", 1, name, os.getpid()) else {{"outcome": "refused"}}'
# Nothing that the servers could see frees this lock.
FORGETS = "return OK"


def releasing(release: str) -> str:
    return COMPARES.replace("{release}", release)


def test_a_release_is_stopped_between_its_comparison_and_its_deletion(plant: Callable[[str], str]) -> None:
    two = played("release-race", plant(releasing(TWO_COMMANDS)))
    assert two["verdict"]["mutual_exclusion"]["status"] == "violated", two["sentence"]
    one = played("release-race", plant(releasing(ONE_COMMAND)))
    assert one["exit"] == 0, one["sentence"]


def test_the_command_that_frees_the_lock_is_the_late_one(plant: Callable[[str], str]) -> None:
    two = played("release-delayed", plant(releasing(TWO_COMMANDS)))
    assert two["verdict"]["mutual_exclusion"]["status"] == "violated", two["sentence"]
    one = played("release-delayed", plant(releasing(ONE_COMMAND)))
    assert one["exit"] == 0, one["sentence"]


def test_a_release_without_a_command_makes_it_inconclusive(plant: Callable[[str], str]) -> None:
    result = played("release-race", plant(releasing(FORGETS)))
    assert result["exit"] == 3, result["sentence"]
    assert "the release of client-1 changed nothing at the servers" in result["sentence"]


# The counter that is the lock exists before anybody asks for it, and a client subscribes before it asks.
COUNTS = """
HELLO["waits"] = "push"
def answer(asked):
    if asked["op"] == "open":
        opened = lock(asked)
        link.ask("SET", "free", 1, "NX")
        return opened
    if asked["op"] == "acquire":
        assert link.ask("SUBSCRIBE", "news")
        link.ask("UNSUBSCRIBE", "news")
        return OK if link.ask("DECR", "free") == 0 else {"outcome": "refused"}
    return OK if asked["op"] == "release" else lock(asked)
"""


def test_a_client_is_held_with_the_answers_to_what_it_asked(plant: Callable[[str], str]) -> None:
    with trial(PREFIX + plant(COUNTS), time="virtual") as running:
        (one,) = running.clients(1)
        one.start_acquire(wait_ms=0)
        one.run_to("after-acquire-reply")
        assert running.server.link.get("free") == b"0"
        assert one.finish().ok


def test_how_often_something_comes_before_the_command_that_frees_it(plant: Callable[[str], str]) -> None:
    for release, news in ((ONE_COMMAND, 1), (TWO_COMMANDS, 2)):  # the question, and the answer to GET
        with trial(PREFIX + plant(releasing(release)), time="virtual") as running:
            (one,) = running.clients(1)
            one.acquire()
            assert one.news_before_freeing() == news
            one.acquire()
            one.start_release()
            with pytest.raises(Inconclusive, match="client-1 never came to the checkpoint before-freeing"):
                one.run_to("before-freeing", news + 1)
