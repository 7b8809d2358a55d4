"""Findings in other releases than the pinned one: the newest that the registries have (`lockstorm libraries --newest`),
and those that are named (`--release`)."""

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal

from lockstorm.base import paths
from lockstorm.base.errors import LockstormError, UsageError
from lockstorm.libraries.finding import CONTROL, FOUND, PLACE, Finding
from lockstorm.libraries.library_words import LibraryWords
from lockstorm.locks.adapter import SHIPPED, library_environment
from lockstorm.search.replay import replay_library
from lockstorm.search.schedule_file import read_library_schedule

Verdict = Literal["shown", "not shown", "not tried"]


@dataclass(frozen=True, kw_only=True)
class TriedRelease:
    """What a finding shows in a release of its library."""

    finding: str
    pinned: str  # the release of the shipped adapter, which shows it
    release: str  # that was tried; empty: not known
    verdict: Verdict  # shown: this release breaks the promise, too
    why: str  # what the replay said, or what stood in the way


@cache
def newest_release(words: LibraryWords) -> str:
    """The newest release in the library's registry, which is asked once. LockstormError with what its tool said."""
    command = [str(SHIPPED / "newest"), words.language, words.package]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **library_environment()})
    if done.returncode or not done.stdout.strip():
        said = done.stderr.strip().splitlines() or ["nothing was said"]
        raise LockstormError(f"the registry of {words.package}: {said[0]}")
    return done.stdout.strip().splitlines()[-1]


def install_old(library: str, version: str, adapter: str) -> Path:
    """Fetches a release, unless it is there; where its adapter is. UsageError when that fails."""
    environment = {**os.environ, **library_environment()}
    if subprocess.run([SHIPPED / "install-old", library, version], env=environment).returncode:
        raise UsageError(f"adapters/install-old {library} {version} has failed")
    return paths.cache("adapters") / "old" / f"{library}-{version}" / "adapters" / adapter


def _replayed_with(name: str, file: str, adapter: Path) -> tuple[bool, str]:
    """Whether a finding's schedule breaks its promises with the release of an adapter, and the replay's sentence."""
    schedule = replace(read_library_schedule(PLACE / name / file), adapter=str(adapter))
    result = replay_library(schedule, str(PLACE / name / file))
    return set(schedule.violates) <= set(result.violates), result.sentence


def try_release(name: str, finding: Finding, release_of: Callable[[], str]) -> TriedRelease:
    """Replays a finding with a release of its library, which is fetched unless it is the pinned one."""
    release = ""
    try:
        release = release_of()
        if release == finding.release:
            return _verdict(name, finding, release, "shown", "this is the pinned release: tests replay it")
        adapter = install_old(finding.adapter, release, finding.adapter)
        broken, sentence = _replayed_with(name, FOUND, adapter)
        if broken and _replayed_with(name, CONTROL, adapter)[0]:
            return _verdict(name, finding, release, "not tried", "its control breaks the promise, too")
        return _verdict(name, finding, release, "shown" if broken else "not shown", sentence)
    except LockstormError as error:
        return _verdict(name, finding, release, "not tried", str(error))


def _verdict(name: str, finding: Finding, release: str, verdict: Verdict, why: str) -> TriedRelease:
    return TriedRelease(finding=name, pinned=finding.release, release=release, verdict=verdict, why=why)
