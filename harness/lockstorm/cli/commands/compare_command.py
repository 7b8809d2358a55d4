"""`lockstorm compare`."""

from pathlib import Path

import click

from lockstorm.base.atomic_file import write_json
from lockstorm.base.durations import UNITS_MS, duration_text
from lockstorm.base.errors import UsageError
from lockstorm.cli.options import Numbers, duration_option, json_option, names_option, path_option, refused_option
from lockstorm.cli.terminal import check_new_file, print_result, progress
from lockstorm.compare import compare as compare_
from lockstorm.compare.compare_table import show_comparison
from lockstorm.locks.adapter import PREFIX as ADAPTER
from lockstorm.locks.adapter import searched_only_reason
from lockstorm.locks.lock_names import lock_named
from lockstorm.locks.plugin import PREFIX as PLUGIN
from lockstorm.native.library import locks_on
from lockstorm.trial.settings import CLIENT_LIMIT, GROUPED_CLIENT_LIMIT

RATE_LIMIT = 1_000_000


@click.command("compare")
@names_option("--lock", "LOCK", "Locks to measure. Default: all that live on Redis.")
@click.option(
    "--plugin", "plugins", metavar="FILE", multiple=True, help="Measure a lock of your own in C, too; may be repeated."
)
@click.option(
    "--adapter",
    "adapters",
    metavar="PROGRAM",
    multiple=True,
    help="Measure a lock library, too, through this adapter; may be repeated.",
)
@click.option(
    "--waiters",
    type=Numbers(GROUPED_CLIENT_LIMIT),
    default="1,8,64",
    show_default=True,
    help=f"Numbers of clients that contend for one lock, or none. More than {CLIENT_LIMIT} share a few processes.",
)
@click.option(
    "--rate",
    type=Numbers(RATE_LIMIT),
    default="100,1000,10000",
    show_default=True,
    help="Grants a second to sustain, in total over clients that do not contend; or none.",
)
@duration_option("--duration", "duration_ms", "Length of each measurement.", 10, UNITS_MS["min"], "1s")
@duration_option("--work", "work_ms", "How long each of the --waiters holds the lock.", 0, UNITS_MS["min"], "0ms")
@refused_option(
    "--config",
    "what is measured would be the cost of this machine's disk and not of yours; run, storm and matrix have it",
)
@path_option("-o", "output", help="Write the JSON object into this file, too.")
@json_option
def compare_command(
    lock: str | None,
    plugins: tuple[str, ...],
    adapters: tuple[str, ...],
    waiters: tuple[int, ...],
    rate: tuple[int, ...],
    duration_ms: int,
    work_ms: int,
    output: Path | None,
    as_json: bool,
) -> int:
    """Measure what each lock costs in real time: requests, bytes and CPU per grant, hand-over, throughput, overtaking.

    \b
    Example: lockstorm compare --lock set-nx-px,setnx --waiters 1,8 --rate none
             lockstorm compare --lock set-nx-px --plugin ./my.so
             lockstorm compare --lock set-nx-px,pubsub --adapter ./mine
    `lockstorm docs compare` explains the columns, and what not to conclude from them.
    """
    default = locks_on("redis") if not plugins and not adapters else []
    chosen = [lock_named(name) for name in lock.split(",")] if lock is not None else default
    chosen = [*chosen, *(lock_named(PLUGIN + file) for file in plugins)]
    chosen += [lock_named(ADAPTER + program) for program in adapters]
    for each in chosen:
        if reason := searched_only_reason(each):
            raise UsageError(reason)
        if each.service != "redis":
            raise UsageError(f"what a lock costs is measured on redis-servers, and {each.name} lives on {each.service}")
    loads = compare_.loads(waiters, rate, work_ms)
    if not loads:
        raise UsageError("--waiters none --rate none leaves nothing to measure")
    if work_ms >= duration_ms:
        raise UsageError(f"--work {duration_text(work_ms)}: less than --duration {duration_text(duration_ms)}")
    for each in chosen:
        compare_.check_loads(each, loads)
    check_new_file("-o", output)
    with progress(len(chosen) * len(loads)) as report:
        result = compare_.compare_locks(chosen, loads, duration_ms, report)
    if output:
        write_json(output, result)
    print_result(as_json, result, show_comparison)
    return 0 if any(cell.measured for cell in result.cells) else 3
