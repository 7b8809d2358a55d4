"""A storm's schedule: its faults with targets and times, drawn from a seed or read from a file.

The same seed, faults and context give the same schedule on every machine. docs/storms.md describes the file.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from lockstorm.base.atomic_file import write_text
from lockstorm.base.errors import UsageError, at_place
from lockstorm.native.fault_names import fault_on, name_now
from lockstorm.storm.storm_faults import BY_NAME, Option, Rng, StormContext
from lockstorm.trial.settings import CLIENT_LIMIT

VERSION = 1
EVENTS_MOST = 100_000
PASSAGES_MOST = 8  # how many checkpoints a client may pass until the fault is injected
HEAD = {
    "seed": (0, 2**63 - 1),
    "duration_ms": (10, 3_600_000),
    "lease_ms": (1, 2**31),
    "longest_ms": (1, 2**32),
    "clients": (1, CLIENT_LIMIT),
}


@dataclass(frozen=True)
class StormEvent:
    """One fault. `passage` n: it is injected when its client comes to the n-th checkpoint after at_ms; 0: at once."""

    at_ms: int
    fault: str
    target: str
    options: Mapping[str, Option] = field(default_factory=dict)
    length_ms: int = 0  # 0: healed as soon as it is injected
    passage: int = 0

    def as_json(self) -> dict[str, Any]:  # the text of its file
        fields = {**vars(self), "options": dict(self.options)}
        return {key: value for key, value in fields.items() if self.passage or key != "passage"}


@dataclass(frozen=True)
class Schedule:
    """The events, in order, and what they were drawn from. A schedule and a lock repeat a storm."""

    seed: int
    duration_ms: int
    lease_ms: int
    longest_ms: int
    clients: int
    faults: tuple[str, ...]
    events: tuple[StormEvent, ...]

    def as_json(self) -> dict[str, Any]:  # the text of its file
        head = {key: getattr(self, key) for key in HEAD}
        events = [event.as_json() for event in self.events]
        return {"schedule": "lockstorm", "version": VERSION, **head, "faults": list(self.faults), "events": events}

    def save(self, path: Path) -> None:
        """Writes one event a line."""
        fields = self.as_json()
        events = ",\n".join("    " + json.dumps(event) for event in fields.pop("events"))
        head = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in fields.items())
        write_text(path, f'{{\n{head},\n  "events": [\n{events}\n  ]\n}}\n')


def draw_schedule(seed: int, faults: Sequence[str], context: StormContext, duration_ms: int) -> Schedule:
    """Gaps and lengths are log-uniform from 1 ms to context.longest_ms, everything else uniform. The first gap is
    shorter than the storm, however short that is."""
    rng, chosen = Rng(seed), tuple(sorted(faults))
    events: list[StormEvent] = []
    at_ms = 0
    while len(events) < EVENTS_MOST:
        at_ms += rng.log_uniform(1, context.longest_ms if events else min(context.longest_ms, duration_ms - 1))
        if at_ms >= duration_ms:
            break
        events.append(_draw_event(rng, at_ms, rng.pick(chosen), context))
    return Schedule(
        seed, duration_ms, context.lease_ms, context.longest_ms, len(context.clients), chosen, tuple(events)
    )


def _draw_event(rng: Rng, at_ms: int, fault: str, context: StormContext) -> StormEvent:
    entry = BY_NAME[fault]
    target = rng.pick(tuple(entry.targets(context)))
    options = entry.options(rng, context)
    length_ms = rng.log_uniform(1, context.longest_ms) if entry.lasts else 0
    passage = rng.between(1, PASSAGES_MOST) if entry.lands and rng.below(2) else 0
    return StormEvent(at_ms, fault, target, options, length_ms, passage)


# --- from a file ---


def read_schedule(path: Path) -> Schedule:
    """Raises UsageError that names the file, the place in it and what was expected."""
    try:
        read = json.loads(path.read_text())
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(f"{path}: not JSON: {error}") from None
    with at_place(path):
        return _schedule_of(read)


def _schedule_of(read: Any) -> Schedule:
    fields = _fields("the schedule", read, {"schedule", "version", *HEAD, "faults", "events"})
    if fields["schedule"] != "lockstorm":
        raise UsageError('"schedule" is not "lockstorm": this is no schedule of a storm')
    if fields["version"] != VERSION:
        raise UsageError(f'"version" is {fields["version"]!r}, this lockstorm reads version {VERSION}')
    head = {key: _number_in_range(key, fields[key], low, high) for key, (low, high) in HEAD.items()}
    faults, events = fields["faults"], fields["events"]
    if not isinstance(faults, list) or not all(isinstance(name, str) for name in faults):
        raise UsageError('"faults" is not a list of names')
    faults = [name_now(name) for name in faults]
    if not isinstance(events, list) or not 0 < len(events) <= EVENTS_MOST:
        raise UsageError(f'"events" is not a list of 1 to {EVENTS_MOST} events')
    parsed = tuple(_event_of(number, event, head["duration_ms"]) for number, event in enumerate(events, 1))
    if any(later.at_ms < earlier.at_ms for earlier, later in pairwise(parsed)):
        raise UsageError('"events" are not in the order of their "at_ms"')
    return Schedule(**head, faults=tuple(faults), events=parsed)


def _event_of(number: int, read: Any, duration_ms: int) -> StormEvent:
    where = f"event {number}"
    fields = _fields(where, read, {"at_ms", "fault", "target", "options", "length_ms"}, {"passage"})
    for key in ("fault", "target"):
        if not isinstance(fields[key], str):
            raise UsageError(f'{where}: "{key}" is not a name')
    options = fields["options"]
    if not isinstance(options, dict) or not all(isinstance(value, (int, str)) for value in options.values()):
        raise UsageError(f'{where}: "options" is not an object of numbers and words')
    return StormEvent(
        _number_in_range(f"{where}: at_ms", fields["at_ms"], 0, duration_ms - 1),
        fault_on(fields["fault"], fields["target"].startswith("client")),
        fields["target"],
        options,
        _number_in_range(f"{where}: length_ms", fields["length_ms"], 0, 2**32),
        _number_in_range(f"{where}: passage", fields.get("passage", 0), 0, 1000),
    )


def _fields(where: str, read: Any, needed: set[str], allowed: set[str] | None = None) -> dict[str, Any]:
    if not isinstance(read, dict):
        raise UsageError(f"{where} is not an object")
    known = needed | (allowed or set())
    for key in read:
        if key not in known:
            raise UsageError(f'{where} has an unknown key "{key}"; there are: {", ".join(sorted(known))}')
    for key in sorted(needed):
        if key not in read:
            raise UsageError(f'{where} has no "{key}"')
    return read


def _number_in_range(what: str, value: Any, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise UsageError(f"{what} is {value!r}: a whole number from {low} to {high}")
    return value
