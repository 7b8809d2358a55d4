"""What the program of a search prints, a JSON object a line. It counts schedules from 0; people, and all of this
package, count them from 1: the readers below add it. A key that a world has nothing to say about has its default."""

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from lockstorm.results.call_event import BrokenPromise, CallEvent, PlayedDeviation
from lockstorm.results.struck_command import StruckCommand
from lockstorm.results.verdict import HeardCommand, ScheduleLines
from lockstorm.results.wire_access import AloneRequests, RuleWarning, WireAccess


class PropertyCount(msgspec.Struct):
    """The schedules in which a property holds, is violated, or could not be judged. `broken`: those that violate what
    is required of it."""

    holds: int = 0
    violated: int = 0
    inconclusive: int = 0
    broken: int = 0


class SearchTally(msgspec.Struct):
    """All that was counted in the schedules of a search."""

    schedules: int = 0
    steps: int = 0
    calls: int = 0  # of a library, as the next line
    sessions: int = 0
    commands: int = 0
    cut_short: int = 0  # schedules that were too long
    inapplicable: int = 0  # histories that no property could judge
    inapplicable_reason: str = ""
    unplayed: int = 0  # schedules that could not be played
    unplayed_reason: str = ""
    unrepeated: int = 0  # violations that new programs did not show again
    unrepeated_reason: str = ""
    verdicts: dict[str, PropertyCount] = {}
    faults: dict[str, int] = {}
    checkpoints: dict[str, dict[str, int]] = {}  # faults by the checkpoint of the lock's code that they came after


class ViolationGroup(msgspec.Struct):
    """Schedules that violate the same properties with the same faults."""

    violates: list[str]
    faults: list[str]
    schedules: int
    first: int  # number of a schedule


class FoundSchedule(msgspec.Struct, frozen=True):
    """The first schedule that violates a required property."""

    number: int
    origin: int  # the number of the schedule whose random numbers it has
    violated: list[str]
    broken: list[str]  # those that are required
    as_found: ScheduleLines
    smallest: ScheduleLines
    anew: bool = True  # new programs show it again
    evidence: list[BrokenPromise] = []
    events: list[CallEvent] = []
    accesses: list[WireAccess] = []  # of an application
    control: ScheduleLines | None = None  # nearly the same schedule, which violates nothing


class HostedOffer(msgspec.Struct, frozen=True):
    """The library that a program hosts."""

    name: str
    version: str


class ProgressLine(msgspec.Struct, frozen=True):
    progress: SearchTally


class SearchDone(msgspec.Struct, frozen=True):
    done: SearchTally
    took_ns: int
    groups: list[ViolationGroup]
    exhausted: bool = False
    horizon: int = 0  # steps of the usual course
    found: FoundSchedule | None = None  # if this process has found the first one
    warnings: list[RuleWarning] = []  # of an application


class ReplayDone(msgspec.Struct, frozen=True):
    steps: int
    violated: list[str] = []
    broken: list[str] = []
    checkpoints: dict[str, dict[str, int]] = {}
    commands: list[HeardCommand] = []
    strikes: list[StruckCommand] = []
    evidence: list[BrokenPromise] = []
    excused: list[BrokenPromise] = []  # two holds at once that are not required to exclude each other
    events: list[CallEvent] = []
    deviations: list[PlayedDeviation] = []
    control: ScheduleLines | None = None  # of one that violates something
    offer: HostedOffer = HostedOffer("", "")
    warnings: list[RuleWarning] = []  # of an application, as the next one
    accesses: list[WireAccess] = []


class BadLine(msgspec.Struct, frozen=True):
    """A line of a schedule that cannot be replayed, counted from 1."""

    line: int
    reason: str


class IntroducedLine(msgspec.Struct, frozen=True):
    """What programs say of themselves."""

    offer: HostedOffer
    warnings: list[RuleWarning] = []
    alone: AloneRequests = AloneRequests()


SearchLine = ProgressLine | SearchDone | ReplayDone | BadLine | IntroducedLine


def read_line(text: str) -> SearchLine:
    printed = json.loads(text)
    if "progress" in printed:
        return msgspec.convert(printed, ProgressLine)
    if "line" in printed:
        return msgspec.convert(printed, BadLine)
    if "done" not in printed and "steps" not in printed:
        return msgspec.convert(printed, IntroducedLine)
    if "done" not in printed:
        return msgspec.convert(printed, ReplayDone)
    for group in printed["groups"]:
        group["first"] += 1
    if found := printed.get("found"):
        found["number"] += 1
        found["origin"] += 1
    return msgspec.convert(printed, SearchDone)


# --- adding up ---


def tallies_joined(tallies: Sequence[SearchTally]) -> SearchTally:
    """Adds numbers; of reasons the first one counts."""
    total = SearchTally()
    for tally in tallies:
        for name in SearchTally.__struct_fields__:
            setattr(total, name, _added(getattr(total, name), getattr(tally, name)))
    return total


def _added(one: Any, other: Any) -> Any:  # values of a tally: numbers, reasons, counts, and mappings of these
    if isinstance(one, dict):
        return {
            key: _added(one[key], other[key]) if key in one and key in other else one.get(key, other.get(key))
            for key in {**one, **other}
        }
    if isinstance(one, PropertyCount):
        return PropertyCount(*(getattr(one, name) + getattr(other, name) for name in PropertyCount.__struct_fields__))
    return (one or other) if isinstance(one, str) else one + other


def groups_joined(parts: Sequence[ViolationGroup]) -> list[ViolationGroup]:
    """Adds up equal groups; sorted by the first schedule in each."""
    groups: dict[tuple[tuple[str, ...], ...], ViolationGroup] = {}
    for group in parts:
        cause = (tuple(group.violates), tuple(group.faults))
        known = groups.setdefault(cause, msgspec.structs.replace(group, schedules=0))
        known.schedules += group.schedules
        known.first = min(known.first, group.first)
    return sorted(groups.values(), key=lambda group: group.first)
