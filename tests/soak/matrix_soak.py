"""Plays the matrix repeatedly while another process uses one core: every trial must have its expected verdict.

    make soak MATRIX_REPEAT=20

In virtual time a busy machine may slow a trial down, but must not change its verdict.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from lockstorm.base import paths
from lockstorm.base.atomic_file import write_json
from lockstorm.base.paths import runnable
from lockstorm.cli.terminal import progress_of_done
from lockstorm.matrix.matrix import play_matrix
from lockstorm.results.matrix_result import MatrixResult
from lockstorm.scenario.cells import CellKey
from lockstorm.scenario.expected import pairs

BURN = "while True: pass"


@contextmanager
def burner() -> Iterator[subprocess.Popen[bytes]]:
    """A process that uses one core completely, and ends when this process ends."""
    process = subprocess.Popen([paths.program("spawn"), sys.executable, "-c", BURN])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def soak_matrix(cell_keys: list[CellKey], repeat: int, seed: int, report: Callable[[str], object]) -> MatrixResult:
    with burner():
        return play_matrix(cell_keys, None, repeat, seed, report)


def soak_report(result: MatrixResult) -> list[str]:
    """A line per cell that is not as expected; the last line is the verdict of the soak."""
    wrong = [cell for cell in result.cells if not cell.ok]
    lines = [
        f"  {cell.scenario} with {cell.lock}/{cell.store}: {cell.difference}; again: {runnable(cell.replay)}"
        for cell in wrong
    ]
    count = 2 * result.repeat * len(result.cells)
    flaky = sum("a flake" in cell.difference for cell in wrong)
    verdict = "clean" if result.ok else "FAILED"
    lines.append(f"{verdict}: {count} trials, {len(wrong)} cells not as expected, {flaky} of them flaky")
    return lines


@click.command()
@click.option(
    "--repeat", type=click.IntRange(1, 1000), default=20, show_default=True, help="Number of trials of each cell."
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    help="Seed of the first trial of each cell; each further trial uses the next seed.",
)
@click.option("-o", "output", type=click.Path(path_type=Path), help="Write the JSON object into this file.")
def main(repeat: int, seed: int, output: Path | None) -> None:
    """Play the whole matrix repeatedly. Exit status: 1 a trial was not as expected."""
    if output and not output.parent.is_dir():
        raise click.ClickException(f"-o {output}: its directory does not exist")
    cell_keys = pairs()
    with progress_of_done(len(cell_keys) * 2 * repeat) as report:
        result = soak_matrix(cell_keys, repeat, seed, report)
    if output:
        write_json(output, result)
    for line in soak_report(result):
        click.echo(line)
    raise SystemExit(0 if result.ok else 1)


if __name__ == "__main__":
    main()
