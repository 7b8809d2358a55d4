"""`make bench`: what a record, a check, a trial, the matrix and the demonstration cost here, and the targets.

Every number is the median of several runs, compared with a reference that was measured in the same run, because
machines differ and this one may be busy. Writes build/bench.json.
"""

import json
import os
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click
from msgspec import structs
from rich.console import Console
from rich.table import Table

from bench import applications, libraries, proxy
from lockstorm.base import paths
from lockstorm.base.errors import Inconclusive
from lockstorm.compare.benchmark import measure_pair, request_us
from lockstorm.native.library import locks
from lockstorm.process.cores import on_core
from lockstorm.process.machine import Machine, machine
from lockstorm.scenario.play import play
from lockstorm.search.explore import search_schedules, search_words
from lockstorm.search.explorer import explorer_for
from lockstorm.search.search_plan import SearchRequest, plan_search
from lockstorm.trial.settings import TrialSettings
from lockstorm.trial.trial import Trial

LEASE_S = 30.0
WIDTH = 130


@dataclass(frozen=True)
class Effort:
    """How much to measure."""

    runs: int
    append_records: int
    check_records: int
    operations: tuple[int, int, int]  # few, many, and without a violation
    trials: int
    demos: int
    grants: int
    grant_rounds: int
    proxy_requests: int
    proxy_rounds: int
    schedules: int
    explorer_requests: int
    explorer_seeds: int
    matrix_words: tuple[str, ...]
    library_turns: int
    library_rounds: int
    library_seconds: int  # of a search
    application_schedules: int
    application_rounds: int


FULL = Effort(
    runs=5,
    append_records=4_000_000,
    check_records=10_000_000,
    operations=(1_000, 100_000, 1_000_000),
    trials=20,
    demos=5,
    grants=5000,
    grant_rounds=15,
    proxy_requests=50_000,
    proxy_rounds=9,
    schedules=5000,
    explorer_requests=50_000,
    explorer_seeds=20,
    matrix_words=(),
    library_turns=500,
    library_rounds=5,
    library_seconds=15,
    application_schedules=200,
    application_rounds=3,
)
QUICK = Effort(
    runs=2,
    append_records=100_000,
    check_records=200_000,
    operations=(200, 2_000, 10_000),
    trials=2,
    demos=1,
    grants=500,
    grant_rounds=2,
    proxy_requests=2000,
    proxy_rounds=1,
    schedules=100,
    explorer_requests=2000,
    explorer_seeds=2,
    matrix_words=("--scenario", "gc-pause"),
    library_turns=20,
    library_rounds=1,
    library_seconds=3,
    application_schedules=60,
    application_rounds=1,
)


@dataclass(frozen=True)
class Row:
    """One measurement. `target`: the promised value in the same unit, a minimum, or a maximum if `less_is_better`."""

    name: str
    value: float
    unit: str
    remark: str
    target: float | None = None
    less_is_better: bool = False

    @property
    def met(self) -> bool | None:
        if self.target is None:
            return None
        return self.value <= self.target if self.less_is_better else self.value >= self.target


def bench_program(name: str) -> str:
    """The path of a benchmark program that make has built."""
    return str(paths.build() / "bench" / name)


def median_s(runs: int, action: Callable[[], object]) -> float:
    """The median wall time of an action."""
    took = []
    for _ in range(runs):
        began = time.perf_counter()
        action()
        took.append(time.perf_counter() - began)
    return statistics.median(took)


def run_quietly(*command: str, status: tuple[int, ...] = (0,)) -> None:
    done = subprocess.run(command, capture_output=True, text=True, cwd=paths.ROOT)
    if done.returncode not in status:
        raise click.ClickException(f"{Path(command[0]).name} ended with status {done.returncode}: {done.stderr}")


