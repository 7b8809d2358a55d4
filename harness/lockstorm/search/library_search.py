"""Searching workloads and schedules of a library, and replaying one."""

import shlex
import struct
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import convert, to_builtins

from lockstorm.base.errors import Inconclusive, UsageError
from lockstorm.locks.adapter import PREFIX, library_environment
from lockstorm.locks.lock_names import lock_named
from lockstorm.report.library_model import call_story
from lockstorm.results.call_event import BrokenPromise, CallEvent
from lockstorm.search.explore import SLICE_S, Keep
from lockstorm.search.explorer import DIGEST_BYTES, NONE_VIOLATED, Explorer, SearchOutcome, sum_up
from lockstorm.search.library_campaign import LibraryCampaign, joined_library
from lockstorm.search.library_plan import (
    PROMISES,
    LibraryPlan,
    context_words,
    required_of,
    search_words,
)
from lockstorm.search.library_schedule_file import LibrarySchedule
from lockstorm.search.library_sessions import session_numbers, session_words, whole_sessions

PROGRAM = "explore-library"
OnProgress = Callable[[dict[str, Any]], object]


def _environment() -> list[str]:
    return [f"{name}={value}" for name, value in library_environment().items()]


# --- many schedules ---


def search_library(
    plan: LibraryPlan,
    on_progress: OnProgress,
    campaign: LibraryCampaign | None = None,
    keep: Keep | None = None,
) -> dict[str, Any]:
    """Searches, and returns the result as `explore --adapter NAME --json` prints it. `campaign`: what was tried before.
    `keep` gets the result with the campaign in it, every SLICE_S and at the end. A search in which nothing could be
    played is inconclusive, with the reason."""
    campaign = campaign or LibraryCampaign(plan.key, plan.shard.of)
    try:
        with Explorer(
            plan.nodes, plan.workers, server=plan.server, service=plan.service, topology=plan.library.topology
        ) as explorer:
            for outcome in _slices(plan, explorer, campaign, on_progress, in_slices=keep is not None):
                campaign.add(plan.shard.number, outcome)
                if campaign.found and not campaign.shown:
                    campaign.shown = _shown(explorer, plan, campaign.found)
                if keep:
                    keep({**library_result(plan, campaign), "campaign": campaign.json})
    except Inconclusive as reason:
        return {**_plan_json(plan), "sentence": f"Inconclusive: {reason}", "exit": Inconclusive.exit_status}
    return library_result(plan, campaign)


def search_library_piece(plan: LibraryPlan, session: int, until: int) -> tuple[SearchOutcome, dict[str, Any] | None]:
    """Searches the sessions from one on, up to before the schedule `until`, in one process, for a search that is cut
    into pieces. The second result is what the smallest schedule that breaks a promise shows."""
    with Explorer(plan.nodes, 1, server=plan.server, service=plan.service, topology=plan.library.topology) as explorer:
        part = _Slice(session, until, seconds=0, whole=True, known=NONE_VIOLATED)
        outcome = _search(plan, explorer, part, lambda _: None)
        found = outcome.found
        return outcome, _shown(explorer, plan, found) if found else None


@dataclass(frozen=True)
class _Slice:
    """A part of a search, which is run in one go."""

    first: int  # session
    until: int  # schedule
    seconds: int  # 0: no limit
    whole: bool  # sessions that have begun are played to their end
    known: int  # a schedule that breaks a promise

    def words(self, plan: LibraryPlan) -> list[str]:
        words = [*search_words(plan), *session_words(self.first, plan.shard.of)]
        words += ["--most", str(self.until), "--seconds", str(self.seconds)]
        return [*words, "--whole-sessions"] if self.whole else words

    def sessions(self, plan: LibraryPlan, taken: int) -> list[range]:
        """The schedules of the first sessions of the slice."""
        return [session_numbers(self.first + each * plan.shard.of) for each in range(taken)]


def _slices(
    plan: LibraryPlan, explorer: Explorer, campaign: LibraryCampaign, on_progress: OnProgress, *, in_slices: bool
) -> Iterator[SearchOutcome]:
    """Searches on from where the campaign is: in one go, or in slices of about SLICE_S, which end with a session."""
    until = whole_sessions(plan.schedules) if in_slices else plan.schedules
    left_s = plan.seconds
    while not campaign.is_over and campaign.next_number(plan.shard.number) < until:
        seconds = min(left_s or SLICE_S, SLICE_S) if in_slices else left_s
        known = campaign.found["number"] if campaign.found else NONE_VIOLATED
        part = _Slice(campaign.next_session(plan.shard.number), until, seconds, in_slices, known)
        yield _search(plan, explorer, part, lambda progress: on_progress(sum_up([campaign.tally, progress])))
        left_s = max(0, left_s - seconds)
        if not in_slices or (plan.seconds and not left_s):
            return


