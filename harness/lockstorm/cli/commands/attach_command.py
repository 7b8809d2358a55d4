"""`lockstorm attach`."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.table import Table
from rich.text import Text

from lockstorm.attach.gateway import Gateway
from lockstorm.attach.run_names import counted, planned_traces
from lockstorm.attach.server_address import parse_address, tls_files
from lockstorm.attach.team_fault import USUAL_FILE, TeamFault, chosen_faults
from lockstorm.base.errors import UsageError
from lockstorm.base.paths import runnable
from lockstorm.cli import options
from lockstorm.cli.terminal import check_new_file, console, print_json, waiting
from lockstorm.gate.gate_judge import FAILED, INCONCLUSIVE, PASSED
from lockstorm.gate.gate_text import MARK, STYLE, show_case
from lockstorm.report.story import show_result
from lockstorm.results.statistics import count_outcomes
from lockstorm.results.verdict import TrialResult
from lockstorm.scenario.attached_play import AttachedRun, plan_attached
from lockstorm.scenario.baseline import baseline_in_short
from lockstorm.trial.settings import ATTACHED_OPTIONS, TrialSettings

LEASE_HELP = "Lease of the lock. Default: 400ms, longer in scenarios where it must not end."


@click.command("attach")
@click.argument("url")
@options.adapter_option
@options.lock_option
@options.plugin_option
@options.names_option("--scenario", "SCENARIO", "Scenarios to play. Default: all that apply to the lock.")
@options.names_option("--fault", "FAULT", "Faults of your own to inject during a workload; --faults names their file.")
@options.path_option(
    "--faults",
    "faults_file",
    help=f"File with your own faults, as tables [fault.NAME]. Default: {USUAL_FILE}.",
)
@options.path_option("--ca", help="File with the certificates that sign the servers' (TLS).")
@options.path_option(
    "--client-cert",
    envvar="LOCKSTORM_CLIENT_CERT",
    help="File with a certificate of your own for the servers (TLS). Default: what LOCKSTORM_CLIENT_CERT names.",
)
@options.path_option(
    "--client-key",
    envvar="LOCKSTORM_CLIENT_KEY",
    help="File with its key. Default: what LOCKSTORM_CLIENT_KEY names, or the file of the certificate.",
)
@options.field_options(TrialSettings, *ATTACHED_OPTIONS, lease_ms=LEASE_HELP)
@click.option("--dry-run", is_flag=True, help="Print what would be touched, and touch nothing.")
@click.option("--yes", is_flag=True, help="Continue even if the target database is not empty.")
@options.path_option("-o", "output", help="Save the history of the one trial in this file.")
@options.failed_only_option
@options.json_option
def attach_command(
    url: str,
    adapter: str | None,
    lock: str | None,
    plugin: str | None,
    scenario: str | None,
    fault: str | None,
    faults_file: Path | None,
    ca: Path | None,
    client_cert: Path | None,
    client_key: Path | None,
    dry_run: bool,
    yes: bool,
    output: Path | None,
    quiet: bool,
    as_json: bool,
    **chosen: Any,
) -> int:
    """Try a lock on servers that lockstorm did not start: those of a staging environment, at URL.

    URL begins with redis://, postgresql://, etcd:// or zookeeper://. Clients, links and messages are broken as ever;
    servers only by commands of yours (--fault). The password is read from the variable LOCKSTORM_PASSWORD, or from the
    one that the URL names: ?password-env=NAME. All that is made there has lockstorm and attach in its name and is
    removed at the end; --dry-run lists it. `lockstorm docs attach` has more.

    \b
    Example: lockstorm attach redis://staging:6379/9 --adapter ./mine --dry-run
    """
    files = tls_files(ca, client_cert, client_key, Path.cwd())
    gateway = Gateway(parse_address(url), files, faults_file or USUAL_FILE, yes=yes)
    request = TrialSettings(
        options.chosen_lock(lock, adapter, plugin), **options.given_options(TrialSettings, chosen), time="real"
    )
    run = plan_attached(gateway, request, _names(scenario), chosen_faults(faults_file, _names(fault)))
    if output and len(run.trials) != 1:
        raise UsageError(f"-o is for one trial, and there are {len(run.trials)}: name one by --scenario or --fault")
    check_new_file("-o", output)
    with gateway:
        run.servers.look()
        if not dry_run:
            _play(run, gateway, output, is_shown=not (quiet or as_json))
    if as_json:
        print_json(attach_result(run, dry_run=dry_run))
    elif dry_run:
        console().print(Text(plan_text(run)))
    else:
        show_end(run, gateway, quiet=quiet)
    return run.exit


def _names(given: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in given.split(",")) if given else ()


def _play(run: AttachedRun, gateway: Gateway, output: Path | None, *, is_shown: bool) -> None:
    if not gateway.yes:
        run.servers.check_touchable()
    for index in range(len(run.trials)):
        scenario, _ = run.trials[index]
        with waiting(f"{scenario.name} with {run.lock.name} at {gateway.address.shown} ..."):
            result = run.play_next(output)
        if is_shown:
            console().print(Text(scenario.name, "bold"))
            show_result(console(), result, None)
            console().print(Text(f"again: {runnable(result.replay)}\n", "dim"))


OUTCOMES = {0: PASSED, 1: FAILED}  # by exit status; any other one is inconclusive


def show_end(run: AttachedRun, gateway: Gateway, *, quiet: bool) -> None:
    """What was cleaned up, a line for each trial, and how many passed. `quiet`: only trials that did not pass."""
    outcomes = [OUTCOMES.get(result.exit, INCONCLUSIVE) for result in run.results]
    table = Table(box=None, padding=(0, 1), show_header=False)
    for (scenario, _), result, outcome in zip(run.trials, run.results, outcomes, strict=False):
        words = f"{result.sentence}{baseline_in_short(result.baseline)}"
        if not quiet:
            table.add_row(Text(MARK[outcome], STYLE[outcome]), Text(scenario.name, "bold"), words)
        elif outcome != PASSED:
            show_case(console(), outcome, scenario.name, words, result.replay)
    if table.rows:
        console().print(table, "")
    console().print(Text("\n".join(end_lines(gateway)), "dim"))
    style = {0: "bold green", 1: "bold red"}.get(run.exit, "bold yellow")
    console().print(Text(count_outcomes(outcomes), style))


KINDS = {"single": "server", "sentinel": "master under sentinels", "cluster": "cluster"}


def describe_place(run: AttachedRun) -> str:
    assert run.servers.survey
    address, survey = run.servers.gateway.address, run.servers.survey
    where = f"{KINDS[address.kind]} at {address.shown}{' by TLS' if address.tls else ''}, version {survey.version}"
    return f"{where}: {run.servers.place} has {counted(address.service, survey.keys)}"


def plan_text(run: AttachedRun) -> str:
    lines = [
        f"server     {describe_place(run)}",
        *(f"{kind:<10} {text}" for kind, text in planned_traces(run.servers.gateway.address, run.lock.name)),
        f"lock       {run.lock.name}",
        *(f"scenario   {scenario.name}: {scenario.summary}" for scenario, _ in run.trials),
        *(line for fault in run.faults for line in _fault_lines(fault)),
        "nothing was touched: this was a dry run",
    ]
    return "\n".join(lines)


def _fault_lines(fault: TeamFault) -> list[str]:
    return [
        f"command    {fault.name}: {kind} = {command}"
        for kind, command in (("inject", fault.inject), ("prove", fault.prove), ("heal", fault.heal))
        if command
    ]


def end_lines(gateway: Gateway) -> list[str]:
    """What was cleaned up at the end, and what went wrong on the way."""
    removed = counted(gateway.address.service, gateway.removed)
    is_schema = gateway.address.service == "postgres"
    lines = [f"dropped the schema of this run with {removed}" if is_schema else f"removed {removed} of this run"]
    for fault, failure in gateway.healed.items():
        lines.append(f"heal of the fault {fault} {failure}" if failure else f"healed the fault {fault}")
    lines += [f"{count} x a connection of a client was closed: {why}" for why, count in gateway.failures.items()]
    return lines


class SurveyedServer(msgspec.Struct, frozen=True):
    service: str
    kind: str
    tls: bool
    version: str
    database: int | str
    keys: int
    slot: int | None


class AttachResult(msgspec.Struct, frozen=True, kw_only=True):
    """What `lockstorm attach --json` prints."""

    url: str
    server: SurveyedServer
    prefix: str  # of the names of all that the run makes
    lock: str
    scenarios: list[str]
    faults: list[TeamFault]
    dry_run: bool
    trials: list[TrialResult]
    removed: int
    healed: dict[str, str]
    closed: dict[str, int]  # connections of clients, by the reason
    exit: int


def attach_result(run: AttachedRun, *, dry_run: bool) -> AttachResult:
    assert run.servers.survey
    gateway, survey = run.servers.gateway, run.servers.survey
    address = gateway.address
    return AttachResult(
        url=address.url,
        server=SurveyedServer(address.service, address.kind, address.tls, **asdict(survey)),
        prefix=gateway.run,
        lock=run.lock.name,
        scenarios=[scenario.name for scenario, _ in run.trials],
        faults=list(run.faults),
        dry_run=dry_run,
        trials=list(run.results),
        removed=gateway.removed,
        healed=gateway.healed,
        closed=gateway.failures,
        exit=run.exit,
    )
