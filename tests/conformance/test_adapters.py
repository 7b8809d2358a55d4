"""Locks in other programs: the protocol between a client and an adapter, and the messages when an adapter breaks it."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import fastjsonschema
import pytest

from lockstorm.base import paths
from lockstorm.base.errors import UsageError
from lockstorm.base.hang_limit import HangLimit
from lockstorm.locks import adapter as adapters
from lockstorm.locks import adapter_lines
from lockstorm.native.library import Outcome
from tests.helpers.planting import USUAL, plant_in
from tests.helpers.stalls import beside_no_stall
from tests.helpers.support import lockstorm, short_directory, start_lockstorm, trial

pytestmark = pytest.mark.waits  # many trials are in real time


@pytest.fixture
def plant(tmp_path: Path) -> Callable[[str], str]:
    return partial(plant_in, tmp_path)


def played(program: str, scenario: str = "gc-pause", *arguments: str) -> "subprocess.CompletedProcess[str]":
    return lockstorm("run", scenario, "--adapter", program, "--quiet", *arguments)


def adapter_trial(program: str, **requests: Any) -> Any:
    return trial(adapters.PREFIX + program, time="real", **requests)


def test_a_library_fails_as_its_pattern_does_and_holds_without_the_fault() -> None:
    fault = played("redis-py")
    assert fault.returncode == 1 and "Mutual exclusion violated, integrity violated" in fault.stdout, fault.stderr
    control = played("redis-py", "gc-pause", "--control")
    assert control.returncode == 0, control.stdout + control.stderr


@pytest.mark.waits
@pytest.mark.lengthy("a trial of some seconds on a real etcd")
def test_an_election_has_a_queue_in_which_a_session_may_end() -> None:
    done = lockstorm("run", "waiter-expired", "--adapter", "etcd-election", "--time", "real", "--json", timeout=120)
    if "not installed" in done.stderr or "not built" in done.stderr:
        pytest.skip(done.stderr)
    result = json.loads(done.stdout)
    # It writes beside the next leader; whether it also leads at the same moment depends on the machine.
    assert result["exit"] == 1 and result["verdict"]["integrity"]["status"] == "violated", result["sentence"]


def test_the_command_that_repeats_a_trial_names_the_adapter(plant: Callable[[str], str]) -> None:
    program = plant(USUAL)
    assert f"again: ./lockstorm run gc-pause --adapter {program} --seed 1 --time virtual" in played(program).stdout


def test_a_library_that_knows_only_tcp_is_reached_through_the_proxy_too(plant: Callable[[str], str]) -> None:
    program = plant('HELLO["tcp"] = True\n' + USUAL)
    with adapter_trial(program) as running:
        (one,) = running.clients(1)
        assert one.acquire().ok
        with running.fault("partition", one, servers="redis-*"):
            one.start_release()
            running.advance(200)
            assert one.state.name != "IDLE"  # its release is swallowed
        running.finish(one)


TOKENS = """
HELLO["token"] = True
def answer(asked):
    reply = lock(asked)
    if asked["op"] == "acquire" and reply == OK:
        return {**OK, "token": link.ask("INCR", "tokens")}
    return reply
"""


def test_tokens_are_the_librarys_and_fence(plant: Callable[[str], str]) -> None:
    done = played(plant(TOKENS), "gc-pause", "--store", "fence-writes", "--require", "integrity,fencing")
    assert done.returncode == 0 and "1 stale write fenced" in done.stdout, done.stdout + done.stderr


def test_a_grant_without_the_token_that_was_promised_is_an_error(plant: Callable[[str], str]) -> None:
    done = played(plant('HELLO["token"] = True\n' + USUAL))
    assert done.returncode == 2 and "the adapter gives tokens, and gave none with this grant" in done.stderr


VALIDITY = """
def answer(asked):
    reply = lock(asked)
    if asked["op"] == "acquire" and reply == OK:
        return {**OK, "valid_until_ms": time.monotonic() * 1000 + 150}
    return reply
