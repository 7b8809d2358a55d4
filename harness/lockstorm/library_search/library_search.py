"""Searching workloads and schedules of a library, and replaying one."""

import hashlib
import shlex
import struct
from array import array
from collections.abc import Callable
from typing import Any

from lockstorm.base.errors import Inconclusive, UsageError
from lockstorm.explore.explorer import DIGEST_BYTES, NONE_VIOLATED, Explorer, sum_up
from lockstorm.library_search.library_plan import (
    PROMISES,
    LibraryPlan,
    context_words,
    required_of,
    search_words,
)
from lockstorm.library_search.library_schedule_file import LibrarySchedule
from lockstorm.library_search.library_story import LibraryStoryLine, story_lines
from lockstorm.locks.adapter import PREFIX, library_environment
from lockstorm.locks.lock_names import lock_named

PROGRAM = "explore-library"
OnProgress = Callable[[dict[str, Any]], object]


def _environment() -> list[str]:
    return [f"{name}={value}" for name, value in library_environment().items()]


# --- many schedules ---


def search_library(plan: LibraryPlan, on_progress: OnProgress) -> dict[str, Any]:
    """Searches, and returns the result as `explore --adapter NAME --json` prints it. A search in which nothing could
    be played is inconclusive, with the reason."""
    result = _plan_json(plan)
    try:
        with Explorer(plan.nodes, plan.jobs, server=plan.server) as explorer:
            done, digests = _run(plan, explorer, on_progress)
            found = _found(plan, done)
            if found and found["with_new_programs"]:
                shown = replay_on(explorer, found["file"], "the schedule")
                found |= {name: shown[name] for name in ("sentence", "broken", "story")}
            if found:
                found["file"] = found["file"].text
    except Inconclusive as reason:
        return {**result, "sentence": f"Inconclusive: {reason}", "exit": Inconclusive.exit_status}
    return result | _result(plan, done, digests, found)


def _run(plan: LibraryPlan, explorer: Explorer, on_progress: OnProgress) -> tuple[dict[str, Any], "array[int]"]:
    """What all jobs have done, with the first schedule that breaks a promise, and the digests in order up to the first
    schedule that was not played."""
    directory = explorer.jobs[0].directory.parent
    shared, digests = directory / "shared", directory / "digests"
    shared.write_bytes(struct.pack("<QQ", NONE_VIOLATED, 0))
    with digests.open("wb") as file:
        file.truncate(plan.schedules * DIGEST_BYTES)  # a sparse file
    words = [*search_words(plan), "--shared", str(shared), "--digests", str(digests)]
    explorer.run(explorer.jobs, [words] * len(explorer.jobs), on_progress, PROGRAM, _environment())
    results = [job.done for job in explorer.jobs]
    found = [each for each in results if "number" in each]
    done = {
        "tally": sum_up([each["done"] for each in results]),
        "took_s": max(each["took_ns"] for each in results) / 1e9,
        "groups": [group for each in results for group in each["groups"]],
        "offer": results[0]["offer"],
        "found": min(found, key=lambda each: int(each["number"])) if found else None,
    }
    with digests.open("rb") as file:
        histories = array("Q", file.read(done["tally"]["schedules"] * DIGEST_BYTES))
    whole = next((place for place, digest in enumerate(histories) if digest == 0), len(histories))
    return done, histories[:whole]


def _found(plan: LibraryPlan, done: dict[str, Any]) -> dict[str, Any] | None:
    """The smallest schedule that breaks a promise; its `file` is a LibrarySchedule."""
    first = done["found"]
    if not first:
        return None
    smallest, control = first["smallest"], first.get("control")
    schedule = LibrarySchedule(
        adapter=plan.adapter,
        library=f"{done['offer']['name']} {done['offer']['version']}".strip(),
        lease_ms=plan.lease_ms,
        permits=plan.permits,
        seed=plan.seed,
        number=first["number"],
        breaks=tuple(first["breaks"]),
        workload=tuple(smallest["workload"]),
        deviations=tuple(smallest["schedule"]),
    )
    return {
        "number": first["number"],
        "breaks": first["breaks"],
        "workload": smallest["workload"],
        "schedule": smallest["schedule"],
        "calls_before_shrinking": len(first["found"]["workload"]),
        "deviations_before_shrinking": len(first["found"]["schedule"]),
        "with_new_programs": first["anew"],
        "sentence": first["broken"][0]["sentence"] if first["broken"] else "",
        "broken": first["broken"],
        "story": [],
        "control": control and {"workload": control["workload"], "schedule": control["schedule"]},
        "file": schedule,
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


def _result(
    plan: LibraryPlan, done: dict[str, Any], digests: "array[int]", found: dict[str, Any] | None
) -> dict[str, Any]:
    tally = done["tally"]
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
        "schedules_per_s": round(played / max(done["took_s"], 0.001)),
        "calls": tally["calls"],
        "steps": tally["steps"],
        "commands": tally["commands"],
        "sessions": tally["sessions"],
        "unplayed": tally["unplayed"],
        "unplayed_reason": tally["unplayed_reason"],
        "injected": tally["faults"],
        "histories": len(digests),
        "history_sha256": hashlib.sha256(digests.tobytes()).hexdigest(),
        "groups": done["groups"],
        "verdict": verdict,
        "found": found,
        "exit": _status(found),
        "replay": plan.command,
    }
    return result | {"sentence": _sentence(plan, result)}


def _status(found: dict[str, Any] | None) -> int:
    if found and not found["with_new_programs"]:
        return Inconclusive.exit_status
    return 1 if found else 0


def _sentence(plan: LibraryPlan, result: dict[str, Any]) -> str:
    name = f"{plan.library.name} {plan.library.version}".strip()
    found, played = result["found"], result["schedules"]
    if found and not found["with_new_programs"]:
        return (
            f"Inconclusive: schedule {found['number']:,} broke a promise of {name}, and kept it with programs that "
            f"were started for it alone: {found['sentence']}"
        )
    if found:
        return f"Schedule {found['number']:,} breaks a promise of {name}: {found['sentence']}"
    bound = f": under {300 / played:.2g} % at 95 %" if played else ""
    return f"{name} kept every promise in {played:,} schedules of {result['calls']:,} calls{bound}"


# --- one schedule ---


def replay_library(schedule: LibrarySchedule, name: str, server: str | None = None) -> dict[str, Any]:
    """Replays a schedule with new programs. Returns {"broken", "breaks", "story", "events", "sentence", "exit", ...}.
    UsageError, with the line, when it cannot be replayed."""
    lock = lock_named(PREFIX + schedule.adapter)
    with Explorer(lock.nodes or 1, 1, server=server) as explorer:
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
    story: list[LibraryStoryLine] = story_lines(done["events"], required)
    library = done["offer"]
    return {
        "adapter": schedule.adapter,
        "library": {"name": library["name"], "version": library["version"]},
        "steps": done["steps"],
        "breaks": done["breaks"],
        "broken": done["broken"],
        "story": [line.json for line in story],
        "events": done["events"],
        "sentence": required[0]["sentence"] if required else "every promise was kept",
        "replay": shlex.join(["lockstorm", "replay", name]),
        "exit": 1 if done["breaks"] else 0,
    }
