"""The checks of version 2 of the protocol: a correct adapter passes all of them, and each mistake is found by the check
for it, with a message that says what to correct."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstorm.conformance import adapter_calls_check
from lockstorm.conformance.adapter_bench import LEASE_MS, AdapterBench
from lockstorm.conformance.adapter_check import one_check
from lockstorm.conformance.check_result import DoneCheck
from lockstorm.locks.adapter import PREFIX, adapter_entry, adapter_facts
from lockstorm.process.process import Sandbox
from lockstorm.servers.redis_server import RedisServer
from tests.helpers.daily import daily
from tests.helpers.planting import USUAL, plant_in
from tests.helpers.planting_calls import plant_calls
from tests.helpers.planting_tasks import FORGETS, MUTE, VERSION_2, plant_tasks
from tests.helpers.stalls import beside_no_stall
from tests.helpers.support import lockstorm

pytestmark = pytest.mark.waits  # a library runs in real time only

HELD = 'if not link.hexists(resource, owner + "|" + mode):'
UNTIL = "if until is not None and time.monotonic() >= until:"
CANCELLED = 'return {"outcome": "refused", "cancelled": True}'
COUNTED = "if redis.call('hincrby', KEYS[1], ARGV[1], -1) == 0 then"
# A check, a mistake that it finds (a part of the right program, and what is there instead), and a part of its message.
MISTAKES = [
    ("hosts_threads", 'thread = asked.get("thread", 1)\n        if', "thread = 1\n        if", "while thread 1 waited"),
    ("hosts_threads", "until = None if wait_ms is None", "until = 0 if wait_ms is None", "and did not wait"),
    (
        "hosts_objects",
        'asked.get("resource", opened["resource"])',
        'opened["resource"]',
        "is another lock, which nobody",
    ),
    ("hosts_objects", "if (mode == 'exclusive'", "if (mode == 'exclusives'", "lock object 2 is another one"),
    ("hosts_objects", "hdel', KEYS[1], ARGV[1]", "del', 'check', ARGV[1]", "holds this lock: it has released only"),
    (
        "knows_owners",
        'lock, thread, mode = asked.get("lock", 1)',
        "lock, thread, mode = 1",
        "with lock object 2 with ok",
    ),
    (
        "knows_owners",
        HELD,
        "if not link.exists(resource):",
        "it answered is_held of thread 2 with lock object 1 with ok",
    ),
    ("knows_owners", "== 0 then return 0 end\n", "== 0 then return 1 end\n", "it answered a release by thread 2"),
    (
        "knows_owners",
        "== 0 then return 0 end\n",
        "== 0 then redis.call('del', KEYS[1]) return 0 end\n",
        "does not hold it",
    ),
    ("knows_owners", '"owner": "thread-object"', '"owner": "thread"', "is_held of thread 1 with lock object 2"),
    ("offers_forms", "KEYS[1], ARGV[3]) end", "KEYS[1], ARGV[3] * 1000) end", "should have 20000 ms: wrong unit?"),
    ("offers_forms", "redis.call('persist', KEYS[1])", "redis.call('pexpire', KEYS[1], 9000)", "should have no end"),
    (
        "offers_forms",
        '"lease_key": "{resource}"',
        '"lease_key": "lock:{resource}"',
        "there is no key 'lock:check-form-1'",
    ),
    ("offers_forms", '"lease": ["default"]', '"lease": ["endless"]', "ms left, and should have no end"),
    ("offers_forms", 'wait_ms = asked["wait_ms"]', 'wait_ms = asked["wait_ms"] or 6000', "and had to wait for 0 s"),
    ("offers_forms", UNTIL, "if until is not None:", "with wait time: it refused after"),
    ("offers_forms", UNTIL, "if asked.get('form') == 'lock' or" + UNTIL[2:], "it did not wait for a lock that another"),
    ("offers_forms", '"token": tokens[resource], "valid', '"valid', 'its grant has no "token"'),
    ("offers_forms", '"valid_until_ms": time.monotonic() * 1000 + lease_ms', "", 'its grant has no "valid_until_ms"'),
    (
        "renews_for_a_time",
        'resource, asked.get("lease_ms", opened["lease_ms"])',
        "resource, 999",
        "a renewal with lease_ms",
    ),
    ("answers_token", '{**OK, "token": tokens[resource]}', '{**OK, "token": 1000}', "it answered token with 1000"),
    (
        "reenters_as_said",
        COUNTED,
        "redis.call('hdel', KEYS[1], ARGV[1]) if true then",
        "the outer hold was not released",
    ),
    (
        "reenters_as_said",
        "if not string.find(all[i], ARGV[1] .. '|', 1, true) then",
        "if true then",
        "that it re-enters",
    ),
    (
        "shares_reads",
        "if mode == 'read' and writers > 0",
        "if mode == 'read' and held > 0",
        "only a reader has the lock",
    ),
    ("shares_reads", "mode == 'exclusive' or mode == 'write'", "mode == 'exclusive'", "two readers have the lock"),
    ("shares_reads", "if mode == 'read' and writers > 0", "if mode == 'reed'", "a writer has the lock"),
    ("counts_permits", "held >= tonumber(ARGV[4])", "held >= 1", "a permit of two is free"),
    ("counts_permits", "held >= tonumber(ARGV[4])", "held >= 9", "both permits are taken"),
    ("cancels", 'cancelled.add(asked["call"])', "pass", "it cancelled a call, which did not answer within"),
    ("cancels", CANCELLED, "return REFUSED", 'with "cancelled": true'),
    ("cancels", "OK if known else REFUSED", "OK", "that call is not under way any more"),
    ("cancels", "OK if known else REFUSED", "REFUSED", "is under way, so it can be cancelled"),
    (
        "cancels",
        CANCELLED,
        'link.hset(resource, "left|exclusive", 1); ' + CANCELLED,
        "its holder released it",
    ),
    ("forgets", "write(asked, forget())", "write(asked, OK)", "what a lock object held that it was told to forget"),
    (
        "forgets",
        'link.eval(RELEASE, 1, resource, owner + "|" + mode)',
        "link.delete(resource)",
        "a program that holds nothing released the lock: a release has to compare the owner",
    ),
    ("forgets", "generation += 1", "link.flushall()", "which gives nothing back"),
    ("forgets", ", resources.clear()", "", "after forget, a new lock object was asked for"),
    ("forgets", "write(asked, forget())", "pass", "it did not answer forget within"),
]


@pytest.fixture(scope="module")
def servers() -> Iterator[list[RedisServer]]:
    sandbox = Sandbox()
    try:
        server = RedisServer(sandbox, "redis-1", clock=None)
        server.ready()
        yield [server]
        server.close()
    finally:
        sandbox.close()


def checked(program: str, check: str, servers: list[RedisServer]) -> DoneCheck:
    servers[0].link.flushall()
    entry = adapter_entry(PREFIX + program)
    return one_check(AdapterBench(entry, servers, "check"), getattr(adapter_calls_check, check))


FIRST = [next(each for each in MISTAKES if each[0] == check) for check in sorted({check for check, *_ in MISTAKES})]
EVERY = daily(MISTAKES, FIRST, "one more mistake of a check that finds another one every day", 1)


@beside_no_stall(LEASE_MS)
@pytest.mark.parametrize(("check", "was", "becomes", "message"), EVERY, ids=[message for *_, message in MISTAKES])
def test_a_mistake_in_version_2_is_found_and_explained(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    servers: list[RedisServer],
    check: str,
    was: str,
    becomes: str,
    message: str,
) -> None:
    if "did not answer" in message:
        monkeypatch.setattr(adapter_calls_check, "ANSWER_LIMIT_S", 1.5)
    done = checked(plant_calls(tmp_path, was, becomes), check, servers)
    assert not done.ok and message in done.wrong, done


@beside_no_stall(LEASE_MS)
@pytest.mark.parametrize("check", sorted({check for check, *_ in MISTAKES}))
def test_without_the_mistake_the_same_check_of_version_2_passes(
    tmp_path: Path, servers: list[RedisServer], check: str
) -> None:
    done = checked(plant_calls(tmp_path), check, servers)
    assert done.ok, done


VERSION_3 = [  # a check, a mistake that it finds, and a part of its message
    (
        "asks_after_an_end",
        FORGETS,
        "release with a context that had ended was answered unknown (CancelledError), and the release after it refused",
    ),
    (
        "opens_with_settings",
        ("        self.token = token\n", "        self.token = token if self.library.capacity > 1 else None\n"),
        "it answered refused (this object has no lock): it had the lock, and capacity is 1",
    ),
    ("tells_of_a_loss", MUTE, "its lock was taken away, and no notice came within"),
]


@beside_no_stall(LEASE_MS)
@pytest.mark.parametrize(("check", "mistake", "message"), VERSION_3)
def test_a_mistake_in_version_3_is_found_and_explained(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    servers: list[RedisServer],
    check: str,
    mistake: tuple[str, str],
    message: str,
) -> None:
    monkeypatch.setattr(adapter_calls_check, "ANSWER_LIMIT_S", 5)
    done = checked(plant_tasks(tmp_path, mistake), check, servers)
    assert not done.ok and message in done.wrong, done
    right = checked(plant_tasks(tmp_path), check, servers)
    assert right.ok, right


def test_each_check_of_version_3_has_a_mistake_that_it_finds(tmp_path: Path) -> None:
    old, new = adapter_facts(plant_tasks(tmp_path, VERSION_2)), adapter_facts(plant_tasks(tmp_path))
    assert old and new
    more = set(adapter_calls_check.checks_of_calls(new)) - set(adapter_calls_check.checks_of_calls(old))
    assert {check.__name__ for check in more} == {check for check, *_ in VERSION_3}


def test_each_check_of_version_2_has_a_mistake_that_it_finds(tmp_path: Path) -> None:
    facts = adapter_facts(plant_calls(tmp_path))
    assert facts
    assert {check.__name__ for check in adapter_calls_check.checks_of_calls(facts)} == {check for check, *_ in MISTAKES}


def test_an_adapter_of_version_1_is_asked_no_more(tmp_path: Path) -> None:
    assert adapter_facts(plant_in(tmp_path, USUAL)) is None


FORMS = """{"form": "try", "wait": ["none", "time"], "lease": ["given", "endless"]},
        {"form": "lock", "wait": ["forever"], "lease": ["default"]},"""
TRY = '{"form": "try", "wait": ["none"], "lease": ["given"]}'
LOCK = '{"form": "lock", "wait": ["forever"], "lease": ["default"]}'


@beside_no_stall(LEASE_MS)
@pytest.mark.parametrize(("form", "wait_ms"), [(TRY, "0"), (LOCK, "None")], ids=["only tries", "only waits for ever"])
def test_what_hello_excludes_is_not_asked(tmp_path: Path, form: str, wait_ms: str) -> None:
    program = Path(plant_calls(tmp_path, FORMS, form))
    program.write_text(program.read_text().replace('wait_ms = asked["wait_ms"]', f"wait_ms = {wait_ms}"))
    done = lockstorm("adapter", "check", str(program))
    assert done.returncode == 0, done.stdout
    blind = program.read_text().replace('link.eval(RELEASE, 1, resource, owner + "|" + mode)', "link.delete(resource)")
    program.write_text(blind)
    done = lockstorm("adapter", "check", str(program))
    assert done.returncode == 1 and "a release has to compare the owner" in done.stdout, done.stdout
