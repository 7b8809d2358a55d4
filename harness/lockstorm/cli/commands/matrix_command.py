"""`lockstorm matrix`."""

import os

import click

from lockstorm.base import paths
from lockstorm.base.errors import UsageError
from lockstorm.base.option_fields import check_range, choose
from lockstorm.cli.options import json_option, names_option
from lockstorm.cli.terminal import console, print_json, progress_of_done
from lockstorm.locks.adapter import is_adapter
from lockstorm.locks.lock_names import lock_named
from lockstorm.matrix import matrix as matrix_
from lockstorm.matrix import matrix_pages, matrix_table
from lockstorm.scenario.cells import CellKey
from lockstorm.scenario.expected import pairs
from lockstorm.scenario.library_expected import library_cells
from lockstorm.scenario.play import scenario_named
from lockstorm.servers.deployment import deployment_named
from lockstorm.trial.settings import CONFIG_HELP, SEED_LIMIT, SERVER_HELP, STORES, TIMES

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
    docs/matrix.md has the whole table and explains how to read it.
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
    if as_json:
        print_json(result)
    elif as_markdown:
        click.echo(matrix_pages.matrix_tables(result), nl=False)
    else:
        matrix_table.show_matrix(console(), result)
    if result["interrupted"]:
        return INTERRUPTED
    wrong = [cell for cell in result["cells"] if not cell["ok"]]
    if result["not_installed"] and (not result["cells"] or os.environ.get("CI")):
        return 3  # in CI, a cell that was not played is a failure
    if not wrong:
        return 0
    return 3 if all("inconclusive" in (cell["result"], cell["control"]) for cell in wrong) else 1


def choose_cells(lock: str | None, scenario: str | None, store: str | None, time: str | None) -> list[CellKey]:
    """The cells that match all of the comma-separated names. Raises UsageError on an unknown name or if none match."""
    locks = {lock_named(name).name for name in lock.split(",")} if lock else None
    scenarios = {scenario_named(name).name for name in scenario.split(",")} if scenario else None
    stores = {choose("store mode", name, list(STORES)) for name in store.split(",")} if store else None
    if time is not None:
        choose("time", time, list(TIMES))
    chosen = [
        cell_key
        for cell_key in [*pairs(), *library_pairs(locks)]
        if (not scenarios or cell_key[0] in scenarios)
        and (not locks or cell_key[1] in locks)
        and (not stores or cell_key[2] in stores)
    ]
    playable = [cell_key for cell_key in chosen if matrix_.time_of(*cell_key[:2], time)]
    if chosen and not playable:
        raise UsageError(f"none of these scenarios can be played in {time} time")
    if not chosen:
        raise UsageError(why_empty(scenarios, locks))
    return chosen


def library_pairs(locks: set[str] | None) -> list[CellKey]:
    """The cells of the adapters among these locks."""
    return [cell_key for lock in sorted(locks or ()) if is_adapter(lock) for cell_key in library_cells(lock)]


def configured_cells(cell_keys: list[CellKey], config: str | None) -> list[CellKey]:
    """The cells of locks whose servers the file configures; without a file all. Raises UsageError if there is none."""
    if not config:
        return cell_keys
    deployment = deployment_named(config)
    found = [cell_key for cell_key in cell_keys if deployment.is_about(lock_named(cell_key[1]).service)]
    if not found:
        raise UsageError(f"--config {config} configures the servers of none of the chosen locks")
    return found


def why_empty(scenarios: set[str] | None, locks: set[str] | None) -> str:
    """Why no cell matches."""
    if scenarios and locks:
        reasons = [pair["reason"] for pair in matrix_.inapplicable_pairs(scenarios, locks)]
        if len(reasons) == len(scenarios) * len(locks):
            return f"no cell matches: {'; '.join(dict.fromkeys(reasons))}"
    return "no cell matches: a store mode other than open needs a lock with tokens"
