"""Mistakes that only the rare faults of the defaults show (a client's clock, a killed client, a restarted server), each
beside a right twin (issue #55)."""

from pathlib import Path
from typing import Any

import pytest

from tests.helpers.searching import library_plan, search_json
from tests.library_search.test_library_search import planted

# The planted adapter keeps the end of a lease in a key of its own, by the clock of the client that calls the script, or
# by the server's. An acquire deletes the lock whose end is over.
ENDS = (
    (
        "local all, held",
        "local now, ends = {now}, redis.call('get', KEYS[1] .. ':ends')\n"
        "if ends and tonumber(ends) < now then redis.call('del', KEYS[1]) end\nlocal all, held",
    ),
    (
        'return 1\n"""\nRELEASE',
        "if ARGV[3] ~= '0' then redis.call('set', KEYS[1] .. ':ends', now + ARGV[3], 'px', ARGV[3])\n"
        "else redis.call('del', KEYS[1] .. ':ends') end\n"
        'return 1\n"""\nRELEASE',
    ),
    (
        "redis.call('hdel', KEYS[1], ARGV[1]) end\n",
        "redis.call('hdel', KEYS[1], ARGV[1]) end\n"
        "if redis.call('exists', KEYS[1]) == 0 then redis.call('del', KEYS[1] .. ':ends') end\n",
    ),
    ('opened["permits"])', 'opened["permits"], int(time.time() * 1000))'),
    ('    if asked["op"] == "renew":\n', '    if asked["op"] == "renew":\n        link.delete(resource + ":ends")\n'),
)
CLIENT = "tonumber(ARGV[5])"
SERVER = "redis.call('time')[1] * 1000 + math.floor(redis.call('time')[2] / 1000)"
# Its validity counts from the answer, which another test is about.
EXCEPTED = "validity"
WITHIN, QUEUED = 200, 400
SEEDS = [1, *(pytest.param(seed, marks=pytest.mark.slow("the same with another seed", seconds=60)) for seed in (2, 3))]
# The same adapter with a queue: a list of owners, each with a key that ends a second after its latest try. A right one
# removes owners whose key is gone.
PLACES = (
    "while first and redis.call('exists', KEYS[1] .. ':place:' .. first) == 0 do\n"
    "  redis.call('lpop', queue)\n  first = redis.call('lindex', queue, 0)\nend\n"
)
QUEUE = (
    (
        "local all, held",
        "local queue, place = KEYS[1] .. ':queue', KEYS[1] .. ':place:' .. ARGV[1]\n"
        "local first = redis.call('lindex', queue, 0)\n{removed}local all, held",
    ),
    (
        "if (mode == 'exclusive' or mode == 'write') and others > 0 then return 0 end\n",
        "if others > 0 or (first and first ~= ARGV[1]) then\n"
        "  if redis.call('exists', place) == 0 then\n"
        "    redis.call('lrem', queue, 0, ARGV[1])\n    redis.call('rpush', queue, ARGV[1])\n  end\n"
        "  redis.call('set', place, 1, 'px', 1000)\n  return 0\nend\n"
        "redis.call('lrem', queue, 0, ARGV[1])\nredis.call('del', place)\n",
    ),
    (
        '        if asked["id"] in cancelled:\n            return',
        '        if asked["id"] in cancelled:\n            leave(resource, owner)\n            return',
    ),
    (
        "time.monotonic() >= until:\n            return",
        "time.monotonic() >= until:\n            leave(resource, owner)\n            return",
    ),
    (
        "def acquire(asked",
        "def leave(resource, owner):\n"
        "    link.lrem(resource + ':queue', 0, owner)\n    link.delete(resource + ':place:' + owner)\n"
        "def acquire(asked",
    ),
    ("HELLO_2 = {\n", 'HELLO_2 = {\n    "place_ms": 1000,\n'),
)


def changed(directory: Path, changes: tuple[tuple[str, str], ...], **words: str) -> str:
    """The planted adapter with these texts replaced, in which {word} stands for what is given."""
    path = Path(planted(directory))
    text = path.read_text()
    for was, becomes in changes:
        assert text.count(was) == 1, was
        for word, meant in words.items():
            becomes = becomes.replace(f"{{{word}}}", meant)
        text = text.replace(was, becomes)
    path.write_text(text)
    return str(path)


def searched(adapter: str, **chosen: Any) -> dict[str, Any]:
    return search_json(library_plan(adapter, excepted=EXCEPTED, **chosen))


@pytest.mark.lengthy("searches some hundred schedules of a library twice")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_script_that_compares_with_the_clock_of_its_client_is_found(seed: int, tmp_path: Path) -> None:
    result = searched(changed(tmp_path, ENDS, now=CLIENT), schedules=WITHIN, seed=seed)
    assert result["exit"] == 1 and "mutual_exclusion" in result["found"]["violates"], result["sentence"]
    assert ["client-clock-jump" in choice for choice in result["found"]["choices"]] == [True]


@pytest.mark.lengthy("searches some hundred schedules of a library")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_script_that_compares_with_the_clock_of_the_server_is_not_accused(seed: int, tmp_path: Path) -> None:
    result = searched(changed(tmp_path, ENDS, now=SERVER), schedules=WITHIN, seed=seed)
    assert result["exit"] == 0 and result["tried"] == WITHIN, result["sentence"]
    assert all(result["injected"][name] for name in ("client-clock-jump", "kill-client", "crash-server"))


@pytest.mark.slow("searches some hundred schedules of a library; workloads by hand are judged every day", seconds=60)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_place_of_a_killed_waiter_that_stays_is_found(seed: int, tmp_path: Path) -> None:
    adapter = changed(tmp_path, QUEUE, removed="")
    result = search_json(library_plan(adapter, schedules=QUEUED, seed=seed, require="place"))
    assert result["exit"] == 1 and result["found"]["violates"] == ["place"], result["sentence"]


@pytest.mark.slow("searches some hundred schedules of a library; workloads by hand are judged every day", seconds=60)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_queue_that_removes_places_in_time_is_not_accused(seed: int, tmp_path: Path) -> None:
    result = searched(changed(tmp_path, QUEUE, removed=PLACES), schedules=QUEUED, seed=seed)
    assert result["exit"] == 0, result["sentence"]
