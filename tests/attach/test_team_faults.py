"""Faults of the team: commands that break a server, prove it, and heal it, while clients work."""

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lockstorm.attach.shell_command import Done, run_shell
from tests.helpers.outside_servers import OutsideServer, outside_server
from tests.helpers.proxying import wait_until
from tests.helpers.support import ENVIRONMENT, lockstorm, processes_below, start_lockstorm

pytestmark = pytest.mark.waits

PAUSE = """
[fault.pause]
inject = "kill -STOP {pid}"
prove = '''grep -q 'State:.T' /proc/{pid}/status'''
heal = "kill -CONT {pid}"
lasts = "1s"

[fault.unproved]
inject = "echo nothing is broken"
prove = "echo still healthy with $LOCKSTORM_PASSWORD; exit 7"
heal = "touch {directory}/healed"
limit = "1s"

[fault.failing]
inject = "echo no such pod; exit 3"
prove = "test -e {directory}/never"

[fault.endless]
inject = "sleep 1000"
prove = "test -e {directory}/never"
limit = "500ms"

[fault.without-heal]
inject = "true"
prove = "echo asked >> {directory}/proofs; test $(wc -l < {directory}/proofs) -gt 2 && rm {directory}/proofs"
lasts = "100ms"

[fault.late]
inject = "touch {directory}/begun; until test -e {directory}/later; do sleep 0.1; done"
prove = "test -e {directory}/later"
heal = "touch {directory}/healed"

[fault.stuck]
inject = "rm -f {directory}/second; kill -STOP {pid}"
prove = '''grep -q 'State:.T' /proc/{pid}/status'''
heal = "kill -CONT {pid}; test -e {directory}/second || {{ touch {directory}/second; exit 5; }}"
lasts = "100ms"

[fault.proved-already]
inject = "touch {directory}/injected"
prove = "true"
heal = "touch {directory}/healed"
"""


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[OutsideServer]:
    with outside_server(tmp_path) as started:
        text = PAUSE.format(pid=started.process.pid, directory=tmp_path)
        (tmp_path / "attach.toml").write_text(text)
        yield started


def words_for(outside: OutsideServer, tmp_path: Path, fault: str) -> tuple[str, ...]:
    faults = ("--fault", fault, "--faults", str(tmp_path / "attach.toml"))
    return ("attach", f"redis://{outside.place}", "--lock", "set-nx-px", *faults, "--clients", "2")


def broken(outside: OutsideServer, tmp_path: Path, fault: str, status: int, **more: Any) -> dict[str, Any]:
    done = lockstorm(*words_for(outside, tmp_path, fault), "--json", **more)
    assert done.returncode == status, done.stderr + done.stdout
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.lengthy("a server is stopped while clients work")
def test_a_fault_is_injected_proved_and_healed_under_load(outside: OutsideServer, tmp_path: Path) -> None:
    answer = broken(outside, tmp_path, "pause", 0)
    (trial,) = answer["trials"]
    assert trial["scenario"] == "fault:pause"
    assert trial["faults"] == [{"name": "pause", "target": outside.place, "proved": True}]
    assert trial["sentence"] == "Mutual exclusion holds, integrity holds, liveness holds"
    assert trial["grants"] >= 2 and answer["healed"] == {}
    file = tmp_path / "attach.toml"
    assert trial["replay"] == (
        f"lockstorm attach redis://{outside.place} --fault pause --faults {file} --lock set-nx-px --seed 1 --clients 2"
    )
    assert outside.ask("DBSIZE") == "0"


def test_a_fault_that_is_proved_later_needs_no_heal(outside: OutsideServer, tmp_path: Path) -> None:
    (trial,) = broken(outside, tmp_path, "without-heal", 0)["trials"]
    assert [fault["proved"] for fault in trial["faults"]] == [True]