"""


def test_a_library_may_say_until_when_it_believes(plant: Callable[[str], str]) -> None:
    with adapter_trial(plant(VALIDITY)) as running:
        (one,) = running.clients(1)
        before_ns = running.mono_ns
        assert one.acquire().ok
        granted = next(event for event in running.story() if event.kind == "acquire-return")
        assert before_ns + 150e6 <= granted.value <= running.mono_ns + 150e6


WRONG = [
    ("print('ready', flush=True)\n" + USUAL, "it wrote 'ready', which is not JSON"),
    ("sys.exit(3)", "it ended with status 3"),
    ("sys.exit('no such library')", "it ended with status 1: no such library"),
    ("def answer(asked): return {'id': 7, **lock(asked)}", 'it answered request 1 with "id": 7'),
    ("def answer(asked): return {'outcome': 'yes'}", '"outcome" must be one of ok, refused, unknown'),
    ("HELLO['protocol'] = 2\n" + USUAL, "protocol must be 1, the version that it speaks"),
    ("del HELLO['name']\n" + USUAL, "its hello lacks 'name'"),
    ("HELLO['leese'] = True\n" + USUAL, "its hello has the unknown key 'leese'"),
    ("HELLO['lease'] = 1\n" + USUAL, "lease must be true or false"),
    ("HELLO['operations'] = ['extend']\n" + USUAL, "of renew, is_held, status"),
    ("subprocess.Popen(['sleep', '30']); sys.exit(3)", "it ended with status 3"),
    ("sys.stdout.write('x' * 100000); sys.stdout.flush(); time.sleep(60)", "more than 65536 bytes without a line end"),
]


@pytest.mark.parametrize(("body", "message"), WRONG, ids=[message for _, message in WRONG])
def test_a_wrong_hello_is_explained_before_a_trial_starts(plant: Callable[[str], str], body: str, message: str) -> None:
    done = played(plant(body))
    assert done.returncode == 2 and message in done.stderr, done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_an_adapter_that_never_says_hello_is_not_waited_for(
    plant: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapters, "HELLO_LIMIT_S", 0.2)
    with pytest.raises(UsageError, match=r"did not answer hello within 0\.2 s"):
        adapters.adapter_entry(adapters.PREFIX + plant("time.sleep(60)"))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("./nothing-here", "./nothing-here: there is no such program"),
        ("nothing-here", "there is no adapter called 'nothing-here'"),
        (str(Path(__file__)), "cannot be executed: chmod +x"),
    ],
)
def test_a_program_that_does_not_exist_or_run(name: str, message: str) -> None:
    done = played(name)
    assert done.returncode == 2 and message in done.stderr


def test_one_lock_is_named() -> None:
    for arguments in ((), ("--lock", "setnx", "--adapter", "./mine")):
        done = lockstorm("run", "gc-pause", *arguments)
        assert done.returncode == 2 and "name one lock: --lock" in done.stderr


def test_nothing_is_held_inside_a_library_in_real_time() -> None:
    done = played("redis-py", "pause-replies-in-flight", "--time", "real")
    assert done.returncode == 2 and "can only be played in virtual time with adapter:redis-py" in done.stderr


LATER = [
    ("acquire", "print('oops', flush=True)", "the adapter said something that is no JSON object: oops"),
    ("acquire", "print('{\"id\": 99}', flush=True)", "the adapter said no id of a question"),
    ("acquire", 'print(\'{"id": 3, "outcome": "yes"}\', flush=True)', "the adapter said no outcome"),
    ("acquire", "sys.exit(5)", "the adapter is gone: it ended with status 5"),
    ("acquire", "return {**OK, 'tokken': 1}", "the adapter answered with a key that there is not: tokken"),
    ("release", "os.kill(os.getpid(), 9)", "the adapter is gone: it was ended by signal 9"),
    ("release", "sys.stdout.write('x' * 70000); sys.stdout.flush()", "more than 64 KiB without a line end"),
    ("open", "os.close(1); time.sleep(60)", "the adapter is gone: it closed its standard output"),
]


@pytest.mark.parametrize(("verb", "does", "message"), LATER, ids=[message for *_, message in LATER])
def test_an_adapter_that_breaks_down_in_a_trial_ends_it_with_a_sentence(
    plant: Callable[[str], str], verb: str, does: str, message: str
) -> None:
    done = played(plant(f"def answer(asked):\n    if asked['op'] == '{verb}':\n        {does}\n    return lock(asked)"))
    assert done.returncode == 2 and message in done.stderr, done.stdout + done.stderr
    assert len(done.stderr.splitlines()) == 1


SLOW = """
def answer(asked):
    reply = lock(asked)
    if asked["op"] == "acquire":
        time.sleep(2.2)
    return reply