def resident_mib(*command: str) -> float:
    """The maximum resident memory of a program, or of this process at its start if that was more."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_maxrss / 1024


def measure_append(effort: Effort, directory: str) -> list[Row]:
    """Appending a record with both stamps in real time: the cost for every actor."""
    command = [bench_program("history_append"), directory, str(effort.append_records)]
    runs = [json.loads(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(effort.runs)]
    ns = {key: statistics.median(run[key] for run in runs) for key in runs[0]}

    def row(name: str, key: str, target: float | None = None) -> Row:
        return Row(
            name, 1000 / ns[key], "M records/s", f"{ns[key]:.1f} ns, {ns[key] / ns['clocks']:.2f} x clocks", target
        )

    return [
        Row("two clock readings (reference)", ns["clocks"], "ns", "monotonic and wall"),
        row("append, pages prefaulted", "prefaulted", 25),
        row("append, cold pages", "cold"),
        row("append, two processes at once", "two_processes"),
    ]


def measure_check(effort: Effort, directory: str) -> list[Row]:
    """All checkers over one history in memory, compared with adding up its words."""
    history = Path(directory) / "history"
    run_quietly(bench_program("make_history"), str(history), str(effort.check_records))
    run_quietly(bench_program("scan"), str(history))  # the first run maps it into memory
    scan_s = median_s(effort.runs, lambda: run_quietly(bench_program("scan"), str(history)))
    check_s = median_s(effort.runs, lambda: run_quietly(paths.program("check"), str(history)))
    million = effort.check_records / 1e6
    memory_mib = resident_mib(paths.program("check"), str(history))
    history.unlink()
    return [
        Row(
            "scan of a history (reference)",
            million / scan_s,
            "M records/s",
            f"{scan_s * 1000:.0f} ms, its words added up",
        ),
        Row(
            "check of a history",
            million / check_s,
            "M records/s",
            f"{million:g} million in {check_s * 1000:.0f} ms, {check_s / scan_s:.1f} x scan",
            100,
        ),
        Row(
            "... its memory", memory_mib, "MiB", "at most; includes its caller's at the start", 64, less_is_better=True
        ),
    ]


def measure_linearizable(effort: Effort, directory: str) -> list[Row]:
    """Ten clients' operations on a lock, as Jepsen EDN, from the start of the program to the verdict."""
    few, many, most = effort.operations
    cases = [
        (few, 5, 1, 0.1, None, ("owner-mutex", "mutex", "reentrant-mutex", "fenced-mutex", "semaphore")),
        (many, 5, 1, 2.0, 1024, ("owner-mutex", "mutex", "reentrant-mutex", "fenced-mutex", "semaphore")),
        (most, 0, 0, 5.0, 2048, ("owner-mutex", "mutex", "fenced-mutex")),
    ]
    path = Path(directory) / "operations.edn"
    rows = []
    for operations, unknown, violations, target_s, target_mib, models in cases:
        run_quietly(bench_program("make_operations"), str(path), str(operations), str(unknown), str(violations))
        run_quietly("cat", str(path))  # bring the file into memory
        name = f"linearizable, {operations:,} operations, {'a violation' if violations else 'none'}"
        for model in models:
            rows += linearizable_rows(effort, path, f"{name}, {model}", model, violations, target_s, target_mib)
    path.unlink()
    return rows


def linearizable_rows(
    effort: Effort, path: Path, name: str, model: str, violations: int, target_s: float, target_mib: int | None
) -> list[Row]:
    """Time and memory of one model on one history."""
    command = [paths.program("linearize"), f"--model={model}", str(path)]
    took_s, results = [], []
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for _ in range(effort.runs):
        began = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True)
        took_s.append(time.perf_counter() - began)
        if done.returncode != (1 if violations else 0):
            raise click.ClickException(f"linearize ended with status {done.returncode}: {done.stdout}{done.stderr}")
        results.append(json.loads(done.stdout))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / effort.runs
    read_s = statistics.median(each["read_s"] for each in results)
    mib = statistics.median(each["resident_bytes"] for each in results) / (1 << 20)
    remark = f"{read_s:.3f} s of it reading the file; {cpu_s:.3f} s of CPU"
    rows = [Row(name, statistics.median(took_s), "s", remark, target_s, less_is_better=True)]
    if target_mib:
        rows.append(Row("... its memory", mib, "MiB", "", target_mib, less_is_better=True))
    return rows


def measure_trials(effort: Effort) -> list[Row]:
    """gc-pause in virtual time, in which a lease of 30 s runs out."""
    phases: list[dict[str, float]] = []
    for seed in range(1, effort.trials + 1):
        result = play(TrialSettings("set-nx-px", "gc-pause", seed=seed))
        if result.exit == 3:
            raise click.ClickException(result.sentence)
        phases.append(result.elapsed_ms)
    scenario_ms = statistics.median(phase["scenario"] for phase in phases)
    whole_ms = statistics.median(sum(phase.values()) for phase in phases)
    return [
        Row("gc-pause, the scenario", LEASE_S * 1000 / scenario_ms, "x lease", f"{scenario_ms:.1f} ms", 100),
        Row(
            "gc-pause, servers and verdict too",
            LEASE_S * 1000 / whole_ms,
            "x lease",
            f"{whole_ms:.0f} ms, redis-server started",
            100,
        ),
    ]


