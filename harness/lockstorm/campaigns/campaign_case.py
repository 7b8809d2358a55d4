"""The cases of a campaign: what one worker plays at a time. A case and its answer are plain JSON, so they
travel to other machines."""

import base64
import zlib
from contextlib import closing
from functools import cache
from typing import Any

import msgspec

from lockstorm.gate.gate_plan import GateJob
from lockstorm.gate.worker import KeptJob, play_kept_job
from lockstorm.process.process import Sandbox
from lockstorm.results.matrix_result import TrialSummary
from lockstorm.results.verdict import TrialResult
from lockstorm.scenario.worker_pool import play_request
from lockstorm.search.campaign import ShownSchedule
from lockstorm.search.explore import search_piece
from lockstorm.search.explorer import SearchOutcome
from lockstorm.search.search_plan import SearchPlan, SearchRequest, plan_search
from lockstorm.storm.storm import run_storm
from lockstorm.storm.storm_plan import StormRequest, plan_storm
from lockstorm.trial.settings import TrialSettings
from lockstorm.zoo.zoo import ExploredBug, Hunt, explore_bug
from lockstorm.zoo.zoo_entries import bugs


class SearchPiece(msgspec.Struct, frozen=True, tag="explore"):
    """Schedules of a search, from the place `first` to before `until`; of a library from the session `first` on."""

    request: SearchRequest
    first: int
    until: int


class TrialCase(msgspec.Struct, frozen=True, tag="trial"):
    request: TrialSettings


class StormCase(msgspec.Struct, frozen=True, tag="storm"):
    storm: StormRequest
    seed: int


class HuntCase(msgspec.Struct, frozen=True, tag="hunt"):
    """A search for a bug of the zoo, and one of the lock without it."""

    bug: str
    hunt: Hunt


class GateCase(msgspec.Struct, frozen=True, tag="gate"):
    job: GateJob


Plain = dict[str, Any]  # a case or an answer as JSON, on its way between machines
CampaignCase = SearchPiece | TrialCase | StormCase | HuntCase | GateCase


class PieceAnswer(msgspec.Struct, frozen=True):
    """What a piece of a search came to. `shown`: what the smallest schedule shows, if there is one."""

    outcome: SearchOutcome
    shown: ShownSchedule | None


class Unplayable(msgspec.Struct, frozen=True):
    """The answer to a case that could not be played."""

    error: str


class StormAnswer(msgspec.Struct, frozen=True):
    """The result of a storm, and of one that violates something its history."""

    result: TrialResult
    history: str  # packed; empty: none


class GateAnswer(msgspec.Struct, frozen=True):
    """The result of a trial of a policy, and the files that its run keeps, by their extensions."""

    result: TrialResult
    files: dict[str, str]  # packed


def packed(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content)).decode()


def unpacked(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text))


def play_case(case: CampaignCase) -> PieceAnswer | TrialSummary | StormAnswer | ExploredBug | GateAnswer:
    match case:
        case SearchPiece():
            return PieceAnswer(*search_piece(piece_plan(case.request), case.first, case.until))
        case TrialCase():
            return play_request(case.request)
        case StormCase():
            return _play_storm(case)
        case HuntCase():
            return explore_bug(bugs()[case.bug], case.hunt, lambda _: None)
        case GateCase():
            return _play_gate_job(case.job)


@cache
def piece_plan(request: SearchRequest) -> SearchPlan:
    """Planned once in each process: an adapter is asked what it hosts."""
    return plan_search(request)


def _play_storm(case: StormCase) -> StormAnswer:
    plan = plan_storm(case.storm, case.seed)
    with closing(Sandbox()) as sandbox:  # whose directory is removed even if this process is killed
        history = sandbox.directory / "history"
        result = run_storm(plan, save=history)
        keeps = result.exit == 1 and history.exists()
        return StormAnswer(result, packed(history.read_bytes()) if keeps else "")


def _play_gate_job(job: GateJob) -> GateAnswer:
    with closing(Sandbox()) as sandbox:
        kept = sandbox.directory / "kept"
        kept.mkdir()
        result = play_kept_job(KeptJob(job, str(kept)))
        files = {path.suffix: packed(path.read_bytes()) for path in sorted(kept.iterdir())}
        return GateAnswer(result, files)


def case_time(case: CampaignCase) -> str:
    """Not virtual: the processes of a case may use every core. A search has its own way to choose one."""
    match case:
        case TrialCase(request) | StormCase(StormRequest(request)) | GateCase(GateJob(request=request)):
            return request.time
        case _:
            return "real"
