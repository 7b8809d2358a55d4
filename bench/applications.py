"""How many schedules of a small service a search plays in a second: the service of docs/examples/applications, right,
in two instances. Starts of instances are not counted: the clock runs from the first reported schedules of a session to
the last ones before its end."""

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lockstorm.base import paths
from lockstorm.base.errors import Inconclusive
from lockstorm.locks.lock_names import APP_PREFIX
from lockstorm.search.explore import search_words
from lockstorm.search.explorer import Explorer, SearchProgress, explorer_for
from lockstorm.search.search_plan import SearchPlan, SearchRequest, plan_search
from lockstorm.search.sessions import SHORT_SESSIONS, session_numbers
from lockstorm.servers.services import missing

EXAMPLES = paths.ROOT / "docs" / "examples" / "applications"
TARGETS = {"python": 50, "node": 50, "go": 50, "spring": 20}  # schedules of two requests a second, on one core
REQUESTS = 2  # in a schedule
SESSION = SHORT_SESSIONS  # the first that is not short
FIRST_PART = 10  # schedules before the clock runs

REPORTS_LEAST = 3  # the first, the last and one behind it


@dataclass(frozen=True)
class ApplicationSpeed:
    per_s: float  # schedules of REQUESTS requests
    schedules: int  # that were measured
    requests: float  # in one of them, on average


def why_not(framework: str) -> str:
    """Why the example cannot be measured in this framework; empty if it can."""
    if lacks := missing("postgres"):
        return lacks
    installed = Path(os.environ.get("LOCKSTORM_APPLICATIONS", paths.build() / "applications")) / framework
    install = EXAMPLES.relative_to(paths.ROOT) / "install"
    return "" if installed.exists() else f"{framework} is not installed: {install} {framework}"


def measure_application(framework: str, schedules: int, rounds: int) -> ApplicationSpeed:
    """`schedules`: at most those of a session."""
    with tempfile.TemporaryDirectory() as directory, _variable("FRAMEWORK", framework):
        request = SearchRequest(f"{APP_PREFIX}{_example(Path(directory))}", faults="none", workers=1, schedules=1)
        plan = plan_search(request)
        with explorer_for(plan.context, 1) as explorer:
            speeds = [_speed(explorer, plan, schedules) for _ in range(rounds)]
    return sorted(speeds, key=lambda each: each.per_s)[len(speeds) // 2]


def _speed(explorer: Explorer, plan: SearchPlan, schedules: int) -> ApplicationSpeed:
    reports = _Reports()
    until = session_numbers(SESSION).start + schedules
    explorer.search(search_words(plan), until, reports.add, first=SESSION, in_sessions=True)
    if len(reports.seen) < REPORTS_LEAST:
        raise Inconclusive(f"{len(reports.seen)} reports of {schedules} schedules are too few to measure their speed")
    begun, ended = reports.seen[0], reports.seen[-2]  # the last report is that of a session which has ended
    took_s, count, requests = (ended[each] - begun[each] for each in range(3))
    return ApplicationSpeed(requests / REQUESTS / took_s, int(count), requests / count)


class _Reports:
    """When how many schedules and requests were reported, from FIRST_PART schedules on."""

    def __init__(self) -> None:
        self.seen: list[tuple[float, int, int]] = []

    def add(self, progress: SearchProgress) -> None:
        now = (time.monotonic(), progress.tally.schedules, progress.tally.calls)
        if now[1] >= FIRST_PART and (not self.seen or now[1] > self.seen[-1][1]):
            self.seen.append(now)


def _example(directory: Path) -> Path:
    """The right twin of an example, with at most REQUESTS requests in a schedule."""
    for name in ("start", "schema.sql"):
        (directory / name).symlink_to(EXAMPLES / name)
    text = (EXAMPLES / "unlock-before-commit.toml").read_text()
    file = directory / "lockstorm-app.toml"
    file.write_text(text.replace("/wrong", "/right").replace("times = 4", f"times = {REQUESTS}"))
    return file


@contextmanager
def _variable(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
