"""`lockstorm campaign`."""

from pathlib import Path

import click

from lockstorm.base.errors import UsageError
from lockstorm.campaigns.campaign_run import CampaignRun, begin_campaign, exit_status, resume_campaign
from lockstorm.campaigns.dask_engine import LOCAL, WORKERS_MOST, DaskEngine
from lockstorm.cli.campaign_text import entry_line, show_campaign
from lockstorm.cli.options import json_option, path_option
from lockstorm.cli.terminal import print_result, progress_of_done
from lockstorm.results.campaign_result import EntryState


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
                    click.echo(entry_line(entry), err=True)

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
