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


class ListedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run as `lockstorm runs --json` lists it."""

    id: str
    directory: str
    state: RunState
    started: str
    ended: str | None
    trials: int
    sentence: str
    exit: int | None
