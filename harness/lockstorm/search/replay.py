"""Runs one schedule again, with new programs and servers, and says what it shows."""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
from msgspec import structs

from lockstorm.base.errors import UsageError
from lockstorm.locks.adapter import adapter_path
from lockstorm.locks.lock_names import lock_named
from lockstorm.native.judgement import judge_history, read_history, save_history
from lockstorm.report.application_model import application_story
from lockstorm.report.deviation_words import lock_deviation_words
from lockstorm.report.library_model import call_story
from lockstorm.results.call_event import BrokenPromise, CallEvent, CallStoryLine
from lockstorm.results.event import Event
from lockstorm.results.properties import property_of
from lockstorm.results.struck_command import StruckCommand
from lockstorm.results.verdict import HeardCommand, ScheduleLines, Verdict
from lockstorm.results.wire_access import RuleWarning, WireAccess
from lockstorm.search.application_plan import APPLICATION_PROPERTIES, REQUIRED, RULES
from lockstorm.search.explorer import Explorer, explorer_for, played_whole
from lockstorm.search.library_plan import PROMISES
from lockstorm.search.schedule_file import (
    ApplicationSchedule,
    HostedContext,
    HostedSchedule,
    LibraryContext,
    LibrarySchedule,
    ScheduleContext,
    ScheduleFile,
)
from lockstorm.search.search_lines import FoundSchedule, HostedOffer, ReplayDone
from lockstorm.search.search_plan import FAIRNESS, LIVENESS, replayed_properties

STRIKES_COMMAND = (  # in histories
    *("drop-message", "drop-request", "duplicate-request"),
    *("error-reply", "hold-reply", "hold-request", "lose-reply"),
)
CONTEXT_KEYS = ("lock", "store", "clients", "replicas", "turns", "lease_ms", "work_ms", "seed")  # of a result


def context_words(context: ScheduleContext | HostedContext, required: Sequence[str]) -> list[str]:
    """What the program needs to run one schedule."""
    words = ["--lease-ms", str(context.lease_ms), "--permits", str(context.permits), "--seed", str(context.seed)]
    words += ["--require", ",".join(word.replace("_", "-") if "/" in word else word for word in required)]
    if isinstance(context, LibraryContext):
        return ["--adapter", str(adapter_path(context.adapter)), *words]
    if isinstance(context, HostedContext):
        return words  # the files of an application belong to a job (application_job.py)
    plugin = lock_named(context.lock).plugin
    words += ["--plugin", plugin.path] if plugin else ["--lock", context.lock]
    words += ["--store", context.store, "--clients", str(context.clients), "--turns", str(context.turns)]
    words += ["--wait-ms", str(context.wait_ms), "--work-ms", str(context.work_ms)]
    words += ["--bound-ms", str(context.bound_ms)] if context.bound_ms else []
    words += ["--calm-bound-ms", str(context.calm_bound_ms)] if context.calm_bound_ms else []
    words += ["--varied", str(context.varied)] if context.varied else []
    words += ["--replicas", str(context.replicas)] if context.replicas else []
    flags = {
        "--fixed-lease": context.fixed_lease,
        "--extends": context.extends,
        "--checks-validity": context.checks_validity,
    }
    return words + [flag for flag, wanted in flags.items() if wanted]


# --- of a C lock ---


def replay_schedule(
    schedule: ScheduleFile,
    name: str,
    story_to: list[Event] | None = None,
    save: Path | None = None,
    *,
    with_commands: bool = False,
) -> Verdict:
    """Runs a schedule again and judges its history: what `check` says, the schedule's context and, `with_commands`,
    each command. `story_to` receives the history's records; `save`: where to write the history."""
    usual = replayed_properties(lock_named(schedule.lock), schedule.permits)
    required = (*usual, *([LIVENESS] if schedule.bound_ms else []), *([FAIRNESS] if schedule.in_order else []))
    with explorer_for(schedule, 1) as explorer:
        verdict, words = replay_lock_on(explorer, schedule, required, story_to, name)
        if save:
            save_history(explorer.history, save)
    context = {key: getattr(schedule, key) for key in CONTEXT_KEYS}
    context["commands"] = verdict.commands if with_commands else None
    context["choices"] = replace(schedule, struck=words).annotated
    return structs.replace(verdict, file=name, parameters=None, **context)


def replay_lock_on(
    explorer: Explorer,
    schedule: ScheduleFile,
    required: Sequence[str],
    story_to: list[Event] | None,
    name: str = "the schedule",
) -> tuple[Verdict, dict[str, str]]:
    """The verdict, and what is said of deviations: which command a fault has struck, or what comes out of order."""
    done = explorer.replay(context_words(schedule, required), schedule.lines, schedule.number)
    done = played_whole(done, schedule.line_numbers, name)
    if story_to is not None:
        story_to += with_strikes(read_history(explorer.history), done.strikes)
    verdict = judge_history(explorer.history, ",".join(dict.fromkeys(map(property_of, required))))
    words = {each.line: each.text for each in done.strikes}
    words |= {each.line: said for each in done.deviations if (said := lock_deviation_words(each))}
    return structs.replace(verdict, steps=done.steps, commands=done.commands, control=done.control), words


