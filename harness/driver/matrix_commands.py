"""The commands about the matrix: the demo that leads to it, the matrix itself, and the advice that is read from it."""

import contextlib
import os
import sys
from pathlib import Path
from typing import Any

import click

from harness.driver import advise as advise_
from harness.driver import advise_table, matrix_pages, matrix_table
from harness.driver import demo as demo_
from harness.driver import matrix as matrix_
from harness.driver.cells import Trio
from harness.driver.errors import UsageError
from harness.driver.expected import pairs
from harness.driver.play import DURATION_LIMIT_MS, SEED_LIMIT, check_range, choose, lock_named, scenario_named
from harness.driver.terminal import Duration, console, json_option, print_json, progress_of_done, waiting
from harness.driver.trial import STORES, TIMES

INTERRUPTED = 130


@click.command()
@json_option
def demo(as_json: bool) -> int:
    """Five famous ways in which a distributed lock fails, on real servers, and what saves each.

    \b
    Example: lockstorm demo
    """
    with waiting("ten trials ...") if as_json else contextlib.nullcontext():
        done = demo_.perform(None if as_json else console())
    if as_json:
        print_json(done)
    return int(done["exit"])


@click.command()
@click.option("--lock", metavar="LOCK,…", help="Only these; default: all that `lockstorm locks` lists.")
@click.option("--scenario", metavar="SCENARIO,…", help="Only these; default: all that `lockstorm scenarios` lists.")
@click.option("--store", metavar="MODE,…", help="Only these store modes; default: all that a lock can be used with.")
@click.option(
    "--time", "time_", metavar="virtual|real", help="Default: virtual, and real what only real time can play."
)
@click.option("--repeat", type=click.IntRange(1, 1000), default=1, show_default=True, help="Trials a cell.")
@click.option("--seed", type=int, default=1, show_default=True, help="Of the first trial; the others count on.")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print GitHub tables.")
@json_option
def matrix(
    lock: str | None,
    scenario: str | None,
    store: str | None,
    time_: str | None,
    repeat: int,
    seed: int,
    as_markdown: bool,
    as_json: bool,
) -> int:
    """Every lock against every scenario, with its control, held against the table of expected verdicts.

    \b
    Example: lockstorm matrix --scenario gc-pause,gc-pause-read --store open
    Exit status: 0 all as expected, 1 a cell is not, 3 nothing but inconclusive ones are not
    docs/matrix.md has the whole table, and says how to read it.
    """
    wanted = choose_cells(lock, scenario, store, time_)
    check_range("--seed", seed, 0, SEED_LIMIT - repeat)
    if as_json and as_markdown:
        raise UsageError("--json or --markdown, not both")
    with progress_of_done(len(wanted) * 2 * repeat) as tell:
        result = matrix_.matrix(wanted, time_, repeat, seed, tell)
    if as_json:
        print_json(result)
    elif as_markdown:
        click.echo(matrix_pages.tables(result), nl=False)
    else:
        matrix_table.show(console(), result)
    if result["interrupted"]:
        return INTERRUPTED
    wrong = [cell for cell in result["cells"] if not cell["ok"]]
    if result["not_installed"] and (not result["cells"] or os.environ.get("CI")):
        return 3  # in CI a cell that nobody has played proves nothing
    if not wrong:
        return 0
    return 3 if all("inconclusive" in (cell["result"], cell["control"]) for cell in wrong) else 1


def choose_cells(lock: str | None, scenario: str | None, store: str | None, time: str | None) -> list[Trio]:
    """The cells that fit all of the comma-separated names; an unknown name is an error, and so is an empty choice."""
    locks = {lock_named(name)["name"] for name in lock.split(",")} if lock else None
    scenarios = {scenario_named(name).name for name in scenario.split(",")} if scenario else None
    stores = {choose("store mode", name, list(STORES)) for name in store.split(",")} if store else None
    if time is not None:
        choose("time", time, list(TIMES))
    wanted = [
        trio
        for trio in pairs()
        if (not scenarios or trio[0] in scenarios)
        and (not locks or trio[1] in locks)
        and (not stores or trio[2] in stores)
    ]
    playable = [trio for trio in wanted if matrix_.time_of(*trio[:2], time)]
    if wanted and not playable:
        raise UsageError(f"none of these scenarios can be played in {time} time")
    if not wanted:
        raise UsageError(why_empty(scenarios, locks))
    return wanted


