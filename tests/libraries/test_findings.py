"""Findings: each is shown by its schedule with the pinned release, and its control keeps the promise."""

from pathlib import Path

import pytest

from lockstorm.base.errors import NotInstalled, UsageError
from lockstorm.libraries.finding import (
    CONTROL,
    FILE,
    FOUND,
    PLACE,
    finding_named,
    finding_names,
    findings,
)
from lockstorm.search.replay import ReplayedLibrary, replay_library
from lockstorm.search.schedule_file import read_library_schedule
from tests.helpers.daily import daily

NAMES = finding_names()
DAILY = ("etcd-lock-late-answer", "node-redlock-4-retry-count", "redisson-write-lease")  # Go, Node, Java; Redis, etcd


def replayed(name: str, file: str) -> ReplayedLibrary:
    """The control is judged by the promises that the finding breaks."""
    return replay_library(read_library_schedule(PLACE / name / file), str(PLACE / name / file))


@pytest.mark.lengthy("starts the library's programs")
@pytest.mark.parametrize("name", daily(NAMES, DAILY, "one more finding of a language and service", 6))
def test_the_schedule_breaks_the_promise_and_its_control_keeps_it(name: str) -> None:
    finding = finding_named(name)
    try:
        found = replayed(name, FOUND)
    except NotInstalled as reason:
        pytest.skip(str(reason))
    assert found.library.version == finding.release
    assert set(finding.breaks) <= set(found.violates), found.sentence
    control = replayed(name, CONTROL)
    assert control.exit == 0, control.sentence


@pytest.mark.parametrize("name", NAMES)
def test_the_control_differs_by_what_is_left_out(name: str) -> None:
    found, control = (read_library_schedule(PLACE / name / file) for file in (FOUND, CONTROL))
    assert (found.adapter, found.lease_ms, found.permits, found.violates) == (
        control.adapter,
        control.lease_ms,
        control.permits,
        control.violates,
    )
    assert found.lines != control.lines
    assert len(control.lines) <= len(found.lines)


def test_the_findings_are_of_several_libraries_and_name_their_sources() -> None:
    known = findings()
    assert len({finding.library for finding in known.values()}) >= 4
    for finding in known.values():
        assert finding.promise_at.startswith("https://")
        assert all(thread.startswith("https://") for thread in finding.threads)


@pytest.mark.parametrize(
    ("was", "becomes", "complaint"),
    [
        ("title =", "titel =", "unknown field `titel`"),
        ('breaks = ["', 'breaks = ["rest", "', "there is no promise rest"),
        ('reported = "not found"', 'reported = "known"', "threads names none"),
        ('reported = "not found"', 'reported = "perhaps"', "Invalid enum value 'perhaps'"),
        ('adapter = "', 'adapter = "un', "there is no shipped adapter"),
    ],
)
def test_a_wrong_entry_is_named(tmp_path: Path, was: str, becomes: str, complaint: str) -> None:
    name = next(name for name in NAMES if was in (PLACE / name / FILE).read_text())
    directory = tmp_path / name
    directory.mkdir()
    for path in (PLACE / name).iterdir():
        (directory / path.name).write_bytes(path.read_bytes())
    text = (directory / FILE).read_text()
    (directory / FILE).write_text(text.replace(was, becomes))
    with pytest.raises(UsageError, match=r"finding\.toml: ") as wrong:
        finding_named(name, tmp_path)
    assert complaint in str(wrong.value)
