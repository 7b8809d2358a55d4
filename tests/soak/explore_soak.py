"""Searches many schedules of correct combinations of lock, store and faults: no property may be violated.

make explore-soak SCHEDULES=1000000
"""

import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import click

from lockstorm.base.atomic_file import write_json
from lockstorm.base.durations import UNITS_MS
from lockstorm.cli.options import duration_option
from lockstorm.cli.terminal import status_line
from lockstorm.search.campaign import Campaign, read_campaign
from lockstorm.search.explore import search_schedules
from lockstorm.search.search_plan import SearchRequest, plan_search
from lockstorm.search.search_result import SearchResult

FENCED = "fence-reads-and-writes"


@dataclass(frozen=True)
class Combination:
    """A request under which no property may be violated, and the reason."""

    request: SearchRequest
    reason: str


# "pauses before the check": redlock's validity is checked by its clock after the last vote, and belief ends with it.
COMBINATIONS = {
    "fenced": Combination(
        SearchRequest("set-nx-px-fenced", store=FENCED, faults="pause=2", require="integrity,fencing"),
        "a token that the resource checks when it reads and when it writes",
    ),
    "redlock": Combination(
        SearchRequest("redlock", faults="pause=2", require="mutual_exclusion"),
        "a pause before the check of the validity is seen by it",
    ),
}


def soak_explorer(name: str, schedules: int, seconds: int | None, kept: Path) -> SearchResult:
    """Searches a combination, resuming the campaign in the file `kept` if it exists."""
    plan = plan_search(replace(COMBINATIONS[name].request, schedules=schedules, seconds=seconds))
    campaign = read_campaign(kept) if kept.exists() else Campaign(key=plan.key, shards=1)
    if campaign.key != plan.key:
        raise click.ClickException(f"{kept} is of another campaign: remove it")
    with status_line() as show_status:
        began = time.monotonic()
        return search_schedules(
            plan,
            lambda progress: show_status(
                f"{name}: {progress.tally.schedules:,} schedules, {time.monotonic() - began:.0f} s"
            ),
            campaign=campaign,
            keep=partial(write_json, kept, indent=1),
        )


@click.command()
@click.option(
    "--schedules", type=click.IntRange(1), default=1_000_000, show_default=True, help="Schedules of each combination."
)
@duration_option(
    "--time-limit",
    "time_limit_ms",
    "Longest search of each combination; the next run resumes. Default: no limit.",
    1000,
    24 * UNITS_MS["h"],
)
@click.option(
    "--only",
    type=click.Choice([*COMBINATIONS]),
    multiple=True,
    help="A combination to search; may be repeated. Default: all.",
)
@click.option("-o", "directory", type=click.Path(path_type=Path), required=True, help="Directory for the campaigns.")
def main(schedules: int, time_limit_ms: int | None, only: tuple[str, ...], directory: Path) -> None:
    """Exit status: 1 a property was violated, 3 nothing could be judged."""
    directory.mkdir(exist_ok=True)
    worst = 0
    for name in only or COMBINATIONS:
        result = soak_explorer(name, schedules, time_limit_ms and time_limit_ms // 1000, directory / f"{name}.json")
        worst = max(worst, result.exit)
        click.echo(f"{name} ({COMBINATIONS[name].reason}): {result.sentence}")
        struck = ", ".join(f"{count:,} {fault}" for fault, count in result.injected.items() if count)
        click.echo(f"{result.schedules:,} schedules, {result.schedules_per_s:,} a second; {struck}")
    raise SystemExit(worst)


if __name__ == "__main__":
    main()
