"""Plays the trials of a policy, keeps the run and judges it; judges a kept run again."""

import contextlib
import datetime
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import structs

from lockstorm.attach.gateway import Gateway
from lockstorm.base.atomic_file import write_json, write_text
from lockstorm.base.errors import UsageError, at_place
from lockstorm.gate import junit, markdown, sarif
from lockstorm.gate.app_judge import judge_searches
from lockstorm.gate.app_play import Searcher, search_application, searcher
from lockstorm.gate.gate_judge import INTERRUPTED, OUT_OF_TIME, Played, judge_gate
from lockstorm.gate.gate_plan import GateJob, GatePlan, plan_gate
from lockstorm.gate.gate_policy import AttachChoice, Policy, read_policy
from lockstorm.gate.runs import Run, read_kept_run, read_results, read_searches
from lockstorm.gate.worker import GateWorkerPool, KeptJob
from lockstorm.results.gate_verdict import GateVerdict
from lockstorm.results.verdict import PropertyVerdict, TrialResult
from lockstorm.scenario.attached_play import AttachedServers, attached_scenarios
from lockstorm.scenario.play import judge_file
from lockstorm.scenario.worker_pool import TrialPool
from lockstorm.search.search_result import SearchResult


@contextlib.contextmanager
def attached_servers(choice: AttachChoice | None) -> Iterator[AttachedServers | None]:
    """The servers of a policy while its trials are played. Raises UsageError if they cannot be reached, or are not
    empty and may not be used so."""
    if not choice:
        yield None
        return
    with Gateway(choice.address, choice.files, yes=choice.yes) as gateway:
        servers = AttachedServers(gateway)
        servers.look()
        if not choice.yes:
            servers.check_touchable("add yes = true to [attach]")
        yield servers


class AttachedPlayer(TrialPool):
    """Plays trials one after the other, in this process: they share the servers. In the place of a worker pool."""

    def __init__(self, servers: AttachedServers) -> None:
        self._servers = servers

    def play_all(self, requests: Sequence[KeptJob]) -> Iterator[tuple[int, TrialResult]]:
        for number, kept_job in enumerate(requests):
            yield number, kept_job.play(self._play)

    def _play(self, job: GateJob, history: Path, logs: Path) -> TrialResult:
        scenario = attached_scenarios()[job.request.scenario]
        settings = self._servers.settings_for(job.request, scenario)
        return self._servers.play(scenario, settings, history, logs)


def run_gate(
    policy: Policy,
    plan: GatePlan,
    report: Callable[[str], object],
    *,
    workers: int | None = None,
) -> tuple[GateVerdict, Path]:
    """The verdict, and the directory that keeps the run. `report` is called after each trial with a line of text. After
    an interrupt (SIGINT) the verdict covers the trials that were played, and says that it was interrupted."""
    with attached_servers(policy.attach) as servers:  # fails before anything is kept
        player = AttachedPlayer(servers) if servers else GateWorkerPool(workers)
        return play_and_judge(policy, plan, report, player, searcher(workers))


def play_and_judge(
    policy: Policy,
    plan: GatePlan,
    report: Callable[[str], object],
    player: TrialPool,
    search: Searcher,
) -> tuple[GateVerdict, Path]:
    """The same, with what plays the trials, and what searches applications."""
    run = Run(policy, plan)
    played: Played = {}
    searched: dict[str, SearchResult] = {}
    missing = ""
    deadline_s = time.monotonic() + policy.budget_ms / 1000 if policy.budget_ms else None
    try:
        missing = search_all(policy, run, searched, report, search, deadline_s)
        missing = missing or play_plan(plan, run, played, report, player, deadline_s)
    except KeyboardInterrupt:
        missing = INTERRUPTED
        for name, result in read_results(run.directory, run.document):  # also those that had not been reported yet
            if name not in played:
                played[name] = result
                run.note_played(name, result)
    except BaseException:
        run.end("interrupted")
        raise
    today, applications = datetime.date.today(), judge_searches(run.document.searches, searched, run.directory, missing)
    verdict = judge_gate(policy, plan, played, today, run.document, missing, applications)
    write_outputs(verdict, run.directory)
    run.end("interrupted" if verdict.interrupted else "complete")
    return verdict, run.directory


