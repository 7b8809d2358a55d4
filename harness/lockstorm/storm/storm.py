"""A storm: clients work under a lock while a schedule of faults strikes them and the servers. Then all faults are
healed, and in the quiet phase that follows each client has to be served once more.

    lockstorm storm --lock set-nx-px --faults pause-client,partition --seed 7

This module runs one storm, or several with rising seeds, and sums up the results.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from msgspec import structs

from lockstorm.base.errors import Inconclusive
from lockstorm.results.event import Event
from lockstorm.results.statistics import Rate
from lockstorm.results.storm_result import FaultCount, FirstViolation, StormResult, ViolationRate
from lockstorm.results.verdict import TrialResult, Verdict
from lockstorm.scenario.baseline import compared_lock
from lockstorm.scenario.play import inconclusive, trial_result
from lockstorm.storm.storm_plan import StormPlan, StormRequest, plan_storm
from lockstorm.storm.storm_run import Course, StormRun, count_faults
from lockstorm.trial.stall_sentinel import play_unstalled
from lockstorm.trial.trial import Trial


def run_storm(
    plan: StormPlan,
    *,
    save: Path | None = None,
    story_to: list[Event] | None = None,
    save_logs: Path | None = None,
    watch: Callable[[Trial], None] | None = None,
) -> TrialResult:
    """Runs one storm and returns its result as `storm --json` prints it. `story_to` receives the history's records,
    `save_logs` what the trial's processes wrote; `watch` is called after each action of the schedule. A storm that
    could not be run to its end is inconclusive, with the reason; one that stalled is run again, a few times at most.
    """
    parameters = {"faults_meant": len(plan.schedule.events), "bound_ms": plan.bound_ms}
    settings = replace(
        plan.settings,
        parameters={**plan.settings.parameters, **parameters},
        compared_with=compared_lock(plan.settings),
    )
    storm_run: StormRun | None = None
    versions: dict[str, str] = {}
    elapsed: dict[str, float] = {}

    def run_once(_: int) -> Verdict:  # always at the pace that the user has chosen: its bound is part of the question
        nonlocal storm_run
        with Trial(settings) as trial, trial.logs_kept(save_logs):
            storm_run = StormRun(trial, plan, watch)
            storm_run.warm_up()
            storm_run.run()
            storm_run.drain()
            verdict = trial.judge(plan.require, story_to, save)
            versions.update(trial.versions())
            elapsed.update(trial.elapsed_ms)
            return verdict

    try:
        verdict, played_again = play_unstalled(run_once)
    except Inconclusive as reason:
        verdict, played_again = inconclusive(str(reason)), reason.played_again
    result = trial_result(settings, verdict, versions, elapsed, plan.replay)
    course = storm_run.course if storm_run else [Course(event) for event in plan.schedule.events]
    storm = StormResult(
        duration_ms=plan.schedule.duration_ms,
        trials=1,
        clients=plan.schedule.clients,
        faults=count_faults(course),
        schedule=plan.schedule.as_json(),
        course=[each.result() for each in course],
    )
    return structs.replace(result, storm=storm, played_again=played_again)


def run_storms(
    storm: StormRequest,
    report: Callable[[str], object],
    *,
    save: Path | None = None,
    save_schedule: Path | None = None,
) -> TrialResult:
    """Runs the requested number of storms; each uses the next seed. Saves the history and the schedule of the first one
    in which a property is violated. `report` gets the name of each storm before it runs."""
    summary = StormSummary(storm)
    for number in range(storm.trials):
        plan = plan_storm(storm, storm.request.seed + number)
        report(f"{plan.settings.lock}, seed {plan.schedule.seed}")
        result = run_storm(plan, save=save)
        if result.exit == 1:
            if save_schedule and not summary.first:
                plan.schedule.save(save_schedule)
            save = None
        elif save:
            save.unlink(missing_ok=True)
        summary.add(result)
    return summary.as_result()


class StormSummary:
    """The results of several storms as one object."""

    def __init__(self, storm: StormRequest) -> None:
        self.storm = storm
        self.first: TrialResult | None = None  # in which a property was violated
        self.unclear: TrialResult | None = None  # the first that is inconclusive
        self.last: TrialResult | None = None
        self.played_again = 0
        self.counts = {"holds": 0, "violated": 0, "inconclusive": 0}
        self.properties: dict[str, dict[str, int]] = {}
        self.faults: dict[str, FaultCount] = {}

    def add(self, result: TrialResult) -> None:
        outcome = {0: "holds", 1: "violated"}.get(result.exit, "inconclusive")
        self.counts[outcome] += 1
        self.last = result
        self.played_again += result.played_again
        if outcome == "violated":
            self.first = self.first or result
        if outcome == "inconclusive":
            self.unclear = self.unclear or result
        for name in result.required:
            count = self.properties.setdefault(name, {"holds": 0, "violated": 0, "inconclusive": 0})
            count[result.properties[name].status] += 1
        for fault in result.of_storm.faults:
            self.faults.setdefault(fault.name, FaultCount(fault.name)).add(fault)

    @property
    def rate(self) -> Rate:
        """How often a property was violated, among the storms that could be judged."""
        return Rate(self.counts["violated"], self.counts["violated"] + self.counts["holds"])

    @property
    def sentence(self) -> str:
        trials, rate = self.storm.trials, self.rate
        unclear = f", {self.counts['inconclusive']} inconclusive" if self.counts["inconclusive"] else ""
        if not rate.trials:
            return f"Inconclusive: none of {trials} storms could be judged"
        if rate.hits:
            return f"{rate.hits} of {trials} storms violated{unclear}: {rate.in_words}"
        return f"0 violations in {rate.trials} storm{'s' if rate.trials > 1 else ''}: {rate.in_words}{unclear}"

    def as_result(self) -> TrialResult:
        """The result that `storm --trials N --json` prints."""
        shown = self.first or self.unclear or self.last
        assert shown  # there is at least one storm
        first = self.first
        storm = StormResult(
            duration_ms=shown.of_storm.duration_ms,
            trials=self.storm.trials,
            clients=shown.of_storm.clients,
            shown_seed=shown.seed,
            verdicts=self.counts,
            rate=ViolationRate(self.rate.low, self.rate.high),
            properties=self.properties,
            first_violation=FirstViolation(first.seed, first.sentence, first.replay) if first else None,
            faults=[self.faults[name] for name in sorted(self.faults)],
            schedule=shown.of_storm.schedule,
        )
        exit_status = 1 if self.first else 3 if self.unclear else 0
        return structs.replace(
            shown,
            seed=self.storm.request.seed,
            sentence=self.sentence,
            exit=exit_status,
            played_again=self.played_again,
            storm=storm,
        )