"""
LATE_MS = 1500  # the first answer is later; it is there before the second one would be


@beside_no_stall(LATE_MS)
def test_an_answer_that_comes_too_late_is_unknown_and_never_taken_for_another(plant: Callable[[str], str]) -> None:
    with adapter_trial(plant(SLOW), lease_ms=10_000) as running:
        (one,) = running.clients(1)
        assert one.acquire(wait_ms=0).ok
        assert one.release().ok
        running.context.reply_limit_ms = LATE_MS // 15  # it waits for 15 of them
        (two,) = running.clients(1)
        assert two.acquire(wait_ms=0).outcome is Outcome.UNKNOWN
        assert two.release().ok  # the acquire whose answer was late had been granted
        assert two.renew().outcome is Outcome.REFUSED  # the lock has a lease, and the adapter cannot renew it
        assert two.is_held().outcome is Outcome.UNKNOWN  # nor answer is_held


CHILD = """
if "LOCKSTORM_TRIAL" in os.environ:
    child = subprocess.Popen(["sleep", "1000"])
    alone = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    open(os.environ["LOCKSTORM_TRIAL"] + "/family", "a").write(f"{os.getpid()} {child.pid} {alone.pid} ")
"""


def family(directory: Path) -> list[int]:
    return [int(pid) for pid in (directory / "family").read_text().split()]


def state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "gone"


def test_a_client_is_stopped_and_killed_together_with_its_adapter(plant: Callable[[str], str]) -> None:
    with adapter_trial(plant(CHILD + USUAL)) as running:
        (one,) = running.clients(1)
        program, child, alone = family(running.sandbox.directory)
        with running.fault("pause-client", one) as fault:
            assert [state(pid) for pid in (one.pid, program, child, alone)] == ["T"] * 4
            assert "4 of 4 threads in state T" in str(fault.report)
        await_state("S", program, child, alone)
        running.kill(one)
        await_end(program, child)
        assert state(alone) == "S"  # it has left the process group, and ends with the trial
    await_end(alone)


def await_end(*pids: int) -> None:
    await_state(("gone", "Z"), *pids)


def await_state(states: str | tuple[str, ...], *pids: int) -> None:
    """Every process has one of the states; who has been continued is "R" for a moment, until it waits again."""
    limit = HangLimit(5)
    while any(state(pid) not in states for pid in pids):
        assert not limit.is_over(), [(pid, state(pid)) for pid in pids]
        time.sleep(0.01)


@pytest.fixture
def private() -> Iterator[Path]:
    with short_directory() as directory:
        yield directory


def test_nothing_is_left_when_the_command_is_killed(plant: Callable[[str], str], private: Path) -> None:
    program = plant(CHILD + "def answer(asked):\n    return lock(asked)")
    arguments = ("run", "contention", "--adapter", program, "--duration", "30s")
    command = start_lockstorm(*arguments, env={**os.environ, "TMPDIR": str(private), "PYTHONPATH": paths.python_path()})
    limit = HangLimit(20)
    while not (found := [path for path in private.glob("lockstorm-*/family") if len(family(path.parent)) >= 3]):
        assert not limit.is_over() and command.poll() is None
        time.sleep(0.01)
    members = family(found[0].parent)
    command.send_signal(signal.SIGKILL)
    command.communicate()
    await_end(*members)
    while list(private.glob("lockstorm-*")):
        assert not limit.is_over()
        time.sleep(0.01)


RECORDING = """
def answer(asked):
    reply = lock(asked)
    with open(os.environ.get("LOCKSTORM_RECORD", os.devnull), "a") as record:
        print(json.dumps(asked), json.dumps({"id": asked["id"], **reply}), sep="\\n", file=record)
    return reply
