"""The trials that a policy asks for."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from lockstorm.attach.gateway import attach_words
from lockstorm.base.errors import UsageError
from lockstorm.gate.gate_policy import AttachChoice, LockChoice, Policy, StormChoice
from lockstorm.locks.lock_names import is_user_supplied, lock_named
from lockstorm.matrix.matrix import time_of
from lockstorm.results.kept_run import KeptStorm, PlannedTrial
from lockstorm.results.matrix_result import InapplicablePair
from lockstorm.scenario.play import attached_command, prepare_trial, trial_command
from lockstorm.scenario.scenario import NEEDS
from lockstorm.storm.storm_plan import StormRequest, plan_storm, storm_replay_command
from lockstorm.trial.attached_nodes import check_attachable
from lockstorm.trial.settings import TrialSettings


@dataclass(frozen=True)
class GateJob:
    """One trial, of a scenario or of a storm. A storm has `faults`, and its request names the storm as its scenario."""

    name: str  # of the trial's files, without their extensions
    request: TrialSettings
    faults: str | None = None
    attach: AttachChoice | None = None  # the servers, if they are there already

    @property
    def storm(self) -> StormRequest:
        assert self.faults is not None
        return StormRequest(self.request, self.faults)

    @property
    def replay(self) -> str:
        if self.attach:
            words = attach_words(self.attach.address, self.attach.files, self.request.scenario, yes=self.attach.yes)
            return attached_command(words, self.request)
        if self.faults is None:
            return trial_command(self.request)
        return storm_replay_command(self.storm, self.request.seed)

    def kept(self) -> PlannedTrial:
        """Its entry in run.json."""
        request = self.request
        storm = KeptStorm(self.faults, request.duration_ms, request.clients) if self.faults is not None else None
        return PlannedTrial(
            name=self.name,
            lock=request.lock,
            store=request.store,
            scenario=request.scenario,
            control=request.control,
            seed=request.seed,
            time=request.time,
            storm=storm,
            replay=self.replay,
        )


@dataclass(frozen=True)
class Case:
    """A lock under one scenario or storm: a cell of the verdict. `unplayed`: why it has no jobs, though the policy
    names its scenario."""

    lock: LockChoice
    scenario: str
    time: str
    jobs: tuple[GateJob, ...]
    unplayed: str = ""


@dataclass(frozen=True)
class GatePlan:
    cases: tuple[Case, ...]
    inapplicable: tuple[InapplicablePair, ...]

    @property
    def jobs(self) -> list[GateJob]:
        return [job for case in self.cases for job in case.jobs]


def plan_gate(policy: Policy) -> GatePlan:
    """Raises UsageError for a lock that no scenario applies to, for settings that cannot be played, and for more trials
    than the budget allows."""
    cases: list[Case] = []
    unplayed: list[Case] = []
    inapplicable: list[InapplicablePair] = []
    for lock in policy.locks:
        before = sum(bool(case.jobs) for case in cases)
        for scenario in policy.play:
            reason = gate_inapplicable_reason(policy, lock, scenario)
            if reason:
                inapplicable.append(InapplicablePair(scenario, lock.name, reason))
                case = Case(lock, scenario, policy.time or "virtual", (), reason)
                (cases if policy.named and is_only_untimely(policy, lock, scenario) else unplayed).append(case)
            else:
                cases.append(case_of(policy, lock, scenario))
        cases += [storm_case(policy, lock, storm) for storm in policy.storms]
        if sum(bool(case.jobs) for case in cases) == before:
            why = "; ".join(dict.fromkeys(each.reason for each in inapplicable if each.lock == lock.name))
            raise UsageError(f"{policy.file}:{lock.line}: nothing can be played for {lock.title}: {why}")
    if policy.named:  # what no lock is played with would vanish from the verdict otherwise
        played = {case.scenario for case in cases}
        cases += [case for case in unplayed if case.scenario not in played]
    planned = GatePlan(tuple(cases), tuple(inapplicable))
    if policy.budget_trials is not None and len(planned.jobs) > policy.budget_trials:
        raise UsageError(
            f"{policy.file}: this policy asks for {len(planned.jobs)} trials, and its budget allows "
            f"{policy.budget_trials}: choose fewer scenarios, storms or repetitions, or raise [budget] trials"
        )
    return planned


def gate_inapplicable_reason(policy: Policy, lock: LockChoice, scenario: str) -> str:
    story, time = policy.scenarios[scenario], policy.time
    reason = story.inapplicable_reason(lock_named(lock.name), lock.store, topologies=lock.topologies)
    if reason or gate_time(policy, lock, scenario):
        return reason
    return f"{scenario} cannot be played in {time} time"


def is_only_untimely(policy: Policy, lock: LockChoice, scenario: str) -> bool:
    """Whether the scenario is about this lock, and only the kind of time is in the way."""
    story, entry = policy.scenarios[scenario], lock_named(lock.name)
    is_about = entry.service in story.services and all(NEEDS[need][0](entry) for need in story.needs)
    return is_about and not gate_time(policy, lock, scenario)


def gate_time(policy: Policy, lock: LockChoice, scenario: str) -> str | None:
    """The kind of time; None: it cannot be played in the one that the policy asks for."""
    return "real" if policy.attach else time_of(scenario, lock.name, policy.time)


def case_of(policy: Policy, lock: LockChoice, scenario: str) -> Case:
    time = gate_time(policy, lock, scenario) or "virtual"
    jobs = tuple(scenario_jobs(policy, lock, scenario, time))
    check_jobs(policy, lock, lambda: check_job(policy, jobs[0]))
    return Case(lock, scenario, time, jobs)


def scenario_jobs(policy: Policy, lock: LockChoice, scenario: str, time: str) -> Iterator[GateJob]:
    for seed in range(policy.seed, policy.seed + policy.repeat):
        request = replace(lock.request, scenario=scenario, time=time, seed=seed)
        yield GateJob(job_name(request), request, attach=policy.attach)
        if policy.controls:
            control = replace(request, control=True)
            yield GateJob(job_name(control), control, attach=policy.attach)


def storm_case(policy: Policy, lock: LockChoice, storm: StormChoice) -> Case:
    reads_clocks = is_user_supplied(lock.name) and lock_named(lock.name).real_time_only  # clocks of the machine
    time = "real" if reads_clocks else storm.time
    request = replace(
        lock.request,
        scenario=storm.scenario,
        time=time,
        clients=storm.clients,
        duration_ms=storm.duration_ms,
        lease_ms=storm.lease_ms or lock.request.lease_ms,
    )
    requests = [replace(request, seed=seed) for seed in range(storm.seed, storm.seed + storm.trials)]
    jobs = tuple(GateJob(job_name(each), each, storm.faults) for each in requests)
    check_jobs(policy, lock, lambda: plan_storm(jobs[0].storm))
    return Case(lock, storm.scenario, time, jobs)


def check_job(policy: Policy, job: GateJob) -> None:
    """Raises UsageError for a trial that cannot be played."""
    _, settings = prepare_trial(job.request, policy.scenarios[job.request.scenario])
    if policy.attach:
        check_attachable(settings, lock_named(job.request.lock))


def check_jobs(policy: Policy, lock: LockChoice, check: Callable[[], object]) -> None:
    """Runs a check of the lock's settings; its UsageError gets the line of the lock in the policy."""
    try:
        check()
    except UsageError as error:
        raise UsageError(f"{policy.file}:{lock.line}: {error}") from None


def job_name(request: TrialSettings) -> str:
    lock = re.sub(r"[^a-zA-Z0-9]+", "-", request.lock)
    words = [lock, request.store or "open", request.scenario, str(request.seed)]
    return ".".join(words + (["control"] if request.control else []))
