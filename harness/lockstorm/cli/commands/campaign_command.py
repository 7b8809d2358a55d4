"""`lockstorm campaign`."""

import shlex
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lockstorm.base.errors import Inconclusive, UsageError
from lockstorm.base.paths import runnable
from lockstorm.campaigns.campaign_run import CampaignRun, begin_campaign, exit_status, resume_campaign
from lockstorm.campaigns.dask_engine import LOCAL, WORKERS_MOST, DaskEngine
from lockstorm.cli.options import json_option, path_option
from lockstorm.cli.terminal import print_result, progress_of_done
from lockstorm.results.campaign_result import CampaignResult, EntryState

STYLES = {0: ("ok", "green"), 1: ("VIOLATED", "red"), 3: ("unclear", "yellow"), None: ("not ended", "dim")}


def show_campaign(out: Console, result: CampaignResult, directory: Path) -> None:
    """A line for each entry, and how to go on."""
    table = Table(box=None, pad_edge=False, show_header=False)
    for entry in result.entries:
        word, style = STYLES[entry.exit]
        table.add_row(Text(word, style), Text(entry.name, "bold"), Text(entry.sentence))
        if entry.again:
            table.add_row("", "", Text(f"again: {runnable(entry.again)}", "dim"))
    out.print(table)
    out.print(Text(f"\n{result.played:,} cases played on {result.engine}; results in {directory}", "dim"))
    if result.state == "complete" and result.exit != Inconclusive.exit_status:
        return
    words = runnable(f"lockstorm campaign --resume {shlex.quote(str(directory))}")
    out.print(Text(f"go on: {words}", "dim"))


@click.command("campaign")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option(
    "--on",
    metavar="ADDRESS",
    default=LOCAL,
    show_default=True,
    help="The scheduler of a Dask cluster, as in tcp://scheduler:8786; local: a cluster of this machine's cores.",
)
@click.option("--workers", type=click.IntRange(1, WORKERS_MOST), help="Workers of --on local. Default: one per core.")
@path_option(
    "-o",
    "output",
    help="Directory for the results; it has to be new or empty. Default: the name of FILE with the end .results.",
)
@path_option("--resume", help="Go on with the campaign in this directory.")
@json_option
def campaign_command(
    file: Path | None, on: str, workers: int | None, output: Path | None, resume: Path | None, as_json: bool
) -> int:
    """Run many searches, matrices, storms and policies at once, on all cores or on a Dask cluster.

    \b
    Example: lockstorm campaign libraries.toml
             lockstorm campaign libraries.toml --on tcp://scheduler:8786 -o results
             lockstorm campaign --resume results
    Exit status: 0 everything as expected, 1 a violation or a mismatch, 3 something could not be judged
    `lockstorm docs campaigns` describes the file, the results, and clusters.
    """
    if workers is not None and on != LOCAL:
        raise UsageError("--workers is for --on local: another cluster has the workers that it has")
    run = _run(file, output, resume)
    with DaskEngine(on, workers) as engine:
        if not as_json:
            click.echo(f"campaign: {run.cases:,} cases on {engine.title}", err=True)
        with progress_of_done(run.cases) as on_case:

            def on_event(what: str, entry: EntryState | None) -> None:
                if what == "case":
                    on_case("cases")
                elif entry and entry.exit and not as_json:
                    click.echo(f"{entry.name}: {entry.sentence}", err=True)

            result = run.play(engine, on_event)
    print_result(as_json, result, show_campaign, run.directory)
    return exit_status(result)


def _run(file: Path | None, output: Path | None, resume: Path | None) -> CampaignRun:
    if resume:
        if file or output:
            raise UsageError("--resume names the directory, which has the file: neither FILE nor -o beside it")
        return resume_campaign(resume)
    if file is None:
        raise UsageError("FILE is missing: `lockstorm docs campaigns` describes it")
    return begin_campaign(file, output or Path(f"{file.stem}.results"))
