"""The tour says what the table of expected verdicts says, and notices when a trial does not."""

from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from harness.driver import demo
from harness.driver.cells import result_of
from harness.driver.expected import expected

SCENES = [(act, scene) for act in demo.ACTS for scene in (act.broken, act.saved)]


@pytest.mark.parametrize(("act", "scene"), SCENES, ids=lambda each: getattr(each, "title", ""))
def test_what_is_announced_is_what_the_table_expects(act: demo.Act, scene: demo.Scene) -> None:
    wish = scene.wish
    told = expected()[wish.scenario, wish.lock, wish.store or "open"].expects(wish.control)
    assert {name: told[name] for name in scene.announced} == scene.announced, act.title
    assert result_of(told) == scene.word


def test_each_act_is_broken_and_then_saved() -> None:
    for act in demo.ACTS:
        assert act.broken.word == "violated"
        assert act.saved.word in ("fenced", "holds")


def test_what_is_not_installed_is_left_out_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing_else = demo.ACTS[-1]
    assert nothing_else.broken.wish.lock == "zookeeper"
    monkeypatch.setattr(demo, "missing", lambda service: "" if service == "redis" else "it is not here")
    monkeypatch.setattr(demo, "play", lambda wish, story_to: played(0))
    console = Console(width=120, color_system=None)
    with console.capture() as capture:
        done = demo.perform(console)
    assert len(done["trials"]) == 2 * (len(demo.ACTS) - 1)
    assert "Left out: 6. The pause, on ZooKeeper (it is not here)." in capture.get()


def played(exit_status: int, **statuses: str) -> dict[str, Any]:
    verdict = {
        name: {"status": statuses.get(name, "holds"), "count": 0, "evidence": []}
        for name in ("mutual_exclusion", "integrity", "fencing")
    }
    said = {"required": list(verdict), "verdict": verdict, "sentence": "a sentence", "versions": {}, "elapsed_ms": {}}
    return {**said, "exit": exit_status, "replay": ""}


@pytest.mark.parametrize(
    ("result", "status"),
    [(played(0), 1), (played(3, mutual_exclusion="inconclusive", integrity="inconclusive"), 3)],
)
def test_a_trial_that_is_not_as_announced_is_said(
    result: dict[str, Any], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything holds, where the first scene announces a violation; or nothing is known."""
    monkeypatch.setattr(demo, "play", lambda wish, story_to: dict(result))
    monkeypatch.setattr(demo, "ACTS", (replace(demo.ACTS[0], saved=demo.ACTS[0].broken),))
    console = Console(width=100, color_system=None)
    with console.capture() as capture:
        done = demo.perform(console)
    assert (done["ok"], done["exit"]) == (False, status)
    assert "This is not what was announced." in capture.get()
    assert "not as announced" in capture.get().split("What you have seen")[1]


def test_the_story_leaves_out_what_only_the_machinery_needs() -> None:
    assert demo.is_told({"kind": "fault-prove", "name": "pause-client"})
    assert not demo.is_told({"kind": "fault-prove", "name": "clock-jump"})
    assert demo.is_told({"kind": "fault-inject", "name": "clock-jump"})
    assert not demo.is_told({"kind": "fault-inject", "name": "partition"})
    assert demo.is_told({"kind": "rule", "name": "delay-write-1"})
    assert not demo.is_told({"kind": "rule", "name": "partition-1"})
    assert demo.is_told({"kind": "store-write"})
