"""lockstorm init, gate, runs and check RUN: the commands, on real servers."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
import tomllib
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import fastjsonschema
import pytest

from lockstorm.base import paths
from lockstorm.base.atomic_file import write_json
from lockstorm.base.hang_limit import HangLimit
from lockstorm.gate.gate import judge_again, run_gate
from lockstorm.gate.gate_plan import plan_gate
from lockstorm.gate.gate_policy import read_policy
from lockstorm.gate.runs import list_runs, remove_old_runs
from lockstorm.gate.starter_policy import EFFICIENCY, PURPOSES, RESOURCES, Answers, starter_policy_text
from lockstorm.gate.worker import GateWorkerPool
from lockstorm.locks.lock_names import lock_named
from lockstorm.native.library import locks
from lockstorm.scenario.scenario import scenarios
from tests.helpers.planting import plant_in
from tests.helpers.planting_served import BLIND_DELETE
from tests.helpers.support import ENVIRONMENT, lockstorm, processes_below, short_directory

SCHEMA = json.loads((paths.ROOT / "docs" / "verdict.schema.json").read_text())
SAFE = """[[lock]]
name = "set-nx-px-fenced"
store = "fence-reads-and-writes"
require = ["integrity", "fencing"]
[scenarios]
play = ["gc-pause", "packet-delay"]
"""
UNSAFE = """[[lock]]
name = "set-nx-px"
require = ["mutual_exclusion", "integrity"]
[scenarios]
play = "gc-pause"
"""


def gate(directory: Path, policy: str, *words: str, status: int = 0) -> dict[str, Any]:
    """Runs the gate on a policy. Returns the verdict, after validation against its schema."""
    (directory / "lockstorm.toml").write_text(policy)
    done = lockstorm("gate", "-f", str(directory / "lockstorm.toml"), "--json", *words)
    assert done.returncode == status, done.stdout + done.stderr
    verdict: dict[str, Any] = json.loads(done.stdout)
    fastjsonschema.validate(SCHEMA, verdict)
    return verdict


@pytest.fixture(scope="module")
def unsafe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a kept run whose verdict is a failure."""
    directory = tmp_path_factory.mktemp("unsafe")
    verdict = gate(directory, UNSAFE, "-o", str(directory / "out"), status=1)
    return directory / "runs" / str(verdict["run"])


def test_a_safe_choice_passes(tmp_path: Path) -> None:
    verdict = gate(tmp_path, SAFE)
    assert [cell["outcome"] for cell in verdict["cells"]] == ["passed", "passed"]
    assert verdict["cells"][0]["statuses"] == {"integrity": "holds", "fencing": "holds"}
    assert verdict["cells"][0]["sentence"].startswith("Mutual exclusion ")
    assert verdict["sentence"] == "Safe, as far as this policy asks: of 2 cases 2 passed"


def test_a_kept_run_has_everything(unsafe: Path) -> None:
    document = json.loads((unsafe / "run.json").read_text())
    assert (document["format"], document["id"], document["state"]) == (1, unsafe.name, "complete")
    assert document["started"] <= document["ended"]
    assert document["versions"]["redis-server"] and document["versions"]["lockstorm"]
    names = [trial["name"] for trial in document["trials"]]
    assert names == ["set-nx-px.open.gc-pause.1", "set-nx-px.open.gc-pause.1.control"]
    assert all(trial["played"] for trial in document["trials"])
    files = {path.name for path in (unsafe / "trials").iterdir()}
    assert files == {f"{name}{kind}" for name in names for kind in (".json", ".history", ".log")}
    assert (unsafe / "policy.toml").read_text() == UNSAFE
    checked = lockstorm("check", str(unsafe / "trials" / f"{names[0]}.history"))
    assert "Mutual exclusion violated, integrity violated" in checked.stdout
    assert "eady to accept connections" in (unsafe / "trials" / f"{names[0]}.log").read_text()


