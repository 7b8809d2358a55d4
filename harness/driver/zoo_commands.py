"""`lockstorm zoo`."""

import os

import click

from harness.driver import zoo_pages, zoo_table
from harness.driver.errors import UsageError
from harness.driver.explore import SCHEDULES_MOST
from harness.driver.play import choose
from harness.driver.terminal import console, json_option, names_option, print_json, progress_of_done
from harness.driver.zoo import FIXED_SCHEDULES_LEAST, SECONDS_USUAL, Hunt, exit_status, pieces_of
from harness.driver.zoo import zoo as zoo_
from harness.driver.zoo_entries import Bug, bugs

SECONDS_MOST = 3600
INTERRUPTED = 130


@click.command()
@names_option("--bug", "NAME", "Only these; default: all of scenarios/zoo.")
@click.option("--no-explore", is_flag=True, help="Only their scenarios; the explorer hunts nothing.")
@click.option(
    "--seconds",
    type=click.IntRange(1, SECONDS_MOST),
    default=SECONDS_USUAL,
    show_default=True,
    help="How long the explorer hunts one bug at most.",
)
@click.option(
    "--fixed-schedules",
    type=click.IntRange(1, SCHEDULES_MOST),
    default=FIXED_SCHEDULES_LEAST,
    show_default=True,
    help="How many schedules a lock without the bug gets, if the bug did not take more.",
)
@click.option("--record", is_flag=True, help="Keep what was found for docs/zoo.md (scenarios/zoo/record.json).")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print a GitHub table.")
@json_option
def zoo(
    bug: str | None,
    no_explore: bool,
    seconds: int,
    fixed_schedules: int,
    record: bool,
    as_markdown: bool,
    as_json: bool,
) -> int:
    """Proof that the alarm rings: bugs that people had with their locks, each of which has to be caught - by the
    scenario that its entry names, and by the explorer alone - while the lock without it is not accused.

    \b
    Example: lockstorm zoo --bug redis-py-818,redisson-5761
    Exit status: 0 all caught, 1 one missed or a lock without it accused, 3 nothing but inconclusive ones are not
    docs/zoo.md has the track record, and says what is counted.
    """
    chosen = choose_bugs(bug)
    if as_json and as_markdown:
        raise UsageError("--json or --markdown, not both")
    if record and no_explore:
        raise UsageError("--record keeps what the explorer found: not with --no-explore")
    if record and fixed_schedules != FIXED_SCHEDULES_LEAST:
        raise UsageError(f"--record keeps what {FIXED_SCHEDULES_LEAST} --fixed-schedules come to, and no others")
    hunt = None if no_explore else Hunt(seconds, fixed_schedules=fixed_schedules)
    with progress_of_done(pieces_of(chosen, hunt)) as tell:
        result = zoo_(chosen, hunt, tell)
    if as_json:
        print_json(result)
    elif as_markdown:
        click.echo(zoo_pages.tables(result), nl=False)
    else:
        zoo_table.show(console(), result)
    if record and (left_out := zoo_pages.write_record(result)):
        click.echo(f"zoo: not recorded: {', '.join(left_out)}", err=True)
    if result["interrupted"]:
        return INTERRUPTED
    unplayed = any(entry["result"] == "not installed" for entry in result["entries"])
    return exit_status(result) or (3 if unplayed and os.environ.get("CI") else 0)  # as in the matrix


def choose_bugs(names: str | None) -> list[Bug]:
    """Those that are named; an unknown name is an error."""
    known = bugs()
    wanted = dict.fromkeys(names.split(",")) if names else known
    return [known[choose("bug", name, list(known))] for name in wanted]
