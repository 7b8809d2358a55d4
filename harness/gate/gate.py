"""Plays a policy, keeps the run and judges it; judges a kept run again."""

import datetime
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.driver.errors import UsageError
from harness.driver.play import judge_file
from harness.gate import junit, markdown, sarif
from harness.gate.files import write_json, write_text
from harness.gate.plan import GatePlan, plan_gate
from harness.gate.player import Errand, GateCrew
from harness.gate.policy import Policy, read_policy
from harness.gate.runs import Run, read_results, read_run
from harness.gate.verdict import Played, judge_gate

OUT_OF_TIME = "the budget of time was used up"
INTERRUPTED = "the run was interrupted"


def run_gate(
    policy: Policy,
    plan: GatePlan,
    version: str,
    tell: Callable[[str], object],
    *,
    workers: int | None = None,
    today: datetime.date | None = None,
) -> tuple[dict[str, Any], Path]:
    """The verdict, and the directory that keeps the run. `tell` is called after each trial. Interrupted, it says what
    is known by then, and that it was interrupted."""
    run = Run(policy, plan, version)
    played: Played = {}
    missing = ""
    try:
        missing = play_plan(policy, plan, run, played, tell, workers)
    except KeyboardInterrupt:
        missing = INTERRUPTED
    except BaseException:
        run.end("interrupted")
        raise
    verdict = judge_gate(policy, plan, played, today or datetime.date.today(), why_missing=missing)
    interrupted = missing == INTERRUPTED
    verdict = {"run": run.said["id"], "interrupted": interrupted, "policy": run.said["policy"], **verdict}
    verdict["versions"] = run.said["versions"]
    write_outputs(verdict, run.directory)
    run.end("interrupted" if interrupted else "complete")
    return verdict, run.directory


def play_plan(
    policy: Policy, plan: GatePlan, run: Run, played: Played, tell: Callable[[str], object], workers: int | None
) -> str:
    """Plays what there is time for. Returns why something was left out, or nothing."""
    jobs = sorted(plan.jobs, key=lambda job: (job.wish.time != "virtual", job.faults is None))
    deadline_s = time.monotonic() + policy.budget_ms / 1000 if policy.budget_ms else None
    errands = [Errand(job, str(run.trials.resolve())) for job in jobs]
    with GateCrew(workers) as crew:
        for number, result in crew.play_all(errands):
            played[jobs[number].name] = result
            run.note_played(jobs[number].name, result)
            tell(f"{jobs[number].wish.lock} {jobs[number].wish.scenario}")
            if deadline_s is not None and time.monotonic() > deadline_s and len(played) < len(jobs):
                return OUT_OF_TIME
    return ""


def write_outputs(verdict: dict[str, Any], directory: Path) -> None:
    """Everything that people and pipelines read, from the one result. What is there is replaced."""
    write_json(directory / "verdict.json", verdict)
    write_text(directory / "junit.xml", junit.as_junit(verdict))
    write_json(directory / "lockstorm.sarif", sarif.as_sarif(verdict))
    write_text(directory / "summary.md", markdown.as_markdown(verdict))


# --- judging a kept run again ---


def judge_again(directory: Path, today: datetime.date | None = None) -> tuple[dict[str, Any], list[str]]:
    """The verdict that today's checkers come to over the kept histories, with the policy as it was; and what they see
    otherwise than those did who were asked then."""
    said = read_run(directory)
    policy = read_policy(directory / "policy.toml", Path(said["policy"]["file"]).parent)
    plan = plan_gate(policy)
    names = {job.name for job in plan.jobs}
    played, differences = {}, []
    for name, then in read_results(directory, said):
        if name not in names:
            raise UsageError(f"{directory}: {name} is no trial of its policy any more: a scenario has changed its name")
        played[name] = now = judge_trial(directory / "trials" / f"{name}.history", then)
        differences += [f"{name}: {each}" for each in differences_of(then["verdict"], now["verdict"])]
    missing = INTERRUPTED if said["state"] != "complete" else OUT_OF_TIME
    verdict = judge_gate(policy, plan, played, today or datetime.date.today(), why_missing=missing)
    head = {"run": said["id"], "interrupted": said["state"] != "complete", "policy": said["policy"]}
    return {**head, **verdict, "versions": said["versions"]}, differences


def judge_trial(history: Path, then: dict[str, Any]) -> dict[str, Any]:
    """A trial that came to no end left no history: nothing can be said about it but what was said."""
    if not history.exists():
        return then
    now = judge_file(str(history), None)
    return then | {key: now[key] for key in ("verdict", "sentence", "required", "faults", "exit")}


def differences_of(then: dict[str, Any], now: dict[str, Any]) -> list[str]:
    return [
        f"{name.replace('_', ' ')} {now[name]['status']}, then {then[name]['status']}"
        for name in now
        if name in then and now[name]["status"] != then[name]["status"]
    ]
