"""Runs that the gate keeps: run.json, and the list of them (docs/gate.md)."""

from typing import Final, Literal

import msgspec

from lockstorm.results.gate_verdict import PolicyDigest

FORMAT: Final = 1
RunState = Literal["running", "complete", "interrupted"]


class KeptStorm(msgspec.Struct, frozen=True):
    """The settings of a storm that a scenario has not."""

    faults: str
    duration_ms: int | None
    clients: int | None


class PlannedTrial(msgspec.Struct, kw_only=True):
    """A trial that the run is to play."""

    name: str  # of its files, without their extensions
    lock: str
    store: str | None
    scenario: str
    control: bool
    seed: int
    time: str
    storm: KeptStorm | None
    replay: str
    played: bool = False


class PlannedSearch(msgspec.Struct, kw_only=True):
    """A search of an application that the run is to make."""

    name: str  # of its files, without their extensions
    title: str  # of the application
    file: str  # that describes it, as the policy names it
    line: int  # in the policy
    required: list[str]
    schedules: int | None  # None: the policy limits the time
    replay: str
    played: bool = False
    cut: bool = False  # the policy's budget of time ended it


class RunDocument(msgspec.Struct, kw_only=True):
    """The content of run.json."""

    format: Literal[1] = FORMAT
    id: str
    state: RunState
    started: str
    ended: str | None = None
    policy: PolicyDigest
    seed: int
    versions: dict[str, str]
    trials: list[PlannedTrial]
    searches: list[PlannedSearch] = []


class ListedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run as `lockstorm runs --json` lists it."""

    id: str
    directory: str
    state: RunState
    started: str
    ended: str | None
    trials: int
    searches: int
    sentence: str
    exit: int | None