def test_a_proof_that_succeeds_before_the_fault_proves_nothing(outside: OutsideServer, tmp_path: Path) -> None:
    (trial,) = broken(outside, tmp_path, "proved-already", 3)["trials"]
    assert trial["sentence"] == (
        "Inconclusive: prove of the fault proved-already succeeds before inject, so it cannot tell whether the fault "
        "took effect: it has to fail until then"
    )
    assert not (tmp_path / "injected").exists() and not (tmp_path / "healed").exists()
    assert outside.ask("DBSIZE") == "0"


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("failing", "inject of the fault failing ended with status 3: no such pod"),
        ("endless", "inject of the fault endless did not end within 0.5 s and printed nothing"),
        ("stuck", "heal of the fault stuck ended with status 5 and printed nothing"),
    ],
)
def test_a_command_that_fails_makes_the_trial_inconclusive(
    fault: str, said: str, outside: OutsideServer, tmp_path: Path
) -> None:
    (trial,) = broken(outside, tmp_path, fault, 3)["trials"]
    assert trial["sentence"] == f"Inconclusive: {said}"
    assert outside.ask("DBSIZE") == "0"


def test_a_fault_without_a_proof_is_healed_and_its_output_hides_the_password(tmp_path: Path) -> None:
    with outside_server(tmp_path, "--requirepass", "secret", cli=("-a", "secret", "--no-auth-warning")) as outside:
        (tmp_path / "attach.toml").write_text(PAUSE.format(pid=0, directory=tmp_path))
        environment = {**ENVIRONMENT, "LOCKSTORM_PASSWORD": "secret"}
        (trial,) = broken(outside, tmp_path, "unproved", 3, env=environment)["trials"]
        assert trial["sentence"] == (
            "Inconclusive: the fault unproved was not proved within 1 s: prove ended with status 7: still healthy "
            "with ***"
        )
        assert (tmp_path / "healed").exists()
        assert outside.ask("DBSIZE") == "0"


def test_a_dry_run_shows_the_commands_and_runs_none(outside: OutsideServer, tmp_path: Path) -> None:
    done = lockstorm(*words_for(outside, tmp_path, "failing"), "--dry-run")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[3:] == [
        "scenario   fault:failing: Clients increment a counter under the lock while commands of the team break the "
        "servers.",
        "command    failing: inject = echo no such pod; exit 3",
        f"command    failing: prove = test -e {tmp_path}/never",
        "nothing was touched: this was a dry run",
    ]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_fault_is_healed_when_the_command_is_ended(number: int, outside: OutsideServer, tmp_path: Path) -> None:
    text = (tmp_path / "attach.toml").read_text().replace('lasts = "1s"', 'lasts = "60s"', 1)
    (tmp_path / "attach.toml").write_text(text)
    command = start_lockstorm(*words_for(outside, tmp_path, "pause"))
    status = Path(f"/proc/{outside.process.pid}/status")
    wait_until(lambda: "State:\tT" in status.read_text())
    command.send_signal(number)
    command.communicate(timeout=60)
    outside.await_answer("PONG", "PING")
    outside.await_answer("0", "DBSIZE")


def test_a_command_does_not_outlive_a_driver_that_was_killed(outside: OutsideServer, tmp_path: Path) -> None:
    command = start_lockstorm(*words_for(outside, tmp_path, "late"))
    await_file(tmp_path / "begun")
    command.kill()
    command.communicate(timeout=60)
    await_file(tmp_path / "healed")
    wait_until(lambda: processes_below(tmp_path) == [outside.process.pid])


def test_a_command_does_nothing_before_somebody_could_end_it(tmp_path: Path) -> None:
    """The driver may be killed between its start and the moment at which the gateway knows its process group."""

    def killed(group: int) -> None:
        assert os.getpgid(group) == group
        time.sleep(0.3)
        raise InterruptedError

    with pytest.raises(InterruptedError):
        run_shell(f"touch {tmp_path}/begun", 5, {}, started=killed)
    assert list(tmp_path.iterdir()) == []
    assert run_shell("cat; echo said; exit 3", 5, {}) == Done(3, "said")


def await_file(path: Path) -> None:
    wait_until(path.exists)