"""
SCHEMA = json.loads((paths.ROOT / "docs" / "adapter.schema.json").read_text())


def test_every_line_is_as_the_schema_has_it(
    plant: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    validate = fastjsonschema.compile(SCHEMA, use_default=False)
    monkeypatch.setenv("LOCKSTORM_RECORD", str(tmp_path / "record"))
    for tcp in (False, True):
        with adapter_trial(plant(f'HELLO.update(tcp={tcp}, operations=["renew", "is_held"])' + RECORDING)) as running:
            (one,) = running.clients(1)
            one.acquire(wait_ms=5)
            one.acquire(wait_ms=5)
            one.release()
    lines = [json.loads(line) for line in (tmp_path / "record").read_text().splitlines()]
    assert {line["op"] for line in lines if "op" in line} == {"hello", "open", "acquire", "release"}
    assert {line["outcome"] for line in lines if "outcome" in line} == {"ok", "refused"}
    for line in lines:
        validate(line)


@pytest.mark.parametrize(
    "line",
    [
        {"id": 1, "op": "steal"},
        {"op": "release"},
        {"id": 1, "op": "acquire"},
        {"id": 1, "op": "hello", "protocol": 4},
        {"id": 1, "op": "release", "form": "lock"},
        {"id": 1, "op": "acquire", "wait_ms": 0, "lock": 0},
        {"id": 1, "op": "acquire", "wait_ms": 0, "mode": "share"},
        {"id": 1, "op": "cancel"},
        {"id": 1, "op": "forget", "lock": 1},
        {"id": 1, "outcome": "yes"},
        {"id": 1, "outcome": "ok", "tokken": 3},
        {"id": 1, "outcome": "ok", "token": 0},
        {"id": 1, "outcome": "ok", "protocol": 1},
        {"id": 1, "outcome": "ok", "protocol": 1, "name": "mine", "leese": True},
    ],
)
def test_the_schema_refuses_a_wrong_line(line: dict[str, Any]) -> None:
    with pytest.raises(fastjsonschema.JsonSchemaException):
        fastjsonschema.compile(SCHEMA, use_default=False)(line)


def test_the_schema_has_the_keys_of_a_hello() -> None:
    definitions = SCHEMA["definitions"]
    assert set(definitions["AdapterHello"]["properties"]) == set(adapter_lines.HELLO_KEYS)
    assert set(definitions["AdapterFacts"]["properties"]) == set(adapter_lines.HELLO_KEYS_3)
    assert set(definitions["AcquireForm"]["properties"]) == set(adapter_lines.FORM_KEYS)


POLICY = """
[[lock]]
adapter = "bin/{name}"
[scenarios]
play = ["gc-pause"]
[[accept]]
lock = "bin/{name}"
scenario = "gc-pause"
property = "mutual_exclusion"
why = "a test"
until = 9999-12-31
"""


def test_a_gate_holds_a_library_to_a_policy_and_judges_the_kept_run_again(
    plant: Callable[[str], str], tmp_path: Path
) -> None:
    program = Path(plant(USUAL))
    (tmp_path / "bin").mkdir()
    program.rename(tmp_path / "bin" / program.name)
    (tmp_path / "lockstorm.toml").write_text(POLICY.format(name=program.name))
    done = lockstorm("gate", "-f", str(tmp_path / "lockstorm.toml"), "--json")
    assert done.returncode == 1, done.stderr
    verdict = json.loads(done.stdout)
    (cell,) = verdict["cells"]
    assert cell["lock"] == f"adapter:{tmp_path}/bin/{program.name}" and cell["time"] == "virtual"
    assert cell["outcome"] == "failed" and cell["violated"] == ["integrity", "mutual_exclusion"]
    assert verdict["locks"][0]["advice"]["text"].startswith("Use a lock that works as ")
    again = lockstorm("check", str(next((tmp_path / "runs").glob("2*"))))
    assert again.returncode == 1, again.stderr