def _search(plan: LibraryPlan, explorer: Explorer, part: _Slice, on_progress: OnProgress) -> SearchOutcome:
    """What all jobs have done, with the first schedule that breaks a promise."""
    directory = explorer.jobs[0].directory.parent
    shared, digests = directory / "shared", directory / "digests"
    shared.write_bytes(struct.pack("<QQ", part.known, 0))
    with digests.open("wb") as file:
        file.truncate(part.until * DIGEST_BYTES)  # a sparse file
    words = [*part.words(plan), "--shared", str(shared), "--digests", str(digests)]
    explorer.run(explorer.jobs, [words] * len(explorer.jobs), on_progress, PROGRAM, _environment())
    results = [job.done for job in explorer.jobs]
    violated, taken = struct.unpack("<QQ", shared.read_bytes())
    stopped = violated != NONE_VIOLATED and not plan.keep_going
    until = min(part.until, violated + 1) if stopped else part.until
    return SearchOutcome(
        tally=sum_up([each["done"] for each in results]),
        digests=_digests(digests, part.sessions(plan, taken), until, whole=part.whole),
        elapsed_s=max(each["took_ns"] for each in results) / 1e9,
        found=next((each for each in results if each.get("number") == violated), None),
        horizon=0,
        groups=[group for each in results for group in each["groups"]],
        exhausted=False,
        states=b"",
    )


def _digests(path: Path, sessions: Iterable[range], until: int, *, whole: bool) -> bytes:
    """The digests of the schedules of these sessions below `until`, in order. Of sessions that need not have been
    played to their end: up to the first schedule that was not played."""
    parts = []
    with path.open("rb") as file:
        for numbers in sessions:
            file.seek(numbers.start * DIGEST_BYTES)
            parts.append(file.read(max(0, min(numbers.stop, until) - numbers.start) * DIGEST_BYTES))
    digests = b"".join(parts)
    if whole:
        return digests
    played = next((place for place, digest in enumerate(array("Q", digests)) if digest == 0), None)
    return digests if played is None else digests[: played * DIGEST_BYTES]


def _shown(explorer: Explorer, plan: LibraryPlan, found: dict[str, Any]) -> dict[str, Any]:
    """What the smallest schedule shows when another process replays it; of one that needs its session, or that is not
    seen to break the promise again, what it has shown before."""
    names = ("sentence", "broken", "story")
    shown = _replayed(explorer, _found_schedule(plan, found)) if found["anew"] else None
    if shown and set(shown["breaks"]) & set(found["breaks"]):
        return {name: shown[name] for name in names}
    broken = [each for each in found["broken"] if each["promise"] in found["breaks"]]
    story = _story(found["events"], broken)
    sentence = broken[0]["sentence"] if broken else ""
    return {"with_new_programs": False, "sentence": sentence, "broken": found["broken"], "story": story}


