"""A search that is cut into pieces, which are played in any order, anywhere. Put together again in their order they are
the search that one process would have made: the same histories, the same first violation."""

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import structs

from lockstorm.campaigns.campaign_case import PieceAnswer, SearchPiece, piece_plan
from lockstorm.campaigns.case_pool import CasePool
from lockstorm.search.campaign import Campaign
from lockstorm.search.schedule_file import HostedContext
from lockstorm.search.search_plan import SearchRequest
from lockstorm.search.search_result import SearchResult, search_result
from lockstorm.search.sessions import session_numbers, whole_sessions


@dataclass(frozen=True)
class PieceSearch:
    request: SearchRequest
    cut: int  # schedules in a piece

    def cases(self) -> Sequence[SearchPiece]:
        """In the order of their schedules, which have no gap. Those of a library are whole sessions."""
        plan = piece_plan(self.request)
        if isinstance(plan.context, HostedContext):
            return self._sessions(whole_sessions(plan.schedules))
        firsts = range(0, plan.schedules, self.cut)
        return [SearchPiece(self.request, first, min(first + self.cut, plan.schedules)) for first in firsts]

    def _sessions(self, most: int) -> list[SearchPiece]:
        session, cases = 0, list[SearchPiece]()
        while session_numbers(session).start < most:
            first, begin = session, session_numbers(session).start
            while session_numbers(session).stop < min(begin + self.cut, most):
                session += 1
            cases.append(SearchPiece(self.request, first, session_numbers(session).stop))
            session += 1
        return cases

    def play(self, pool: CasePool) -> SearchResult:
        """The result, with the campaign in it, as `lockstorm explore --result` keeps it."""
        plan = piece_plan(self.request)
        campaign = Campaign(key=plan.key, shards=1)
        for answer in self._in_order(pool):
            campaign.add(1, answer.outcome)
            if campaign.found and not campaign.shown:
                campaign.shown = answer.shown
        return structs.replace(search_result(plan, campaign), campaign=campaign)

    def _in_order(self, pool: CasePool) -> list[PieceAnswer]:
        """The answers of the cases that count: all, or those up to the first that has found something."""
        cases = self.cases()
        answers: dict[int, PieceAnswer] = {}
        until = len(cases)
        for number, answer in pool.play_all(cases, PieceAnswer):
            answers[number] = answer
            if answer.outcome.found and not self.request.keep_going:
                until = min(until, number + 1)
            if all(each in answers for each in range(until)):
                break
        return [answers[number] for number in range(until)]
