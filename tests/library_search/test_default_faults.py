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
WITHIN = 200


def ends_by(directory: Path, now: str) -> str:
    path = Path(planted(directory))
    text = path.read_text()
    for was, becomes in ENDS:
        assert text.count(was) == 1, was
        text = text.replace(was, becomes.replace("{now}", now))
    path.write_text(text)
    return str(path)


def searched(adapter: str, **chosen: Any) -> dict[str, Any]:
    return search_json(library_plan(adapter, excepted=EXCEPTED, **chosen))


@pytest.mark.lengthy("searches some hundred schedules of a library twice")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_script_that_compares_with_the_clock_of_its_client_is_found(seed: int, tmp_path: Path) -> None:
    result = searched(ends_by(tmp_path, CLIENT), schedules=WITHIN, seed=seed)
    assert result["exit"] == 1 and "mutual_exclusion" in result["found"]["violates"], result["sentence"]
    assert ["client-clock-jump" in choice for choice in result["found"]["choices"]] == [True]


@pytest.mark.lengthy("searches some hundred schedules of a library")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_script_that_compares_with_the_clock_of_the_server_is_not_accused(seed: int, tmp_path: Path) -> None:
    result = searched(ends_by(tmp_path, SERVER), schedules=WITHIN, seed=seed)
    assert result["exit"] == 0 and result["tried"] == WITHIN, result["sentence"]
    assert all(result["injected"][name] for name in ("client-clock-jump", "kill-client", "crash-server"))
