"""What a search came to: one object, as `explore --json` prints it, and what finding nothing is worth."""

import contextlib
import shlex
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from lockstorm.base import paths
from lockstorm.base.atomic_file import new_file
from lockstorm.base.errors import Inconclusive, UsageError
from lockstorm.base.option_fields import option_words
from lockstorm.locks.lock_names import lock_words
from lockstorm.native.fault_names import fault_names
from lockstorm.results.call_event import BrokenPromise, CallStoryLine
from lockstorm.results.properties import with_capacity
from lockstorm.results.statistics import Rate
from lockstorm.results.verdict import Evidence, Judged, PropertyVerdict, ScheduleLines, Status
from lockstorm.results.wire_access import RuleWarning
from lockstorm.search.application_plan import APPLICATION_PROPERTIES
from lockstorm.search.campaign import Campaign, ShownSchedule
from lockstorm.search.explorer import count_states
from lockstorm.search.library_plan import PROMISES, promises_of
from lockstorm.search.schedule_file import (
    ApplicationContext,
    ApplicationSchedule,
    HostedContext,
    HostedSchedule,
    LibrarySchedule,
    Schedule,
    ScheduleContext,
    ScheduleFile,
    parse_schedule_file,
    read_schedule_file,
)
from lockstorm.search.search_lines import (
    FoundSchedule,
    HostedOffer,
    PropertyCount,
    SearchTally,
    ViolationGroup,
)
from lockstorm.search.search_plan import DEVIATIONS_USUAL, JUDGED, USUALLY, SearchPlan

OF_LIBRARIES = ("calls", "sessions", "unplayed", "unplayed_reason", "unrepeated", "unrepeated_reason")
OF_LOCKS = ("store", "clients", "replicas", "turns", "work_ms")
DEPTH = 3  # STRATEGY_DEPTH
FOUND = paths.ROOT / "scenarios" / "found"
UNPLAYED_SHARE = 10  # nothing is said to be kept if more than one in so many schedules could not be played
SAVED_MOST = 100  # schedules with the same name


class SearchedProperty(PropertyVerdict, frozen=True, kw_only=True):
    """A property, or a promise of a library, in all schedules that were tried. The evidence is that of the smallest."""

    schedules: PropertyCount


class PctBound(msgspec.Struct, frozen=True):
    """The least probability that a schedule finds an error of this depth."""

    depth: int
    tasks: int
    steps: int
    bound: float


