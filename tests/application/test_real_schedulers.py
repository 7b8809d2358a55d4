"""Schedulers as they are published (docs/examples/applications-real): what was found in them is found again, and not
where it was repaired."""

import fcntl
import shutil
import subprocess
from collections.abc import Callable

import pytest

from lockstorm.base import paths
from lockstorm.servers.services import missing
from tests.application.described import searched
from tests.helpers.support import ENVIRONMENT, lockstorm

EXAMPLES = paths.ROOT / "docs" / "examples" / "applications-real"
INSTALLED = paths.ROOT / "build" / "applications"
pytestmark = [
    pytest.mark.skipif(bool(missing("postgres")), reason=f"not installed: {missing('postgres')}"),
    pytest.mark.slow("fetches a scheduler, and plays it", seconds=60),
]
need_java = pytest.mark.skipif(
    not (shutil.which("mvn") and shutil.which("javac")), reason="Maven and a JDK are missing"
)
Play = Callable[..., tuple[int, str]]


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Play:
    """Installs a release unless it is there, and replays a schedule with it: exit status and output."""

    def played(name: str, release: str, schedule: str, **environment: str) -> tuple[int, str]:
        install_once(name, release)
        chosen = {name.upper(): release, **environment}
        for key, value in chosen.items():
            monkeypatch.setenv(key, value)  # for searches in this process
        done = lockstorm("replay", str(EXAMPLES / name / schedule), env={**ENVIRONMENT, **chosen})
        return done.returncode, done.stdout

    return played


def install_once(name: str, release: str) -> None:
    """Of two workers one installs, and the other one waits."""
    INSTALLED.mkdir(parents=True, exist_ok=True)
    done = INSTALLED / f"{name}-{release}.done"
    with (INSTALLED / f"{name}-{release}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            subprocess.run([EXAMPLES / name / "install", release], check=True, timeout=550)
            done.touch()


def test_a_published_bug_of_pgqueuer_is_shown_by_the_old_release_and_not_by_the_new(play: Play) -> None:
    status, story = play("pgqueuer", "0.26.0", "found.schedule")
    assert status == 1 and "'select minute, count(*) from ticks group by minute having count(*) > 1' has 1 row" in story
    assert play("pgqueuer", "0.26.1", "found.schedule")[0] == 0


def test_pgqueuer_is_searched_with_its_timers(play: Play) -> None:
    """In the old release a search by another seed finds it, too."""
    play("pgqueuer", "0.26.0", "found.schedule")
    result = searched(EXAMPLES / "pgqueuer" / "lockstorm-app.toml", schedules=60, seed=1)
    assert result.exit == 1 and result.found and "from ticks" in result.sentence, result.sentence


@need_java
def test_a_published_bug_of_quartz_is_shown_by_its_defaults(play: Play) -> None:
    """Two nodes run a job at the same time, unless one change of the order is missing."""
    status, story = play("quartz", "2.5.2", "found.schedule")
    assert status == 1 and "group by name, due having count(*" in story
    assert play("quartz", "2.5.2", "control.schedule")[0] == 0


@need_java
def test_quartz_keeps_its_promise_if_it_acquires_triggers_within_its_lock(play: Play) -> None:
    assert play("quartz", "2.5.2", "control.schedule", WITHIN_LOCK="true")[0] == 0
    result = searched(EXAMPLES / "quartz" / "lockstorm-app.toml", schedules=40, seed=1)
    assert result.exit == 0 and "met every check in 40 schedules" in result.sentence


@need_java
def test_a_node_of_quartz_that_stands_still_repeats_what_another_has_done(play: Play) -> None:
    status, story = play("quartz", "2.5.2", "paused-node.schedule", WITHIN_LOCK="true")
    assert status == 1 and "has 12 rows, and none was right" in story
    assert play("quartz", "2.5.2", "paused-node-control.schedule", WITHIN_LOCK="true")[0] == 0
