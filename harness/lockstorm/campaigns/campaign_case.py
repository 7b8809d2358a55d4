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
from lockstorm.results.verdict import TrialResult
from lockstorm.scenario.worker_pool import play_request
from lockstorm.search.explore import search_piece
from lockstorm.search.explorer import SearchOutcome
from lockstorm.search.library_plan import LibraryPlan, plan_library_search
from lockstorm.search.library_search import search_library_piece
from lockstorm.search.search_plan import SearchPlan, SearchRequest, plan_search
from lockstorm.storm.storm import run_storm
from lockstorm.storm.storm_plan import StormRequest, plan_storm
from lockstorm.trial.settings import TrialSettings
from lockstorm.zoo.zoo import Hunt, explore_bug
from lockstorm.zoo.zoo_entries import bugs


class LockPiece(msgspec.Struct, frozen=True, tag="explore"):
    """Schedules of a search of a C lock, from `first` to before `until`."""

    request: dict[str, Any]  # fields of SearchRequest
    first: int
    until: int


class LibraryPiece(msgspec.Struct, frozen=True, tag="explore-library"):
    """Sessions of a search of a library, from `session` on, up to before the schedule `until`."""

    adapter: str
    chosen: dict[str, Any]  # options of `lockstorm explore`
    session: int
    until: int


class TrialCase(msgspec.Struct, frozen=True, tag="trial"):
    """A trial of a scenario."""

    request: TrialSettings


class StormCase(msgspec.Struct, frozen=True, tag="storm"):
    """A storm with one seed."""

    request: TrialSettings
    storm: dict[str, Any]  # the other fields of StormRequest
    seed: int


class HuntCase(msgspec.Struct, frozen=True, tag="hunt"):
    """A search for a bug of the zoo, and one of the lock without it."""

    bug: str
    hunt: Hunt


class GateCase(msgspec.Struct, frozen=True, tag="gate"):
    """A trial of a policy."""

    job: GateJob


CampaignCase = LockPiece | LibraryPiece | TrialCase | StormCase | HuntCase | GateCase


class PieceAnswer(msgspec.Struct, frozen=True):
    """What a piece of a search came to. `shown`: what the smallest schedule shows, if there is one."""

    outcome: SearchOutcome
    shown: dict[str, Any] | None


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


def play_case(case: CampaignCase) -> Any:
    """Plays a case on this machine, and returns its answer."""
    match case:
        case LockPiece():
            return PieceAnswer(*search_piece(lock_plan(case), case.first, case.until))
        case LibraryPiece():
            return PieceAnswer(*search_library_piece(library_plan(case), case.session, case.until))
        case TrialCase():
            return play_request(case.request)
        case StormCase():
            return _play_storm(case)
        case HuntCase():
            return explore_bug(bugs()[case.bug], case.hunt, lambda _: None)
        case GateCase():
            return _play_gate_job(case.job)


def lock_plan(piece: LockPiece) -> SearchPlan:
    return plan_search(SearchRequest(**piece.request))


def library_plan(piece: LibraryPiece) -> LibraryPlan:
    return _library_plan(piece.adapter, msgspec.json.encode(piece.chosen))


@cache
def _library_plan(adapter: str, chosen: bytes) -> LibraryPlan:
    """Asks the adapter what it hosts, once in each process."""
    return plan_library_search(adapter, msgspec.json.decode(chosen))


def _play_storm(case: StormCase) -> StormAnswer:
    plan = plan_storm(StormRequest(case.request, **case.storm), case.seed)
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


def is_real_time(case: CampaignCase) -> bool:
    """Whether the processes of a case may use every core. A search has its own way to choose one."""
    if isinstance(case, TrialCase | StormCase):
        return case.request.time != "virtual"
    return not isinstance(case, GateCase) or case.job.request.time != "virtual"
