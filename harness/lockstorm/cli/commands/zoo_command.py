"""`lockstorm zoo`."""

import os

import click

from lockstorm.base import paths
from lockstorm.base.durations import UNITS_MS
from lockstorm.base.errors import UsageError
from lockstorm.base.option_fields import choose
from lockstorm.cli.options import duration_option, json_option, names_option
from lockstorm.cli.terminal import print_result, progress_of_done
from lockstorm.search.search_plan import SCHEDULES_MOST
from lockstorm.zoo.zoo import FIXED_SCHEDULES_LEAST, SECONDS_USUAL, Hunt, run_zoo, trial_count, zoo_exit_status
from lockstorm.zoo.zoo_entries import Bug, bugs
from lockstorm.zoo.zoo_pages import show_zoo, write_record, zoo_section

INTERRUPTED = 130


@click.command("zoo")
@names_option("--bug", "NAME", "Bugs to try. Default: all in scenarios/zoo.")
@click.option("--no-explore", is_flag=True, help="Play only the scenarios, without the explorer.")
@duration_option(
    "--time-limit", "time_limit_ms", "Longest search for one bug.", 1000, UNITS_MS["h"], f"{SECONDS_USUAL}s"
)
@click.option(
    "--fixed-schedules",
    type=click.IntRange(1, SCHEDULES_MOST),
    default=FIXED_SCHEDULES_LEAST,
    show_default=True,
    help="Fewest schedules for the lock without the bug; it gets as many as the bug took if that is more.",
)
@click.option("--record", is_flag=True, help="Write the results to scenarios/zoo/record.json.")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print a GitHub table.")
@json_option
def zoo_command(
    bug: str | None,
    no_explore: bool,
    time_limit_ms: int,
    fixed_schedules: int,
    record: bool,
    as_markdown: bool,
    as_json: bool,
) -> int:
    """Test lockstorm itself with published bugs of locks: each bug must be caught, by the scenario that its entry names
    or by the explorer, and the lock without the bug must not be accused.

    \b
    Example: lockstorm zoo --bug redis-py-818,redisson-5761
    Exit status: 0 all caught, 1 a bug missed or a lock without it accused, 3 every bug that was not caught
                 could not be judged
    `lockstorm docs zoo` has the track record, and describes what is counted.
    """
    chosen = choose_bugs(bug)
    if as_json and as_markdown:
        raise UsageError("--json or --markdown, not both")
    if record and paths.IS_INSTALLED:
        raise UsageError("--record writes into a checkout of lockstorm, and this one is installed")
    if record and no_explore:
        raise UsageError("--record keeps what the explorer found: use it without --no-explore")
    if record and fixed_schedules != FIXED_SCHEDULES_LEAST:
        raise UsageError(f"--record keeps the results of --fixed-schedules {FIXED_SCHEDULES_LEAST} only")
    hunt = None if no_explore else Hunt(time_limit_ms // 1000, fixed_schedules=fixed_schedules)
    with progress_of_done(trial_count(chosen, hunt)) as on_trial:
        result = run_zoo(chosen, hunt, on_trial)
    if as_markdown:
        click.echo(zoo_section(result), nl=False)
    else:
        print_result(as_json, result, show_zoo)
    if record and (left_out := write_record(result)):
        click.echo(f"zoo: not recorded: {', '.join(left_out)}", err=True)
    if result.interrupted:
        return INTERRUPTED
    unplayed = any(entry.result == "not installed" for entry in result.entries)
    return zoo_exit_status(result) or (3 if unplayed and os.environ.get("CI") else 0)  # as in the matrix


def choose_bugs(names: str | None) -> list[Bug]:
    """The bugs with these names, or all. An unknown name is an error."""
    known = bugs()
    wanted = dict.fromkeys(names.split(",")) if names else known
    return [known[choose("bug", name, list(known))] for name in wanted]
