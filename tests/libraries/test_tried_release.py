"""`lockstorm libraries --newest` and `--release`: findings replayed with other releases than the pinned one."""

import subprocess
from pathlib import Path

import pytest

from lockstorm.base.errors import LockstormError, NotInstalled
from lockstorm.libraries import tried_release as module
from lockstorm.libraries.finding import CONTROL, FOUND, finding_named
from lockstorm.libraries.library_words import LibraryWords, read_words
from lockstorm.libraries.tried_release import newest_release, try_release
from lockstorm.locks.adapter import shipped_adapters

NAME = "python-redis-lock-timeout"


def test_the_pinned_release_is_not_fetched_again() -> None:
    finding = finding_named(NAME)
    tried = try_release(NAME, finding, lambda: finding.release)
    assert (tried.verdict, tried.release) == ("shown", finding.release)


def test_a_registry_that_does_not_answer_is_no_verdict() -> None:
    def nothing() -> str:
        raise NotInstalled("npm is not installed")

    tried = try_release(NAME, finding_named(NAME), nothing)
    assert (tried.verdict, tried.release, tried.why) == ("not tried", "", "npm is not installed")


@pytest.mark.parametrize(
    ("found", "control", "verdict"),
    [(True, False, "shown"), (False, False, "not shown"), (True, True, "not tried")],
)
def test_a_newer_release_is_judged_beside_its_control(
    monkeypatch: pytest.MonkeyPatch, found: bool, control: bool, verdict: str
) -> None:
    breaks = {FOUND: found, CONTROL: control}

    def replayed(name: str, file: str, adapter: Path) -> tuple[bool, str]:
        assert adapter.parts[-3:] == ("python-redis-lock-99.0", "adapters", "python-redis-lock")
        return breaks[file], "as it was planted"

    monkeypatch.setattr(subprocess, "run", lambda command, env: subprocess.CompletedProcess(command, 0))
    monkeypatch.setattr(module, "_replayed_with", replayed)
    assert try_release(NAME, finding_named(NAME), lambda: "99.0").verdict == verdict


def test_a_language_without_a_registry_is_named() -> None:
    words = LibraryWords(package="lock", language="Cobol", licence="MIT", use="Nothing.")
    with pytest.raises(LockstormError, match="the registry of lock: newest: there is no language called Cobol"):
        newest_release(words)


@pytest.mark.slow("fetches a release", seconds=60)
def test_an_older_release_shows_it_too() -> None:
    tried = try_release(NAME, finding_named(NAME), lambda: "4.0.0")
    assert tried.verdict == "shown", tried.why


# Go's module proxy answers for a version of these, and not which one is the newest.
UNLISTED = ("cirello-pglock", "go-pglock")


@pytest.mark.slow("asks the registries", seconds=60)
@pytest.mark.parametrize("adapter", [each for each in shipped_adapters() if each not in UNLISTED])
def test_the_registry_knows_a_release_of_each(adapter: str) -> None:
    assert newest_release(read_words()[0][adapter])[0].isdigit()
