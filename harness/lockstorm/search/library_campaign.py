"""A campaign of a library's search. Its shards are sessions, for a session repeats only as a whole."""

from array import array
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any, ClassVar

from lockstorm.base.errors import UsageError
from lockstorm.search.campaign import Campaign, joined
from lockstorm.search.library_plan import LibraryPlan, plan_library_search
from lockstorm.search.library_sessions import session_numbers, whole_sessions


class LibraryCampaign(Campaign):
    """What was tried of a library. Each shard has every `shards`-th session."""

    NAMES: ClassVar[str] = "adapter"
    GROUPED_BY: ClassVar[str] = "breaks"
    REGISTERS: ClassVar[int] = 0
    RENAMED: ClassVar[dict[str, str]] = {}

    def _tried(self, shard: int) -> Iterator[range]:
        """The schedules of each session of a shard that were tried; of the last one, perhaps none."""
        left = self.done(shard)
        for session in count(shard - 1, self.shards):
            yield session_numbers(session)[:left]
            if left < len(session_numbers(session)):
                return
            left -= len(session_numbers(session))

    def next_session(self, shard: int) -> int:
        """The first session of a shard that was not played to its end."""
        return shard - 1 + (len(list(self._tried(shard))) - 1) * self.shards

    def next_number(self, shard: int) -> int:
        *_, last = self._tried(shard)
        return last.stop

    def _counting(self, shard: int) -> list[range]:
        """The schedules of each session of a shard that were tried and count."""
        until = self.until
        return [range(numbers.start, max(numbers.start, min(numbers.stop, until))) for numbers in self._tried(shard)]

    def _counts(self) -> list[int]:
        return [sum(map(len, self._counting(shard))) for shard in sorted(self.digests)]

    def histories(self) -> "array[int]":
        parts = {}
        for shard, digests in self.digests.items():
            left = array("Q", digests)
            for numbers, tried in zip(self._counting(shard), self._tried(shard), strict=True):
                parts[numbers.start] = left[: len(numbers)]
                left = left[len(tried) :]
        whole = array("Q")
        for start in sorted(parts):
            whole += parts[start]
        return whole


def planned_again(name: str, campaign: Campaign, **limits: Any) -> LibraryPlan:
    """The plan of a campaign that was read from a file. UsageError when the adapter hosts another release now."""
    key = dict(campaign.key)
    try:
        adapter, library = key.pop("adapter"), key.pop("library")
        plan = plan_library_search(adapter, {**key, **limits})
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{name}: its key is not one: {error}") from None
    if plan.key["library"] != library:
        raise UsageError(f"{name}: it is of {library}, and the adapter hosts {plan.key['library']}")
    return plan


def resumed_library(name: str, campaign: Campaign, **limits: Any) -> LibraryPlan:
    """The plan of what is left of a campaign that was read from a file."""
    if len(campaign.digests) != 1:
        raise UsageError(f"{name}: it has {len(campaign.digests)} shards in it; resume each by itself, and merge then")
    (shard,) = campaign.digests
    whole = campaign.shards > 1
    plan = planned_again(name, campaign, shard=f"{shard}/{campaign.shards}" if whole else None, **limits)
    if campaign.is_over or campaign.next_number(shard) >= whole_sessions(plan.schedules):
        raise UsageError(f"{name}: nothing is left to try")
    return plan


def joined_library(named: Sequence[tuple[str, LibraryCampaign]]) -> tuple[LibraryPlan, LibraryCampaign]:
    campaign = joined(named)
    return planned_again(named[0][0], campaign), campaign
