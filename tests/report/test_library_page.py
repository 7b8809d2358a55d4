"""Schedules of libraries as diagrams and pages."""

import xml.etree.ElementTree
from pathlib import Path
from typing import Any

import pytest
from msgspec import convert

from lockstorm.report.deviation_words import deviation_words
from lockstorm.report.diagram import Diagram
from lockstorm.report.diagram_page import Subject, diagram_page, diagram_picture
from lockstorm.report.library_model import call_story, library_diagram
from lockstorm.report.report import library_subject
from lockstorm.results.call_event import BrokenPromise, CallEvent, PlayedDeviation
from tests.helpers.support import lockstorm

SECOND = 1_000_000_000
NO_KEY = -2


def ask(at_s: float, call: str, client: int = 1, **more: Any) -> dict[str, Any]:
    event = {"event": "ask", "at_ns": int(at_s * SECOND), "call": call, "client": client, "thread": 1, "lock": 1}
    event |= {"resource": 1, "mode": "exclusive", "form": "lock()", "wait": "none", "lease": "renewed"}
    return {**event, **more}


def answer(asked: dict[str, Any], place: int, at_s: float, outcome: str = "ok") -> dict[str, Any]:
    return {**asked, "event": "answer", "at_ns": int(at_s * SECOND), "asked": place, "outcome": outcome}


def lease(at_s: float, remaining_ms: int) -> dict[str, Any]:
    return {"event": "lease", "at_ns": int(at_s * SECOND), "resource": 1, "remaining_ms": remaining_ms}


