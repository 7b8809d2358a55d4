"""What `lockstorm attach` prints: what would be touched, and what became of it."""

from dataclasses import asdict

import msgspec

from lockstorm.attach.gateway import Gateway
from lockstorm.attach.run_names import counted, planned_traces
from lockstorm.attach.team_fault import TeamFault
from lockstorm.results.verdict import TrialResult
from lockstorm.scenario.attached_play import AttachedRun

KINDS = {"single": "server", "sentinel": "master under sentinels", "cluster": "cluster"}


def describe_place(run: AttachedRun) -> str:
    """The server in one line."""
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
