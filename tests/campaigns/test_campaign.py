"""Whole campaigns, on a cluster of this machine."""

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from lockstorm.base.version import VERSION
from lockstorm.campaigns.dask_engine import play_on_worker
from lockstorm.search.search_plan import SearchRequest, plan_search
from lockstorm.servers.services import missing
from tests.application.described import CREDITS, described
from tests.campaigns.campaigning import PROGRAM, answered, campaign, environment, kept, written
from tests.helpers.searching import search_json
from tests.helpers.support import lockstorm

ALL_KINDS = """
[[explore]]
lock = ["set-nx-px", "setnx"]
schedules = 600
cut = 150
faults = "pause-client"

[[explore]]
adapter = "lock:set-nx-px"
schedules = 50

[[matrix]]
lock = "set-nx-px"
scenario = "gc-pause"
store = "open"

[[storm]]
lock = "set-nx-px"
faults = "pause-client"
duration = "2s"
trials = 2

[[zoo]]
bug = "redis-py-818"
schedules = 300

[[gate]]
policy = "lockstorm.toml"
"""
POLICY = '[[lock]]\nname = "set-nx-px"\n[scenarios]\nplay = ["gc-pause"]\n'


@pytest.mark.lengthy("plays a campaign of every kind of entry")
def test_every_kind_has_the_result_of_its_command(tmp_path: Path) -> None:
    (tmp_path / "lockstorm.toml").write_text(POLICY)
    done = campaign(tmp_path, written(tmp_path, ALL_KINDS), "-o", "out", "--workers", "2")
    assert done.returncode == 1, done.stderr
    results = tmp_path / "out"
    for name in ("set-nx-px", "setnx"):
        request = SearchRequest(name, schedules=600, faults="pause-client")
        alone = search_json(plan_search(request))
        found = kept(results, name)
        same = ("schedules", "history_sha256", "sentence", "found", "exit")
        assert [found[each] for each in same] == [alone[each] for each in same]
    assert (results / "set-nx-px.schedule").read_text() == kept(results, "set-nx-px")["found"]["file"]
    assert not (results / "setnx.schedule").exists()
    assert kept(results, "lock-set-nx-px")["exit"] == 0
    (cell,) = kept(results, "matrix")["cells"]
    assert (cell["ok"], cell["result"], cell["control"]) == (True, "violated", "holds")
    assert kept(results, "storm-set-nx-px")["storm"]["trials"] == 2
    assert [entry["result"] for entry in kept(results, "zoo")["entries"]] == ["caught"]
    assert kept(results, "gate")["exit"] == 1
    told = kept(results, "campaign")
    assert (told["state"], told["exit"]) == ("complete", 1)
    assert [entry["exit"] for entry in told["entries"]] == [1, 0, 0, 0, kept(results, "storm-set-nx-px")["exit"], 0, 1]
    assert len(answered(results)) == len(set(answered(results))) == told["played"]
    _other_commands_read_it(results)


def _other_commands_read_it(results: Path) -> None:
    replayed = lockstorm("replay", str(results / "set-nx-px.schedule"), "-q")
    assert replayed.returncode == 1 and "mutual exclusion" in replayed.stdout
    merged = lockstorm("merge", str(results / "setnx.json"), "-o", str(results / "merged.json"))
    assert merged.returncode == 0, merged.stderr
    found = sum(entry["exit"] == 1 for entry in kept(results, "campaign")["entries"])
    reported = lockstorm("report", str(results), "-o", str(results / "page.html"))
    assert f"{found} of 7 entries found something" in reported.stdout
    (run,) = (results / "runs").iterdir()
    assert lockstorm("check", str(run)).returncode == 1
    resumed = lockstorm("explore", "--resume", str(results / "setnx.json"), "--schedules", "700", "-q")
    assert resumed.returncode == 0, resumed.stderr