def test_outputs_are_written_to_the_run_and_to_the_output_directory(unsafe: Path) -> None:
    for name in ("verdict.json", "junit.xml", "lockstorm.sarif", "summary.md"):
        assert (unsafe / name).read_bytes() == (unsafe.parents[1] / "out" / name).read_bytes()
    assert ElementTree.parse(unsafe / "junit.xml").getroot().get("failures") == "1"
    assert json.loads((unsafe / "lockstorm.sarif").read_text())["runs"][0]["results"]


def test_the_trial_of_a_failure_can_be_played_again(unsafe: Path) -> None:
    verdict = json.loads((unsafe / "verdict.json").read_text())
    done = lockstorm(*verdict["cells"][0]["replay"].split()[1:], "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["sentence"] == verdict["cells"][0]["sentence"]


# --- judged again ---


def test_a_kept_run_is_judged_again(unsafe: Path) -> None:
    done = lockstorm("check", str(unsafe), "--json")
    assert done.returncode == 1, done.stderr
    again, then = json.loads(done.stdout), json.loads((unsafe / "verdict.json").read_text())
    fastjsonschema.validate(SCHEMA, again)
    assert again.pop("differences") == []
    assert again == then


def test_a_judgement_that_differs_is_reported(tmp_path: Path) -> None:
    """Changes the status in the kept result, as if the checkers had changed since the run."""
    run = tmp_path / "runs" / gate(tmp_path, UNSAFE, status=1)["run"]
    trial = run / "trials" / "set-nx-px.open.gc-pause.1.json"
    result = json.loads(trial.read_text())
    result["verdict"]["integrity"]["status"] = "holds"
    write_json(trial, result)
    done = lockstorm("check", str(run))
    assert done.returncode == 1
    assert "set-nx-px.open.gc-pause.1: integrity violated, then holds" in done.stdout


def test_a_run_that_is_none(tmp_path: Path) -> None:
    done = lockstorm("check", str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert "is not a kept run" in done.stderr
    (tmp_path / "run.json").write_text("[]")
    assert "run.json is not of format 1" in lockstorm("check", str(tmp_path)).stderr
    assert "judged by its own policy" in lockstorm("check", str(tmp_path), "--require", "integrity").stderr


# --- interrupted, and out of time ---


def start_long_gate(directory: Path) -> subprocess.Popen[str]:
    """Starts a gate that runs for minutes. Returns when its first two trials have been played."""
    text = UNSAFE + '[[storm]]\nname = "long"\nduration = "10m"\ntrials = 20\ntime = "real"\n'
    (directory / "lockstorm.toml").write_text(text)
    words = [sys.executable, "-m", "lockstorm", "gate", "-f", str(directory / "lockstorm.toml"), "--json"]
    environment = {**ENVIRONMENT, "TMPDIR": str(directory)}
    started = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    limit = HangLimit(60)
    while len(list(directory.glob("runs/*/trials/*gc-pause*.json"))) < 2:
        assert started.poll() is None and not limit.is_over()
        time.sleep(0.05)
    return started


def test_an_interrupted_gate_reports_what_is_known() -> None:
    with short_directory() as directory:
        started = start_long_gate(directory)
        started.send_signal(signal.SIGINT)
        out, errors = started.communicate(timeout=600)
        assert started.returncode == 130, errors
        verdict = json.loads(out)
        assert verdict["interrupted"] and verdict["cells"][0]["outcome"] == "failed"
        assert verdict["cells"][1]["in_short"] == "20 of 20 trials were not played: the run was interrupted"
        (run,) = list_runs(directory / "runs")
        assert run.state == "interrupted" and run.exit == 1
        assert processes_below(directory) == []
        assert not list(directory.glob("lockstorm-*"))


def test_a_result_that_was_kept_counts_though_the_interrupt_came_before_its_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Unheard(GateWorkerPool):
        def play_all(self, requests: Sequence[Any]) -> Iterator[tuple[int, Any]]:
            if list(super().play_all(requests)):
                raise KeyboardInterrupt
            yield from ()

    monkeypatch.setattr("lockstorm.gate.gate.GateWorkerPool", Unheard)
    (tmp_path / "lockstorm.toml").write_text(UNSAFE)
    policy = read_policy(tmp_path / "lockstorm.toml")
    verdict, directory = run_gate(policy, plan_gate(policy), print)
    assert verdict.interrupted and verdict.cells[0].outcome == "failed"
    again = judge_again(directory)
    assert again.cells == verdict.cells and not again.differences


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_run_whose_process_ended_is_marked(number: int) -> None:
    with short_directory() as directory:
        started = start_long_gate(directory)
        assert list_runs(directory / "runs")[0].state == "running"
        assert remove_old_runs(directory / "runs", 0) == [], "a run that is going on is never removed"
        started.send_signal(number)
        started.communicate(timeout=600)
        (run,) = list_runs(directory / "runs")
        assert (run.state, run.exit) == ("interrupted", None)
        limit = HangLimit(30)
        while processes_below(directory):
            assert not limit.is_over()
            time.sleep(0.05)
        checked = lockstorm("check", run.directory)
        assert checked.returncode == 1, "a violation that was seen counts"
        assert "the run was interrupted" in checked.stdout
        assert remove_old_runs(directory / "runs", 0) == [run.id]


@pytest.mark.waits
def test_out_of_time_is_not_safe(tmp_path: Path) -> None:
    storm = '[[storm]]\nname = "long"\nduration = "3s"\ntrials = 9\nfaults = ["pause-client"]\ntime = "real"\n'
    text = SAFE + '[budget]\ntime = "1s"\n' + storm
    verdict = gate(tmp_path, text, "--workers", "1", status=3)
    assert "the budget of time was used up" in verdict["cells"][-1]["in_short"]
    assert verdict["cells"][-1]["outcome"] == "inconclusive"


def test_a_server_that_is_missing_is_inconclusive_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ENVIRONMENT, "LOCKSTORM_REDIS_SERVER", "no-such-redis-server")
    verdict = gate(tmp_path, UNSAFE, status=3)
    assert "package redis-server" in verdict["cells"][0]["in_short"]


BREAKS_DOWN = """
def answer(asked):
    if asked["op"] == "acquire":
        print("oops", flush=True)
    return lock(asked)
"""
# Says hello when the policy is read, and not when a trial begins: a library that was removed meanwhile.
HELLO_ONCE = """
def answer(asked):
    if asked["op"] == "hello":
        try:
            open(sys.argv[0] + ".seen", "x")
        except FileExistsError:
            sys.exit(69)
    return lock(asked)
"""


@pytest.mark.parametrize(
    ("body", "reason"),
    [(BREAKS_DOWN, "said something that is no JSON object: oops"), (HELLO_ONCE, "not installed: ")],
)
def test_an_adapter_that_breaks_down_makes_only_its_own_cells_inconclusive(
    tmp_path: Path, body: str, reason: str
) -> None:
    program = plant_in(tmp_path, body)
    text = UNSAFE.replace("[scenarios]", f'[[lock]]\nadapter = "{program}"\nrequire = ["integrity"]\n[scenarios]')
    verdict = gate(tmp_path, text, "-o", str(tmp_path / "out"), status=1)
    assert [cell["outcome"] for cell in verdict["cells"]] == ["failed", "inconclusive"]
    assert reason in verdict["cells"][1]["in_short"]
    cases = ElementTree.parse(tmp_path / "out" / "junit.xml").getroot().iter("testcase")
    assert [[child.tag for child in case] for case in cases] == [["failure"], ["error"]]
    sarif = json.loads((tmp_path / "out" / "lockstorm.sarif").read_text())
    assert "inconclusive" in {result["ruleId"] for result in sarif["runs"][0]["results"]}
    run = json.loads((tmp_path / "runs" / str(verdict["run"]) / "run.json").read_text())
    assert (run["state"], [trial["played"] for trial in run["trials"]]) == ("complete", [True] * 4)


def test_an_output_that_cannot_be_written_is_reported_before_any_trial(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "lockstorm.toml").write_text(SAFE)
    done = lockstorm("gate", "-f", str(tmp_path / "lockstorm.toml"), "-o", str(tmp_path / "file" / "out"))
    assert (done.returncode, done.stdout) == (2, "") and "Not a directory" in done.stderr
    done = lockstorm("gate", "-f", str(tmp_path / "lockstorm.toml"), "-o", str(tmp_path / "page.html"))
    assert done.returncode == 2 and "name a directory, such as -o results" in done.stderr
    assert not (tmp_path / "runs").exists() and not (tmp_path / "page.html").exists()


# --- the list of runs ---


def keep_run(runs: Path, name: str) -> None:
    (runs / name).mkdir(parents=True)
    write_json(
        runs / name / "run.json",
        {
            "format": 1,
            "id": name,
            "state": "complete",
            "started": name,
            "ended": None,
            "policy": {"file": "lockstorm.toml", "sha256": "0" * 64},
            "seed": 1,
            "versions": {},
            "trials": [],
        },
    )


def test_runs_are_listed_the_newest_first_and_old_ones_removed(tmp_path: Path) -> None:
    names = [f"2026-08-0{day}T10-00-00Z-abcd" for day in (2, 1, 3)]
    for name in names:
        keep_run(tmp_path / "runs", name)
    (tmp_path / "runs" / "notes").mkdir()
    words = ("runs", "-d", str(tmp_path / "runs"))
    listed = json.loads(lockstorm(*words, "--json").stdout)
    assert [run["id"] for run in listed["runs"]] == sorted(names, reverse=True)
    assert listed["removed"] == []
    listed = json.loads(lockstorm(*words, "--keep", "2", "--json").stdout)
    assert listed["removed"] == [min(names)]
    assert (tmp_path / "runs" / "notes").exists(), "a directory that is no run stays"
    assert f"no runs in {tmp_path}" in lockstorm("runs", "-d", str(tmp_path)).stdout


def test_a_policy_keeps_as_many_runs_as_it_says(tmp_path: Path) -> None:
    for day in (1, 2):
        keep_run(tmp_path / "runs", f"2026-01-0{day}T10-00-00Z-abcd")
    verdict = gate(tmp_path, UNSAFE + "[runs]\nkeep = 2\n", status=1)
    assert [run.id for run in list_runs(tmp_path / "runs")] == [verdict["run"], "2026-01-02T10-00-00Z-abcd"]


# --- init ---


@pytest.mark.parametrize("purpose", PURPOSES)
@pytest.mark.parametrize("resource", RESOURCES)
def test_every_starter_is_a_policy_that_can_be_played(tmp_path: Path, purpose: str, resource: str) -> None:
    for lock in locks():
        if lock.name != "none" and (resource == "plain" or lock.token):
            text = starter_policy_text(Answers(lock.name, purpose, resource))
            (tmp_path / "lockstorm.toml").write_text(text)
            policy = read_policy(tmp_path / "lockstorm.toml")
            assert policy.locks[0].name == lock.name and policy.locks[0].store == RESOURCES[resource][0]
            plan = plan_gate(policy)
            assert purpose == "efficiency" or len(policy.play) == len(scenarios())
            storms = set() if lock.real_time_only or lock.once else {"storm-pauses"}
            stories = {"double-processing", "outbox-crash"} if lock.once else {"contention", "crash-holder"}
            assert {case.scenario for case in plan.cases} >= stories | storms


def test_the_comments_of_a_starter_are_valid_keys(tmp_path: Path) -> None:
    text = starter_policy_text(Answers("set-nx-px", "correctness", "plain"))
    lines = text.replace("# [[accept]]", "[[accept]]").splitlines()
    parsed = tomllib.loads("\n".join(line[2:] if line.startswith("# ") and " = " in line else line for line in lines))
    assert parsed["accept"][0]["scenario"] == "gc-pause" and parsed["lock"][0]["used"]


def test_init_never_overwrites(tmp_path: Path) -> None:
    file = tmp_path / "lockstorm.toml"
    words = ("init", "-f", str(file), "--lock", "set-nx-px", "--for", "correctness", "--resource", "plain")
    assert lockstorm(*words).returncode == 0
    text = file.read_text()
    done = lockstorm(*words)
    assert (done.returncode, file.read_text()) == (2, text)
    assert "exists already: nothing was written" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "there is no terminal to ask on: give --lock, --for, --resource"),
        (("--lock", "set-nx-px"), "give --for, --resource"),
        (("--lock", "set-nx-p", "--for", "correctness", "--resource", "plain"), "did you mean set-nx-px?"),
        (("--lock", "setnx", "--for", "fun", "--resource", "plain"), "there is no purpose called 'fun'"),
        (("--lock", "setnx", "--for", "correctness", "--resource", "checks-all"), "setnx gives no fencing token"),
    ],
)
def test_init_without_a_terminal(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    done = lockstorm("init", "-f", str(tmp_path / "lockstorm.toml"), *words, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (2, "") and message in done.stderr
    assert not list(tmp_path.iterdir())


def test_init_writes_a_policy_for_a_library_of_ones_own(tmp_path: Path) -> None:
    """With the scenarios that apply to it, which the gate can play as it stands; the path is relative to the policy."""
    mine, place = tmp_path / "ci" / "mine", tmp_path / "service"
    for directory in (mine.parent, place):
        directory.mkdir()
    mine.write_text(BLIND_DELETE)
    mine.chmod(0o755)
    words = ("init", "--adapter", "ci/mine", "-f", "service/lockstorm.toml")
    done = lockstorm(*words, cwd=tmp_path, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    text = (place / "lockstorm.toml").read_text()
    assert tomllib.loads(text)["lock"] == [{"adapter": "../ci/mine", "store": "open"}]
    assert "one server of redis: a lease, no fencing tokens." in text and "# network: messages are late" in text
    policy = read_policy(place / "lockstorm.toml")
    lock = lock_named(policy.locks[0].name)
    applicable = {name for name, each in scenarios().items() if not each.inapplicable_reason(lock, "open")}
    plan = plan_gate(policy)
    assert set(policy.play) == applicable and "renewal-fails" not in applicable and len(applicable) > 30
    assert plan.inapplicable == () and not any(case.unplayed for case in plan.cases)
    assert {case.scenario for case in plan.cases} == {*applicable, "storm-pauses"}
    efficient = ("--for", "efficiency", "-f", "other.toml")
    assert lockstorm(*words[:3], *efficient, cwd=tmp_path, stdin=subprocess.DEVNULL).returncode == 0
    other = tomllib.loads((tmp_path / "other.toml").read_text())
    assert other["lock"][0]["adapter"] == "./ci/mine" and tuple(other["scenarios"]["play"]) == EFFICIENCY


@pytest.mark.parametrize(
    ("adapter", "message"),
    [
        ("./none", "./none: there is no such program"),
        ("redis-p", "there is no adapter called 'redis-p'"),
        ("/bin/false", "/bin/false"),
        ("/bin/echo", "/bin/echo"),
    ],
)
def test_init_with_a_wrong_adapter(tmp_path: Path, adapter: str, message: str) -> None:
    done = lockstorm("init", "--adapter", adapter, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "") and message in done.stderr and "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())
    both = lockstorm("init", "--adapter", adapter, "--lock", "setnx", cwd=tmp_path)
    assert both.returncode == 2 and "--lock or --adapter, not both" in both.stderr


def test_init_asks_on_a_terminal(tmp_path: Path) -> None:
    """Asks again after an unknown answer; an empty line means the default answer."""
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "lockstorm", "init", "-f", str(tmp_path / "lockstorm.toml")]
    asking = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env=ENVIRONMENT, cwd=paths.ROOT)
    os.close(theirs)
    os.write(ours, b"fence\nfenced\nefficiency\n\n")
    output = b""
    while True:
        try:
            output += os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
    os.close(ours)
    assert asking.wait(60) == 0, output.decode()
    assert b"Which lock do you use?" in output and b"did you mean fenced?" in output and b"refuse late work?" in output
    policy = read_policy(tmp_path / "lockstorm.toml")
    assert (policy.locks[0].name, policy.locks[0].store) == ("fenced", "open")
    assert policy.locks[0].require == ("mutual_exclusion", "liveness")