def why_empty(scenarios: set[str] | None, locks: set[str] | None) -> str:
    """Why no cell fits a choice."""
    if scenarios and locks:
        reasons = [pair["reason"] for pair in matrix_.unfit(scenarios, locks)]
        if len(reasons) == len(scenarios) * len(locks):
            return f"no cell fits: {'; '.join(dict.fromkeys(reasons))}"
    return "no cell fits: a store mode other than open needs a lock with tokens"


@click.command()
@click.option("--for", "purpose", metavar="PURPOSE", help="efficiency or correctness: what a lock that fails costs.")
@click.option("--resource", metavar="KIND", help="plain (default) or checks-tokens: what the protected resource does.")
@click.option("--servers", metavar="KIND", help="single, replicas, five or etcd. Default: whatever the lock needs.")
@click.option("--hold", type=Duration(), help="How long the lock is held at the longest: 200ms, 5m.")
@click.option("--contention", metavar="low|high", help="Whether many wait for the same lock.")
@click.option(
    "--from", "from_", type=click.Path(path_type=Path), help="What matrix --json printed; default: the table."
)
@json_option
def advise(
    purpose: str | None,
    resource: str | None,
    servers: str | None,
    hold: int | None,
    contention: str | None,
    from_: Path | None,
    as_json: bool,
) -> int:
    """Which locks survive what, for your needs, from what the matrix has measured. Asks when nothing is given.

    \b
    Example: lockstorm advise --for correctness --resource checks-tokens --servers single
    Exit status: 0 there is an answer, 3 nothing was measured for these needs
    """
    given = (purpose, resource, servers, hold, contention)
    asking = not any(value is not None for value in given) and not as_json
    if asking and sys.stdin.isatty() and sys.stdout.isatty():
        needs = ask()
    else:
        needs = needs_of(purpose, resource, servers, hold, contention)
    cells, source = advise_.read_cells(from_)
    advice = advise_.advise(needs, cells, source)
    if as_json:
        print_json(advice)
    else:
        advise_table.show(console(), advice)
    known = any(option["survives"] or option["damaged"] or option["stuck"] for option in advice["options"])
    return 0 if known else 3


def needs_of(
    purpose: str | None, resource: str | None, servers: str | None, hold_ms: int | None, contention: str | None
) -> advise_.Needs:
    if purpose is None:
        raise UsageError("--for efficiency or --for correctness? Without options, lockstorm advise asks on a terminal")
    choose("purpose", purpose, list(advise_.PURPOSES))
    choose("resource", resource or "plain", list(advise_.RESOURCES))
    if servers is not None:
        choose("kind of servers", servers, list(advise_.SERVERS))
    if contention is not None:
        choose("contention", contention, list(advise_.CONTENTION))
    check_range("--hold", hold_ms, 1, DURATION_LIMIT_MS)
    return advise_.Needs(purpose, resource or "plain", servers, hold_ms, contention)


def ask() -> advise_.Needs:
    """The same, question by question."""
    purpose = ask_one("What does a lock that fails cost?", advise_.PURPOSES)
    resource = ask_one("What does the protected resource do?", advise_.RESOURCES)
    servers = ask_one("What is there to keep the lock?", advise_.SERVERS)
    hold_ms = click.prompt("How long is it held at the longest? (200ms, 5m)", type=Duration(), default="1s")
    contention = click.prompt("Do many wait for it?", type=click.Choice(advise_.CONTENTION), default="low")
    click.echo()
    return needs_of(purpose, resource, servers, hold_ms, contention)


def ask_one(question: str, answers: dict[str, str]) -> Any:
    click.echo(question)
    for answer, meaning in answers.items():
        click.echo(f"  {answer}: {meaning}")
    return click.prompt("", prompt_suffix="> ", type=click.Choice(list(answers)), default=next(iter(answers)))