FIRST, RIVAL, RELEASE = ask(0, "acquire"), ask(1, "acquire", 2), ask(3, "release")
EVENTS = [
    FIRST,
    answer(FIRST, 0, 0),
    lease(0, 2000),
    lease(0.5, 1500),  # the same lease
    {"event": "fault", "at_ns": SECOND // 2, "fault": "pause-client", "client": 1, "until_ns": int(2.5 * SECOND)},
    RIVAL,
    lease(2, NO_KEY),
    answer(RIVAL, 5, 2),
    lease(2, 2000),
    RELEASE,
    answer(RELEASE, 9, 3, "refused"),
    {"event": "idle", "at_ns": 4 * SECOND},
    {"event": "end", "at_ns": 4 * SECOND},
]
BROKEN = {"promise": "mutual_exclusion", "sentence": "two <hold> it & so", "event": 7, "other": 1}
LATER = {**BROKEN, "event": 11}


def events_of(events: list[dict[str, Any]]) -> list[CallEvent]:
    return convert(events, list[CallEvent])


def diagram_of_calls(events: list[dict[str, Any]], broken: list[dict[str, Any]]) -> Diagram:
    return library_diagram(events_of(events), convert(broken, list[BrokenPromise]))


def test_a_schedule_becomes_lanes_rows_and_bars() -> None:
    diagram = diagram_of_calls(EVENTS, [BROKEN, LATER])
    assert [(lane.name, lane.kind) for lane in diagram.lanes] == [
        ("client-1", "client"),
        ("client-2", "client"),
        ("resource-1", "key"),
    ]
    texts = [row.text for row in diagram.rows]
    assert texts.count("held for 2,000 ms more") == 2 and "held for 1,500 ms more" not in texts
    assert [texts[bar.first] for bar in diagram.bars if bar.kind == "belief"] == ["granted", "granted"]
    holder, rival = (bar for bar in diagram.bars if bar.kind == "belief")
    assert texts[holder.last] == "release" and rival.last == -1
    paused = next(bar for bar in diagram.bars if bar.kind == "fault")
    assert diagram.rows[paused.last].at_ns <= 2.5 * SECOND < diagram.rows[paused.last + 1].at_ns
    leases = [bar for bar in diagram.bars if bar.kind == "lease"]
    assert [texts[bar.last] for bar in leases[:1]] == ["free"] and leases[1].last == -1


def test_the_first_event_that_shows_a_broken_promise_is_evidence() -> None:
    diagram = diagram_of_calls(EVENTS, [BROKEN, LATER])
    assert [(each.number, each.property) for each in diagram.evidence] == [(1, "mutual_exclusion")]
    assert [diagram.rows[row].text for row in diagram.evidence[0].rows] == ["granted", "granted"]
    shown = diagram_of_calls(EVENTS, [LATER])
    assert [shown.rows[row].text for row in shown.evidence[0].rows] == ["granted", "idle"]


def test_of_several_servers_only_readings_that_are_evidence_have_a_row() -> None:
    read = {**lease(0, 2000), "node": 2}
    diagram = diagram_of_calls([FIRST, answer(FIRST, 0, 0), read, read], [{**BROKEN, "event": 3}])
    assert [row.text for row in diagram.rows] == ["acquire renewed", "granted", "server-2: held for 2,000 ms more"]
    assert not diagram.has_lease


def played() -> Subject:
    diagram, lines = diagram_of_calls(EVENTS, [BROKEN]), ["client-1 thread-1: acquire </script>"]
    return library_subject("a <library> 1", "two <hold> it & so", ["mutual_exclusion"], diagram, [("seed", "1")], lines)


def test_the_story_has_the_rows_of_the_diagram() -> None:
    story = call_story(events_of(EVENTS), convert([LATER], list[BrokenPromise]))
    assert [(line.who, line.what) for line in story[:3]] == [
        ("client-1", "acquire by lock(): lease renewed by the watchdog, no wait"),
        ("client-1", "acquire: granted"),
        ("server", "the lock is held for 2,000 ms more"),
    ]
    assert [(line.what, line.broken) for line in story if line.broken] == [("", "two <hold> it & so")]


@pytest.mark.parametrize(
    ("line", "usual", "instead", "told"),
    [
        (
            "before answer client-1 link-2 3: call client-1 thread-2",
            "GET",
            "release",
            ("client-1", "calls release while the answer to its GET is on its way"),
        ),
        (
            "before request client-1 link-1 1: call client-3 thread-1",
            "EVALSHA",
            "acquire",
            ("client-3", "calls acquire while client-1's EVALSHA is on its way"),
        ),
        (
            "before answer client-3 link-2 1: request client-1 link-5",
            "EVALSHA",
            "SET",
            ("client-1", "its SET reaches the server while the answer to client-3's EVALSHA is on its way"),
        ),
        (
            "before call client-1 thread-1 2: answer client-2 link-1",
            "renew",
            "",
            ("client-2", "gets the answer to a command before client-1's next call, renew"),
        ),
        ("before clock 4: pause-client client-1 1000", "", "", ("", "")),
        ("before request client-1 link-1 1: drop-request client-1 link-1", "GET", "GET", ("", "")),
    ],
)
def test_an_order_of_messages_is_said_in_words(line: str, usual: str, instead: str, told: tuple[str, str]) -> None:
    assert deviation_words(PlayedDeviation(line, usual, instead, 0)) == told


def test_the_story_has_the_numbers_of_the_schedule_lines() -> None:
    events = [{**each, "place": 1 + 2 * (each["client"] - 1)} if each["event"] == "ask" else each for each in EVENTS]
    order = PlayedDeviation("before answer client-1 link-1 1: call client-2 thread-1", "SET", "acquire", 5)
    pause = PlayedDeviation("before call client-1 thread-1 2: pause-client client-1 2000", "", "", 4)
    story = call_story(events_of(events), [], [pause, order], calls=3)
    assert [(each.number, each.what.split()[0]) for each in story if each.number] == [
        (1, "acquire"),
        (4, "stands"),
        (5, "calls"),
        (3, "acquire"),
        (1, "release"),
    ]


def test_a_page_escapes_what_it_shows() -> None:
    page = diagram_page([played()])
    assert "a &lt;library&gt;" in page and "<hold>" not in page
    assert page.count("</script>") == 2, "the records, and the page's own script"


def test_a_picture_is_xml() -> None:
    root = xml.etree.ElementTree.fromstring(diagram_picture(played()))
    assert root.tag.endswith("svg")


@pytest.mark.lengthy("replays a schedule of a library")
def test_the_command_writes_a_page_and_a_picture(tmp_path: Path) -> None:
    schedule = tmp_path / "it.schedule"
    head = "lockstorm-library-schedule 1\nadapter redis-py\nlibrary it\nlease_ms 2000\npermits 1\nseed 1\nnumber 0\n"
    call = "lock-1 resource-1 exclusive"
    form = "wait=none lease=given:2000 form=acquire(blocking=False)"
    calls = f"client-1 thread-1: acquire {call} {form}\nclient-1 thread-1: release {call}\n"
    schedule.write_text(f"{head}breaks mutual_exclusion\nworkload\n{calls}schedule\n")
    page, picture = tmp_path / "it.html", tmp_path / "it.svg"
    done = lockstorm("report", str(schedule), "-o", str(page), "--svg", str(picture))
    assert done.returncode == 0 and "every promise was kept" in done.stdout, done.stderr
    assert "granted" in page.read_text() and picture.read_text().startswith("<svg")
    done = lockstorm("report", str(schedule), str(schedule), "-o", str(tmp_path / "other.html"))
    assert done.returncode == 2 and "AGAINST" in done.stderr