def with_strikes(events: Iterable[Event], strikes: Sequence[StruckCommand]) -> Iterator[Event]:
    """The events, with the command in each beginning of a fault that strikes one. Both are in the order of time."""
    left = iter(strikes)
    for event in events:
        strikes_one = event.kind == "fault-inject" and event.name in STRIKES_COMMAND
        struck = next(left) if strikes_one else None
        yield structs.replace(event, struck=f"{struck.fault} strikes {struck.text}") if struck else event


# --- of a library ---


class ReplayedLibrary(msgspec.Struct, frozen=True):
    """The JSON of `replay` for a schedule of a library, or of an application."""

    adapter: str  # empty for an application
    library: HostedOffer
    steps: int
    violates: list[str]  # promises that are required
    evidence: list[BrokenPromise]  # of all promises
    excused: list[BrokenPromise]  # two holds at once, and why they are not required to exclude each other
    story: list[CallStoryLine]
    events: list[CallEvent]
    sentence: str
    replay: str  # the command that repeats it
    exit: int
    workload: list[str] = []  # its lines: the calls
    choices: list[str] = []  # ... and the deviations
    control: ScheduleLines | None = None  # nearly the same schedule, which violates nothing
    commands: list[HeardCommand] | None = None  # that the servers heard, with --commands; of Redis only
    accesses: list[WireAccess] = []  # of an application: what its requests did to locks and data
    warnings: list[RuleWarning] = []  # of an application

    @property
    def required_evidence(self) -> list[BrokenPromise]:
        return [each for each in self.evidence if each.promise in self.violates]

    @property
    def causes(self) -> list[BrokenPromise]:
        """Of an application that violates something: the first rule that says why."""
        return first_cause(self.required_evidence, self.evidence)


def replay_library(schedule: HostedSchedule, name: str, *, with_commands: bool = False) -> ReplayedLibrary:
    """Replays a schedule with new programs. UsageError, with the line, when it cannot be replayed."""
    with explorer_for(schedule, 1) as explorer:
        return replay_library_on(explorer, schedule, name, with_commands=with_commands)


def replay_library_on(
    explorer: Explorer, schedule: HostedSchedule, name: str, *, with_commands: bool = False
) -> ReplayedLibrary:
    """It is judged by the promises that it was said to violate, or by all."""
    is_application = isinstance(schedule, ApplicationSchedule)
    known = APPLICATION_PROPERTIES if is_application else PROMISES
    usual = REQUIRED if is_application else PROMISES
    required = tuple(name for name in schedule.violates if name in known) or tuple(usual)
    done = explorer.replay(context_words(schedule, required), schedule.lines, schedule.number)
    done = played_whole(done, schedule.line_numbers, name)
    shown = [each for each in done.evidence if each.promise in done.broken]
    all_kept = "every check was met" if is_application else "every promise was kept"
    kept = " ".join([all_kept, *(f"({each.sentence})" for each in done.excused[:1])])
    return ReplayedLibrary(
        adapter=schedule.adapter if isinstance(schedule, LibrarySchedule) else "",
        library=done.offer,
        steps=done.steps,
        violates=done.broken,
        evidence=done.evidence,
        excused=done.excused,
        story=hosted_story(done, [*shown, *first_cause(shown, done.evidence)], len(schedule.workload)),
        events=done.events,
        accesses=done.accesses,
        warnings=done.warnings,
        sentence=with_cause(shown, done.evidence) if shown else kept,
        replay=shlex.join(["lockstorm", "replay", name]),
        exit=1 if done.broken else 0,
        workload=[*schedule.workload],
        choices=[*schedule.deviations],
        control=done.control,
        commands=done.commands if with_commands else None,
    )


def hosted_story(done: ReplayDone | FoundSchedule, shown: Sequence[BrokenPromise], calls: int) -> list[CallStoryLine]:
    """`calls`: the number of lines of calls in the schedule."""
    deviations = done.deviations if isinstance(done, ReplayDone) else []
    if done.accesses:
        return application_story(done.events, done.accesses, shown, deviations, calls)
    return call_story(done.events, shown, deviations, calls)


def first_cause(shown: Sequence[BrokenPromise], evidence: Sequence[BrokenPromise]) -> list[BrokenPromise]:
    """Of an application: the first rule that says why `shown` is violated, unless that is about a rule itself."""
    if not shown or any(each.promise in RULES for each in shown):
        return []
    return [each for each in evidence if each.promise in RULES][:1]


def with_cause(shown: Sequence[BrokenPromise], evidence: Sequence[BrokenPromise]) -> str:
    """The sentence of what is violated, and of its cause."""
    return "; ".join(each.sentence for each in (shown[0], *first_cause(shown, evidence)))


def replay_if_possible(explorer: Explorer, schedule: HostedSchedule) -> ReplayedLibrary | None:
    """None: it takes another course now, in which its faults do not come up."""
    try:
        return replay_library_on(explorer, schedule, "the schedule")
    except UsageError:
        return None
