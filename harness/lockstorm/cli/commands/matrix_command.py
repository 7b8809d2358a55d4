"""`lockstorm matrix`."""

import os

import click

from lockstorm.base import paths
from lockstorm.base.errors import UsageError
from lockstorm.base.option_fields import check_range
from lockstorm.cli.options import json_option, names_option
from lockstorm.cli.terminal import print_result, progress_of_done
from lockstorm.locks.lock_names import lock_named
from lockstorm.matrix import matrix as matrix_
from lockstorm.matrix.matrix import choose_cells
from lockstorm.matrix.matrix_pages import matrix_tables
from lockstorm.matrix.matrix_table import show_matrix
from lockstorm.scenario.cells import CellKey
from lockstorm.servers.deployment import deployment_named
from lockstorm.trial.settings import CONFIG_HELP, SEED_LIMIT, SERVER_HELP

INTERRUPTED = 130


@click.command("matrix")
@names_option("--lock", "LOCK", "Locks to play. Default: all that `lockstorm locks` lists.")
@names_option("--scenario", "SCENARIO", "Scenarios to play. Default: all that `lockstorm scenarios` lists.")
@names_option("--store", "MODE", "Store modes to play. Default: all that a lock can be used with.")
@click.option(
    "--time",
    "time_",
    metavar="virtual|real",
    help="Kind of time. Default: virtual; real for what only real time can play.",
)
@click.option(
    "--repeat", type=click.IntRange(1, 1000), default=1, show_default=True, help="Number of trials of each cell."
)
@click.option(
    "--seed",
    type=int,
    default=1,
    show_default=True,
    help="Seed of the first trial; each further trial uses the next seed.",
)
@click.option("--server", metavar="PROGRAM", help=f"{SERVER_HELP} Plays the locks on Redis only.")
@click.option(
    "--config",
    metavar="FILE",
    help=f"{CONFIG_HELP} Plays the locks whose servers it configures; a mismatch is then what it changes.",
)
@click.option("--markdown", "as_markdown", is_flag=True, help="Print the result as GitHub tables.")
@json_option
def matrix_command(
    lock: str | None,
    scenario: str | None,
    store: str | None,
    time_: str | None,
    repeat: int,
    seed: int,
    server: str | None,
    config: str | None,
    as_markdown: bool,
    as_json: bool,
) -> int:
    """Play every lock in every scenario, with its control, and compare the verdicts with the expected ones.

    \b
    Example: lockstorm matrix --scenario gc-pause,gc-pause-read --store open
             lockstorm matrix --lock redlock --config redis.conf
    Exit status: 0 all as expected, 1 a mismatch, 3 every mismatch is inconclusive
    `lockstorm docs matrix` has the whole table and explains how to read it.
    """
    chosen = choose_cells(lock, scenario, store, time_)
    if server:
        paths.redis_server(server)
        chosen = [key for key in chosen if lock_named(key[1]).service == "redis"]
        if not chosen:
            raise UsageError("--server is for locks on Redis, and none is chosen")
    chosen = configured_cells(chosen, config)
    check_range("--seed", seed, 0, SEED_LIMIT - repeat)
    if as_json and as_markdown:
        raise UsageError("--json or --markdown, not both")
    with progress_of_done(len(chosen) * 2 * repeat) as report:
        result = matrix_.play_matrix(chosen, time_, repeat, seed, report, server=server, config=config)
    if as_markdown:
        click.echo(matrix_tables(result), nl=False)
    else:
        print_result(as_json, result, show_matrix)
    if result.interrupted:
        return INTERRUPTED
    return matrix_.matrix_exit_status(result, needs_all=bool(os.environ.get("CI")))  # in CI nothing may be left out


def configured_cells(cell_keys: list[CellKey], config: str | None) -> list[CellKey]:
    """The cells of locks whose servers the file configures; without a file all. Raises UsageError without any."""
    if not config:
        return cell_keys
    deployment = deployment_named(config)
    found = [cell_key for cell_key in cell_keys if deployment.is_about(lock_named(cell_key[1]).service)]
    if not found:
        raise UsageError(f"--config {config} configures the servers of none of the chosen locks")
    return found
