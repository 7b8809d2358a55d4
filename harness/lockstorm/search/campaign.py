"""A campaign: all schedules of one search, which may run in several parts, on several machines and at different times.
A campaign can be extended, joined with others and kept in a file. However it was split, its result is the same."""

import base64
import hashlib
import json
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import msgspec

from lockstorm.base.atomic_file import write_json
from lockstorm.base.errors import UsageError
from lockstorm.base.version import VERSION
from lockstorm.native.fault_names import name_now
from lockstorm.search.explorer import STATE_REGISTERS, SearchOutcome, states_joined, sum_up

FORMAT = 1
SHARDS_MOST = 10_000
DIGEST_BYTES = 8
OPTION_NAMES = {"keep_going": "--all"}  # keys whose option has another name


@dataclass(frozen=True)
class Shard:
    """Every `of`-th schedule, beginning with the `number`-th."""

    number: int = 1
    of: int = 1

    @property
    def first(self) -> int:
        return self.number - 1


def parse_shard(text: str) -> Shard:
    """ "2/4": the second of four shards."""
    number, slash, of = text.partition("/")
    if not slash or not number.isdecimal() or not of.isdecimal() or not 1 <= int(number) <= int(of) <= SHARDS_MOST:
        raise UsageError(f"--shard {text}: K/N, K from 1 to N, N at most {SHARDS_MOST}")
    return Shard(int(number), int(of))