def _story(events: list[dict[str, Any]], broken: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """As JSON has it."""
    typed = convert(events, list[CallEvent]), convert(broken, list[BrokenPromise])
    lines: list[dict[str, Any]] = to_builtins(call_story(*typed))
    return lines


def _replayed(explorer: Explorer, schedule: LibrarySchedule) -> dict[str, Any] | None:
    """None: it takes another course now, in which its faults do not come up."""
    try:
        return replay_on(explorer, schedule, "the schedule")
    except UsageError:
        return None


def merged_library(named: Sequence[tuple[str, LibraryCampaign]]) -> dict[str, Any]:
    """The result of several parts of a campaign together, with the campaign in it."""
    plan, campaign = joined_library(named)
    try:
        return {**library_result(plan, campaign), "campaign": campaign.json}
    except (KeyError, TypeError) as error:
        raise UsageError(f"{named[0][0]}: it was changed by hand: {error}") from None


def _found_schedule(plan: LibraryPlan, first: dict[str, Any]) -> LibrarySchedule:
    """The smallest schedule that breaks a promise."""
    return LibrarySchedule(
        adapter=plan.adapter,
        library=plan.key["library"],
        lease_ms=plan.lease_ms,
        permits=plan.permits,
        seed=plan.seed,
        number=first["number"],
        breaks=tuple(first["breaks"]),
        workload=tuple(first["smallest"]["workload"]),
        deviations=tuple(first["smallest"]["schedule"]),
    )


def _found_json(plan: LibraryPlan, first: dict[str, Any], shown: dict[str, Any]) -> dict[str, Any]:
    control = first.get("control")
    return {
        "number": first["number"],
        "breaks": first["breaks"],
        "workload": first["smallest"]["workload"],
        "schedule": first["smallest"]["schedule"],
        "calls_before_shrinking": len(first["found"]["workload"]),
        "deviations_before_shrinking": len(first["found"]["schedule"]),
        "with_new_programs": first["anew"],
        **shown,
        "control": control and {"workload": control["workload"], "schedule": control["schedule"]},
        "file": _found_schedule(plan, first).text,
    }


def _plan_json(plan: LibraryPlan) -> dict[str, Any]:
    return {
        "adapter": plan.adapter,
        "library": {"name": plan.library.name, "version": plan.library.version},
        "seed": plan.seed,
        "lease_ms": plan.lease_ms,
        "faults": list(plan.faults),
        "required": list(plan.required),
    }


def library_result(plan: LibraryPlan, campaign: LibraryCampaign) -> dict[str, Any]:
    """What was tried, and what was found."""
    tally, found = campaign.tally, None
    if campaign.found and campaign.shown:
        found = _found_json(plan, campaign.found, campaign.shown)
    played = tally["schedules"]
    verdict = {
        name: {
            "status": "violated" if tally["broken"].get(name) else "holds",
            "schedules": tally["broken"].get(name, 0),
        }
        for name in PROMISES
    }
    result = {
        "schedules": played,
        "schedules_per_s": round(played / max(campaign.elapsed_s, 0.001)),
        "calls": tally["calls"],
        "steps": tally["steps"],
        "commands": tally["commands"],
        "sessions": tally["sessions"],
        "unplayed": tally["unplayed"],
        "unplayed_reason": tally["unplayed_reason"],
        "unrepeated": tally.get("unrepeated", 0),
        "unrepeated_reason": tally.get("unrepeated_reason", ""),
        "injected": tally["faults"],
        "histories": campaign.schedules,
        "history_sha256": campaign.history_sha256,
        "groups": campaign.groups,
        "verdict": verdict,
        "found": found,
        "exit": _status(found, tally.get("unrepeated", 0)),
        "replay": plan.command_without_clock(_schedules_again(plan, campaign)),
    }
    return _plan_json(plan) | result | {"sentence": _sentence(plan, result)}


def _schedules_again(plan: LibraryPlan, campaign: LibraryCampaign) -> int:
    """How many schedules a search has to try that is to show the same."""
    if campaign.found and not plan.keep_going:
        return int(campaign.found["number"]) + 1
    return max(1, campaign.schedules)


def _status(found: dict[str, Any] | None, unrepeated: int) -> int:
    if found and found["with_new_programs"]:
        return 1
    return Inconclusive.exit_status if found or unrepeated else 0


def _sentence(plan: LibraryPlan, result: dict[str, Any]) -> str:
    name = f"{plan.library.name} {plan.library.version}".strip()
    found, played = result["found"], result["schedules"]
    if found and not found["with_new_programs"]:
        return (
            f"Inconclusive: schedule {found['number']:,} broke a promise of {name}, and did not break it again with "
            f"programs that were started for it alone: {found['sentence']}"
        )
    if found:
        return f"Schedule {found['number']:,} breaks a promise of {name}: {found['sentence']}"
    if result["unrepeated"]:
        return (
            f"Inconclusive: {result['unrepeated']:,} of {played:,} schedules broke a promise of {name}, and did not "
            f"break it again with programs that were started for it alone; {result['unrepeated_reason']}"
        )
    bound = f": under {300 / played:.2g} % at 95 %" if played else ""
    return f"{name} kept every promise in {played:,} schedules of {result['calls']:,} calls{bound}"


# --- one schedule ---


def replay_library(schedule: LibrarySchedule, name: str, server: str | None = None) -> dict[str, Any]:
    """Replays a schedule with new programs. Returns {"broken", "breaks", "story", "events", "sentence", "exit", ...}.
    UsageError, with the line, when it cannot be replayed."""
    lock = lock_named(PREFIX + schedule.adapter)
    topology = lock.library.topology
    with Explorer(lock.nodes or 1, 1, server=server, service=lock.service, topology=topology) as explorer:
        return replay_on(explorer, schedule, name)


def replay_on(explorer: Explorer, schedule: LibrarySchedule, name: str) -> dict[str, Any]:
    job = explorer.jobs[0]
    course = job.directory / "course"
    course.write_text("".join(f"{line}\n" for line in schedule.lines))
    words = context_words(schedule.adapter, schedule.lease_ms, schedule.permits, schedule.seed)
    words += ["--require", ",".join(required_of(schedule.breaks)), "--replay", str(course)]
    explorer.run([job], [[*words, "--number", str(schedule.number)]], lambda _: None, PROGRAM, _environment())
    done = job.done
    if "line" in done:
        numbers = schedule.line_numbers or range(1, len(schedule.lines) + 1)
        raise UsageError(f"{name}: line {numbers[done['line'] - 1]}: {done['reason']}")
    required = [each for each in done["broken"] if each["promise"] in done["breaks"]]
    library = done["offer"]
    return {
        "adapter": schedule.adapter,
        "library": {"name": library["name"], "version": library["version"]},
        "steps": done["steps"],
        "breaks": done["breaks"],
        "broken": done["broken"],
        "story": _story(done["events"], required),
        "events": done["events"],
        "sentence": required[0]["sentence"] if required else "every promise was kept",
        "replay": shlex.join(["lockstorm", "replay", name]),
        "exit": 1 if done["breaks"] else 0,
    }
