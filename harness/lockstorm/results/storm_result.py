"""The course of a storm, or the counts of several: the key `storm` of the JSON of `lockstorm storm`."""

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType


class FaultCount(msgspec.Struct, forbid_unknown_fields=True):
    """How often a fault of the schedule was meant, and what became of it."""

    name: str
    meant: int = 0
    injected: int = 0
    proved: int = 0
    skipped: int = 0

    def add(self, other: "FaultCount") -> None:
        self.meant += other.meant
        self.injected += other.injected
        self.proved += other.proved
        self.skipped += other.skipped


class StormCourse(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What became of one event of the schedule."""

    at_ms: int
    fault: str
    target: str
    state: str
    reason: str = ""
    injected_ms: float | None = None
    healed_ms: float | None = None

    @property
    def length_ms(self) -> float:
        began_ms = self.injected_ms or 0.0
        return (self.healed_ms if self.healed_ms is not None else began_ms) - began_ms


class ViolationRate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The bounds at 95 % confidence."""

    low: float
    high: float


class FirstViolation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    seed: int
    sentence: str
    replay: str


class StormResult(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One storm has a course; several have what is between `clients` and `faults`."""

    duration_ms: int
    trials: int
    clients: int
    shown_seed: int | None = None  # whose verdict and schedule these are
    verdicts: dict[str, int] = {}  # number of storms by verdict
    rate: ViolationRate | None = None
    properties: dict[str, dict[str, int]] = {}  # number of storms by property and status
    first_violation: FirstViolation | UnsetType | None = UNSET
    faults: list[FaultCount]
    schedule: dict[str, Any]  # as the file of a schedule has it
    course: list[StormCourse] = []
