"""A campaign: all schedules of one search, which may run in several parts, on several machines and at different times.
A campaign can be extended, joined with others and kept in a file. However it was split, its result is the same."""

import hashlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, count
from pathlib import Path

import msgspec

from lockstorm.base.errors import UsageError
from lockstorm.base.version import VERSION
from lockstorm.locks.lock_names import hosts_programs
from lockstorm.results.call_event import BrokenPromise, CallStoryLine
from lockstorm.results.verdict import Evidence, ScheduleLines
from lockstorm.results.wire_access import RuleWarning
from lockstorm.search.explorer import DIGEST_BYTES, STATE_REGISTERS, UNPLAYED, SearchOutcome, states_joined
from lockstorm.search.search_lines import (
    FoundSchedule,
    SearchTally,
    ViolationGroup,
    groups_joined,
    tallies_joined,
)
from lockstorm.search.sessions import session_numbers

FORMAT = 2  # 1: schedules were counted from 0
SHARDS_MOST = 10_000
OPTION_NAMES = {"keep_going": "--all"}  # keys whose option has another name

SearchKey = dict[str, str | int | bool | None]  # identifies a campaign: fields of SearchRequest, without its limits


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


class ShownSchedule(msgspec.Struct, frozen=True):
    """What the smallest schedule shows when it is replayed."""

    sentence: str
    steps: int = 0
    evidence: dict[str, list[Evidence]] = {}  # by property
    struck: dict[str, str] = {}  # deviation -> what it strikes or changes
    with_new_programs: bool = True  # a library's programs that were started for it show it again
    broken: list[BrokenPromise] = []
    story: list[CallStoryLine] = []
    control: ScheduleLines | None = None  # of a library


class Campaign(msgspec.Struct, kw_only=True):
    """What was tried of a campaign so far. A shard has every `shards`-th schedule, or of a library every `shards`-th
    session: a session repeats only as a whole. Shards count from 1, and so do the numbers of schedules; the methods
    below compute with places, which count from 0."""

    format: int = FORMAT
    version: str = VERSION
    key: SearchKey
    shards: int
    digests: dict[int, bytes] = {}  # of its histories in order, by the number of the shard
    reached: int = 0  # the last schedule that was tried, also beyond a gap
    tally: SearchTally = msgspec.field(default_factory=SearchTally)
    groups: list[ViolationGroup] = []
    found: FoundSchedule | None = None  # the first violation
    shown: ShownSchedule | None = None
    elapsed_s: float = 0.0  # summed over all parts
    horizon: int = 0
    exhausted: bool = False
    states: bytes = b""  # registers for count_states
    warnings: list[RuleWarning] = []  # of an application

    # --- numbers ---

    def done(self, shard: int) -> int:
        """The number of schedules of a shard that were tried; they have no gap."""
        return len(self.digests.get(shard, b"")) // DIGEST_BYTES

    @property
    def in_sessions(self) -> bool:
        return hosts_programs(str(self.key["lock"]))

    @property
    def is_over(self) -> bool:
        return self.exhausted or bool(self.found and not self.key["keep_going"])

    @property
    def until(self) -> int:
        """The number of the last schedule that counts: the first violation, or as far as all shards have come."""
        until = min((self.next_place(shard) for shard in self.digests), default=0)
        return min(until, self.found.number) if self.found and not self.key["keep_going"] else until

    def next_place(self, shard: int) -> int:
        """The first schedule of a shard that was not tried."""
        *_, last = self._tried(shard)
        return last.stop

    def next_session(self, shard: int) -> int:
        """The first session of a shard that was not played to its end."""
        return shard - 1 + (len(list(self._tried(shard))) - 1) * self.shards

    def _tried(self, shard: int) -> Iterator[range]:
        """The schedules of a shard that were tried; of a library's those of each session, and of the last one perhaps
        none."""
        left = self.done(shard)
        if not self.in_sessions:
            yield range(shard - 1, shard - 1 + left * self.shards, self.shards)
            return
        for session in count(shard - 1, self.shards):
            yield session_numbers(session)[:left]
            if left < len(session_numbers(session)):
                return
            left -= len(session_numbers(session))

    @property
    def schedules(self) -> int:
        """The number of schedules that count: those that could not be played do not."""
        return sum(digest != UNPLAYED for digest in self.histories())

    @property
    def repeats(self) -> int:
        """The number of schedules with which a search tries all that this one has tried: the first violation, if it
        ended there."""
        return self.until if self.found and self.is_over else max(self.until, self.reached)

    def histories(self) -> "array[int]":
        """The digests of the schedules that were tried without a gap, in order."""
        until = max((self.next_place(shard) for shard in self.digests), default=0)
        whole, tried = array("Q", bytes(DIGEST_BYTES * until)), bytearray(until)
        for shard, digests in self.digests.items():
            left = array("Q", digests)
            for numbers in self._tried(shard):
                place = slice(numbers.start, numbers.stop, numbers.step)
                whole[place], tried[place] = left[: len(numbers)], b"\1" * len(numbers)
                left = left[len(numbers) :]
        return array("Q", compress(whole[: self.until], tried))

    @property
    def history_sha256(self) -> str:
        return hashlib.sha256(self.histories().tobytes()).hexdigest()

    @property
    def distinct(self) -> int:
        return len({*self.histories()} - {UNPLAYED})

    # --- adding to it ---

    def add(self, shard: int, outcome: SearchOutcome) -> None:
        """Adds the next schedules of a shard."""
        self.digests[shard] = self.digests.get(shard, b"") + outcome.digests
        self.reached = max(self.reached, outcome.reached)
        self._sum(outcome.tally, outcome.groups, outcome.elapsed_s, outcome.states)
        self.found = self.found or outcome.found
        self.horizon = outcome.horizon
        self.exhausted = outcome.exhausted
        self.warnings = self.warnings or outcome.warnings

    def _sum(self, tally: SearchTally, groups: list[ViolationGroup], elapsed_s: float, states: bytes) -> None:
        self.tally = tallies_joined([self.tally, tally])
        self.groups = groups_joined([*self.groups, *groups])
        self.elapsed_s += elapsed_s
        self.states = states_joined(self.states, states)

    def join(self, other: "Campaign") -> None:
        """Adds other shards of the same campaign."""
        self.digests |= other.digests
        self.reached = max(self.reached, other.reached)
        self._sum(other.tally, other.groups, other.elapsed_s, other.states)
        self.warnings = self.warnings or other.warnings
        if other.found and (not self.found or other.found.number < self.found.number):
            self.found, self.shown = other.found, other.shown


