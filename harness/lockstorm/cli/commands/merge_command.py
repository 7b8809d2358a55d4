"""`lockstorm merge`."""

from pathlib import Path

import click
from msgspec import structs

from lockstorm.base.atomic_file import write_json
from lockstorm.cli.options import json_option, path_option
from lockstorm.cli.search_table import show_search
from lockstorm.cli.terminal import check_new_file, print_result
from lockstorm.search.campaign import read_campaign
from lockstorm.search.explore import merged


@click.command("merge")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@path_option("-o", "output", help="Write the joint campaign to this file.")
@json_option
def merge_command(files: tuple[Path, ...], output: Path | None, as_json: bool) -> int:
    """Join the shards of a campaign: the result is that of one search that has tried all their schedules.

    \b
    Example: lockstorm merge one.json two.json
             after lockstorm explore --lock fair --schedules 100000 --shard 1/2 --result one.json, and 2/2
    """
    check_new_file("-o", output)
    result = merged([(str(path), read_campaign(path)) for path in files])
    if output:
        write_json(output, result, indent=1)
    campaign = result.campaign
    assert campaign
    missing = campaign.shards - len(campaign.digests)
    if missing:
        click.echo(f"merge: {missing} of {campaign.shards} shards are missing", err=True)
    print_result(as_json, structs.replace(result, campaign=None), show_search, None, quiet=True)
    return result.exit
