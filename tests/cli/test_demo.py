"""The demonstration announces the expected verdicts, and reports a trial that deviates."""

import re
from dataclasses import replace

import pytest
from rich.console import Console

from lockstorm.base import paths
from lockstorm.cli.commands import demo_command as demo
from lockstorm.locks.lock_names import lock_named
from lockstorm.results.event import Event
from lockstorm.results.verdict import TrialResult
from lockstorm.scenario.cells import cell_result
from lockstorm.scenario.expected import expected
from tests.helpers.results import made_property, made_result

WORDS = {"Three": 3, "Four": 4, "Five": 5, "Six": 6}
SCENES = [(act, scene) for act in demo.ACTS for scene in (act.broken, act.saved)]


@pytest.mark.parametrize(("act", "scene"), SCENES, ids=lambda each: getattr(each, "title", ""))
def test_what_is_announced_is_what_the_table_expects(act: demo.Act, scene: demo.Scene) -> None:
    request = scene.request
    statuses = expected()[request.scenario, request.lock, request.store or "open"].expects(request.control)
    assert {name: statuses[name] for name in scene.announced} == scene.announced, act.title
    assert cell_result(statuses) == scene.result


def test_the_tour_promises_the_acts_that_a_first_installation_can_play() -> None:
    """`./lockstorm demo` installs redis-server and no other server (ci/packages)."""
    on_redis = [act for act in demo.ACTS if lock_named(act.broken.request.lock).service == "redis"]
    tour = (paths.ROOT / "docs" / "tour.md").read_text()
    (number, *_), (listed, _, elsewhere) = (
        re.findall(r"(\w+) more acts follow:", tour),
        tour.partition("more acts follow:")[2].partition("\n\n")[0].partition("A sixth"),
    )
    assert WORDS[number] == len(on_redis) - 1 == len(re.split(r",(?: and)?\s+a ", listed.replace("\n", " ")))
    assert len(demo.ACTS) == len(on_redis) + 1 and "make deps-all" in elsewhere


def test_each_act_is_broken_and_then_saved() -> None:
    for act in demo.ACTS:
        assert act.broken.result == "violated"
        assert act.saved.result in ("fenced", "holds")


def test_an_act_that_is_not_installed_is_left_out_with_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing_else = demo.ACTS[-1]
    assert nothing_else.broken.request.lock == "zookeeper"
    monkeypatch.setattr(demo, "missing", lambda service: "" if service == "redis" else "it is not here")
    monkeypatch.setattr(demo, "play", lambda request, story_to: played(0))
    console = Console(width=120, color_system=None)
    with console.capture() as capture:
        done = demo.perform(console)
    assert len(done.trials) == 2 * (len(demo.ACTS) - 1)
    note = "Left out: 6. The pause, on ZooKeeper (it is not here; make deps-all installs it). It shows that a lock on a"
    assert note in " ".join(capture.get().split())


def played(exit_status: int, **statuses: str) -> TrialResult:
    names = ("mutual_exclusion", "integrity", "fencing")
    properties = {name: made_property(statuses.get(name, "holds")) for name in names}
    return made_result(properties, required=[*names], sentence="a sentence", exit=exit_status)


@pytest.mark.parametrize(
    ("result", "status"),
    [(played(0), 1), (played(3, mutual_exclusion="inconclusive", integrity="inconclusive"), 3)],
)
def test_a_trial_that_is_not_as_announced_is_reported(
    result: TrialResult, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every property holds although the first scene announces a violation; or all are inconclusive."""
    monkeypatch.setattr(demo, "play", lambda request, story_to: result)
    monkeypatch.setattr(demo, "ACTS", (replace(demo.ACTS[0], saved=demo.ACTS[0].broken),))
    console = Console(width=100, color_system=None)
    with console.capture() as capture:
        done = demo.perform(console)
    assert (done.ok, done.exit) == (False, status)
    assert "This is not what was announced." in capture.get()
    assert "not as announced" in capture.get().split("What you have seen")[1]


def test_the_rendering_omits_technical_records() -> None:
    assert demo.is_shown(Event(kind="fault-prove", name="pause-client"))
    assert not demo.is_shown(Event(kind="fault-prove", name="clock-jump"))
    assert demo.is_shown(Event(kind="fault-inject", name="clock-jump"))
    assert not demo.is_shown(Event(kind="fault-inject", name="partition"))
    assert demo.is_shown(Event(kind="rule", name="delay-write-1"))
    assert not demo.is_shown(Event(kind="rule", name="partition-1"))
    assert demo.is_shown(Event(kind="store-write"))
    assert not demo.is_shown(Event(kind="note", actor="proxy", name="redis-1>redis-1-replica-1: byte by byte"))
    assert demo.is_shown(Event(kind="note", actor="client-1", name="what a test says"))


def test_an_act_that_needs_more_servers_says_why_one_would_want_it() -> None:
    assert [act.title for act in demo.ACTS if act.why] == [
        act.title for act in demo.ACTS if lock_named(act.broken.request.lock).service != "redis"
    ]
