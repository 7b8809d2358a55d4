"""serve(): an adapter of a few lines (adapter_program/serve.py)."""

import json
import sys
from pathlib import Path

import pytest

from lockstorm.locks.adapter import AdapterProgram, adapter_facts
from tests.helpers.support import lockstorm

THREADS = """#!{python}
import functools, redis
from lockstorm import serve
connected = functools.cache(lambda url: redis.Redis.from_url(url, socket_timeout=1, retry=None))
serve(
    make=lambda urls, resource, lease: connected(urls[0]).lock(resource, timeout=lease),
    acquire=lambda lock, wait: lock.acquire(blocking_timeout=wait),
    refused=redis.exceptions.LockError, {more}
)
"""
TASKS = """#!{python}
import functools, redis.asyncio as redis
from lockstorm import serve
connected = functools.cache(lambda url: redis.Redis.from_url(url, socket_timeout=1, retry=None))
async def acquire(lock, wait):
    return await lock.acquire(blocking_timeout=wait)
serve(
    make=lambda urls, resource, lease: connected(urls[0]).lock(resource, timeout=lease),
    acquire=acquire, refused=redis.lock.LockError, {more}
)
"""


def written(path: Path, text: str, more: str = "") -> str:
    path.write_text(text.format(python=sys.executable, more=more))
    path.chmod(0o755)
    return str(path)


@pytest.mark.waits
@pytest.mark.parametrize(("text", "owner"), [(THREADS, "thread-object"), (TASKS, "object")], ids=["threads", "tasks"])
def test_an_adapter_of_ten_lines_keeps_to_the_protocol(tmp_path: Path, text: str, owner: str) -> None:
    own = f'owner="{owner}", renew=lambda lock: lock.reacquire(), is_held=lambda lock: lock.owned()'
    assert len(text.strip().splitlines()) <= 12
    for more in ("", own):
        done = lockstorm("adapter", "check", written(tmp_path / "mine", text, more), "--json")
        checks = json.loads(done.stdout)["checks"]
        assert not [each for each in checks if not each["ok"]] and done.returncode == 0, done.stderr
        assert len(checks) > 12


def test_hello_says_what_was_given(tmp_path: Path) -> None:
    facts = adapter_facts(written(tmp_path / "one", THREADS))
    assert facts and (facts.threads, facts.lease, facts.operations, facts.cancel) == (1, True, (), False)
    assert adapter_facts(written(tmp_path / "none", THREADS, "renew=None, is_held=None")) == facts
    facts = adapter_facts(written(tmp_path / "two", TASKS, 'owner="object", renew=lambda lock: lock.reacquire()'))
    assert facts and (facts.threads, facts.operations, facts.cancel) == (8, ("renew",), True)
    assert facts.protocol == 3 and facts.over == ("acquire", "release", "renew")
    facts = adapter_facts(written(tmp_path / "three", THREADS, "lease=False, waits_for=('none',), fair=True"))
    assert facts and facts.forms[0].lease == ("endless",) and facts.forms[0].wait == ("none",) and facts.fair


OPEN = {"resource": "a", "lease_ms": 1000, "permits": 1, "fixed_lease": False, "nodes": [{"unix": "/nowhere"}]}


@pytest.mark.parametrize(
    ("acquire", "error"),
    [
        ("lambda lock, wait: None", "TypeError: acquire returned None: return True when the lock was granted"),
        ("lambda lock, wait: asyncio.sleep(1)", "TypeError: acquire has to wait for asyncio: write that function"),
        ("lambda lock: True", "TypeError: <lambda>() takes 1 positional argument but 2 were given"),
    ],
)
def test_a_function_that_cannot_be_right_is_named(tmp_path: Path, acquire: str, error: str) -> None:
    path = tmp_path / "mine"
    text = f"#!{sys.executable}\nimport asyncio\nfrom lockstorm import serve\n"
    path.write_text(f"{text}serve(make=lambda *_: 1, acquire={acquire}, release=print)\n")
    path.chmod(0o755)
    with AdapterProgram(str(path)) as program:
        program.hello()
        assert program.ask("open", 10, **OPEN).outcome == "ok"
        answer = program.ask("acquire", 10, wait_ms=0)
        assert answer.outcome == "unknown" and (answer.error or "").startswith(error), answer


def test_what_acquire_returned_goes_to_the_functions_that_take_it(tmp_path: Path) -> None:
    path = tmp_path / "mine"
    path.write_text(
        f"#!{sys.executable}\nfrom lockstorm import serve\n"
        "serve(make=lambda urls, resource, lease: (urls, resource, lease), acquire=lambda lock, wait: [lock, wait],\n"
        "      release=lambda lock, granted: granted == [(['unix:///nowhere'], 'a', 1.0), 0.5],\n"
        "      is_held=lambda lock: lock[1] == 'b', token=lambda lock, granted: 7)\n"
    )
    path.chmod(0o755)
    with AdapterProgram(str(path)) as program:
        program.hello()
        program.ask("open", 10, **OPEN)
        answer = program.ask("acquire", 10, wait_ms=500)
        assert (answer.outcome, answer.token) == ("ok", 7)
        assert program.ask("release", 10).outcome == "ok"
        assert program.ask("acquire", 10, wait_ms=0).outcome == "ok"
        assert program.ask("release", 10).outcome == "refused"
        assert program.ask("is_held", 10).outcome == "refused"


@pytest.mark.parametrize("command", ["run gc-pause", "run gc-pause --time real", "storm --duration 2s"])
def test_a_trial_that_nobody_is_granted_says_what_the_adapter_said(tmp_path: Path, command: str) -> None:
    path = written(tmp_path / "mine", THREADS, "is_held=None")
    Path(path).write_text(Path(path).read_text().replace("lambda url: ", 'lambda url: {}["REDIS_URL"] or '))
    done = lockstorm(*command.split(), "--adapter", path, "--json")
    assert done.returncode in (1, 3), done.stderr
    assert "its adapter says: KeyError: 'REDIS_URL'" in json.loads(done.stdout)["sentence"]


def test_a_first_line_that_names_no_program(tmp_path: Path) -> None:
    path = Path(written(tmp_path / "mine", THREADS))
    path.write_text(path.read_text().replace(sys.executable, "/no/such/python"))
    done = lockstorm("run", "gc-pause", "--adapter", str(path))
    assert done.returncode == 2 and "its first line names /no/such/python, which does not exist" in done.stderr


@pytest.mark.slow("waits for answers that do not come", seconds=40)
def test_two_checks_without_an_answer_are_enough(tmp_path: Path) -> None:
    path = Path(written(tmp_path / "mine", THREADS))
    path.write_text(path.read_text().replace("lock.acquire(blocking_timeout=wait)", "__import__('time').sleep(999)"))
    done = lockstorm("adapter", "check", str(path), "--json")
    checks = json.loads(done.stdout)["checks"]
    assert done.returncode == 1 and checks[-1]["name"].endswith(" more checks")
    assert [each["wrong"][:22] for each in checks if not each["ok"]][:2] == ["it did not answer acqu"] * 2
    assert checks[-1]["wrong"].startswith("left out, as two had no answer: it did not answer acquire within")