def measure_grants(effort: Effort) -> list[Row]:
    """An uncontended acquire and release with every event in the history, compared with redis-benchmark sending the
    same two commands to the same server, in turns. On one core it measures work without wake-ups on other cores."""
    everywhere = os.sched_getaffinity(0)
    rows = []
    for remark, cores, target in (("one core", {min(everywhere)}, 1.15), ("unpinned", everywhere, None)):
        os.sched_setaffinity(0, cores)  # inherited by all processes that start from here on
        try:
            rounds = _grant_rounds(effort)
        except Inconclusive as reason:
            raise click.ClickException(str(reason)) from None
        finally:
            os.sched_setaffinity(0, everywhere)
        ratio = statistics.median(ours / pair for ours, pair in rounds)
        ours_us, pair_us = (statistics.median(each) for each in zip(*rounds, strict=True))
        detail = f"{ours_us:.1f} us against {pair_us:.1f} us, median of {len(rounds)} in turns"
        rows.append(Row(f"acquire + release, {remark}", ratio, "x benchmark", detail, target, less_is_better=True))
    return rows


def _grant_rounds(effort: Effort) -> list[tuple[float, float]]:
    """Pairs of times in us: of the client, of redis-benchmark."""
    records = 4 * effort.grants * effort.grant_rounds + 4096
    rounds = []
    with Trial(TrialSettings("set-nx-px", "bench", time="real", history_records=records, direct=True)) as trial:
        (client,) = trial.clients(1)
        for _ in range(effort.grant_rounds):
            pair = measure_pair(trial.server, effort.grants)
            began_ns = trial.mono_ns
            client.start_hold(turns=effort.grants)
            done = client.finish()
            took_us = (trial.mono_ns - began_ns) / 1000
            if done.turns != effort.grants:
                raise click.ClickException(f"only {done.turns} of {effort.grants} acquires were granted")
            rounds.append((took_us / effort.grants, pair.us))
    return rounds


def measure_proxy(effort: Effort) -> list[Row]:
    """The round-trip time that the proxy adds and the throughput that it leaves, compared with HAProxy, on one core."""
    everywhere = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(everywhere)})
    try:
        trips, rates = proxy.measure(effort.proxy_rounds, effort.proxy_requests)
    except Inconclusive as reason:
        raise click.ClickException(str(reason)) from None
    finally:
        os.sched_setaffinity(0, everywhere)
    reference = proxy.HAPROXY in trips
    rows = []
    for name in (proxy.HAPROXY, proxy.BARE, proxy.RULE) if reference else (proxy.BARE, proxy.RULE):
        target = proxy.added_us(trips, proxy.HAPROXY) if reference and name != proxy.HAPROXY else None
        detail = f"direct: {statistics.median(trips[proxy.DIRECT]):.1f} us, a GET at a time, one core"
        value = proxy.added_us(trips, name)
        rows.append(Row(f"{name}: round trip added", value, "us", detail, target, less_is_better=True))
    for clients, by_name in rates.items():
        thousand = statistics.median(by_name[proxy.DIRECT]) / 1000
        detail = f"direct: {thousand:.0f} k GET/s, {proxy.PIPELINE} at a time, one core"
        for name in (proxy.HAPROXY, proxy.BARE, proxy.RULE) if reference else (proxy.BARE, proxy.RULE):
            target = proxy.share(by_name, proxy.HAPROXY) if reference and name != proxy.HAPROXY else None
            left = f"{name}: throughput left, {clients} connection{'s' * (clients > 1)}"
            rows.append(Row(left, proxy.share(by_name, name), "x direct", detail, target))
    if not reference:
        rows = [replace(row, remark=f"{row.remark}; {proxy.MISSING}") for row in rows]
    return rows


