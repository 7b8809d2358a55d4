"""`lockstorm advise`."""

import sys
from pathlib import Path

import click

from lockstorm.base.errors import UsageError
from lockstorm.base.option_fields import Option, choose
from lockstorm.cli.options import Duration, json_option, option_from, path_option
from lockstorm.cli.terminal import print_result
from lockstorm.matrix import candidates, service_kinds
from lockstorm.matrix.advice import advise_locks
from lockstorm.matrix.advice_result import Needs
from lockstorm.matrix.advice_table import show_advice
from lockstorm.trial.settings import DURATION_LIMIT_MS

HOLD = Option("--hold", "Longest time for which the lock is held.", "duration", within=(1, DURATION_LIMIT_MS))


@click.command("advise")
@click.option("--for", "purpose", metavar="PURPOSE", help="What the lock is for: efficiency or correctness.")
@click.option("--resource", metavar="KIND", help="What the protected resource does: plain (default) or checks-tokens.")
@click.option(
    "--servers",
    metavar="KIND",
    help="Servers at hand: single, replicas or five (Redis), etcd, zookeeper or postgres. Default: Redis, as the lock "
    "needs it.",
)
@option_from("hold_ms", HOLD)
@click.option("--contention", metavar="low|high", help="Whether many clients wait for the same lock.")
@path_option("--from", "from_", help="Output of matrix --json to read. Default: the table of expected verdicts.")
@path_option(
    "--costs", help="Output of compare --json to read: what locks cost on your machine. Default: no measured costs."
)
@json_option
def advise_command(
    purpose: str | None,
    resource: str | None,
    servers: str | None,
    hold_ms: int | None,
    contention: str | None,
    from_: Path | None,
    costs: Path | None,
    as_json: bool,
) -> int:
    """Recommend locks for your needs, and compare kinds of services, from what the matrix has measured. Without options
    it asks.

    \b
    Example: lockstorm advise --for correctness --resource checks-tokens --servers single
    Exit status: 0 there is an answer, 3 nothing was measured for these needs
    """
    given = (purpose, resource, servers, hold_ms, contention)
    asking = not any(value is not None for value in given) and not as_json
    if asking and sys.stdin.isatty() and sys.stdout.isatty():
        needs = ask()
    else:
        needs = needs_of(purpose, resource, servers, hold_ms, contention)
    cells, source = candidates.read_cells(from_)
    advice = advise_locks(needs, cells, source, service_kinds.read_costs(costs))
    print_result(as_json, advice, show_advice)
    return 0 if any(option.known for option in advice.options) else 3


def needs_of(
    purpose: str | None, resource: str | None, servers: str | None, hold_ms: int | None, contention: str | None
) -> Needs:
    if purpose is None:
        raise UsageError("--for efficiency or --for correctness? Without options, lockstorm advise asks on a terminal")
    choose("purpose", purpose, list(candidates.PURPOSES))
    choose("resource", resource or "plain", list(candidates.RESOURCES))
    if servers is not None:
        choose("kind of servers", servers, list(candidates.SERVERS))
    if contention is not None:
        choose("contention", contention, list(candidates.CONTENTION))
    return Needs(purpose, resource or "plain", servers, hold_ms, contention)


def ask() -> Needs:
    purpose = ask_one("What does a lock that fails cost?", candidates.PURPOSES)
    resource = ask_one("What does the protected resource do?", candidates.RESOURCES)
    servers = ask_one("What is there to keep the lock?", candidates.SERVERS)
    hold_ms = click.prompt("How long is it held at the longest? (200ms, 5min)", type=Duration(HOLD), default="1s")
    contention = click.prompt("Do many clients wait for it?", type=click.Choice(candidates.CONTENTION), default="low")
    click.echo()
    return needs_of(purpose, resource, servers, hold_ms, contention)


def ask_one(question: str, answers: dict[str, str]) -> str:
    click.echo(question)
    for answer, meaning in answers.items():
        click.echo(f"  {answer}: {meaning}")
    return str(click.prompt("", prompt_suffix="> ", type=click.Choice(list(answers)), default=next(iter(answers))))
