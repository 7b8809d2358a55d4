"""A search that is cut into pieces, which are played in any order, anywhere. Put together again in their order they are
the search that one process would have made: the same histories, the same first violation."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import msgspec

from lockstorm.campaigns.campaign_case import CampaignCase, LibraryPiece, LockPiece, PieceAnswer, library_plan
from lockstorm.campaigns.campaign_file import LibrarySearchEntry, LockSearchEntry
from lockstorm.campaigns.case_pool import CasePool
from lockstorm.search.campaign import Campaign
from lockstorm.search.library_campaign import LibraryCampaign
from lockstorm.search.library_plan import LibraryPlan
from lockstorm.search.library_search import library_result
from lockstorm.search.library_sessions import session_numbers, whole_sessions
from lockstorm.search.search_plan import SearchPlan, plan_search
from lockstorm.search.search_result import search_result


class PieceSearch(ABC):
    """What there is to try, and what the answers come to."""

    plan: SearchPlan | LibraryPlan

    @abstractmethod
    def cases(self) -> Sequence[CampaignCase]:
        """In the order of their schedules, which have no gap."""

    @abstractmethod
    def nothing_tried(self) -> Campaign: ...

    @abstractmethod
    def result(self, campaign: Campaign) -> dict[str, Any]:
        """As `lockstorm explore --json` prints it."""

    def play(self, pool: CasePool) -> dict[str, Any]:
        """The result, with the campaign in it, as `lockstorm explore --result` keeps it."""
        campaign = self.nothing_tried()
        for answer in self._in_order(pool):
            campaign.add(1, answer.outcome)
            if campaign.found and not campaign.shown:
                campaign.shown = answer.shown
        return {**self.result(campaign), "campaign": campaign.json}

    def _in_order(self, pool: CasePool) -> list[PieceAnswer]:
        """The answers of the cases that count: all, or those up to the first that has found something."""
        cases = self.cases()
        answers: dict[int, PieceAnswer] = {}
        until = len(cases)
        for number, answer in pool.play_all(cases):
            answers[number] = msgspec.convert(answer, PieceAnswer)
            if answers[number].outcome.found and not self.keeps_going:
                until = min(until, number + 1)
            if all(each in answers for each in range(until)):
                break
        return [answers[number] for number in range(until)]

    @property
    @abstractmethod
    def keeps_going(self) -> bool: ...


class LockSearch(PieceSearch):
    def __init__(self, entry: LockSearchEntry) -> None:
        self.plan: SearchPlan = plan_search(entry.request)
        self._cut = entry.cut

    def cases(self) -> Sequence[CampaignCase]:
        most = self.plan.schedules
        request = asdict(self.plan.request)
        return [LockPiece(request, first, min(first + self._cut, most)) for first in range(0, most, self._cut)]

    def nothing_tried(self) -> Campaign:
        return Campaign(self.plan.key, 1)

    def result(self, campaign: Campaign) -> dict[str, Any]:
        return search_result(self.plan, campaign)

    @property
    def keeps_going(self) -> bool:
        return self.plan.request.keep_going


class LibrarySearch(PieceSearch):
    """Its pieces are whole sessions."""

    def __init__(self, entry: LibrarySearchEntry) -> None:
        self._entry = entry
        self.plan: LibraryPlan = library_plan(LibraryPiece(entry.adapter, entry.chosen, 0, 0))

    def cases(self) -> Sequence[CampaignCase]:
        most, session, cases = whole_sessions(self.plan.schedules), 0, []
        while session_numbers(session).start < most:
            first, begin = session, session_numbers(session).start
            while session_numbers(session).stop < min(begin + self._entry.cut, most):
                session += 1
            cases.append(LibraryPiece(self._entry.adapter, self._entry.chosen, first, session_numbers(session).stop))
            session += 1
        return cases

    def nothing_tried(self) -> Campaign:
        return LibraryCampaign(self.plan.key, 1)

    def result(self, campaign: Campaign) -> dict[str, Any]:
        assert isinstance(campaign, LibraryCampaign)
        return library_result(self.plan, campaign)

    @property
    def keeps_going(self) -> bool:
        return self.plan.keep_going
