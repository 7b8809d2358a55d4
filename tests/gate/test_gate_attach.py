"""[attach] of a policy: a gate on servers that the test has started."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lockstorm.base.errors import UsageError
from lockstorm.gate.gate_plan import plan_gate
from lockstorm.gate.gate_policy import read_policy
from tests.helpers.outside_servers import OutsideServer, outside_server
from tests.helpers.support import ENVIRONMENT, lockstorm, start_lockstorm

SECRET = "correct-horse"
POLICY = """
[[lock]]
name = "set-nx-px"

[attach]
url = "{url}"
{more}
[scenarios]
play = ["gc-pause", "crash-holder"]
"""


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[OutsideServer]:
    words = ("-a", SECRET, "--no-auth-warning")
    with outside_server(tmp_path, "--requirepass", SECRET, cli=words) as started:
        yield started


def gate_at(directory: Path, text: str, status: int) -> dict[str, Any]:
    (directory / "lockstorm.toml").write_text(text)
    words = ("gate", "-f", str(directory / "lockstorm.toml"), "--json")
    done = lockstorm(*words, env={**ENVIRONMENT, "LOCKSTORM_PASSWORD": SECRET})
    assert done.returncode == status, done.stderr
    if status == 2:
        return {"said": done.stderr.removeprefix("lockstorm: ").rstrip()}
    verdict: dict[str, Any] = json.loads(done.stdout)
    return verdict


@pytest.mark.waits
@pytest.mark.lengthy("plays two scenarios and their controls in real time")
def test_a_gate_on_attached_servers(outside: OutsideServer, tmp_path: Path) -> None:
    url = f"redis://{outside.place}/3"
    verdict = gate_at(tmp_path, POLICY.format(url=url, more=""), 1)
    cells = {cell["scenario"]: (cell["outcome"], cell["control"]) for cell in verdict["cells"]}
    assert cells == {"gc-pause": ("failed", "holds"), "crash-holder": ("passed", "holds")}
    again = f"lockstorm attach {url} --scenario gc-pause --lock set-nx-px --seed 1 --store open"
    assert [cell["replay"] for cell in verdict["cells"] if cell["scenario"] == "gc-pause"] == [again]
    assert outside.ask("INFO", "keyspace") == "# Keyspace"
    (run,) = (tmp_path / "runs").iterdir()
    trials = [json.loads(each.read_text()) for each in (run / "trials").glob("*.json")]
    assert len(trials) == 4
    for trial in trials:
        again = f"lockstorm attach {url} --scenario {trial['scenario']} --lock set-nx-px --seed 1"
        assert trial["replay"].startswith(again)
    kept = [each.read_bytes() for each in run.rglob("*") if each.is_file()]
    assert not any(SECRET.encode() in each for each in kept)
    judged = lockstorm("check", str(run), "--json")
    assert judged.returncode == 1
    assert {
        cell["scenario"]: (cell["outcome"], cell["control"]) for cell in json.loads(judged.stdout)["cells"]
    } == cells


@pytest.mark.waits
def test_a_gate_leaves_a_database_with_keys_alone_without_yes(outside: OutsideServer, tmp_path: Path) -> None:
    outside.ask("SET", "other", "1")
    url = f"redis://{outside.place}"
    assert gate_at(tmp_path, POLICY.format(url=url, more=""), 2)["said"] == (
        f"database 0 of {outside.place} is not empty: it has 1 key. attach makes only keys whose names contain "
        "lockstorm:attach: and removes them at the end: add yes = true to [attach], or name an empty database"
    )
    assert not (tmp_path / "runs").exists()
    gate_at(tmp_path, POLICY.format(url=url, more="yes = true").replace('"gc-pause", ', ""), 0)
    assert outside.ask("KEYS", "*") == "other"


@pytest.mark.waits
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_a_gate_that_is_ended_leaves_nothing(outside: OutsideServer, tmp_path: Path, number: int, status: int) -> None:
    text = POLICY.format(url=f"redis://{outside.place}", more="").replace('"gc-pause", "crash-holder"', '"contention"')
    (tmp_path / "lockstorm.toml").write_text(text)
    words = ("gate", "-f", str(tmp_path / "lockstorm.toml"))
    command = start_lockstorm(*words, env={**ENVIRONMENT, "LOCKSTORM_PASSWORD": SECRET})
    outside.await_answer("lockstorm:attach:", "KEYS", "*")
    command.send_signal(number)
    command.communicate(timeout=60)
    assert command.returncode == status
    outside.await_answer("0", "DBSIZE")
    assert outside.connections() == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            ("redis://a", "redis://a:x@b"),
            "6: the URL contains a password, which other users of this machine could see: ",
        ),
        (("redis://a", "etcd://a"), "2: set-nx-px lives on Redis, and etcd://a is etcd: `lockstorm locks` lists the "),
        (("url =", "uri ="), "6: unknown key 'uri' in [attach]: did you mean url?"),
        (("[attach]", "[attach]\nyes = 1"), "6: yes has to be true or false"),
        (("[attach]", "[attach]\nca = '/x'"), "6: --ca /x is for rediss:// and the like: redis://a is without TLS"),
        (
            ('"gc-pause"', '"failover-sentinel"'),
            "9: failover-sentinel breaks a server or needs one of its own, so [attach] cannot play it",
        ),
        (
            ("[scenarios]", "[scenarios]\ntime = 'virtual'"),
            "9: the servers of [attach] know real time only: leave it out",
        ),
        (
            ("[scenarios]", "[deployment]\nreplicas = 1\n[scenarios]"),
            "8: [attach] has the servers as they are: leave out [deployment], or [attach]",
        ),
        (
            ("[scenarios]", "[[storm]]\nname = 'x'\n[scenarios]"),
            "8: a storm breaks servers of its own: leave it out, or leave out [attach]",
        ),
        (("set-nx-px", "redlock"), "2: redlock needs 5 servers, and attach has one: try it by lockstorm run"),
    ],
)
def test_an_attachment_with_a_mistake(changed: tuple[str, str], said: str, tmp_path: Path) -> None:
    file = tmp_path / "lockstorm.toml"
    file.write_text(POLICY.format(url="redis://a", more="").replace(*changed))
    with pytest.raises(UsageError) as refusal:
        plan_gate(read_policy(file))
    assert str(refusal.value).startswith(f"{file}:{said}")


def test_every_scenario_that_can_be_attached_is_planned(tmp_path: Path) -> None:
    file = tmp_path / "lockstorm.toml"
    text = POLICY.format(url="redis://a", more="")
    file.write_text(
        text.replace('["gc-pause", "crash-holder"]', '"all"\nskip = ["failover-sentinel", "gc-pause-read"]')
    )
    plan = plan_gate(read_policy(file))
    names = {case.scenario for case in plan.cases}
    assert {"lossy-links", "gc-pause", "contention"} <= names and "gc-pause-read" not in names
    assert {case.time for case in plan.cases} == {"real"}