def joined(named: Sequence[tuple[str, Campaign]]) -> Campaign:
    """Joins campaigns. UsageError when they are not parts of one campaign, or when a part occurs twice."""
    first_name, first = named[0]
    whole = Campaign(key=first.key, shards=first.shards, horizon=first.horizon, exhausted=first.exhausted)
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


class _Version(msgspec.Struct, frozen=True):
    format: int
    version: str


class _CampaignVersion(msgspec.Struct, frozen=True):
    campaign: _Version


class _CampaignFile(msgspec.Struct, frozen=True):
    campaign: Campaign


def read_campaign(path: Path) -> Campaign:
    """Reads a file of `explore --result`. Raises UsageError with the reason when it is something else."""
    try:
        content = path.read_bytes()
        made = msgspec.json.decode(content, type=_CampaignVersion).campaign
        if (made.format, made.version) != (FORMAT, VERSION):
            raise UsageError(
                f"{path} was written by lockstorm {made.version} (format {made.format}), and this is {VERSION} "
                f"(format {FORMAT}): the same seed may mean other schedules there"
            )
        campaign = msgspec.json.decode(content, type=_CampaignFile).campaign
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except msgspec.MsgspecError as error:
        raise UsageError(f"{path} is not what lockstorm explore --result writes: {error}") from None
    if wrong := _mistake(campaign):
        raise UsageError(f"{path} is not what lockstorm explore --result writes: {wrong}")
    return campaign


def _mistake(campaign: Campaign) -> str:
    """What nothing but a change by hand makes of a file; empty: it is as it was written."""
    for shard, digests in campaign.digests.items():
        if not 1 <= shard <= campaign.shards:
            return f"there is no shard {shard}/{campaign.shards}"
        if len(digests) % DIGEST_BYTES:
            return f"shard {shard} ends in the middle of a history"
    if len(campaign.states) != STATE_REGISTERS:
        return "states are missing"
    return "" if campaign.digests and {"lock", "keep_going"} <= campaign.key.keys() else "nothing was tried"