@dataclass
class Campaign:
    """A campaign, and what was tried of it so far."""

    NAMES: ClassVar[str] = "lock"  # what in a key names what is searched
    GROUPED_BY: ClassVar[str] = "violates"
    REGISTERS: ClassVar[int] = STATE_REGISTERS
    RENAMED: ClassVar[dict[str, str]] = {  # keys in files of this version that were written earlier
        "unfit": "inapplicable",
        "unfit_reason": "inapplicable_reason",
        "goes_on": "keep_going",
    }

    key: dict[str, Any]  # what identifies it: SearchPlan.key
    shards: int
    digests: dict[int, bytes] = field(default_factory=dict)  # of its histories in order, by the number of the shard
    tally: dict[str, Any] = field(default_factory=dict)
    groups: list[dict[str, Any]] = field(default_factory=list)
    found: dict[str, Any] | None = None  # the first violation, as the program `explore` prints it
    shown: dict[str, Any] | None = None  # the verdict on the smallest schedule
    elapsed_s: float = 0.0  # summed over all parts
    horizon: int = 0
    exhausted: bool = False
    states: bytes = b""  # registers for count_states

    # --- numbers ---

    def done(self, shard: int) -> int:
        """The number of schedules of a shard that were tried; they have no gap."""
        return len(self.digests.get(shard, b"")) // DIGEST_BYTES

    @property
    def is_over(self) -> bool:
        return self.exhausted or bool(self.found and not self.key["keep_going"])

    @property
    def until(self) -> int:
        """The end of the schedules that count: the first violation, or as far as all shards have come."""
        until = min(self.next_number(shard) for shard in self.digests)
        if self.found and not self.key["keep_going"]:
            until = min(until, int(self.found["number"]) + 1)
        return until

    def next_number(self, shard: int) -> int:
        """The first schedule of a shard that was not tried."""
        return shard - 1 + self.done(shard) * self.shards

    def _counts(self) -> list[int]:
        """The number of schedules of each shard that count."""
        return [max(0, self.until - shard + self.shards) // self.shards for shard in sorted(self.digests)]

    @property
    def schedules(self) -> int:
        return sum(self._counts())

    def histories(self) -> "array[int]":
        """The digests of the schedules that count, in order."""
        counts = self._counts()
        histories = array("Q", bytes(DIGEST_BYTES * sum(counts)))
        for place, (shard, count) in enumerate(zip(sorted(self.digests), counts, strict=True)):
            histories[place :: len(counts)] = array("Q", self.digests[shard][: count * DIGEST_BYTES])
        return histories

    @property
    def history_sha256(self) -> str:
        return hashlib.sha256(self.histories().tobytes()).hexdigest()

    @property
    def distinct(self) -> int:
        return len(set(self.histories()))

    # --- adding to it ---

    def add(self, shard: int, outcome: SearchOutcome) -> None:
        """Adds the next schedules of a shard."""
        self.digests[shard] = self.digests.get(shard, b"") + outcome.digests
        self._sum(outcome.tally, outcome.groups, outcome.elapsed_s)
        self.found = self.found or outcome.found
        self.horizon = outcome.horizon
        self.exhausted = outcome.exhausted
        self.states = states_joined(self.states, outcome.states)

    def _sum(self, tally: dict[str, Any], groups: list[dict[str, Any]], elapsed_s: float) -> None:
        self.tally = sum_up([self.tally, tally])
        self.groups = groups_joined([*self.groups, *groups], self.GROUPED_BY)
        self.elapsed_s += elapsed_s

    def join(self, other: "Campaign") -> None:
        """Adds other shards of the same campaign."""
        self.digests |= other.digests
        self._sum(other.tally, other.groups, other.elapsed_s)
        self.states = states_joined(self.states, other.states)
        if other.found and (not self.found or other.found["number"] < self.found["number"]):
            self.found, self.shown = other.found, other.shown

    # --- as a file ---

    @property
    def json(self) -> dict[str, Any]:
        parts = [
            {"shard": shard, "schedules": self.done(shard), "histories": base64.b64encode(digests).decode()}
            for shard, digests in sorted(self.digests.items())
        ]
        values = {name: getattr(self, name) for name in _PLAIN}
        values["states"] = base64.b64encode(self.states).decode()
        return {"format": FORMAT, "version": VERSION, "key": self.key, "shards": self.shards, "parts": parts, **values}


AnyCampaign = TypeVar("AnyCampaign", bound=Campaign)
_PLAIN = ("tally", "groups", "found", "shown", "elapsed_s", "horizon", "exhausted")


def groups_joined(parts: Iterable[dict[str, Any]], grouped_by: str) -> list[dict[str, Any]]:
    """Adds up equal groups; sorted by the first schedule in each."""
    groups: dict[tuple[tuple[str, ...], ...], dict[str, Any]] = {}
    for group in parts:
        cause = (tuple(group[grouped_by]), tuple(group["faults"]))
        known = groups.setdefault(cause, {**group, "schedules": 0})
        known["schedules"] += group["schedules"]
        known["first"] = min(known["first"], group["first"])
    return sorted(groups.values(), key=lambda group: int(group["first"]))


def joined(named: Sequence[tuple[str, AnyCampaign]]) -> AnyCampaign:
    """Joins campaigns. UsageError when they are not parts of one campaign, or when a part occurs twice."""
    first_name, first = named[0]
    whole = type(first)(first.key, first.shards, horizon=first.horizon, exhausted=first.exhausted)
    owner: dict[int, str] = {}
    for name, campaign in named:
        check_same(first_name, first, name, campaign)
        for shard in sorted(campaign.digests):
            if shard in owner:
                raise UsageError(f"shard {shard}/{whole.shards} is in {owner[shard]} and in {name}")
            owner[shard] = name
        whole.join(campaign)
    return whole


def check_same(one_name: str, one: Campaign, name: str, other: Campaign) -> None:
    ours, theirs = {**one.key, "shards": one.shards}, {**other.key, "shards": other.shards}
    for key in dict.fromkeys([*ours, *theirs]):
        if ours.get(key) != theirs.get(key):
            shown = OPTION_NAMES.get(key, key)
            raise UsageError(
                f"{name} is of another campaign than {one_name}: {shown} is {theirs.get(key)!r}, not {ours.get(key)!r}"
            )


def read_campaign(path: Path, kinds: Sequence[type[Campaign]] = (Campaign,)) -> Campaign:
    """Reads a file of `explore --result`, of one of these kinds. Raises UsageError with the reason when it is something
    else."""
    try:
        read = json.loads(path.read_bytes())["campaign"]
        if (read["format"], read["version"]) != (FORMAT, VERSION):
            raise UsageError(
                f"{path} was written by lockstorm {read['version']} (format {read['format']}), and this is {VERSION} "
                f"(format {FORMAT}): the same seed may mean other schedules there"
            )
        kind = next((kind for kind in kinds if kind.NAMES in read["key"]), None)
        if kind is None:
            raise ValueError(f"its key names no {' or '.join(kind.NAMES for kind in kinds)}")
        return _campaign(kind, read)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        reason = f"line {error.lineno}: {error.msg}" if isinstance(error, json.JSONDecodeError) else f"{error}"
        raise UsageError(f"{path} is not what lockstorm explore --result writes: {reason}") from None


def _rename_faults(read: dict[str, Any]) -> None:  # a file's JSON, which may be of before
    """Gives the faults of a file of before their names of today."""
    key, tally = read["key"], read["tally"]
    words = [word.partition("=") for word in key["faults"].split(",")]
    key["faults"] = ",".join(name_now(name) + equals + most for name, equals, most in words)
    if "faults" in tally:
        tally["faults"] = {name_now(name): count for name, count in tally["faults"].items()}
    for group in read["groups"]:
        group["faults"] = [name_now(name) for name in group["faults"]]


def _campaign(kind: type[Campaign], read: dict[str, Any]) -> Campaign:
    for where in (read["key"], read["tally"]):
        for old in kind.RENAMED.keys() & where.keys():
            where[kind.RENAMED[old]] = where.pop(old)
    _rename_faults(read)
    digests = {}
    for part in read["parts"]:
        histories = base64.b64decode(part["histories"], validate=True)
        if len(histories) != part["schedules"] * DIGEST_BYTES:
            raise ValueError(f"shard {part['shard']} has not as many histories as schedules, {part['schedules']}")
        if part["shard"] in digests or not 1 <= part["shard"] <= read["shards"]:
            raise ValueError(f"there is no shard {part['shard']}/{read['shards']}, or it occurs twice")
        digests[part["shard"]] = histories
    if not digests or "keep_going" not in read["key"]:
        raise ValueError("nothing was tried")
    states = base64.b64decode(read["states"], validate=True)
    if len(states) != kind.REGISTERS:
        raise ValueError("states are missing")
    return kind(read["key"], read["shards"], digests, **{name: read[name] for name in _PLAIN}, states=states)


def write_result(path: Path, result: msgspec.Struct | dict[str, Any]) -> None:
    """Replaces the file in one step: a process that is killed meanwhile leaves the old one."""
    write_json(path, result, indent=1)
