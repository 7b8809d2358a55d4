"""Combinations that are correct, for so many schedules that an alarm would be heard: none may ring.

make explore-soak SCHEDULES=1000000
"""

import json
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from harness.driver.campaign import Campaign, read_campaign, write_result
from harness.driver.explore import ExploreWish, explore, plan
from harness.driver.terminal import saying

FENCED = "fence-reads-and-writes"


@dataclass(frozen=True)
class Combination:
    """A wish that nothing may violate, and why."""

    wish: ExploreWish
    reason: str


# "pauses before the check": redlock's validity is checked by its clock after the last vote, and belief ends with it.
COMBINATIONS = {
    "fenced": Combination(
        ExploreWish("set-nx-px-fenced", store=FENCED, faults="pause=2", require="integrity,fencing"),
        "a token that the resource checks when it reads and when it writes",
    ),
    "redlock": Combination(
        ExploreWish("redlock", faults="pause=2", require="mutual_exclusion"),
        "a pause before the check of the validity is seen by it",
    ),
}


def soak(name: str, schedules: int, seconds: int | None, kept: Path) -> dict[str, Any]:
    """Goes on with what is kept of it, if anything is."""
    planned = plan(replace(COMBINATIONS[name].wish, schedules=schedules, seconds=seconds))
    campaign = read_campaign(kept) if kept.exists() else Campaign(planned.key, 1)
    if campaign.key != planned.key:
        raise click.ClickException(f"{kept} is of another campaign: remove it")
    with saying() as say:
        began = time.monotonic()
        return explore(
            planned,
            lambda told: say(f"{name}: {told.get('schedules', 0):,} schedules, {time.monotonic() - began:.0f} s"),
            campaign=campaign,
            keep=lambda result: write_result(kept, result),
        )


@click.command()
@click.option("--schedules", type=click.IntRange(1), default=1_000_000, show_default=True, help="Of each.")
@click.option("--seconds", type=click.IntRange(1), help="At most so long each; the next time it goes on.")
@click.option("--only", type=click.Choice([*COMBINATIONS]), multiple=True, help="Only these.")
@click.option("-o", "directory", type=click.Path(path_type=Path), required=True, help="Keep what was tried there.")
def main(schedules: int, seconds: int | None, only: tuple[str, ...], directory: Path) -> None:
    """Exit status 1 when anything was violated, 3 when nothing could be judged."""
    directory.mkdir(exist_ok=True)
    worst = 0
    for name in only or COMBINATIONS:
        result = soak(name, schedules, seconds, directory / f"{name}.json")
        worst = max(worst, result["exit"])
        click.echo(f"{name} ({COMBINATIONS[name].reason}): {result['sentence']}")
        click.echo(json.dumps({key: result.get(key) for key in ("schedules", "schedules_per_s", "injected")}))
    raise SystemExit(worst)


if __name__ == "__main__":
    main()
