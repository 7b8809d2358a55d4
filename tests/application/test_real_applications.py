"""Published bugs of applications that nobody here wrote: found in the release that has them, not in the one in which
they were mended."""

from dataclasses import replace
from pathlib import Path

import pytest

from lockstorm.application.application_file import read_application
from lockstorm.base import paths
from lockstorm.search.replay import ReplayedLibrary, replay_library
from lockstorm.search.schedule_file import ApplicationSchedule, parse_schedule
from lockstorm.servers.services import missing
from tests.application.described import searched
from tests.application.real_applications import APPLICATIONS, PLACE, install_release, write_release

REPETITIONS = 3


def schedule_of(name: str, file: Path) -> ApplicationSchedule:
    """Its schedule, of the application that this file describes."""
    path = PLACE / name / "found.schedule"
    schedule = parse_schedule(path.read_text(), str(path))
    assert isinstance(schedule, ApplicationSchedule)
    assert schedule.app == str((PLACE / name / APPLICATIONS[name].file).relative_to(paths.ROOT))
    return replace(schedule, app=str(file))


def need(name: str, *releases: str) -> None:
    for service in APPLICATIONS[name].services:
        if reason := missing(service):
            pytest.skip(f"not installed: {reason}")
    for release in releases:
        if reason := install_release(name, release):
            pytest.skip(reason)


@pytest.mark.parametrize("name", APPLICATIONS)
def test_its_files_say_where_the_bug_was_published(name: str) -> None:
    application = APPLICATIONS[name]
    page = (PLACE / name / "README.md").read_text()
    assert [each for each in application.threads if f"https://github.com/{each}" not in page] == []
    assert f"`{application.wrong}`" in page and f"`{application.right}`" in page


@pytest.mark.slow("installs two releases of an application, and starts its processes five times", seconds=90)
@pytest.mark.parametrize("name", APPLICATIONS)
def test_the_schedule_shows_the_bug_and_the_mended_release_lacks_it(name: str, tmp_path: Path) -> None:
    application = APPLICATIONS[name]
    need(name, application.wrong, application.right)

    def replayed(file: Path) -> ReplayedLibrary:
        return replay_library(schedule_of(name, file), name)

    shown = [replayed(PLACE / name / application.file) for _ in range(REPETITIONS)]
    assert [each.violates for each in shown] == [["check"]] * REPETITIONS, shown[0].sentence
    assert len({each.sentence for each in shown}) == 1
    control = replayed(write_release(name, application.right, tmp_path))
    assert control.exit == 0, control.sentence


@pytest.mark.slow("searches a hundred schedules and more of an application", seconds=120)
@pytest.mark.parametrize("name", APPLICATIONS)
def test_a_search_finds_it_again(name: str) -> None:
    application = APPLICATIONS[name]
    need(name, application.wrong)
    file = PLACE / name / application.file
    schedule = schedule_of(name, file)
    found = searched(file, faults=application.faults, seed=schedule.seed, schedules=schedule.number).found
    assert found and (found.number, found.violates) == (schedule.number, ["check"])


@pytest.mark.slow("searches tens of schedules of an application", seconds=60)
@pytest.mark.parametrize("name", APPLICATIONS)
def test_no_search_finds_it_in_the_mended_release(name: str, tmp_path: Path) -> None:
    application = APPLICATIONS[name]
    need(name, application.right)
    file = write_release(name, application.right, tmp_path)
    assert read_application(file).directory == PLACE / name
    result = searched(file, faults=application.faults, schedules=30)
    assert result.exit == 0, result.sentence