def measure_libraries(effort: Effort) -> list[Row]:
    rows = []
    for library in libraries.LIBRARIES:
        if reason := libraries.missing(library):
            rows.append(Row(f"{library} in virtual time", 0, "", reason.splitlines()[0]))
            continue
        ratio, virtual_us = libraries.turn_ratio(library, effort.library_turns, effort.library_rounds)
        target = 3 if library == "redisson" else 2.5
        detail = f"{virtual_us:.0f} us in virtual time"
        rows.append(Row(f"{library}: acquire + release", ratio, "x real time", detail, target, less_is_better=True))
        took_s = statistics.median(libraries.trial_s(library) for _ in range(effort.library_rounds))
        rows.append(Row("... a gc-pause", took_s, "s", "with its servers and two programs", 1, less_is_better=True))
        rows.append(library_search_row(library, effort))
    return rows


def library_search_row(library: str, effort: Effort) -> Row:
    """A search on one core, with the start of its programs, in schedules of 20 steps: those of libraries differ."""
    everywhere = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(everywhere)})
    try:
        found = libraries.searched(library, effort.library_seconds)
    finally:
        os.sched_setaffinity(0, everywhere)
    steps_per_s = found.steps / found.tried * found.schedules_per_s
    detail = f"{found.tried:,} schedules, {steps_per_s:,.0f} steps/s, one core"
    return Row("... a search", steps_per_s / 20, "schedules/s", detail, libraries.SEARCH_TARGETS[library])


def measure_applications(effort: Effort) -> list[Row]:
    """Searches of a small service in two instances, without faults and starts, on one core."""
    rows = []
    for framework, target in applications.TARGETS.items():
        name = f"an application: {framework}"
        if reason := applications.why_not(framework):
            rows.append(Row(name, 0, "", reason.splitlines()[0]))
            continue
        speed = applications.measure_application(framework, effort.application_schedules, effort.application_rounds)
        detail = (
            f"{speed.schedules:,} schedules of {speed.requests:.1f} requests, counted as of {applications.REQUESTS}"
        )
        rows.append(Row(name, speed.per_s, "schedules/s", detail, target))
    return rows


def measure_matrix(effort: Effort) -> list[Row]:
    """The whole matrix in virtual time, each cell with its control: on Redis, and on all services. A quick run has one
    scenario."""
    redis = ",".join(lock.name for lock in locks() if lock.service == "redis")
    words = ["./lockstorm", "matrix", "--time", "virtual", "--json", *effort.matrix_words]
    rows = []
    for name, chosen, target_s in (("Redis", ["--lock", redis], 40), ("all services", [], 80)):
        began = time.perf_counter()
        done = subprocess.run([*words, *chosen], cwd=paths.ROOT, capture_output=True, text=True)
        took_s = time.perf_counter() - began
        if done.returncode != 0:
            raise click.ClickException(f"matrix: {done.stderr or done.stdout[-500:]}")
        cells = len(json.loads(done.stdout)["cells"])
        detail = f"{cells} cells, with controls"
        rows.append(Row(f"matrix, {name}", took_s, "s", detail, target_s, less_is_better=True))
    return rows


def measure_explorer(effort: Effort) -> list[Row]:
    """Commands per second of the search, compared with redis-benchmark on the same server, socket and core; and
    schedules per second on all cores."""
    request = SearchRequest("set-nx-px", clients=3, faults="pause-client", schedules=effort.schedules, keep_going=True)
    planned = plan_search(request)
    arguments = search_words(planned)
    ratios, rates = [], []
    for _ in range(effort.runs):
        with explorer_for(planned.context, 1) as explorer:
            socket = Path(explorer.jobs[0].nodes[1])
            with on_core(explorer.jobs[0].core):
                pace = 1e6 / request_us(socket, effort.explorer_requests, ("SET", "reference", "value"))
            searched = explorer.search(arguments, effort.schedules, lambda _: None)
            ratios.append(searched.tally.commands / searched.elapsed_s / pace)
        rates.append(search_schedules(planned, lambda _: None).schedules_per_s)
    detail = "three set-nx-px clients, one pause; SET, one connection, one at a time, the same core"
    return [
        Row("explorer: commands a second", statistics.median(ratios), "x benchmark", detail, 1.0),
        Row("explorer: schedules", statistics.median(rates), "a second", "the same, on all cores", 1500),
    ]


FIRST_VIOLATION_LIMIT_S = 60  # counted for a seed that finds no violation
FIRST_VIOLATIONS = {
    "set-nx-px, a pause": SearchRequest("set-nx-px", faults="pause-client"),
    "redlock, a clock step": SearchRequest("redlock", faults="clock-jump"),
    "replica-wait, a failover": SearchRequest("replica-wait", faults="failover", replicas=2),
}


