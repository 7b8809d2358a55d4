"""A campaign: all schedules of one search, of which several machines may try a part each, now or later. What was tried
is a value that can be added to, joined with others', and kept in a file; and it says the same however it came about."""

import base64
import hashlib
import json
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.driver.errors import UsageError
from harness.driver.explorer import STATE_REGISTERS, Searched, states_joined, sum_up
from harness.driver.version import VERSION

FORMAT = 1
SHARDS_MOST = 10_000
DIGEST_BYTES = 8
NAMES = {"goes_on": "--all"}  # of what is called otherwise on the command line


@dataclass(frozen=True)
class Shard:
    """Every `of`-th schedule, from the `number`-th on."""

    number: int = 1
    of: int = 1

    @property
    def first(self) -> int:
        return self.number - 1


def shard_named(text: str) -> Shard:
    """ "2/4": the second of four."""
    number, slash, of = text.partition("/")
    if not slash or not number.isdecimal() or not of.isdecimal() or not 1 <= int(number) <= int(of) <= SHARDS_MOST:
        raise UsageError(f"--shard {text}: K/N, K from 1 to N, N at most {SHARDS_MOST}")
    return Shard(int(number), int(of))


@dataclass
class Campaign:
    """What was tried of it so far."""

    key: dict[str, Any]  # what makes it this one
    shards: int
    digests: dict[int, bytes] = field(default_factory=dict)  # by a shard's number, of its histories in order
    tally: dict[str, Any] = field(default_factory=dict)
    groups: list[dict[str, Any]] = field(default_factory=list)
    found: dict[str, Any] | None = None  # the first that violates something, as `explore` says it
    shown: dict[str, Any] | None = None  # what its smallest schedule says
    elapsed_s: float = 0.0  # of all who took part
    horizon: int = 0
    exhausted: bool = False
    states: bytes = b""  # registers: which states were seen

    # --- numbers ---

    def done(self, shard: int) -> int:
        """How many of its schedules were tried, without a gap."""
        return len(self.digests.get(shard, b"")) // DIGEST_BYTES

    @property
    def is_over(self) -> bool:
        return self.exhausted or bool(self.found and not self.key["goes_on"])

    @property
    def until(self) -> int:
        """All schedules below count: up to the first violation, or as far as all shards have come."""
        until = min(shard - 1 + self.done(shard) * self.shards for shard in self.digests)
        if self.found and not self.key["goes_on"]:
            until = min(until, int(self.found["number"]) + 1)
        return until

    def _counts(self) -> list[int]:
        """Of each shard."""
        return [max(0, self.until - shard + self.shards) // self.shards for shard in sorted(self.digests)]

    @property
    def schedules(self) -> int:
        return sum(self._counts())

    def _histories(self) -> "array[int]":
        counts = self._counts()
        histories = array("Q", bytes(DIGEST_BYTES * sum(counts)))
        for place, (shard, count) in enumerate(zip(sorted(self.digests), counts, strict=True)):
            histories[place :: len(counts)] = array("Q", self.digests[shard][: count * DIGEST_BYTES])
        return histories

    @property
    def history_sha256(self) -> str:
        return hashlib.sha256(self._histories().tobytes()).hexdigest()

    @property
    def distinct(self) -> int:
        return len(set(self._histories()))

    # --- more of it ---

    def add(self, shard: int, searched: Searched) -> None:
        """The next schedules of a shard, behind those that were tried."""
        self.digests[shard] = self.digests.get(shard, b"") + searched.digests
        self._sum(searched.tally, searched.groups, searched.elapsed_s)
        self.found = self.found or searched.found
        self.horizon = searched.horizon
        self.exhausted = searched.exhausted
        self.states = states_joined(self.states, searched.states)

    def _sum(self, tally: dict[str, Any], groups: list[dict[str, Any]], elapsed_s: float) -> None:
        self.tally = sum_up([self.tally, tally])
        self.groups = groups_joined([*self.groups, *groups])
        self.elapsed_s += elapsed_s

    def _join(self, other: "Campaign") -> None:
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
        values = {name: getattr(self, name) for name in _TOLD}
        values["states"] = base64.b64encode(self.states).decode()
        return {"format": FORMAT, "version": VERSION, "key": self.key, "shards": self.shards, "parts": parts, **values}


_TOLD = ("tally", "groups", "found", "shown", "elapsed_s", "horizon", "exhausted")


def groups_joined(told: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same group of several is one; by the first schedule in it."""
    groups: dict[tuple[tuple[str, ...], ...], dict[str, Any]] = {}
    for group in told:
        cause = (tuple(group["violates"]), tuple(group["faults"]))
        known = groups.setdefault(cause, {**group, "schedules": 0})
        known["schedules"] += group["schedules"]
        known["first"] = min(known["first"], group["first"])
    return sorted(groups.values(), key=lambda group: int(group["first"]))


def joined(named: Sequence[tuple[str, Campaign]]) -> Campaign:
    """All of them as one. UsageError when they are not parts of one campaign, or the same part comes twice."""
    first_name, first = named[0]
    whole = Campaign(first.key, first.shards, horizon=first.horizon, exhausted=first.exhausted)
    owner: dict[int, str] = {}
    for name, campaign in named:
        check_same(first_name, first, name, campaign)
        for shard in sorted(campaign.digests):
            if shard in owner:
                raise UsageError(f"shard {shard}/{whole.shards} is in {owner[shard]} and in {name}")
            owner[shard] = name
        whole._join(campaign)
    return whole


def check_same(one_name: str, one: Campaign, name: str, other: Campaign) -> None:
    ours, theirs = {**one.key, "shards": one.shards}, {**other.key, "shards": other.shards}
    for key in dict.fromkeys([*ours, *theirs]):
        if ours.get(key) != theirs.get(key):
            said = NAMES.get(key, key)
            raise UsageError(
                f"{name} is of another campaign than {one_name}: {said} is {theirs.get(key)!r}, not {ours.get(key)!r}"
            )


def read_campaign(path: Path) -> Campaign:
    """What `explore --result` has written. Raises UsageError with the reason when it is something else."""
    try:
        told = json.loads(path.read_bytes())["campaign"]
        if (told["format"], told["version"]) != (FORMAT, VERSION):
            raise UsageError(
                f"{path} was written by lockstorm {told['version']} (format {told['format']}), and this is {VERSION} "
                f"(format {FORMAT}): the same seed may mean other schedules there"
            )
        return _campaign(told)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        said = f"line {error.lineno}: {error.msg}" if isinstance(error, json.JSONDecodeError) else f"{error}"
        raise UsageError(f"{path} is not what lockstorm explore --result writes: {said}") from None


def _campaign(told: dict[str, Any]) -> Campaign:
    digests = {}
    for part in told["parts"]:
        histories = base64.b64decode(part["histories"], validate=True)
        if len(histories) != part["schedules"] * DIGEST_BYTES:
            raise ValueError(f"shard {part['shard']} says {part['schedules']} schedules and has not as many histories")
        if part["shard"] in digests or not 1 <= part["shard"] <= told["shards"]:
            raise ValueError(f"there is no shard {part['shard']}/{told['shards']}, or it comes twice")
        digests[part["shard"]] = histories
    if not digests or "goes_on" not in told["key"]:
        raise ValueError("nothing was tried")
    states = base64.b64decode(told["states"], validate=True)
    if len(states) != STATE_REGISTERS:
        raise ValueError("states are missing")
    return Campaign(told["key"], told["shards"], digests, **{name: told[name] for name in _TOLD}, states=states)


def write_result(path: Path, result: dict[str, Any]) -> None:
    """At once: whoever is killed meanwhile leaves what was there before."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(json.dumps(result, indent=1) + "\n")
    new.replace(path)