class SmallestSchedule(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The first violation, with the smallest schedule that shows it. Below `file`: of a library only."""

    number: int
    violates: list[str]
    clients: int
    choices: list[str]  # its deviations, each with what it strikes or changes
    choices_before_shrinking: int
    steps: int
    sentence: str
    file: str  # as -o writes it
    workload: list[str] = []
    calls_before_shrinking: int = 0
    with_new_programs: bool | None = None  # programs that were started for it alone show it, too
    evidence: list[BrokenPromise] = []
    story: list[CallStoryLine] = []
    control: ScheduleLines | None = None  # nearly the same, which violates nothing

    @property
    def story_lines(self) -> list[str]:
        """Of a library or an application: what happened, a line each, with the numbers of the schedule's lines."""
        return [
            f"{each.number or '':>3} {each.at_s:8.3f} s  {each.who:9} {each.what}{_arrow(each.broken)}"
            for each in self.story
        ]


class SearchResult(Judged, frozen=True, omit_defaults=True, kw_only=True, rename={"properties": "verdict"}):
    """The JSON of `explore` and `merge`. A search that could not be run has a sentence, and nothing was tried."""

    lock: str
    library: HostedOffer | None = None
    store: str | None = None
    clients: int | None = None
    replicas: int | None = None
    turns: int | None = None
    lease_ms: int
    work_ms: int | None = None
    permits: int | None = None
    seed: int
    scenario: str = msgspec.field(default_factory=lambda: "explore")
    time: str = msgspec.field(default_factory=lambda: "virtual")
    faults: dict[str, int]  # the most of each kind in a schedule
    strategy: str | None = None
    required: list[str]
    required_sorts: dict[str, list[str]]  # of properties that are not required as a whole
    required_steadily: list[str]
    schedules: int  # that count
    tried: int
    schedules_per_s: int
    steps: int
    commands: int
    calls: int | None = None
    sessions: int | None = None
    distinct: int  # histories
    states: int
    checkpoints: dict[str, dict[str, int]]
    exhausted: bool
    cut_short: int
    inapplicable: int
    unplayed: int | None = None
    unplayed_reason: str | None = None
    unrepeated: int | None = None
    unrepeated_reason: str | None = None
    injected: dict[str, int]
    history_sha256: str
    pct: PctBound | None = None
    properties: dict[str, SearchedProperty]  # type: ignore[assignment]  # each is a PropertyVerdict
    groups: list[ViolationGroup]
    warnings: list[RuleWarning]  # of an application: what can go wrong, by single requests one after the other
    sentence: str
    found: SmallestSchedule | None
    replay: str  # the command that repeats it
    elapsed_ms: int
    exit: int
    saved: str | None = None  # the file of --save
    campaign: Campaign | None = None  # of --result

    @property
    def schedule(self) -> str | None:
        """The smallest schedule that violates something, as the text of its file."""
        return self.found.file if self.found else None

    def _evidence_lines(self, asked: dict[str, PropertyVerdict]) -> list[str]:
        """Of a library: what happened in the smallest schedule, its calls and choices, and what is needed for it."""
        if not self.library or not self.found:
            return super()._evidence_lines(asked)
        found = self.found
        lines = numbered_lines(found.workload, found.choices)
        return [*found.story_lines, "", *lines, *control_lines(found.workload, found.choices, found.control)]


def _arrow(broken: str) -> str:
    return f"  <- {broken}" if broken else ""


def numbered_lines(workload: Sequence[str], choices: Sequence[str]) -> list[str]:
    """The lines of a schedule with the numbers by which its story names them; of a C lock, whose story names none,
    without."""
    lines = [*workload, *choices]
    return [f"{number:>3} {line}" for number, line in enumerate(lines, 1)] if workload else lines


def control_lines(workload: Sequence[str], choices: Sequence[str], control: ScheduleLines | None) -> list[str]:
    """What the smallest schedule cannot do without."""
    if not control:
        return []
    left = Counter([*control.workload, *control.schedule])
    missing = []
    for number, line in enumerate([*workload, *choices], 1):
        bare = line.partition("  #")[0]
        if left[bare]:
            left[bare] -= 1
        else:
            missing.append(f"{number}, {bare}," if workload else bare)
    return [f"control: without {'; '.join(missing)} it holds"] if missing else []


def search_result(plan: SearchPlan, campaign: Campaign, *, failed: str = "") -> SearchResult:
    """What was tried, and the verdict on it. `failed`: why the search could not be run."""
    tally, context, shown = campaign.tally, plan.context, campaign.shown
    found = smallest_schedule(plan, campaign.found, shown) if campaign.found and shown else None
    of_lock = context if isinstance(context, ScheduleContext) else None
    made = _promises_made(plan) if plan.lock.adapter and not failed else ()
    verdict = {} if failed else {name: _verdict_on(plan, campaign, made, name) for name in _judged(plan)}
    exit_status = Inconclusive.exit_status if failed else _exit_status(plan, campaign, verdict)
    steps = max(1, campaign.horizon)
    return SearchResult(
        lock=context.lock,
        library=HostedOffer(plan.lock.library.name, plan.lock.library.version) if plan.lock.adapter else None,
        **{key: getattr(of_lock, key) for key in OF_LOCKS if of_lock},
        lease_ms=context.lease_ms,
        permits=context.permits,
        seed=context.seed,
        faults=plan.budget,
        strategy=plan.request.strategy,
        required=[name for name in plan.required_names if of_lock or plan.request.require or name in made],
        required_sorts=_required_sorts(plan),
        required_steadily=[*plan.steadily],
        schedules=campaign.schedules,
        tried=tally.schedules,
        schedules_per_s=round(tally.schedules / campaign.elapsed_s) if campaign.elapsed_s else 0,
        **{key: getattr(tally, key) for key in ("steps", "commands", "checkpoints", "cut_short", "inapplicable")},
        **{key: getattr(tally, key) for key in OF_LIBRARIES if not of_lock},
        distinct=campaign.distinct,
        states=count_states(campaign.states),
        exhausted=campaign.exhausted,
        injected={name: tally.faults.get(name, 0) for name in _known_faults(plan)},
        history_sha256=campaign.history_sha256,
        pct=PctBound(DEPTH, of_lock.clients, steps, _pct_bound(plan, steps)) if of_lock else None,
        properties=verdict,
        groups=campaign.groups,
        warnings=campaign.warnings,
        sentence=f"Inconclusive: {failed}" if failed else _sentence(plan, campaign, exit_status),
        found=_found_json(found, campaign.found, shown) if found and campaign.found and shown else None,
        replay=search_command(plan, None if campaign.exhausted else max(1, campaign.repeats)),
        elapsed_ms=round(campaign.elapsed_s * 1000),
        exit=exit_status,
    )


def _known_faults(plan: SearchPlan) -> tuple[str, ...]:
    return fault_names("simulation" if isinstance(plan.context, ScheduleContext) else "library")


def smallest_schedule(plan: SearchPlan, found: FoundSchedule, shown: ShownSchedule | None = None) -> Schedule:
    """The schedule that was found and made smaller. `shown`: what its replay has shown."""
    lines, context = found.smallest, plan.context
    if isinstance(context, HostedContext):
        made = ApplicationSchedule if isinstance(context, ApplicationContext) else LibrarySchedule
        return made(
            **vars(context),
            number=found.number,
            violates=tuple(found.broken),
            workload=tuple(lines.workload),
            deviations=tuple(lines.schedule),
        )
    return ScheduleFile(
        **{**vars(context), "clients": lines.clients},
        number=found.origin,
        violates=tuple(found.violated),
        lines=tuple(lines.schedule),
        struck=shown.struck if shown else {},
    )


def _found_json(schedule: Schedule, found: FoundSchedule, shown: ShownSchedule) -> SmallestSchedule:
    is_new = found.anew and shown.with_new_programs
    return SmallestSchedule(
        number=found.number,
        violates=[*schedule.violates],
        clients=found.smallest.clients,
        choices=list(schedule.deviations) if isinstance(schedule, HostedSchedule) else schedule.annotated,
        choices_before_shrinking=len(found.as_found.schedule),
        steps=shown.steps,
        sentence=shown.sentence,
        file=schedule.text,
        workload=found.smallest.workload,
        calls_before_shrinking=len(found.as_found.workload),
        with_new_programs=is_new if isinstance(schedule, HostedSchedule) else None,
        evidence=shown.broken,
        story=shown.story,
        control=found.control or shown.control,
    )


# --- the verdict ---


def _judged(plan: SearchPlan) -> tuple[str, ...]:
    if isinstance(plan.context, HostedContext):
        return tuple(APPLICATION_PROPERTIES if isinstance(plan.context, ApplicationContext) else PROMISES)
    usually = with_capacity(USUALLY, plan.context.permits)
    return (*usually, *(name for name in JUDGED if name in plan.required_names and name not in usually))


def _promises_made(plan: SearchPlan) -> tuple[str, ...]:
    return tuple(APPLICATION_PROPERTIES) if isinstance(plan.context, ApplicationContext) else promises_of(plan.lock)


def _verdict_on(plan: SearchPlan, campaign: Campaign, made: Collection[str], name: str) -> SearchedProperty:
    """Of a property that is required, only the required sorts of violations count. `made`: a library's promises."""
    shown, counts = campaign.shown, campaign.tally.verdicts.get(name, PropertyCount())
    violated = counts.broken if name in plan.required_names else counts.violated
    is_unblamed = violated and name not in plan.required_names
    why = ", as of any lock with a lease under these faults" if plan.is_usual and plan.lock.lease else ""
    reason = f"in {violated:,} schedules{why}: not required" if is_unblamed else None
    held = bool(counts.holds + counts.violated)
    if isinstance(plan.context, HostedContext):
        held = name in made and campaign.tally.schedules > 0 and not _is_unclear(campaign.tally)
        reason = reason or (None if name in made else "the library does not promise it, by its hello")
    status: Status = "violated" if violated else "holds" if held else "inconclusive"
    return SearchedProperty(
        status=status,
        count=violated,
        evidence=shown.evidence.get(name, []) if shown and violated else list[Evidence](),
        schedules=counts,
        reason=reason,
    )


def _is_unclear(tally: SearchTally) -> bool:
    """Nothing can be said to be kept: a violation was not repeated, or too much could not be played."""
    return tally.unrepeated > 0 or tally.unplayed * UNPLAYED_SHARE > tally.unplayed + tally.schedules


def _exit_status(plan: SearchPlan, campaign: Campaign, verdict: dict[str, SearchedProperty]) -> int:
    if isinstance(plan.context, HostedContext):
        if campaign.found and campaign.shown:
            return 1 if campaign.found.anew and campaign.shown.with_new_programs else Inconclusive.exit_status
        unclear = _is_unclear(campaign.tally)
        if isinstance(plan.context, ApplicationContext):
            unmeasured = any(verdict[name].status == "inconclusive" for name in plan.required)
            unclear |= campaign.tally.inapplicable == campaign.tally.schedules
            unclear |= unmeasured or campaign.tally.cut_short * UNPLAYED_SHARE > campaign.tally.schedules
        return Inconclusive.exit_status if unclear else 0
    # A lock without tokens is not required to fence: of such a property nothing can be known.
    unclear = any(verdict[name].status == "inconclusive" for name in plan.required_names)
    return 1 if campaign.found else Inconclusive.exit_status if unclear else 0


def _required_sorts(plan: SearchPlan) -> dict[str, list[str]]:
    """The sorts of violations that count, by property, of properties that are not required as a whole."""
    parts: dict[str, list[str]] = {}
    for name, slash, sort in (word.partition("/") for word in plan.required):
        if slash and name not in plan.required:
            parts.setdefault(name, []).append(sort)
    return parts


def _pct_bound(plan: SearchPlan, steps: int) -> float:
    """PCT draws every other schedule of a portfolio."""
    share = {"pct": 1.0, "portfolio": 0.5}.get(plan.request.strategy, 0.0)
    return share / float(plan.of_lock.clients * steps ** (DEPTH - 1))


# --- in words ---


def _sentence(plan: SearchPlan, campaign: Campaign, exit_status: int) -> str:
    if isinstance(plan.context, HostedContext):
        return _hosted_sentence(campaign, plan.context, exit_status)
    found, tried = campaign.found, campaign.schedules
    if found and plan.request.keep_going:
        return _sentence_of_all(plan, campaign, found.number)
    if found:
        broken = " and ".join(name.replace("_", " ") for name in found.broken)
        return f"Schedule {found.number:,} of seed {plan.context.seed} violates {broken}: {_cause(found.smallest)}"
    if exit_status:
        reason = campaign.tally.inapplicable_reason or "no schedule could be judged"
        return f"Inconclusive after {tried:,} schedules: {reason}"
    if campaign.exhausted:
        most = plan.request.deviations or DEVIATIONS_USUAL
        return f"0 violations in all {tried:,} schedules that differ from the usual course at most {most} times"
    return f"0 violations in {tried:,} schedules, {_worth(plan, campaign)}"


def _sentence_of_all(plan: SearchPlan, campaign: Campaign, number: int) -> str:
    """Of a search that went on after a violation."""
    tried = campaign.tally.schedules
    hits = sum(group.schedules for group in campaign.groups if {*group.violates} & {*plan.required_names})
    first = f"; schedule {number:,} is the first"
    if campaign.exhausted:  # no sample: these are all
        return f"{hits:,} of all {tried:,} schedules within the bound violate it{first}"
    return f"{Rate(hits, tried)}{first}"


def _cause(smallest: ScheduleLines) -> str:
    count = len(smallest.schedule)
    if not count:
        return "the usual course reproduces it"
    return f"{count} deviation{'s reproduce' if count > 1 else ' reproduces'} it"


def _worth(plan: SearchPlan, campaign: Campaign) -> str:
    """What it is worth to have found nothing."""
    found_by_pct = _pct_bound(plan, max(1, campaign.horizon))
    worth = [f"{campaign.distinct:,} of them distinct: {Rate(0, campaign.schedules).in_words}"]
    if found_by_pct:
        worth.append(f"one in {1 / found_by_pct:,.0f} finds an error of depth {DEPTH} at least (PCT)")
    untried = [name for name in _known_faults(plan) if not campaign.tally.faults.get(name)]
    if untried:
        worth.append(f"not tried: {', '.join(untried)}")
    return "; ".join(worth)


def _hosted_sentence(campaign: Campaign, context: HostedContext, exit_status: int) -> str:
    found, shown, tally, name = campaign.found, campaign.shown, campaign.tally, context.title
    is_application = isinstance(context, ApplicationContext)
    breaks, broke, break_, kept = (
        ("violates a check", "violated a check", "violate it", "met every check")
        if is_application
        else ("breaks a promise", "broke a promise", "break it", "kept every promise")
    )
    if found and shown and not (found.anew and shown.with_new_programs):
        return (
            f"Inconclusive: schedule {found.number:,} {broke} of {name}, and did not {break_} again with "
            f"programs that were started for it alone: {shown.sentence}"
        )
    if found and shown:
        return f"Schedule {found.number:,} {breaks} of {name}: {shown.sentence}"
    if tally.unrepeated:
        return (
            f"Inconclusive: {tally.unrepeated:,} of {tally.schedules:,} schedules {broke} of {name}, and did "
            f"not {break_} again with programs that were started for it alone; {tally.unrepeated_reason}"
        )
    judged = tally.schedules - tally.inapplicable
    bound = f": {Rate(0, judged).in_words}" if judged else ""
    calls = "requests" if is_application else "calls"
    said = f"{name} {kept} in {judged:,} schedules of {tally.calls:,} {calls}{bound}"
    if tally.inapplicable and not judged:
        said = f"none of {tally.inapplicable:,} schedules of {name} has a verdict: {tally.inapplicable_reason}"
    elif tally.inapplicable:
        said += f"; {tally.inapplicable:,} more have no verdict: {tally.inapplicable_reason}"
    if tally.unplayed:
        said += f"; {tally.unplayed:,} more could not be played: {tally.unplayed_reason}"
    return f"Inconclusive: {said}" if exit_status else said


def search_command(plan: SearchPlan, schedules: int | None) -> str:
    """The command that repeats a search of so many schedules, also on a machine that is slower."""
    request = replace(plan.request, schedules=schedules, seconds=None, workers=None)
    return shlex.join(["lockstorm", "explore", *lock_words(request.lock), *option_words(request)])


# --- a file ---


def save_schedule(result: SearchResult, directory: Path = FOUND) -> Path:
    """Writes the schedule that a search of a C lock has found, with the command that found it, under a name made of the
    lock and the faults. A schedule that is there already is left alone. Returns its path."""
    found = result.found
    assert found
    choices = [line.partition(": ")[2].split()[0] for line in found.choices]
    faults = [word for word in dict.fromkeys(choices) if word in result.injected]
    name = "-".join([result.lock, *(faults or ["order"])])
    text = f"# {result.replay}\n# {found.sentence}\n{found.file}"
    directory.mkdir(exist_ok=True)
    for number in range(1, SAVED_MOST):
        path = directory / f"{name}{f'-{number}' if number > 1 else ''}.schedule"
        with contextlib.suppress(FileExistsError):
            with new_file(path) as temporary:
                temporary.write_text(text)
            return path
        if read_schedule_file(path).text == parse_schedule_file(found.file, str(path)).text:
            return path
    raise UsageError(f"--save: there are {SAVED_MOST} schedules called {name} in {directory}")