def measure_first_violations(effort: Effort) -> list[Row]:
    """The time from the first schedule to the first violation; and the size of the schedule after it was minimised."""
    rows = []
    for name, request in FIRST_VIOLATIONS.items():
        planned = [
            plan_search(replace(request, seed=1 + each, seconds=FIRST_VIOLATION_LIMIT_S))
            for each in range(effort.explorer_seeds)
        ]
        results = [search_schedules(each, lambda _: None) for each in planned]
        found = [result.found for result in results if result.found]
        if not found:
            raise click.ClickException(f"{name}: {results[0].sentence}")
        took_s = [result.elapsed_ms / 1000 for result in results if result.found] + [FIRST_VIOLATION_LIMIT_S] * (
            len(results) - len(found)
        )
        choices = [len(each.choices) for each in found]
        steps = statistics.median(each.steps for each in found)
        detail = f"median of {len(results)} seeds, {len(found)} found, at most {max(took_s):.2f} s"
        rows.append(Row(f"explorer: {name}", statistics.median(took_s), "s", detail, 5, less_is_better=True))
        detail = f"at most; median {statistics.median(choices):g}; the whole schedule has {steps:g} steps"
        rows.append(Row("... choices when made smaller", max(choices), "", detail, 15, less_is_better=True))
    return rows


def measure_demo(effort: Effort) -> list[Row]:
    demo_s = median_s(effort.demos, lambda: run_quietly("./lockstorm", "demo"))
    return [Row("./lockstorm demo", demo_s, "s", "the whole command", 10, less_is_better=True)]


def show(rows: list[Row], about: Machine) -> None:
    table = Table(title=f"{about.cpu}, {about.cores} cores, Linux {about.kernel}, {about.redis}")
    for heading in ("", "measured", "promised", "", "remark"):
        table.add_column(heading, justify="right" if heading in ("measured", "promised") else "left")
    for row in rows:
        sign = "<" if row.less_is_better else ">="
        promised = "" if row.target is None else f"{sign} {row.target:g} {row.unit}"
        mark = {None: "", True: "[green]met[/green]", False: "[red]missed[/red]"}[row.met]
        table.add_row(row.name, f"{row.value:,.{2 if row.value < 10 else 1}f} {row.unit}", promised, mark, row.remark)
    console = Console()
    if not console.is_terminal:
        console.width = WIDTH  # a log has no width
    console.print(table)


PARTS: dict[str, Callable[[Effort, str], list[Row]]] = {  # with a directory for files
    "append": measure_append,
    "check": measure_check,
    "linearizable": measure_linearizable,
    "grants": lambda effort, _: measure_grants(effort),
    "proxy": lambda effort, _: measure_proxy(effort),
    "trials": lambda effort, _: measure_trials(effort),
    "matrix": lambda effort, _: measure_matrix(effort),
    "libraries": lambda effort, _: measure_libraries(effort),
    "applications": lambda effort, _: measure_applications(effort),
    "explorer": lambda effort, _: measure_explorer(effort),
    "first-violations": lambda effort, _: measure_first_violations(effort),
    "demo": lambda effort, _: measure_demo(effort),
}


@click.command()
@click.option("--quick", is_flag=True, help="Measure little: only to see that the benchmark works.")
@click.option("--only", type=click.Choice(list(PARTS)), multiple=True, help="Measure this alone; may be repeated.")
@click.option("-o", "output", type=click.Path(path_type=Path), default=paths.ROOT / "build" / "bench.json")
def main(quick: bool, only: tuple[str, ...], output: Path) -> None:
    """Measure, print a table, write a JSON file. A missed target is no failure: the machine may be busy."""
    effort = QUICK if quick else FULL
    with tempfile.TemporaryDirectory(prefix="ls-bench-") as directory:
        rows = [row for name, part in PARTS.items() if not only or name in only for row in part(effort, directory)]
    about = machine()
    show(rows, about)
    results: list[dict[str, Any]] = [{**asdict(row), "met": row.met} for row in rows]
    text = json.dumps(
        {"machine": structs.asdict(about), "effort": asdict(effort), "quick": quick, "results": results}, indent=1
    )
    output.write_text(text + "\n")


if __name__ == "__main__":
    main()
