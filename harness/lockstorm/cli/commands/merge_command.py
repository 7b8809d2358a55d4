"""`lockstorm merge`."""

from pathlib import Path

import click

from lockstorm.base.errors import UsageError
from lockstorm.cli.library_text import show_library_search
from lockstorm.cli.options import check_new_file, json_option
from lockstorm.cli.search_table import show_search
from lockstorm.cli.terminal import console, print_json
from lockstorm.search.campaign import Campaign, read_campaign, write_result
from lockstorm.search.library_campaign import LibraryCampaign
from lockstorm.search.library_search import merged_library
from lockstorm.search.search_result import merged


@click.command("merge")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "output", type=click.Path(path_type=Path), help="Write the joint campaign to this file.")
@json_option
def merge_command(files: tuple[Path, ...], output: Path | None, as_json: bool) -> int:
    """Join the shards of a campaign: the result is that of one search that has tried all their schedules.

    \b
    Example: lockstorm merge one.json two.json
             after lockstorm explore --lock fair --schedules 100000 --shard 1/2 --result one.json, and 2/2
    """
    check_new_file("-o", output)
    named = [(str(path), read_campaign(path, (LibraryCampaign, Campaign))) for path in files]
    of_library = [(name, each) for name, each in named if isinstance(each, LibraryCampaign)]
    if of_library and len(of_library) < len(named):
        raise UsageError("some of these are campaigns of a library, and some of a C lock: they cannot be joined")
    result = merged_library(of_library) if of_library else merged(named)
    if output:
        write_result(output, result)
    campaign = result.pop("campaign")
    missing = campaign["shards"] - len(campaign["parts"])
    if missing:
        click.echo(f"merge: {missing} of {campaign['shards']} shards are missing", err=True)
    if as_json:
        print_json(result)
    elif of_library:
        show_library_search(console(), result, quiet=True)
    else:
        show_search(console(), result, None)
    return int(result["exit"])