def search_all(
    policy: Policy,
    run: Run,
    searched: dict[str, SearchResult],
    report: Callable[[str], object],
    search: Searcher,
    deadline_s: float | None,
) -> str:
    """Searches the applications, before any trial: what is wrong in their files is then said at once. Returns why some
    were not searched, or why no time is left for trials; else an empty text."""
    for app in policy.apps:
        left_s = None if deadline_s is None else deadline_s - time.monotonic()
        if left_s is not None and left_s <= 0:
            return OUT_OF_TIME
        with at_place(f"{policy.file}:{app.line}"):
            searched[app.name] = search_application(app, run, search, left_s)
        report(app.title)
    return OUT_OF_TIME if deadline_s is not None and time.monotonic() > deadline_s else ""


def play_plan(
    plan: GatePlan,
    run: Run,
    played: Played,
    report: Callable[[str], object],
    player: TrialPool,
    deadline_s: float | None,
) -> str:
    """Plays trials until all are played or the budget is used up. Returns why trials are missing; empty: none is."""
    jobs = sorted(plan.jobs, key=lambda job: (job.request.time != "virtual", job.faults is None))
    kept_jobs = [KeptJob(job, str(run.trials.resolve())) for job in jobs]
    with player as pool:
        for number, result in pool.play_all(kept_jobs):
            played[jobs[number].name] = result
            run.note_played(jobs[number].name, result)
            report(f"{jobs[number].request.lock} {jobs[number].request.scenario}")
            if deadline_s is not None and time.monotonic() > deadline_s and len(played) < len(jobs):
                return OUT_OF_TIME
    return ""


def write_outputs(verdict: GateVerdict, directory: Path) -> None:
    """Writes the verdict in the formats that people and pipelines read. Replaces existing files."""
    root = sarif.project_root(Path(verdict.policy.file))
    write_json(directory / "verdict.json", verdict)
    write_text(directory / "junit.xml", junit.as_junit(verdict))
    write_json(directory / "lockstorm.sarif", sarif.as_sarif(verdict, root))
    write_text(directory / "summary.md", markdown.as_markdown(verdict))


# --- judging a kept run again ---

JUDGED_AGAIN = ("properties", "sentence", "required", "faults", "exit")


def judge_again(directory: Path) -> GateVerdict:
    """The verdict of today's checkers on the kept histories, by the policy of that run. `differences`: a line for each
    property of a trial that was judged differently when the run was made. A search of an application keeps no
    histories: its result is that of the run."""
    document = read_kept_run(directory)
    policy = read_policy(directory / "policy.toml", Path(document.policy.file).parent)
    plan = plan_gate(policy)
    names = {job.name for job in plan.jobs}
    played, differences = {}, []
    for name, then in read_results(directory, document):
        if name not in names:
            raise UsageError(
                f"{directory}: the policy of this run no longer has the trial {name}: a scenario was renamed since"
            )
        history, now = directory / "trials" / f"{name}.history", then
        if history.exists():  # else the trial did not end: its result stays
            judged = judge_file(str(history), None)
            now = structs.replace(then, **{key: getattr(judged, key) for key in JUDGED_AGAIN})
        played[name] = now
        differences += [f"{name}: {each}" for each in judgement_differences(then.properties, now.properties)]
    missing = INTERRUPTED if document.state != "complete" else OUT_OF_TIME
    searched = read_searches(directory, document)
    applications = judge_searches(document.searches, searched, directory, missing)
    verdict = judge_gate(policy, plan, played, datetime.date.today(), document, missing, applications)
    return structs.replace(verdict, differences=differences)


def judgement_differences(then: Mapping[str, PropertyVerdict], now: Mapping[str, PropertyVerdict]) -> list[str]:
    return [
        f"{name.replace('_', ' ')} {now[name].status}, then {then[name].status}"
        for name in now
        if name in then and now[name].status != then[name].status
    ]