@pytest.mark.slow("plays a campaign three times", seconds=30)
def test_the_results_are_the_same_for_one_two_and_four_workers(tmp_path: Path) -> None:
    text = """
    [[explore]]
    lock = ["redlock", "setnx"]
    schedules = 400
    cut = 40
    faults = "clock-jump"
    seed = 6
    [[explore]]
    adapter = "lock:set-nx-blind-del"
    schedules = 150
    cut = 50
    """
    found = []
    for workers in ("1", "2", "4"):
        done = campaign(tmp_path, written(tmp_path, text), "-o", f"by-{workers}", "--workers", workers)
        assert done.returncode == 1, done.stderr
        results = tmp_path / f"by-{workers}"
        found.append(
            [
                (kept(results, name)["history_sha256"], kept(results, name)["found"], kept(results, name)["sentence"])
                for name in ("redlock", "setnx", "lock-set-nx-blind-del")
            ]
        )
    assert found[0] == found[1] == found[2]
    assert found[0][0][1]["number"] == 64


@pytest.mark.lengthy("plays a campaign, interrupts it and goes on")
def test_an_interrupted_campaign_goes_on(tmp_path: Path) -> None:
    text = '[[explore]]\nlock = "setnx"\nschedules = 60000\ncut = 2000\nfaults = "pause-client"\n'
    results = tmp_path / "out"
    begun = subprocess.Popen(
        [*PROGRAM, written(tmp_path, text), "-o", "out", "--workers", "2"],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    while len(answered(results)) < 2:
        assert begun.poll() is None
        time.sleep(0.05)
    begun.send_signal(signal.SIGINT)
    said, _ = begun.communicate(timeout=60)
    before = answered(results)
    assert begun.returncode == 130 and "campaign --resume out" in said and "Traceback" not in said
    assert len(before) < 30, "the campaign was over before it was interrupted"
    assert kept(results, "campaign")["state"] == "interrupted"
    done = campaign(tmp_path, "--resume", "out", "--workers", "2")
    assert done.returncode == 0, done.stderr
    assert answered(results)[: len(before)] == before and len(set(answered(results))) == len(answered(results)) == 30
    alone = search_json(plan_search(SearchRequest("setnx", schedules=60000, faults="pause-client")))
    assert kept(results, "setnx")["history_sha256"] == alone["history_sha256"]
    again = campaign(tmp_path, "--resume", "out")
    assert again.returncode == 2 and "this campaign is complete" in again.stderr


@pytest.mark.lengthy("runs the command for each")
def test_what_the_command_refuses(tmp_path: Path) -> None:
    file = written(tmp_path, '[[explore]]\nlock = "fair"\nschedules = 5\n')
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "something").touch()
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "campaign.json").write_text("{}")
    for words, reason in (
        ((), "FILE is missing"),
        (("no.toml",), "there is no no.toml"),
        ((file, "-o", "full"), "-o full: the directory is not empty"),
        ((file, "-o", "begun"), "-o begun: there is a campaign already"),
        ((file, "-o", "it.toml"), "-o it.toml: this is no directory"),
        (("--resume", "full"), "full has no campaign: campaign.json: No such file"),
        (("--resume", "begun"), "campaign.json is not what lockstorm campaign writes"),
        ((file, "--resume", "begun"), "neither FILE nor -o beside it"),
        ((file, "--on", "tcp://127.0.0.1:1", "--workers", "2"), "--workers is for --on local"),
        ((file, "--workers", "0"), "--workers"),
        ((file, "--on", "nowhere"), "--on nowhere: local, or the address of a scheduler, as in tcp://scheduler:8786"),
        ((file, "--on", "udp://there:1"), "--on udp://there:1: local, or the address"),
    ):
        done = campaign(tmp_path, *words)
        assert done.returncode == 2, words
        assert reason in done.stderr and "Traceback" not in done.stderr


