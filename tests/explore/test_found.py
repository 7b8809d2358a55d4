"""Replays every schedule in scenarios/found: it still violates what its file says."""

import json
from pathlib import Path

import pytest
from msgspec import structs

from lockstorm.base import paths
from lockstorm.search.campaign import Campaign
from lockstorm.search.replay import replay_schedule
from lockstorm.search.schedule_file import read_schedule_file
from lockstorm.search.search_plan import JUDGED, SearchRequest, plan_search
from lockstorm.search.search_result import FOUND, SearchResult, SmallestSchedule, save_schedule, search_result
from tests.helpers.support import lockstorm

KEPT = sorted(FOUND.glob("*.schedule"))


def test_some_were_found() -> None:
    assert len(KEPT) >= 2


@pytest.mark.parametrize("path", KEPT, ids=[path.stem for path in KEPT])
def test_it_does_what_its_file_says(path: Path) -> None:
    found = read_schedule_file(path)
    verdict = replay_schedule(found, path.name).properties
    violated = {name for name in JUDGED if name in verdict and verdict[name].status == "violated"}
    assert violated == {*found.violates}


@pytest.mark.parametrize("path", KEPT, ids=[path.stem for path in KEPT])
def test_how_it_was_found_is_said(path: Path) -> None:
    """The command that found it; its name begins with the lock's."""
    first, second, *rest = path.read_text().splitlines()
    found = read_schedule_file(path)
    assert first.startswith(f"# lockstorm explore --lock {found.lock} ")
    assert f"--seed {found.seed} " in first
    assert second.startswith("# mutual exclusion ") or "violated" in second
    old = "\n".join(rest) + "\n"
    assert rest[0] == "lockstorm-schedule 1", "schedules were counted from 0"
    now = old.replace("schedule 1", "schedule 2", 1)
    assert now.replace(f"number {found.number - 1}", f"number {found.number}") == found.text
    assert path.stem.startswith(f"{found.lock}-")


def test_its_story_is_a_page(tmp_path: Path) -> None:
    """The report of a schedule is that of its history."""
    page = tmp_path / "page.html"
    done = lockstorm("report", str(FOUND / "redlock-clock-jump.schedule"), "-o", str(page))
    assert done.returncode == 0, done.stderr
    assert "Mutual exclusion violated" in done.stdout
    told = page.read_text()
    for words in ("clock-jump on redis-5", "client-1", "client-2"):
        assert words in told
    broken = tmp_path / "broken.schedule"
    broken.write_text("lockstorm-schedule 9\n")
    done = lockstorm("report", str(broken), "-o", str(tmp_path / "other.html"))
    assert done.returncode == 2
    assert "line 1: a schedule of this version begins with" in done.stderr


def result(lock: str, lines: list[str]) -> SearchResult:
    text = (FOUND / "set-nx-px-hold-request.schedule").read_text().partition("lockstorm-schedule")[2]
    head = text.partition("\nschedule\n")[0]
    file = "\n".join([f"lockstorm-schedule{head}", "schedule", *lines]) + "\n"
    plan = plan_search(SearchRequest(lock, schedules=1))
    found = SmallestSchedule(
        number=1,
        violates=[],
        clients=2,
        choices=lines,
        choices_before_shrinking=1,
        steps=1,
        sentence="mutual exclusion violated",
        file=file,
    )
    nothing = search_result(plan, Campaign(key=plan.key, shards=1), failed="a test")
    injected = {"pause-client": 1, "kill-client": 0}
    return structs.replace(nothing, lock=lock, injected=injected, replay="lockstorm explore", found=found)


def test_what_is_kept_gets_a_name_of_its_own(tmp_path: Path) -> None:
    one = result("set-nx-px", ["before client-1 4: pause-client client-1 1500"])
    other = result(
        "set-nx-px", ["before client-1 5: pause-client client-1 1500", "before client-1 6: kill-client client-2"]
    )
    again = result("set-nx-px", ["before client-1 7: pause-client client-1 1500"])
    order = result("set-nx-px", ["before client-1 4: client-2"])
    names = [save_schedule(each, tmp_path).name for each in (one, one, other, again, order)]
    assert names == [
        "set-nx-px-pause-client.schedule",
        "set-nx-px-pause-client.schedule",
        "set-nx-px-pause-client-kill-client.schedule",
        "set-nx-px-pause-client-2.schedule",
        "set-nx-px-order.schedule",
    ]
    assert len(list(tmp_path.iterdir())) == 4


def test_what_is_known_is_not_kept_twice() -> None:
    before = {path.name: path.read_text() for path in FOUND.iterdir()}
    done = lockstorm("explore", "--lock", "set-nx-px", "--faults", "hold-request", "--save", "--json")
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["saved"] == str(
        paths.ROOT / "scenarios" / "found" / "set-nx-px-hold-request.schedule"
    )
    assert {path.name: path.read_text() for path in FOUND.iterdir()} == before
