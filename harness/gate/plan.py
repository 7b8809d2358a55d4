"""What a policy asks for, trial by trial."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from harness.driver.errors import UsageError
from harness.driver.lock_names import is_brought
from harness.driver.matrix import time_of
from harness.driver.play import Wish, lock_named, replay_command, settings_for
from harness.driver.scenario import scenarios
from harness.driver.storm import StormWish, plan
from harness.driver.storm import replay_command as storm_command
from harness.gate.policy import LockChoice, Policy, StormChoice


@dataclass(frozen=True)
class Job:
    """One trial. `faults` are a storm's; its wish then names the storm where a scenario would be."""

    name: str  # of its files
    wish: Wish
    faults: str | None = None

    @property
    def storm(self) -> StormWish:
        assert self.faults is not None
        return StormWish(self.wish, self.faults)

    @property
    def replay(self) -> str:
        if self.faults is None:
            return replay_command(self.wish)
        return storm_command(self.storm, self.wish.seed)

    def as_json(self) -> dict[str, Any]:
        wish = self.wish
        drawn = {"faults": self.faults, "duration_ms": wish.duration_ms, "clients": wish.clients}
        return {
            "name": self.name,
            "lock": wish.lock,
            "store": wish.store,
            "scenario": wish.scenario,
            "control": wish.control,
            "seed": wish.seed,
            "time": wish.time,
            "storm": None if self.faults is None else drawn,
            "replay": self.replay,
        }


@dataclass(frozen=True)
class Case:
    """A lock against one scenario or storm."""

    lock: LockChoice
    scenario: str
    time: str
    jobs: tuple[Job, ...]


@dataclass(frozen=True)
class GatePlan:
    cases: tuple[Case, ...]
    unfit: tuple[dict[str, str], ...]  # scenarios that are no story about a lock: lock, scenario, reason

    @property
    def jobs(self) -> list[Job]:
        return [job for case in self.cases for job in case.jobs]


def plan_gate(policy: Policy) -> GatePlan:
    """Raises UsageError when something cannot be played, or when it is more than the budget allows."""
    cases: list[Case] = []
    unfit: list[dict[str, str]] = []
    for lock in policy.locks:
        before = len(cases)
        for scenario in policy.play:
            reason = why_unfit(lock, scenario, policy.time)
            if reason:
                unfit.append({"lock": lock.name, "scenario": scenario, "reason": reason})
            else:
                cases.append(case_of(policy, lock, scenario))
        cases += [storm_case(policy, lock, storm) for storm in policy.storms]
        if len(cases) == before:
            why = "; ".join(dict.fromkeys(each["reason"] for each in unfit if each["lock"] == lock.name))
            raise UsageError(f"{policy.file}:{lock.line}: nothing can be played for {lock.title}: {why}")
    planned = GatePlan(tuple(cases), tuple(unfit))
    if policy.budget_trials is not None and len(planned.jobs) > policy.budget_trials:
        raise UsageError(
            f"{policy.file}: this policy asks for {len(planned.jobs)} trials, and its budget allows "
            f"{policy.budget_trials}: fewer scenarios, storms or repetitions, or a larger [budget] trials"
        )
    return planned


def why_unfit(lock: LockChoice, scenario: str, time: str | None) -> str:
    reason = scenarios()[scenario].unfit(lock_named(lock.name), lock.store)
    return reason or ("" if time_of(scenario, lock.name, time) else f"{scenario} cannot be played in {time} time")


def wish_of(lock: LockChoice, scenario: str, time: str, seed: int) -> Wish:
    options = {"lease_ms": lock.lease_ms, "permits": lock.permits, "fixed_lease": lock.fixed_lease}
    return Wish(scenario, lock.name, lock.store, time, seed, **options)  # type: ignore[arg-type]


def case_of(policy: Policy, lock: LockChoice, scenario: str) -> Case:
    time = time_of(scenario, lock.name, policy.time) or "virtual"
    jobs = tuple(scenario_jobs(policy, lock, scenario, time))
    told(policy, lock, lambda: settings_for(jobs[0].wish))
    return Case(lock, scenario, time, jobs)


def scenario_jobs(policy: Policy, lock: LockChoice, scenario: str, time: str) -> Iterator[Job]:
    for seed in range(policy.seed, policy.seed + policy.repeat):
        wish = wish_of(lock, scenario, time, seed)
        yield Job(name_of(wish), wish)
        if policy.controls:
            control = replace(wish, control=True)
            yield Job(name_of(control), control)


def storm_case(policy: Policy, lock: LockChoice, storm: StormChoice) -> Case:
    reads_clocks = is_brought(lock.name) and lock_named(lock.name)["real_time_only"]  # which cannot be moved
    time = "real" if reads_clocks else storm.time
    wish = wish_of(lock, storm.scenario, time, storm.seed)
    wish = replace(wish, clients=storm.clients, duration_ms=storm.duration_ms, lease_ms=storm.lease_ms or lock.lease_ms)
    seeds = range(storm.seed, storm.seed + storm.trials)
    wishes = [replace(wish, seed=seed) for seed in seeds]
    jobs = tuple(Job(name_of(each), each, storm.faults) for each in wishes)
    told(policy, lock, lambda: plan(jobs[0].storm))
    return Case(lock, storm.scenario, time, jobs)


def told(policy: Policy, lock: LockChoice, check: Callable[[], object]) -> None:
    """What cannot be played is told with the line of its lock."""
    try:
        check()
    except UsageError as error:
        raise UsageError(f"{policy.file}:{lock.line}: {error}") from None


def name_of(wish: Wish) -> str:
    lock = re.sub(r"[^a-zA-Z0-9]+", "-", wish.lock)
    words = [lock, wish.store or "open", wish.scenario, str(wish.seed)]
    return ".".join(words + (["control"] if wish.control else []))


def job_from(said: dict[str, Any]) -> Job:
    return Job(said["name"], Wish(**said["wish"]), said["faults"])