@pytest.mark.lengthy("waits for a scheduler that is not there")
def test_where_no_scheduler_is(tmp_path: Path) -> None:
    """Nothing is left behind, so the same command may be given again."""
    file = written(tmp_path, '[[explore]]\nlock = "fair"\nschedules = 5\n')
    done = campaign(tmp_path, file, "--on", "tcp://127.0.0.1:1")
    assert done.returncode == 2, done.stderr
    assert "--on tcp://127.0.0.1:1: no scheduler of Dask answers there" in done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["it.toml"]


def test_a_worker_of_another_version_plays_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Worker:
        address, name = "tcp://there", 0

    class Distributed:
        @staticmethod
        def get_worker() -> Worker:
            return Worker()

    monkeypatch.setattr("lockstorm.campaigns.dask_engine._distributed", lambda: Distributed)
    answer = play_on_worker({"type": "trial"}, "0.0.0")
    assert answer == {"error": f"the worker tcp://there has lockstorm {VERSION}, and the campaign 0.0.0"}


APPLICATIONS = """
[[explore]]
app = ["early/lockstorm-app.toml", "late/lockstorm-app.toml"]
schedules = 100
cut = 50
[[gate]]
policy = "lockstorm.toml"
"""


@pytest.mark.skipif(bool(missing("postgres")), reason=f"not installed: {missing('postgres')}")
@pytest.mark.lengthy("searches a hundred schedules of each of two services, twice")
def test_applications_have_the_results_of_their_commands(tmp_path: Path) -> None:
    for mode in ("early", "late"):
        (tmp_path / mode).mkdir()
        described(tmp_path / mode, CREDITS, mode)
    (tmp_path / "lockstorm.toml").write_text('[[app]]\nfile = "late/lockstorm-app.toml"\nschedules = 50\n')
    done = campaign(tmp_path, written(tmp_path, APPLICATIONS), "-o", "out", "--workers", "2")
    assert done.returncode == 1, done.stderr
    results = tmp_path / "out"
    alone = search_json(plan_search(SearchRequest(f"app:{tmp_path}/late/lockstorm-app.toml", schedules=100)))
    for name in ("schedules", "history_sha256", "sentence", "exit"):
        assert kept(results, "late")[name] == alone[name], name
    found = kept(results, "early")
    assert (found["exit"], found["found"]["violates"]) == (1, ["check"])
    text = (results / "early.schedule").read_text()
    assert text == found["found"]["file"] and "\napp early/lockstorm-app.toml\n" in text
    (case,) = kept(results, "gate")["applications"]
    assert (case["outcome"], case["schedules"]) == ("passed", 50)
    told = kept(results, "campaign")
    assert [entry["exit"] for entry in told["entries"]] == [1, 0, 0]
    assert lockstorm("report", str(results), "-o", str(results / "page.html")).returncode == 0


@pytest.mark.skipif(bool(missing("postgres")), reason=f"not installed: {missing('postgres')}")
@pytest.mark.lengthy("searches some sessions of a service")
def test_a_campaign_of_an_application_goes_on_with_the_cases_that_it_has(tmp_path: Path) -> None:
    described(tmp_path, CREDITS, "late")
    text = '[[explore]]\nname = "shop"\napp = "lockstorm-app.toml"\nschedules = 150\ncut = 50\n'
    done = campaign(tmp_path, written(tmp_path, text), "-o", "out", "--workers", "1")
    assert done.returncode == 0, done.stderr
    results = tmp_path / "out"
    whole = kept(results, "shop")
    lines = (results / "cases.jsonl").read_text().splitlines(keepends=True)
    (results / "cases.jsonl").write_text("".join(lines[:2]))  # as if it had been interrupted before the third case
    state = kept(results, "campaign")
    (results / "campaign.json").write_text(json.dumps({**state, "state": "interrupted"}))
    assert campaign(tmp_path, "--resume", "out", "--workers", "1").returncode == 0
    assert len(answered(results)) == len(lines) == 3, "the first two were not played again"
    for name in ("schedules", "history_sha256", "sentence"):
        assert kept(results, "shop")[name] == whole[name], name
